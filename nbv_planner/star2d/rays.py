"""Free rays in the plane as star shapes need them: about the centre of the radii."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    angle_difference,
    world_to_camera,
    wrap_angle,
)
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import FreeRays
from nbv_planner.world.scene import Scene


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
    def of(cls, rays: FreeRays, centre: tuple[float, float] = (0.0, 0.0)) -> PolarRays:
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
        aside, ray, around = np.abs(self.bearing), np.full(len(angle), -1), np.zeros(len(angle))
        # of the end of a ray; behind the centre below 0
        ahead = self.distance - self.length * np.cos(aside)
        reach = np.arctan2(self.length * np.sin(aside), ahead)
        for turn in (1.0, -1.0):  # a rising bearing sweeps a falling polar angle
            rays, offset = (
                np.flatnonzero(turn * self.bearing <= 0.0),
                wrap_angle(turn * (angle - self.camera_angle)),
            )
            rays = rays[np.argsort(aside[rays], kind="stable")]
            # The angle of a ray's own end must not move to the next ray by rounding.
            place = np.where(offset < TWO_PI - 1e-9, offset, 0.0) - 1e-12
            first = np.append(rays, -1)[np.searchsorted(np.maximum.accumulate(reach[rays]), place)]
            ray, around = np.where(first < 0, ray, first), np.where(first < 0, around, offset)
        found, bound = np.flatnonzero(ray >= 0), np.full(len(angle), np.inf)
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
    sensor, spacing = scene.sensor, np.sqrt(2.0) * scene.pixel_size
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
