"""The thesis's observation function: which points of a star-shaped contour a camera sees.

Noise-free and purely geometric: on either side of the direction to the centre
the contour is walked outwards from the camera's own angle; a point is seen if its bearing lies outside the
range of bearings already swept on that walk, and inside the cone. Such a walk is exact at any distance and whatever
the heading, also inside of a concavity. It ends where the surface is out of range, as in the thesis; where the scene
has `beams` it passes what is out of range, as they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.geometry import (
    BoolArray,
    FloatArray,
    IntArray,
    pixel_index,
    polar_to_cartesian,
    two_turns,
    windows_of,
    world_to_camera,
    wrap_angle,
)
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import ConeSensor, FreeRays
from nbv_planner.world.scene import Scene

# Steps of the first try: most walks soon leave the cone.
_FIRST_STEPS = 64
_SLACK = 1e-12  # metres
# Points within this part of the view circle lie well ahead of each camera: the tangents of their bearings are moderate,
# and in single precision they are off by 1e-5 at most, far less than the margin of the first pass.
_WELL_AHEAD = 0.9
_ROUGH = np.float32(1e-4)
# (view, step) pairs of a block of views: bounds the memory.
_BLOCK_ENTRIES = 1 << 16


@dataclass(frozen=True, eq=False)
class Sightings:
    """Which view sees which point, by their indices, one entry each, shape (N,).

    The bearing is the direction of the point from the view against that to the centre, radians; the distance its range,
    metres.
    """

    view: IntArray
    point: IntArray
    bearing: FloatArray
    distance: FloatArray


def observe(angle: FloatArray, radius: FloatArray, views: ArrayLike | Poses, scene: Scene) -> BoolArray:
    """Which of P contour points are observed from which of V views, `o(θ)`, shape (V, P).

    The points have polar angles rising in [0, 2π), radians, and radii, metres. The views lie outside of the contour;
    angles alone, radians, are those of views on the view circle.
    """
    views = Poses.given(views, scene.view_distance)
    seen = np.zeros((len(views), len(angle)), dtype=bool)
    found = sightings(angle, radius, views, scene)
    seen[found.view, found.point] = True
    return seen


def sightings(
    angle: FloatArray, radius: FloatArray, views: ArrayLike | Poses, scene: Scene, *, limit_range: bool = True
) -> Sightings:
    """List what :func:`observe` finds, with bearings and ranges; without `limit_range` also what is out of range."""
    views = Poses.given(views, scene.view_distance)
    views = Poses.from_polar(wrap_angle(views.view_angle), views.distance, views.turn)
    start = np.searchsorted(angle, views.view_angle)
    pairs: list[IntArray] = [np.empty((2, 0), dtype=np.intp)]
    if len(angle) and len(views):
        limit = _most_steps(angle, radius, views.view_angle, start)
        rows = max(1, _BLOCK_ENTRIES // limit)
        for falling in (False, True):
            walks = _Walks(angle, radius, scene, falling=falling, limit_range=limit_range)
            for first in range(0, len(views), rows):
                part = slice(first, first + rows)
                pairs.append(walks.seen(views.chosen(part), start[part], limit) + np.array([[first], [0]]))
    view, point = np.concatenate(pairs, axis=1)
    bearing, distance = world_to_camera(angle[point], radius[point], views.view_angle[view], views.distance[view])
    sensor = scene.sensor
    if scene.beams or not (isinstance(sensor, ConeSensor) and sensor.in_field(-views.turn).all()):
        # A walk ends at an edge of the field of view, but may begin outside of it and pass gaps.
        inside = sensor.in_field(bearing - views.turn[view])
        if limit_range and scene.beams:
            inside &= distance <= sensor.range_max
        view, point, bearing, distance = view[inside], point[inside], bearing[inside], distance[inside]
    return Sightings(view, point, bearing, distance)


class _Walks:
    """Walks along P points, all by rising or all by falling angle.

    Bearings are compared by their tangents, where the camera is farther away than all points: ahead of it one rises
    with the other.
    """

    def __init__(
        self, angle: FloatArray, radius: FloatArray, scene: Scene, *, falling: bool, limit_range: bool
    ) -> None:
        """Lay the points out in walking order, twice, so that a walk across 0 is in one piece."""
        self._scene, self._falling, self._limit_range = scene, falling, limit_range
        self._count, self._furthest = len(angle), float(radius.max())
        x, y = (values[:: -1 if falling else 1] for values in polar_to_cartesian(angle, radius))
        self._x, self._y = two_turns(x), two_turns(y)

    def seen(self, views: Poses, start: IntArray, limit: int) -> IntArray:
        """View and point of each sighting, shape (2, N), from v views with angles in [0, 2π).

        `start` is the index of the first point by rising angle at or behind each view, shape (v,); every walk has ended
        after `limit` steps.
        """
        place = (self._count - start if self._falling else start) % self._count
        pairs = [np.empty((2, 0), dtype=np.intp)]
        going = np.arange(len(views))
        for steps in (min(_FIRST_STEPS, limit), limit):
            tangent, inside = self._tangents(views.chosen(going), place[going], steps)
            length = np.where(inside.all(axis=1), steps, inside.argmin(axis=1))
            ended = (length < steps) | np.full(len(going), steps == limit)
            walk, step = _outside_swept(tangent, length, ended, beams=self._scene.beams)
            view = going[walk]
            point = (place[view] + step) % self._count
            pairs.append(np.stack([view, self._count - 1 - point if self._falling else point]))
            going = going[~ended]
            if len(going) == 0:
                break
        return np.concatenate(pairs, axis=1)

    def _tangents(self, views: Poses, place: IntArray, steps: int) -> tuple[FloatArray, BoolArray]:
        """Measure of the bearing at each step of each walk, and whether the walk continues there, (v, steps) each."""
        x, y = (windows_of(values, place, steps) for values in (self._x, self._y))
        cos, sin = np.cos(views.view_angle)[:, None], np.sin(views.view_angle)[:, None]
        ahead, aside = views.distance[:, None] - (cos * x + sin * y), sin * x - cos * y
        side = 1.0 if self._falling else -1.0
        if (views.distance <= self._furthest).any():  # points may lie beside the camera
            measure = np.arctan2(aside, ahead)
            inside = side * measure <= self._widest(views)
        else:
            inside = side * aside <= np.tan(np.clip(self._widest(views), 0.0, 0.5 * np.pi)) * ahead
            inside &= ahead > 0.0
            measure = np.divide(aside, ahead, out=aside.copy(), where=inside)
        # The slack lets a point exactly on the line to the centre belong to both sides, whatever the rounding.
        inside &= side * aside >= -_SLACK
        if self._limit_range and not self._scene.beams:
            inside &= ahead**2 + aside**2 <= self._scene.sensor.range_max**2
        return measure, inside

    def _widest(self, views: Poses) -> float | FloatArray:
        """Angle from the direction to the centre to the edge of each field of view on this side, radians."""
        edge = self._scene.sensor.bearing_max if self._falling else -self._scene.sensor.bearing_min
        if not views.turn.any():
            return edge
        return (edge + views.turn if self._falling else edge - views.turn)[:, None]


def _outside_swept(
    tangent: FloatArray, length: IntArray, chosen: BoolArray, *, beams: bool
) -> tuple[IntArray, IntArray]:
    """Walk and step where a tangent, in walking order, shape (v, steps), lies outside the range of those before it.

    Each walk has its `length` in steps, shape (v,); only the `chosen` ones are looked at, shape (v,). Those of `beams`
    begin at the direction to the centre: what lies behind the centre is not seen between it and the first point.
    """
    walks = np.flatnonzero(chosen)
    longest = int(length[walks].max(initial=0))
    # Steps first: the running extremes then go over all walks at once.
    values = np.ascontiguousarray(tangent[walks, :longest].T)
    new = np.arange(longest)[:, None] < length[walks]
    lowest, highest = (extreme.accumulate(values, axis=0)[:-1] for extreme in (np.minimum, np.maximum))
    if beams:
        np.minimum(lowest, -_SLACK, out=lowest)
        np.maximum(highest, _SLACK, out=highest)
    new[1:] &= (values[1:] < lowest) | (values[1:] > highest)
    step, walk = np.divmod(np.flatnonzero(new), len(walks))  # three times faster than np.nonzero
    return walks[walk], step


def _most_steps(angle: FloatArray, radius: FloatArray, views: FloatArray, start: IntArray) -> int:
    """Number of steps after which every walk has ended: behind the centre, unless a radius is negative."""
    if radius.min() <= 0.0:
        return len(angle)
    half_turn = (np.searchsorted(angle, wrap_angle(views + np.pi)) - start) % len(angle)
    return min(len(angle), int(np.maximum(half_turn, len(angle) - half_turn).max()) + 1)


def bearing_extent(
    angle: FloatArray, radius: FloatArray, views: FloatArray, view_distance: float
) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest bearing of all points, hidden or not, from each view, shape (V,) each, radians.

    A point beside or behind the camera counts as at ±π/2, outside every cone.
    """
    x, y = polar_to_cartesian(angle, radius)
    cos, sin = np.cos(views)[:, None], np.sin(views)[:, None]
    if np.abs(radius).max(initial=0.0) <= _WELL_AHEAD * view_distance:
        return _extent_ahead(x, y, cos, sin, view_distance)
    ahead, aside = view_distance - (cos * x + sin * y), sin * x - cos * y
    tangent = np.divide(aside, ahead, out=np.where(aside < 0.0, -np.inf, np.inf), where=ahead > 0.0)
    return np.arctan(tangent.min(axis=1)), np.arctan(tangent.max(axis=1))


def _extent_ahead(
    x: FloatArray, y: FloatArray, cos: FloatArray, sin: FloatArray, view_distance: float
) -> tuple[FloatArray, FloatArray]:
    """Of :func:`bearing_extent`, where all points lie well ahead of each camera.

    Tangents by a matrix product in single precision are the fastest, but their last digits depend on the linear
    algebra library, and precision is low. So they only select candidate points, which are then computed like all
    others.
    """
    points, turns = np.stack([x, y]).astype(np.float32), np.hstack([sin, -cos, cos, sin]).astype(np.float32)
    rough, ahead = turns[:, :2] @ points, turns[:, 2:] @ points
    rough /= np.subtract(np.float32(view_distance), ahead, out=ahead)
    found = []
    for near, extreme in (
        (rough <= rough.min(axis=1, keepdims=True) + _ROUGH, np.minimum),
        (rough >= rough.max(axis=1, keepdims=True) - _ROUGH, np.maximum),
    ):
        view, point = np.divmod(np.flatnonzero(near), len(x))
        c, s, at_x, at_y = cos[view, 0], sin[view, 0], x[point], y[point]
        tangent = (s * at_x - c * at_y) / (view_distance - (c * at_x + s * at_y))
        found.append(np.arctan(extreme.reduceat(tangent, np.searchsorted(view, np.arange(len(cos))))))
    return found[0], found[1]


def discretise(angle: FloatArray, radius: FloatArray, pixel_size: float) -> NDArray[np.intp]:
    """Indices of one grid point per world pixel, rising: the first of the whole grid that lies in the pixel."""
    column, row = pixel_index(*polar_to_cartesian(angle, radius), pixel_size)
    _, first = np.unique(column * (1 << 32) + row, return_index=True)
    return np.asarray(np.sort(first))


def unseen_beyond(angle: FloatArray, radius: FloatArray, view: CameraPose, scene: Scene) -> FreeRays:
    r"""Free space if these are all points that :func:`observe` finds from a view.

    The ray to each of these n > 0 points (polar angles, radians, and radii, metres), and on either side, beside the
    outermost one, the rest of the cone: its rays met nothing. Points represent the surface in one pixel each and are
    :math:`\sqrt2 h` apart at most, so a ray counts only that far beside the outermost point, and only if the next point
    would still be inside the cone, had there been one.
    """
    bearing, distance = world_to_camera(angle, radius, view.view_angle, view.distance)
    sensor, spacing = scene.sensor, np.sqrt(2.0) * scene.pixel_size
    sides = (bearing.argmin(), -1.0, -sensor.bearing_min), (bearing.argmax(), 1.0, sensor.bearing_max)
    empty = [
        bearing[last] + sign * spacing / distance[last]
        for last, sign, edge in sides if sign * (bearing[last] - view.turn) + 2.0 * spacing / distance[last] <= edge
    ]
    length = np.concatenate([distance, np.full(len(empty), sensor.range_max)])
    of_hit = np.arange(len(length)) < len(distance)
    return FreeRays(view.view_angle, view.distance, np.concatenate([bearing, empty]), length, of_hit)
