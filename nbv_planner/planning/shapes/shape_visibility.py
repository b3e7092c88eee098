"""What each view would see of each shape: the visibility walk on a uniform grid, for all shapes and views at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, IntArray, wrap_angle
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.world.scene import Scene

# (shape, view, step) entries worked on at a time: such a block stays in the cache.
_BLOCK_ENTRIES = 1 << 17


def visible_cells(shapes: Shapes, views: FloatArray, scene: Scene) -> BoolArray:
    r"""Which grid angle of which shape each view sees, shape (S, V, M).

    On either side the walk goes from the view's own angle outwards, as long as the surface is inside the cone. A grid
    angle is seen if the tangent of its bearing,

    .. math:: \tan|α| = \frac{r \sin δ}{d_{cam} - r \cos δ}

    at the angle δ from the view, is greater than all before it on the walk: on a star-shaped contour nothing else can
    hide it. Views are in radians; no radius may reach the view circle.
    """
    return _on_grid(shapes, views, scene, lambda *walks: _sight(*walks)[0], np.bool_)


def grades_of_sight(shapes: Shapes, views: FloatArray, scene: Scene, least_sine: float) -> IntArray:
    """How each grid angle is seen from the best of the views (V,), radians: 0 not, 1 grazed, 2 well; shape (S, M).

    It is seen well if the sine of the angle between the line of sight and the stretch of the surface that leads to it,
    away from the view's own angle, is at least `least_sine`. The first grid angles on either side of that are taken for
    seen well. :func:`visible_cells` defines what is seen at all.
    """
    single = Shapes(shapes.angle, shapes.radius.astype(np.float32))  # half the time
    grades = _on_grid(single, views, scene, partial(_graded_walk, least_sine=least_sine), np.uint8)
    return np.asarray(grades.max(axis=1, initial=0))


def _on_grid(
    shapes: Shapes, views: FloatArray, scene: Scene, walk: Callable[..., NDArray[Any]], dtype: type[np.generic]
) -> NDArray[Any]:
    """What `walk` finds on either side of each view, shape (S, V, M)."""
    count, size = shapes.radius.shape
    step = TWO_PI / size
    views = wrap_angle(views)
    first = np.ceil(views / step - 1e-9).astype(np.intp)
    found = np.zeros((count, len(views), size), dtype=dtype)
    steps = min(size, math.ceil(_widest_offset(shapes.radius, scene) / step) + 1)
    rows = max(1, _BLOCK_ENTRIES // max(1, len(views) * steps))
    for turn in (1, -1):
        start = first if turn > 0 else first - 1
        place = (start[:, None] + turn * np.arange(steps)) % size
        offset = np.maximum(turn * (start * step - views), 0.0)[:, None] + step * np.arange(steps)
        sin, cos = (wave.astype(shapes.radius.dtype) for wave in (np.sin(offset), np.cos(offset)))
        for begin in range(0, count, rows):
            part = slice(begin, begin + rows)
            _lay_out(found[part], walk(shapes.radius[part].take(place, axis=1), sin, cos, scene, turn), start, turn)
    return found


def _sight(
    radius: FloatArray, sin: FloatArray, cos: FloatArray, scene: Scene, turn: int
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which steps of each walk are seen, the tangent of their bearing, and how far ahead they are (metres).

    Shape (s, V, steps) each; `sin` and `cos` of the offsets are (V, steps). Bearings count from the line of sight
    outwards; those of a walk by rising angle (`turn` 1) lie to the right.
    """
    ahead = scene.view_distance - radius * cos
    aside = radius * sin
    # A walk that continues behind the centre meets nothing visible: there the offset exceeds the widest one.
    inside = aside <= math.tan(-scene.sensor.bearing_min if turn > 0 else scene.sensor.bearing_max) * ahead
    inside &= ahead * ahead + aside * aside <= scene.sensor.range_max**2
    tangent = np.divide(aside, ahead, out=aside)
    seen = np.logical_and.accumulate(inside, axis=-1)
    swept = np.maximum.accumulate(tangent, axis=-1)
    seen[..., 1:] &= tangent[..., 1:] > swept[..., :-1]
    return seen, tangent, ahead


def _graded_walk(
    radius: FloatArray, sin: FloatArray, cos: FloatArray, scene: Scene, turn: int, least_sine: float
) -> NDArray[np.uint8]:
    r"""How each step of each walk is seen (0, 1, 2), shape (s, V, steps).

    From a step to the next, the contour moves across the line of sight by
    :math:`x' Δ\tan α / \sqrt{1 + \tan^2 α}`; x' is how far ahead the first of them is, α the bearing of the other. Its
    length is :math:`\sqrt{Δr^2 + r r' (2 \sin(Δ/2))^2}`. Both are compared by their squares.
    """
    seen, tangent, ahead = _sight(radius, sin, cos, scene, turn)
    before, after = radius[..., :-1], radius[..., 1:]
    chord = np.diff(cos, axis=-1) ** 2 + np.diff(sin, axis=-1) ** 2
    across = np.diff(tangent, axis=-1)
    across *= ahead[..., :-1]
    across *= across  # where a step is seen, the tangent rises
    asked = before * after
    asked *= least_sine**2 * chord
    asked += np.square(least_sine * (after - before))
    bearing = np.square(tangent[..., 1:])
    bearing += 1.0
    asked *= bearing
    grades = seen.astype(np.uint8)
    grades[..., :1] <<= 1
    grades[..., 1:] <<= across >= asked
    return grades


def _lay_out(seen: NDArray[Any], walk: NDArray[Any], start: IntArray, turn: int) -> None:
    """Write walks (s, V, steps) that begin at `start` (V,) to their places around the circle, (s, V, M)."""
    steps, size = walk.shape[2], seen.shape[2]
    for view, begin in enumerate(start):
        # By rising angle, in at most two pieces.
        row = walk[:, view, ::turn]
        low = (begin if turn > 0 else begin - steps + 1) % size
        until = min(steps, size - low)
        seen[:, view, low : low + until] |= row[:, :until]
        seen[:, view, : steps - until] |= row[:, until:]


def _widest_offset(radius: FloatArray, scene: Scene) -> float:
    r"""Greatest angle from a view at which a surface of these radii can be in range, radians.

    :math:`d^2 = d_{cam}^2 + r^2 - 2 d_{cam} r \cos δ \le d_{DOF}^2` bounds δ; the bound is greatest at the least radius
    or at :math:`r^2 = d_{cam}^2 - d_{DOF}^2`.
    """
    least, most = max(float(radius.min()), 1e-6), max(float(radius.max()), 1e-6)
    excess = scene.view_distance**2 - scene.sensor.range_max**2
    at = min(max(math.sqrt(max(excess, 0.0)), least), most)
    cos = (excess + at**2) / (2.0 * scene.view_distance * at)
    return math.acos(min(max(cos, -1.0), 1.0))
