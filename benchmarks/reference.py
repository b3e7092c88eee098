"""The obvious implementation of every objective and of planning on shapes: reference for the fast
ones.

Plain numpy over the grid or over all pixels, without caches, one candidate at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, angle_difference, world_to_camera
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_coverage import surface_density
from nbv_planner.thesis.intervals import fov_boundary, in_simple_interval
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import discretise, observe

Reference = Callable[[SurfaceBelief, Scene, float], float]
"""Value of an objective at one view angle (radians)."""


def _at_view(belief: SurfaceBelief, view: float) -> tuple[float, float]:
    """Lower and upper bound at the view, metres."""
    low, high = (
        np.interp(view, belief.angle, bound, period=TWO_PI)
        for bound in (belief.lower, belief.upper)
    )
    return float(low), float(high)


def uncertainty(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """U."""
    low, high = _at_view(belief, view)
    return scene.simple_half_width * (high**2 - low**2) / scene.pixel_size**2


def uncertainty_polar(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """UP."""
    low, high = _at_view(belief, view)
    return 2.0 * scene.simple_half_width * (high - low) / scene.pixel_size**2


def _band_area(belief: SurfaceBelief, scene: Scene) -> FloatArray:
    """Area of the band in each grid step, shape (M,), pixels."""
    return 0.5 * (belief.upper**2 - belief.lower**2) * belief.step / scene.pixel_size**2


def _sum_over_interval(belief: SurfaceBelief, scene: Scene, view: float, term: FloatArray) -> float:
    """Sum a term per grid angle, shape (M,), over the simple interval of the view."""
    return float(term[in_simple_interval(scene, belief.angle, view)].sum())


def confidence(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """C: on each side the angles before the first one at which the bound reaches the boundary
    ray.
    """
    offset = angle_difference(belief.angle, view)
    beyond = in_simple_interval(scene, belief.angle, view) & (
        belief.lower >= fov_boundary(scene, belief.angle, view)
    )
    left = offset[beyond & (offset <= 0.0)].max(initial=-math.inf)
    right = offset[beyond & (offset >= 0.0)].min(initial=math.inf)
    before_crossing = (left < offset) & (offset < right)
    return _sum_over_interval(
        belief, scene, view, np.where(before_crossing, _band_area(belief, scene), 0.0)
    )


def confidence_simple(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """CS."""
    return _sum_over_interval(belief, scene, view, _band_area(belief, scene))


def confidence_simple_polar(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """CSP."""
    return _sum_over_interval(belief, scene, view, belief.width * belief.step / scene.pixel_size**2)


def confidence_simple_weighted(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """CSW."""
    weight = fov_boundary(scene, belief.angle, view) / scene.view_distance
    return _sum_over_interval(belief, scene, view, weight * _band_area(belief, scene))


def intersection(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """I."""
    outer = np.minimum(belief.upper, fov_boundary(scene, belief.angle, view))
    area = 0.5 * np.maximum(outer**2 - belief.lower**2, 0.0) * belief.step
    return _sum_over_interval(belief, scene, view, area / scene.pixel_size**2)


def _pixels(reach: float, pixel_size: float) -> tuple[FloatArray, FloatArray]:
    """Angle and radius of all pixel centres within `reach` of the origin."""
    count = math.floor(reach / pixel_size)
    x, y = np.meshgrid(
        np.arange(-count, count + 1) * pixel_size, np.arange(-count, count + 1) * pixel_size
    )
    angle, radius = np.mod(np.arctan2(y, x), TWO_PI), np.hypot(x, y)
    return angle[radius <= reach], radius[radius <= reach]


def _in_band(belief: SurfaceBelief, angle: FloatArray, radius: FloatArray) -> BoolArray:
    low, high = (
        np.interp(angle, belief.angle, bound, period=TWO_PI)
        for bound in (belief.lower, belief.upper)
    )
    return np.asarray((low <= radius) & (radius <= high))


def confidence_simple_number(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """CSN."""
    angle, radius = _pixels(scene.view_distance, scene.pixel_size)
    return float((in_simple_interval(scene, angle, view) & _in_band(belief, angle, radius)).sum())


def walk(
    angle: FloatArray, radius: FloatArray, view: float, scene: Scene, range_max: float
) -> list[int]:
    """Indices of the points that `view` observes: outwards from its own angle, once to either
    side.
    """
    bearing, distance = world_to_camera(angle, radius, view, scene.view_distance)
    inside = (np.abs(bearing) <= 0.5 * scene.field_of_view) & (distance <= range_max)
    count, start, seen = len(angle), int(np.searchsorted(angle, view % TWO_PI)), []
    for first, side in ((start, 1), (start - 1, -1)):
        low, high = math.inf, -math.inf
        for step in range(count):
            k = (first + side * step) % count
            if not inside[k] or side * bearing[k] > 0.0:
                break
            if bearing[k] < low or bearing[k] > high:
                seen.append(k)
            low, high = min(low, bearing[k]), max(high, bearing[k])
    return seen


def observed_confidence_lower(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """OCL."""
    points = discretise(belief.angle, belief.lower, scene.pixel_size)
    return float(
        len(walk(belief.angle[points], belief.lower[points], view, scene, scene.range_max))
    )


def observed_confidence_upper(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """OCU."""
    points = discretise(belief.angle, belief.upper, scene.pixel_size)
    return float(
        len(walk(belief.angle[points], belief.upper[points], view, scene, scene.range_max))
    )


def intersection_occlusion_aware(belief: SurfaceBelief, scene: Scene, view: float) -> float:
    """IOA: cone, occlusion by the lower bound, band, in the order of the thesis."""
    angle, radius = _pixels(max(scene.view_distance, float(belief.upper.max())), scene.pixel_size)
    bearing, distance = world_to_camera(angle, radius, view, scene.view_distance)
    kept = scene.in_cone(bearing, distance)
    angle, radius, bearing, distance = angle[kept], radius[kept], bearing[kept], distance[kept]
    points = discretise(belief.angle, belief.lower, scene.pixel_size)
    screen = points[walk(belief.angle[points], belief.lower[points], view, scene, math.inf)]
    at, far = world_to_camera(belief.angle[screen], belief.lower[screen], view, scene.view_distance)
    every, _ = world_to_camera(
        belief.angle[points], belief.lower[points], view, scene.view_distance
    )
    visible = np.ones(len(angle), dtype=bool)
    if len(screen):
        order = np.argsort(at)
        behind = distance >= np.interp(bearing, at[order], far[order])
        visible = (bearing < every.min()) | (bearing > every.max()) | ~behind
    return float((visible & _in_band(belief, angle, radius)).sum())


REFERENCE_OBJECTIVES: dict[str, Reference] = {
    "IOA": intersection_occlusion_aware,
    "I": intersection,
    "C": confidence,
    "CS": confidence_simple,
    "CSN": confidence_simple_number,
    "CSP": confidence_simple_polar,
    "CSW": confidence_simple_weighted,
    "U": uncertainty,
    "UP": uncertainty_polar,
    "OCL": observed_confidence_lower,
    "OCU": observed_confidence_upper,
}
"""Each objective that needs no knowledge of the object, by id."""


# Points left by rounding.
_ROUNDING = 1e-6


def unseen_points(
    shapes: Shapes, taken: Sequence[float], scene: Scene, near: FloatArray, upon: FloatArray
) -> FloatArray:
    """Surface points at each grid angle of each of S shapes that views `taken`, radians, have not
    seen, shape (S, M).

    The part of the surface that has a measurement near enough, shape (S, M), is `near` where one of
    these views sees it (half of the rest counts as seen there), and `upon` where none does.
    """
    points = surface_density(shapes, scene.pixel_size)
    for radius, left, by_view, by_none in zip(shapes.radius, points, near, upon, strict=True):
        seen = np.zeros(len(radius), dtype=bool)
        for view in taken:
            seen |= observe(shapes.angle, radius, view, scene)[0]
        left *= 1.0 - np.where(seen, 0.5 + 0.5 * by_view, by_none)
    return points


def expected_gain(shapes: Shapes, unseen: FloatArray, view: float, scene: Scene) -> float:
    """EMC of a view, radians: the mean over the shapes of the `unseen` points (S, M) that it
    sees.
    """
    gains = [
        left[observe(shapes.angle, radius, view, scene)[0]].sum()
        for radius, left in zip(shapes.radius, unseen, strict=True)
    ]
    return float(np.mean(gains))


def mean_views_to_go(
    shapes: Shapes,
    unseen: FloatArray,
    views: Sequence[float],
    first_views: int,
    scene: Scene,
    target_coverage: float,
) -> dict[int, float]:
    """Mean number of views to go over S shapes, see
    :func:`nbv_planner.planning.planners.rollout.views_to_go`.

    By the index of the first view: the cover of the `unseen` points, shape (S, M), up to the
    `target_coverage`, is completed from the `first_views` of largest EMC among the `views` that may
    be taken, radians.
    """
    every = surface_density(shapes, scene.pixel_size)
    sets = [
        [_seen(shapes.angle, radius, view, scene) for view in views] for radius in shapes.radius
    ]
    points = [dict(enumerate(left.tolist())) for left in unseen]
    gains = [
        sum(_gain(seen[v], left) for seen, left in zip(sets, points, strict=True))
        for v in range(len(views))
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


def _views_to_go(
    seen: Sequence[Sequence[int]], points: dict[int, float], needed: float, first: int
) -> float:
    """Number of views on one shape, `first` first and then greedily; of the last one only the
    required part.
    """
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
