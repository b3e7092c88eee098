"""The thesis's observation function: which points of a star-shaped contour a camera sees.

Noise-free and purely geometric: on either side of the direction to the centre the contour is walked
outwards from the polar angle of the camera; a point is seen if its bearing lies outside the range
of bearings already swept on that walk, and inside the cone. Such a walk is exact at any distance
and whatever the heading, also inside of a concavity. It ends where the surface is out of range, as
in the thesis; where the scene has `beams` it passes what is out of range, as they do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    pixel_index,
    polar_to_cartesian,
    world_to_camera,
    wrap_angle,
)
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import ConeSensor
from nbv_planner.world.scene import Scene

# Steps of the first try: most walks soon leave the cone.
_FIRST_STEPS = 64
_SLACK = 1e-12  # metres
# (step, view) pairs of a block: it stays in the cache.
_BLOCK_ENTRIES = 1 << 16


@dataclass(frozen=True, eq=False)
class Sightings:
    """Which view sees which point, by their indices, one entry each, shape (N,).

    The bearing is the direction of the point from the view against that to the centre, radians; the
    distance its range, metres.
    """

    view: IntArray
    point: IntArray
    bearing: FloatArray
    distance: FloatArray


def observe(
    angle: FloatArray, radius: FloatArray, views: ArrayLike | Poses, scene: Scene
) -> BoolArray:
    """Which of P contour points are observed from which of V views, `o(θ)`, shape (V, P).

    The points have polar angles rising in [0, 2π), radians, and radii, metres. The views lie
    outside of the contour; angles alone, radians, are those of views on the view circle.
    """
    views = Poses.given(views, scene.view_distance)
    seen = np.zeros((len(views), len(angle)), dtype=bool)
    found = sightings(angle, radius, views, scene)
    seen[found.view, found.point] = True
    return seen


def sightings(
    angle: FloatArray,
    radius: FloatArray,
    views: ArrayLike | Poses,
    scene: Scene,
    *,
    limit_range: bool = True,
) -> Sightings:
    """List what :func:`observe` finds, with bearings and ranges; without `limit_range` also what is
    out of range.
    """
    views = Poses.given(views, scene.view_distance).about(ORIGIN)
    views = Poses.from_polar(wrap_angle(views.view_angle), views.distance, views.turn)
    range_max = scene.sensor.range_max if limit_range else np.inf
    pairs = [np.empty((2, 0), dtype=np.intp)]
    if len(angle) and len(views):
        pairs += _walks(angle, radius, views, scene, range_max)
    view, point = np.concatenate(pairs, axis=1)
    bearing, distance = world_to_camera(
        angle[point], radius[point], views.view_angle[view], views.distance[view]
    )
    sensor = scene.sensor
    if scene.beams or not (isinstance(sensor, ConeSensor) and sensor.in_field(-views.turn).all()):
        # A walk ends at an edge of the field of view, but may begin outside of it and pass gaps.
        inside = sensor.in_field(bearing - views.turn[view])
        return Sightings(view[inside], point[inside], bearing[inside], distance[inside])
    return Sightings(view, point, bearing, distance)


def _walks(
    angle: FloatArray, radius: FloatArray, views: Poses, scene: Scene, range_max: float
) -> Iterator[IntArray]:
    """View and point of what is seen on the walks along P points to either side of V views, shape
    (2, N) at a time.
    """
    x, y = (np.tile(values, 2) for values in polar_to_cartesian(angle, radius))
    start = np.searchsorted(angle, views.view_angle)
    count = len(angle)
    widest = TWO_PI
    if radius.min() > 0.0:
        widest = widest_offset(radius, float(views.distance.min()), range_max)
    most = _most_steps(angle, views, widest)
    cos, sin = np.cos(views.view_angle), np.sin(views.view_angle)
    size = max(1, _BLOCK_ENTRIES // most)
    edges = edges_of(views, scene)
    for turn, first in ((1, start), (-1, start + count - 1)):
        for begin in range(0, len(views), size):
            going = np.arange(begin, min(begin + size, len(views)))
            for steps in (min(_FIRST_STEPS, most), most):
                at = first[going] + turn * np.arange(steps)[:, None]
                px, py = x.take(at), y.take(at)
                ahead = views.distance[going] - (cos[going] * px + sin[going] * py)
                aside = turn * (cos[going] * py - sin[going] * px)
                field = -edges[-turn][going], edges[turn][going]
                seen, _, on = sight(
                    ahead, aside, field, range_max, beams=scene.beams, from_ahead=scene.beams
                )
                seen &= ~on | (steps == most)
                step, walk = np.divmod(np.flatnonzero(seen), len(going))
                yield np.stack([going[walk], at[step, walk] % count])
                going = going[on]
                if steps == most or not len(going):
                    break


def _most_steps(angle: FloatArray, views: Poses, widest: float) -> int:
    """Number of points up to the angle `widest` from a view, to either side, at most."""
    place = np.searchsorted(
        np.concatenate([angle - TWO_PI, angle, angle + TWO_PI]),
        [views.view_angle - widest, views.view_angle, views.view_angle + widest],
    )
    return min(len(angle), int(np.diff(place, axis=0).max()) + 1)


def widest_offset(radius: FloatArray, distance: float, range_max: float) -> float:
    r"""Greatest angle from a view at which a surface of these radii can be in range or ahead of its
    centre, radians.

    :math:`d^2 + r^2 - 2 d r \cos δ \le d_{DOF}^2` bounds δ for a view at the distance d; the bound
    is greatest at the least radius or at :math:`r^2 = d^2 - d_{DOF}^2`, and from the nearest view.
    A radius below 0 lies opposite.
    """
    least = max(float(radius.min()), 1e-6)
    most = max(float(radius.max()), 1e-6)
    if not math.isfinite(range_max):
        return math.pi
    excess = distance**2 - range_max**2
    at = min(max(math.sqrt(max(excess, 0.0)), least), most)
    cos = (excess + at**2) / (2.0 * distance * at)
    return math.acos(min(max(cos, -1.0), 1.0))


def edges_of(views: Poses, scene: Scene) -> dict[int, FloatArray]:
    """Widest bearing, against the direction to the centre, of each view to the right (1) and to the
    left (-1), (V,).
    """
    sensor = scene.sensor
    return {1: -(views.turn + sensor.bearing_min), -1: views.turn + sensor.bearing_max}


def sight(
    ahead: FloatArray,
    aside: FloatArray,
    field: tuple[FloatArray, FloatArray] | None,
    range_max: float,
    *,
    beams: bool,
    from_ahead: bool,
) -> tuple[BoolArray, FloatArray, BoolArray]:
    """Which steps of walks along a contour are seen, what rises with their bearing, and which walks
    have not ended.

    Places of a walk, outwards from the direction to the centre, lie `ahead` of and `aside` from the
    camera, metres, shape (..., steps, V). What is seen lies outside of the bearings swept before on
    that walk; where it is known to begin `from_ahead`, at the bearing 0, that is beyond the
    greatest. A walk sees what is in the `field`, from one bearing to another, radians, shape (V,)
    each, and ends beyond it; at `range_max`, metres, too, unless by `beams`.
    """
    in_range = ahead * ahead + aside * aside <= range_max**2
    flat = bool((ahead > 0.0).all())
    inside = np.ones_like(in_range) if beams else in_range
    if not from_ahead:
        inside &= aside >= -_SLACK
    near, far = (None, None) if field is None else field
    if flat and far is not None:
        inside &= aside <= np.tan(np.clip(far, 0.0, 0.5 * np.pi)).astype(aside.dtype) * ahead
    rising = np.divide(aside, ahead, out=aside) if flat else np.arctan2(aside, ahead)
    if not flat and far is not None:
        inside &= rising <= far
    if not beams or far is not None:
        step = 1
        while step < inside.shape[-2]:  # by doubling: ten times as fast as to accumulate
            inside[..., step:, :] &= inside[..., :-step, :].copy()
            step *= 2
    going = inside[..., -1, :].copy()
    new = rising[..., 1:, :] > np.maximum.accumulate(rising, axis=-2)[..., :-1, :]
    if not from_ahead:
        new |= rising[..., 1:, :] < np.minimum.accumulate(rising, axis=-2)[..., :-1, :]
    inside[..., 1:, :] &= new
    if near is not None and (near > 0.0).any():
        least = np.tan(np.clip(near, 0.0, 0.5 * np.pi)) if flat else near
        inside &= rising >= least.astype(rising.dtype)
    return inside & in_range if beams else inside, rising, going


def bearing_extent(
    angle: FloatArray, radius: FloatArray, views: FloatArray, view_distance: float
) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest bearing of all points, hidden or not, from each view, shape (V,) each,
    radians.

    A point beside or behind the camera counts as at ±π/2, outside every cone.
    """
    x, y = polar_to_cartesian(angle, radius)
    cos, sin = np.cos(views)[:, None], np.sin(views)[:, None]
    ahead = view_distance - (cos * x + sin * y)
    aside = sin * x - cos * y
    tangent = np.divide(aside, ahead, out=np.where(aside < 0.0, -np.inf, np.inf), where=ahead > 0.0)
    return np.arctan(tangent.min(axis=1)), np.arctan(tangent.max(axis=1))


def discretise(angle: FloatArray, radius: FloatArray, pixel_size: float) -> NDArray[np.intp]:
    """Indices of one grid point per world pixel, rising: the first of the whole grid that lies in
    the pixel.
    """
    column, row = pixel_index(*polar_to_cartesian(angle, radius), pixel_size)
    _, first = np.unique(column * (1 << 32) + row, return_index=True)
    return np.sort(first)
