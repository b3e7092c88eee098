"""What each view would see of each shape: the visibility walk on a uniform grid, for all shapes and views at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    wrap_angle,
)
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

# (shape, view, step) entries worked on at a time: such a block stays in the cache.
_BLOCK_ENTRIES = 1 << 17


def visible_cells(shapes: Shapes, views: Poses, scene: Scene, ground: Ground | None = None) -> BoolArray:
    r"""Which grid angle of which shape each view sees, shape (S, V, M).

    On either side the walk goes from the view's own angle outwards. A grid angle is seen if the tangent of its bearing,

    .. math:: \tan|α| = \frac{r \sin δ}{d - r \cos δ}

    at the angle δ from the view, is greater than all before it on the walk: on a star-shaped contour nothing else can
    hide it. A walk ends at the edge of the cone or of the range. Where the scene has `beams` it passes what is out of
    range, and one walk serves all headings at a place: each sees the bearings inside of its cone. A view inside of a
    shape sees nothing of it.

    Of all shapes alike, nothing is seen behind the obstacles of a `ground`: where their mean radius is hidden.
    """
    if ground is not None and ground.hides:
        places, stand = views.places()
        x, y = places.position.T
        hidden = ground.hidden(x, y, shapes.angle, shapes.radius.mean(axis=0))
        return visible_cells(shapes, views, scene) & ~hidden[stand]
    if not scene.beams:
        return _on_grid(shapes, views, scene, lambda *walks: _sight(*walks)[0], np.bool_)
    places, stand = views.places()
    seen = _on_grid(shapes, places, scene, lambda *walks: _sight(*walks)[0], np.bool_)
    bearing = _bearings(shapes, places)
    low, high = ((views.turn + edge).astype(np.float32)[:, None] for edge in (
        scene.sensor.bearing_min, scene.sensor.bearing_max
    ))
    visible = np.empty((len(seen), len(views), seen.shape[2]), dtype=bool)
    for place in range(len(places)):
        here, at = np.flatnonzero(stand == place), bearing[:, None, place]
        visible[:, here] = seen[:, None, place] & (at >= low[here]) & (at <= high[here])
    return visible


def grades_of_sight(shapes: Shapes, views: Poses, scene: Scene, least_sine: float) -> IntArray:
    """How each grid angle is seen from the best of the views (V,): 0 not, 1 grazed, 2 well; shape (S, M).

    It is seen well if the sine of the angle between the line of sight and the stretch of the surface that leads to it,
    away from the view's own angle, is at least `least_sine`. The first grid angles on either side of that are taken for
    seen well. :func:`visible_cells` defines what is seen at all.
    """
    single = Shapes(shapes.angle, shapes.radius.astype(np.float32))  # half the time
    grades = _on_grid(single, views, scene, partial(_graded_walk, least_sine=least_sine), np.uint8)
    if scene.beams:
        grades *= visible_cells(single, views, scene)
    return np.asarray(grades.max(axis=1, initial=0))


def _bearings(shapes: Shapes, places: Poses) -> FloatArray:
    """Bearing of each grid angle of each shape from P places against the centre's, (S, P, M), single precision."""
    offset = shapes.angle - places.view_angle[:, None]
    sin, cos = (wave.astype(np.float32) for wave in (np.sin(offset), np.cos(offset)))
    radius = shapes.radius.astype(np.float32)[:, None]
    return np.asarray(np.arctan2(-radius * sin, places.distance.astype(np.float32)[:, None] - radius * cos))


def _on_grid(
    shapes: Shapes, views: Poses, scene: Scene, walk: Callable[..., NDArray[Any]], dtype: type[np.generic]
) -> NDArray[Any]:
    """What `walk` finds on either side of each view, shape (S, V, M)."""
    count, size = shapes.radius.shape
    step = TWO_PI / size
    angle, kind = wrap_angle(views.view_angle), shapes.radius.dtype
    distance, edges = views.distance[:, None].astype(kind), _edges(views, scene, kind)
    first = np.ceil(angle / step - 1e-9).astype(np.intp)
    found = np.zeros((count, len(views), size), dtype=dtype)
    if not len(views):
        return found
    widest = _widest_offset(shapes.radius, float(views.distance.min()), scene.sensor.range_max)
    steps = min(size, math.ceil(widest / step) + 1)
    rows = max(1, _BLOCK_ENTRIES // max(1, len(views) * steps))
    for turn in (1, -1):
        start = first if turn > 0 else first - 1
        place = (start[:, None] + turn * np.arange(steps)) % size
        offset = np.maximum(turn * (start * step - angle), 0.0)[:, None] + step * np.arange(steps)
        sin, cos = (wave.astype(kind) for wave in (np.sin(offset), np.cos(offset)))
        for begin in range(0, count, rows):
            part = slice(begin, begin + rows)
            radius = shapes.radius[part].take(place, axis=1)
            _lay_out(found[part], walk(radius, sin, cos, distance, edges[turn], scene), start, turn)
    return found


Edges = tuple[Any, Any]
"""Tangents of the bearings between which a view sees, on one side of the direction to the centre; None: from 0 on."""


def _edges(views: Poses, scene: Scene, kind: np.dtype[Any]) -> dict[int, Edges]:
    """The edges of the cone of each view to the right (1) and to the left (-1), (V, 1) each, or the same for all."""
    turns = views.turn[:, None] if views.turn.any() else np.zeros((1, 1))
    low, high = (turns + edge for edge in (scene.sensor.bearing_min, scene.sensor.bearing_max))
    found = {}
    for turn, near, far in ((1, -high, -low), (-1, low, high)):
        least, most = (np.tan(np.clip(edge, -0.5 * math.pi, 0.5 * math.pi)).astype(kind) for edge in (near, far))
        found[turn] = (least if (least > 0.0).any() else None), most
    return found


def _sight(
    radius: FloatArray, sin: FloatArray, cos: FloatArray, distance: FloatArray, edges: Edges, scene: Scene
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which steps of each walk are seen, the tangent of their bearing, and how far ahead they are (metres).

    Shape (s, V, steps) each; `sin` and `cos` of the offsets are (V, steps), the `distance` of each view is (V, 1).
    Bearings count from the direction to the centre outwards. Beams see whatever is hidden by nothing and in range.
    """
    ahead = distance - radius * cos
    aside = radius * sin
    # A walk that continues behind the centre meets nothing visible: there the offset exceeds the widest one.
    least, most = edges
    in_range = ahead * ahead + aside * aside <= scene.sensor.range_max**2
    if scene.beams:
        seen = in_range & (radius[..., :1] < distance)
    else:
        seen = np.logical_and.accumulate((aside <= most * ahead) & in_range, axis=-1)
        if least is not None:
            seen &= aside >= least * ahead
    tangent = _measure(aside, ahead)
    swept = np.maximum.accumulate(tangent, axis=-1)
    seen[..., 1:] &= tangent[..., 1:] > swept[..., :-1]
    return seen, tangent, ahead


def _measure(aside: FloatArray, ahead: FloatArray) -> FloatArray:
    """What rises with the bearing: its tangent, or where something may lie beside the camera the bearing itself."""
    if (ahead > 0.0).all():
        return np.divide(aside, ahead, out=aside)
    return np.arctan2(aside, ahead)


def _graded_walk(
    radius: FloatArray, sin: FloatArray, cos: FloatArray, distance: FloatArray, edges: Edges, scene: Scene,
    least_sine: float,
) -> NDArray[np.uint8]:
    r"""How each step of each walk is seen (0, 1, 2), shape (s, V, steps).

    From a step to the next, the contour moves across the line of sight by
    :math:`x' Δ\tan α / \sqrt{1 + \tan^2 α}`; x' is how far ahead the first of them is, α the bearing of the other. Its
    length is :math:`\sqrt{Δr^2 + r r' (2 \sin(Δ/2))^2}`. Both are compared by their squares.
    """
    seen, tangent, ahead = _sight(radius, sin, cos, distance, edges, scene)
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


def _widest_offset(radius: FloatArray, distance: float, range_max: float) -> float:
    r"""Greatest angle from a view at which a surface of these radii can be in range, radians.

    :math:`d^2 + r^2 - 2 d r \cos δ \le d_{DOF}^2` bounds δ for a view at the distance d; the bound is greatest at the
    least radius or at :math:`r^2 = d^2 - d_{DOF}^2`, and from the nearest view.
    """
    least, most = max(float(radius.min()), 1e-6), max(float(radius.max()), 1e-6)
    excess = distance**2 - range_max**2
    at = min(max(math.sqrt(max(excess, 0.0)), least), most)
    cos = (excess + at**2) / (2.0 * distance * at)
    return math.acos(min(max(cos, -1.0), 1.0))
