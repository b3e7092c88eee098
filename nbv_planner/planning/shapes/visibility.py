"""What each view would see of each shape: the visibility walk on a uniform grid, for all shapes and views at once."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, IntArray, wrap_angle
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.scene import Scene

# (shape, view, step) entries worked on at a time: such a block stays in the cache.
_BLOCK_ENTRIES = 1 << 17


def visible_cells(shapes: Shapes, views: FloatArray, scene: Scene) -> BoolArray:
    r"""Which grid angle of which shape each view sees, shape (S, V, M).

    On either side the walk goes from the view's own angle outwards, as long as the surface is inside the cone. A grid
    angle is seen if the tangent of its bearing,

    .. math:: \tan|α| = \frac{r \sin δ}{d_{cam} - r \cos δ}

    at the angle δ from the view, is greater than all before it on the walk: on a star-shaped contour nothing else can
    hide it.

    Args:
        shapes: S shapes on M angles.
        views: shape (V,), radians.
        scene: the cone and the view circle; no radius may reach the view circle.
    """
    count, size = shapes.radius.shape
    step = TWO_PI / size
    views = wrap_angle(views)
    first = np.ceil(views / step - 1e-9).astype(np.intp)
    seen = np.zeros((count, len(views), size), dtype=bool)
    steps = min(size, math.ceil(_widest_offset(shapes.radius, scene) / step) + 1)
    rows = max(1, _BLOCK_ENTRIES // max(1, len(views) * steps))
    for turn in (1, -1):
        start = first if turn > 0 else first - 1
        place = (start[:, None] + turn * np.arange(steps)) % size
        offset = np.maximum(turn * (start * step - views), 0.0)[:, None] + step * np.arange(steps)
        sin, cos = np.sin(offset), np.cos(offset)
        for begin in range(0, count, rows):
            part = slice(begin, begin + rows)
            walk = _walk(shapes.radius[part].take(place, axis=1), sin, cos, scene)
            _lay_out(seen[part], walk, start, turn)
    return seen


def _walk(radius: FloatArray, sin: FloatArray, cos: FloatArray, scene: Scene) -> BoolArray:
    """Which steps of each walk are seen, shape (s, V, steps); `sin` and `cos` of the offsets are (V, steps)."""
    ahead = scene.view_distance - radius * cos
    aside = radius * sin
    # A walk that goes on behind the centre meets nothing it could see: there the offset exceeds the widest one.
    inside = aside <= math.tan(0.5 * scene.field_of_view) * ahead
    inside &= ahead * ahead + aside * aside <= scene.range_max**2
    tangent = np.divide(aside, ahead, out=aside)
    seen = np.logical_and.accumulate(inside, axis=-1)
    swept = np.maximum.accumulate(tangent, axis=-1)
    seen[..., 1:] &= tangent[..., 1:] > swept[..., :-1]
    return seen


def _lay_out(seen: BoolArray, walk: BoolArray, start: IntArray, turn: int) -> None:
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
    excess = scene.view_distance**2 - scene.range_max**2
    at = min(max(math.sqrt(max(excess, 0.0)), least), most)
    cos = (excess + at**2) / (2.0 * scene.view_distance * at)
    return math.acos(min(max(cos, -1.0), 1.0))
