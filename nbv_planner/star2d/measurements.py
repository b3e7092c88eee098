"""What a star shape is measured by, about a centre: radii at polar angles, beams, free rays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    Point,
    Rows,
    angle_difference,
    cartesian_to_polar,
    polar_points,
    polar_to_cartesian,
    world_to_camera,
    wrap_angle,
)
from nbv_planner.surface.seam import Hits
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import Scene

_COLUMNS = ("angle", "radius", "std", "tilt", "distance", "spread")


_ZEROS: Any = None  # as many as there are measurements


@dataclass(frozen=True, eq=False)
class Measurements(Rows):
    """Surface measurements: polar angle, radius, and the standard deviation of the radius at that
    angle.

    Raises:
        MeasurementError: sizes differ, a value is not finite, or a standard deviation is not
            positive.
    """

    angle: FloatArray  #: shape (n,), radians, wrapped to [0, 2π) on construction.
    radius: FloatArray  #: shape (n,), metres.
    std: FloatArray  #: shape (n,), metres, positive.
    #: angle from the outward radial direction to the direction of the beam, shape (n,), radians; 0
    #: (the default) where it is not known or does not matter.
    tilt: FloatArray = _ZEROS
    #: range from the camera, shape (n,), metres; 0 (the default) where it is not known.
    distance: FloatArray = _ZEROS
    #: covariance of the hit's displacement by errors of the camera's pose, shape (n, 3), metres²:
    #: radial, radial with tangential, tangential; 0 by default.
    spread: FloatArray = _ZEROS

    def __post_init__(self) -> None:
        count = np.size(self.angle)
        for name in _COLUMNS[:-1]:
            given = getattr(self, name)
            values = np.zeros(count) if given is _ZEROS else np.asarray(given, dtype=float).ravel()
            object.__setattr__(self, name, values)
        spread = np.zeros((count, 3)) if self.spread is _ZEROS else self.spread
        object.__setattr__(self, "spread", np.asarray(spread, dtype=float).reshape(-1, 3))
        columns = self._columns()
        sizes = list(map(len, columns))
        if len(set(sizes)) > 1:
            raise MeasurementError(f"measurements differ in size: {', '.join(map(str, sizes))}")
        rows = np.column_stack(columns)
        if not np.isfinite(rows).all():
            bad, column = np.argwhere(~np.isfinite(rows))[0]
            name = _COLUMNS[min(column, len(_COLUMNS) - 1)]
            raise MeasurementError(
                f"measurement {bad}: {name} is {rows[bad, column]}, must be finite"
            )
        if count and self.std.min() <= 0.0:
            raise MeasurementError(
                f"measurement {self.std.argmin()}: std is {self.std.min()}, must be > 0"
            )
        object.__setattr__(self, "angle", wrap_angle(self.angle))

    @classmethod
    def none(cls) -> Measurements:
        """No measurement."""
        return cls(np.empty(0), np.empty(0), np.empty(0))

    @property
    def points(self) -> FloatArray:
        """Where they are about their centre, shape (n, 2), metres."""
        return polar_points(self.angle, self.radius)

    def pose_variance(self, slope: FloatArray) -> FloatArray:
        r"""Variance of the radius at fixed angle that comes from errors of the camera's pose, shape
        (n,), metres².

        A hit displaced by (u, v) radially and tangentially departs from a surface of relative slope
        s by :math:`u - s v`, so the variance is :math:`c_{uu} - 2 s c_{uv} + s^2 c_{vv}`; s has
        shape (n,), 1/rad.
        """
        radial, mixed, tangential = self.spread.T
        return np.asarray(np.maximum(radial - 2.0 * slope * mixed + slope**2 * tangential, 0.0))

    def radial_std(self, slope: FloatArray) -> FloatArray:
        r"""Deviation of the radius at fixed angle, (n,), metres, from that of the range and the
        `slope`, (n,), 1/rad.

        A return that moves by δ along a beam with tilt γ moves by :math:`δ\cosγ` in radius and by
        :math:`δ\sinγ/r` in angle, so at its angle it departs from a surface of relative slope
        :math:`s = f'/f` by :math:`δ(\cosγ - s\sinγ)`. The standard deviation becomes
        :math:`σ\,\max(1, |\cosγ - s\sinγ|)`: never less than that of the range; to its square that
        of the camera's pose is added (:meth:`pose_variance`).
        """
        std = self.std * np.maximum(np.abs(np.cos(self.tilt) - slope * np.sin(self.tilt)), 1.0)
        return np.sqrt(std**2 + self.pose_variance(slope)) if self.spread.any() else std


def polar(hits: Hits, centre: Point = ORIGIN) -> Measurements:
    """Hits in the plane as measurements of the radius about a `centre`, metres."""
    points = hits.points - np.array(centre)
    beam = hits.points - hits.origin
    angle, radius = cartesian_to_polar(*points.T)
    tilt = angle_difference(np.arctan2(beam[:, 1], beam[:, 0]), angle)
    cos, sin = np.cos(angle), np.sin(angle)
    axes = np.stack([cos, sin, -sin, cos], axis=1).reshape(-1, 2, 2)  # radial and tangential
    spread = axes @ hits.spread @ axes.swapaxes(1, 2)
    parts = spread[:, (0, 0, 1), (0, 1, 1)]
    return Measurements(angle, radius, hits.sigma, tilt, np.hypot(*beam.T), parts)


@dataclass(frozen=True, eq=False)
class Beams(Rows):
    """Measurements in order of arrival. Immutable."""

    hits: Measurements  #: where the beams met the surface.
    scan: IntArray  #: number of the scan that each is from, shape (n,), rising.
    view: IntArray  #: number of the view that each is from, shape (n,), rising.

    @classmethod
    def none(cls) -> Beams:
        """No beam yet."""
        return cls(Measurements.none(), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))

    @property
    def direction(self) -> FloatArray:
        """Direction in which each beam runs, shape (n,), radians, counter-clockwise from +x of the
        object frame.
        """
        return self.hits.angle + self.hits.tilt

    def moved(self, beyond: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points at the distance `beyond` (n, k), metres, along each beam behind its hit: x and y,
        shape (n, k).
        """
        x, y = polar_to_cartesian(self.hits.angle[:, None], self.hits.radius[:, None])
        direction = self.direction[:, None]
        return x + beyond * np.cos(direction), y + beyond * np.sin(direction)


@dataclass(frozen=True, eq=False)
class PolarRays:
    """Stretches of rays from one camera on which there is no surface, about a centre."""

    camera_angle: float  #: polar angle of the camera, radians.
    distance: float  #: its distance from the centre, metres.
    #: direction of each ray against that to the centre, counter-clockwise, shape (B,), radians.
    bearing: FloatArray
    length: FloatArray  #: free stretch from the camera on, shape (B,), metres, not negative.
    #: whether each ray is that of a hit, in the order of the hits of its scan, shape (B,).
    of_hit: BoolArray

    @classmethod
    def of(cls, rays: FreeRays, centre: Point = ORIGIN) -> PolarRays:
        """Rays in the object frame about a `centre`, metres."""
        x, y = rays.origin - centre
        camera_angle = float(wrap_angle(np.arctan2(y, x)))
        heading = np.arctan2(rays.direction[:, 1], rays.direction[:, 0])
        bearing = angle_difference(heading, wrap_angle(camera_angle + np.pi))
        return cls(camera_angle, float(np.hypot(x, y)), bearing, rays.length, rays.of_hit)

    @property
    def hits(self) -> int:
        """Number of rays that are those of hits."""
        return int(self.of_hit.sum())

    @property
    def misses(self) -> PolarRays:
        """The rays that met nothing at all."""
        return self.without_hits(np.ones(self.hits, dtype=bool))

    def without_hits(self, doubtful: BoolArray) -> PolarRays:
        """The same without the rays of `doubtful` hits, a mask over the hits of the scan; misses
        stay.
        """
        kept = np.ones(len(self.bearing), dtype=bool)
        kept[np.flatnonzero(self.of_hit)[doubtful]] = False
        return PolarRays(
            self.camera_angle,
            self.distance,
            self.bearing[kept],
            self.length[kept],
            self.of_hit[kept],
        )

    def bound(self, angle: FloatArray) -> FloatArray:
        r"""Least radius at each polar `angle` (radians) at which a ray is free, shape (M,), metres;
        +inf where none is.

        A ray at bearing β passes the polar angles up to :math:`δ` from the camera's with
        :math:`δ = \operatorname{atan2}(L\sin|β|, d - L\cosβ)`, at the radius
        :math:`d \sin|β| / \sin(|β| + δ)` (eq. camera-ray), which grows with |β|. So of the rays
        that reach an angle the one with the least |β| counts. A star-shaped object that has a free
        point lies inside of it.
        """
        aside = np.abs(self.bearing)
        ray = np.full(len(angle), -1)
        around = np.zeros(len(angle))
        # of the end of a ray; behind the centre below 0
        ahead = self.distance - self.length * np.cos(aside)
        reach = np.arctan2(self.length * np.sin(aside), ahead)
        for turn in (1.0, -1.0):  # a rising bearing sweeps a falling polar angle
            rays = np.flatnonzero(turn * self.bearing <= 0.0)
            offset = wrap_angle(turn * (angle - self.camera_angle))
            rays = rays[np.argsort(aside[rays], kind="stable")]
            # The angle of a ray's own end must not move to the next ray by rounding.
            place = np.where(offset < TWO_PI - 1e-9, offset, 0.0) - 1e-12
            first = np.append(rays, -1)[np.searchsorted(np.maximum.accumulate(reach[rays]), place)]
            ray = np.where(first < 0, ray, first)
            around = np.where(first < 0, around, offset)
        found = np.flatnonzero(ray >= 0)
        bound = np.full(len(angle), np.inf)
        ray = ray[found]
        along = np.sin(aside[ray] + around[found])
        radius = np.divide(
            self.distance * np.sin(aside[ray]), along, out=ahead[ray], where=along > 1e-9
        )
        bound[found] = np.maximum(radius, 0.0)
        return bound


def unseen_beyond(
    angle: FloatArray, radius: FloatArray, view: CameraPose, scene: Scene
) -> PolarRays:
    r"""Free space if these are all points that :func:`observe` finds from a view.

    The ray to each of these n > 0 points (polar angles, radians, and radii, metres), and on either
    side, beside the outermost one, the rest of the cone: its rays met nothing. Points represent the
    surface in one pixel each and are :math:`\sqrt2 h` apart at most, so a ray counts only that far
    beside the outermost point, and only if the next point would still be inside the cone, had there
    been one.
    """
    bearing, distance = world_to_camera(angle, radius, view.view_angle, view.distance)
    sensor = scene.sensor
    spacing = np.sqrt(2.0) * scene.pixel_size
    sides = (
        (bearing.argmin(), -1.0, -sensor.bearing_min),
        (
            bearing.argmax(),
            1.0,
            sensor.bearing_max,
        ),
    )
    empty = [
        bearing[last] + sign * spacing / distance[last]
        for last, sign, edge in sides
        if sign * (bearing[last] - view.turn) + 2.0 * spacing / distance[last] <= edge
    ]
    length = np.concatenate([distance, np.full(len(empty), sensor.range_max)])
    of_hit = np.arange(len(length)) < len(distance)
    return PolarRays(
        view.view_angle, view.distance, np.concatenate([bearing, empty]), length, of_hit
    )
