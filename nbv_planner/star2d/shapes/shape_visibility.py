"""What each view would see of each shape: the visibility walk on a uniform grid, for all shapes and
views at once.
"""

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
from nbv_planner.world.visibility import edges_of, sight, widest_offset

# (shape, view, step) entries worked on at a time: such a block stays in the cache.
_BLOCK_ENTRIES = 1 << 17


def visible_cells(
    shapes: Shapes, views: Poses, scene: Scene, ground: Ground | None = None
) -> BoolArray:
    r"""Which grid angle of which shape each view sees, shape (S, V, M).

    On either side the walk goes from the view's own angle outwards. A grid angle is seen if the
    tangent of its bearing,

    .. math:: \tan|α| = \frac{r \sin δ}{d - r \cos δ}

    at the angle δ from the view, is greater than all before it on the walk: on a star-shaped
    contour nothing else can hide it. A walk ends at the edge of the cone or of the range. Where the
    scene has `beams` it passes what is out of range, and one walk serves all headings at a place:
    each sees the bearings inside of its cone. A view inside of a shape sees nothing of it.

    Of all shapes alike, nothing is seen behind the obstacles of a `ground`: where their mean radius
    is hidden.
    """
    if ground is not None and ground.hides:
        places, stand = views.places()
        x, y = places.position.T
        hidden = ground.hidden(x, y, shapes.angle, shapes.radius.mean(axis=0))
        return visible_cells(shapes, views, scene) & ~hidden[stand]
    if not scene.beams:
        return _on_grid(shapes, views, scene, lambda seen, *_: seen, np.bool_)
    places, stand = views.places()
    seen = _on_grid(shapes, places, scene, lambda seen, *_: seen, np.bool_)
    bearing = _bearings(shapes, places)
    low, high = (
        (views.turn + edge).astype(np.float32)[:, None]
        for edge in (scene.sensor.bearing_min, scene.sensor.bearing_max)
    )
    visible = np.empty((len(seen), len(views), seen.shape[2]), dtype=bool)
    for place in range(len(places)):
        here = np.flatnonzero(stand == place)
        at = bearing[:, None, place]
        visible[:, here] = seen[:, None, place] & (at >= low[here]) & (at <= high[here])
    return visible


def grades_of_sight(shapes: Shapes, views: Poses, scene: Scene, least_sine: float) -> IntArray:
    """How each grid angle is seen from the best of the views (V,): 0 not, 1 grazed, 2 well; shape
    (S, M).

    It is seen well if the sine of the angle between the line of sight and the stretch of the
    surface that leads to it, away from the view's own angle, is at least `least_sine`. The first
    grid angles on either side of that are taken for seen well. :func:`visible_cells` defines what
    is seen at all.
    """
    single = Shapes(shapes.angle, shapes.radius.astype(np.float32))  # half the time
    grades = _on_grid(single, views, scene, partial(_graded, least_sine=least_sine), np.uint8)
    if scene.beams:
        grades *= visible_cells(single, views, scene)
    return np.asarray(grades.max(axis=1, initial=0))


def _bearings(shapes: Shapes, places: Poses) -> FloatArray:
    """Bearing of each grid angle of each shape from P places against the centre's, (S, P, M),
    single precision.
    """
    offset = shapes.angle - places.view_angle[:, None]
    sin, cos = (wave.astype(np.float32) for wave in (np.sin(offset), np.cos(offset)))
    radius = shapes.radius.astype(np.float32)[:, None]
    return np.asarray(
        np.arctan2(-radius * sin, places.distance.astype(np.float32)[:, None] - radius * cos)
    )


def _on_grid(
    shapes: Shapes,
    views: Poses,
    scene: Scene,
    judge: Callable[..., NDArray[Any]],
    dtype: type[np.generic],
) -> NDArray[Any]:
    """What `judge` finds on either side of each view, shape (S, V, M)."""
    count, size = shapes.radius.shape
    found = np.zeros((count, len(views), size), dtype=dtype)
    if not len(views):
        return found
    step = TWO_PI / size
    kind = shapes.radius.dtype
    angle = wrap_angle(views.view_angle)
    distance = views.distance.astype(kind)
    first = np.ceil(angle / step - 1e-9).astype(np.intp)
    edges = edges_of(views, scene)
    range_max = scene.sensor.range_max
    widest = widest_offset(shapes.radius, float(views.distance.min()), range_max)
    steps = min(size, math.ceil(widest / step) + 1)
    rows = max(1, _BLOCK_ENTRIES // (len(views) * steps))
    along = np.arange(steps)[:, None]
    for turn, start in ((1, first), (-1, first - 1)):
        place = (start + turn * along) % size
        offset = np.maximum(turn * (start * step - angle), 0.0) + step * along
        sin, cos = (wave.astype(kind) for wave in (np.sin(offset), np.cos(offset)))
        for begin in range(0, count, rows):
            part = slice(begin, begin + rows)
            radius = shapes.radius[part].take(place, axis=1)
            ahead = distance - radius * cos
            field = None if scene.beams else (-edges[-turn], edges[turn])
            # Behind the centre a walk meets nothing visible: there the offset exceeds the widest
            # one.
            seen, tangent, _ = sight(
                ahead, radius * sin, field, range_max, beams=scene.beams, from_ahead=True
            )
            if scene.beams:
                seen &= radius[:, :1] < distance
            walk = judge(seen, tangent, ahead, radius, sin, cos)
            _lay_out(found[part], np.ascontiguousarray(walk.swapaxes(1, 2)), start, turn)
    return found


def _graded(
    seen: BoolArray,
    tangent: FloatArray,
    ahead: FloatArray,
    radius: FloatArray,
    sin: FloatArray,
    cos: FloatArray,
    *,
    least_sine: float,
) -> NDArray[np.uint8]:
    r"""How each step of each walk is seen (0, 1, 2), shape (S, steps, V).

    From a step to the next, the contour moves across the line of sight by
    :math:`x' Δ\tan α / \sqrt{1 + \tan^2 α}`; x' is how far ahead the first of them is, α the
    bearing of the other. Its length is :math:`\sqrt{Δr^2 + r r' (2 \sin(Δ/2))^2}`. Both are
    compared by their squares.
    """
    before = radius[:, :-1]
    after = radius[:, 1:]
    chord = np.diff(cos, axis=0) ** 2 + np.diff(sin, axis=0) ** 2
    across = np.diff(tangent, axis=1) * ahead[:, :-1]  # where a step is seen, the tangent rises
    asked = (before * after) * (least_sine**2 * chord) + np.square(least_sine * (after - before))
    asked *= np.square(tangent[:, 1:]) + 1.0
    grades = seen.astype(np.uint8)
    grades[:, :1] <<= 1
    grades[:, 1:] <<= across * across >= asked
    return grades


def _lay_out(seen: NDArray[Any], walk: NDArray[Any], start: IntArray, turn: int) -> None:
    """Write walks (s, V, steps) that begin at `start` (V,) to their places around the circle, (s,
    V, M).
    """
    steps, size = walk.shape[2], seen.shape[2]
    for view, begin in enumerate(start):
        # By rising angle, in at most two pieces.
        row = walk[:, view, ::turn]
        low = (begin if turn > 0 else begin - steps + 1) % size
        until = min(steps, size - low)
        seen[:, view, low : low + until] |= row[:, :until]
        seen[:, view, : steps - until] |= row[:, until:]
