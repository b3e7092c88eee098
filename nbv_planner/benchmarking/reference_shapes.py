"""Planning on shapes the obvious way: one shape and one view at a time, the greedy completion in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.planning.shapes.coverage import surface_density
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.scene import Scene
from nbv_planner.visibility import observe

# Points that are left over by rounding.
_ROUNDING = 1e-6


def unseen_points(shapes: Shapes, taken: Sequence[float], scene: Scene, measured: BoolArray) -> FloatArray:
    """Surface points at each grid angle of each shape that have not been seen, shape (S, M).

    Neither are they `measured` (M,), nor did one of the views `taken` (radians) see them.
    """
    points = surface_density(shapes, scene.pixel_size)
    for radius, left in zip(shapes.radius, points, strict=True):
        seen = measured.copy()
        for view in taken:
            seen |= observe(shapes.angle, radius, view, scene)[0]
        left[seen] = 0.0
    return points


def expected_gain(shapes: Shapes, unseen: FloatArray, view: float, scene: Scene) -> float:
    """EMC of a view, radians: the mean over the shapes of the `unseen` points (S, M) that it sees."""
    gains = [
        left[observe(shapes.angle, radius, view, scene)[0]].sum()
        for radius, left in zip(shapes.radius, unseen, strict=True)
    ]
    return float(np.mean(gains))


def mean_views_to_go(
    shapes: Shapes, unseen: FloatArray, views: Sequence[float], first_views: int, scene: Scene, target_coverage: float,
) -> dict[int, float]:
    """Mean number of views to go over the shapes, see :func:`nbv_planner.planning.shapes.views_to_go.views_to_go`.

    Args:
        shapes: S shapes.
        unseen: points that were not seen so far, shape (S, M).
        views: views that may be taken, radians.
        first_views: number of views of largest EMC from which the cover is completed.
        scene: the cone and the view circle.
        target_coverage: in (0, 1].

    Returns:
        The mean number by the index of the first view.
    """
    every = surface_density(shapes, scene.pixel_size)
    sets = [[_seen(shapes.angle, radius, view, scene) for view in views] for radius in shapes.radius]
    points = [dict(enumerate(left.tolist())) for left in unseen]
    gains = [
        sum(_gain(seen[v], left) for seen, left in zip(sets, points, strict=True)) for v in range(len(views))
    ]
    first = sorted(range(len(views)), key=lambda v: -gains[v])[:first_views]
    needed = (unseen.sum(axis=1) - (1.0 - target_coverage) * every.sum(axis=1)).tolist()
    cases = list(zip(sets, points, needed, strict=True))
    return {v: sum(_views_to_go(*case, v) for case in cases) / len(cases) for v in first}


def _seen(angle: FloatArray, radius: FloatArray, view: float, scene: Scene) -> list[int]:
    """Grid angles of a shape that a view sees."""
    return np.flatnonzero(observe(angle, radius, view, scene)[0]).tolist()  # type: ignore[no-any-return]


def _gain(seen: Sequence[int], left: dict[int, float]) -> float:
    return sum(left[k] for k in seen if k in left)


def _views_to_go(seen: Sequence[Sequence[int]], points: dict[int, float], needed: float, first: int) -> float:
    """Number of views on one shape, `first` first and then greedily; of the last one the part that is needed."""
    left, views, chosen = dict(points), 0.0, first
    while needed > _ROUNDING:
        gain = _gain(seen[chosen], left)
        if gain >= needed:
            return views + needed / gain
        views, needed = views + 1.0, needed - gain
        for k in seen[chosen]:
            left.pop(k, None)
        chosen = max(range(len(seen)), key=lambda v: _gain(seen[v], left))
        if needed > _ROUNDING and _gain(seen[chosen], left) == 0.0:
            return views + 1.0
    return views
