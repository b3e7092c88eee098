"""A scan of a 2D depth camera, the sensor that takes it, and the free space that it shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, cartesian_to_polar, world_to_camera, wrap_angle


@dataclass(frozen=True, eq=False)
class FreeRays:
    """Stretches of rays from one camera on which there is no surface."""

    camera_angle: float  #: polar angle of the camera, radians.
    distance: float  #: its distance from the centre, metres.
    bearing: FloatArray  #: direction of each ray against that to the centre, counter-clockwise, shape (B,), radians.
    length: FloatArray  #: free stretch from the camera on, shape (B,), metres, not negative.
    of_hit: BoolArray  #: whether each ray is that of a hit, in the order of the hits of its scan, shape (B,).

    @property
    def hits(self) -> int:
        """Number of rays that are those of hits."""
        return int(self.of_hit.sum())

    def bearing_of(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bearing, as of the rays, and distance from the camera of points about the centre, metres."""
        return world_to_camera(*cartesian_to_polar(x, y), self.camera_angle, self.distance)

    @property
    def misses(self) -> FreeRays:
        """The rays that met nothing at all."""
        return self.without_hits(np.ones(self.hits, dtype=bool))

    def without_hits(self, doubtful: BoolArray) -> FreeRays:
        """The same without the rays of `doubtful` hits, a mask over the hits of the scan; misses stay."""
        kept = np.ones(len(self.bearing), dtype=bool)
        kept[np.flatnonzero(self.of_hit)[doubtful]] = False
        return FreeRays(self.camera_angle, self.distance, self.bearing[kept], self.length[kept], self.of_hit[kept])

    def bound(self, angle: FloatArray) -> FloatArray:
        r"""Least radius at each polar `angle` (radians) at which a ray is free, shape (M,), metres; +inf where none is.

        A ray at bearing β passes the polar angles up to :math:`δ` from the camera's with
        :math:`δ = \operatorname{atan2}(L\sin|β|, d - L\cosβ)`, at the radius
        :math:`d \sin|β| / \sin(|β| + δ)` (eq. camera-ray), which grows with |β|. So of the rays that reach an angle
        the one with the least |β| counts. A star-shaped object that has a free point lies inside of it.
        """
        aside, ray, around = np.abs(self.bearing), np.full(len(angle), -1), np.zeros(len(angle))
        ahead = self.distance - self.length * np.cos(aside)  # of the end of a ray; behind the centre below 0
        reach = np.arctan2(self.length * np.sin(aside), ahead)
        for turn in (1.0, -1.0):  # a rising bearing sweeps a falling polar angle
            rays, offset = np.flatnonzero(turn * self.bearing <= 0.0), wrap_angle(turn * (angle - self.camera_angle))
            rays = rays[np.argsort(aside[rays], kind="stable")]
            # The angle of a ray's own end must not move to the next ray by rounding.
            place = np.where(offset < TWO_PI - 1e-9, offset, 0.0) - 1e-12
            first = np.append(rays, -1)[np.searchsorted(np.maximum.accumulate(reach[rays]), place)]
            ray, around = np.where(first < 0, ray, first), np.where(first < 0, around, offset)
        found, bound = np.flatnonzero(ray >= 0), np.full(len(angle), np.inf)
        ray = ray[found]
        along = np.sin(aside[ray] + around[found])
        radius = np.divide(self.distance * np.sin(aside[ray]), along, out=ahead[ray], where=along > 1e-9)
        bound[found] = np.maximum(radius, 0.0)
        return bound


@dataclass(frozen=True, eq=False)
class Scan:
    """Ranges at equally spaced bearings (radians, metres), as a LaserScan carries them (REP 117: ±inf, NaN).

    The step between beams is positive. Of the ranges, shape (B,), `+inf` is no return, `-inf` closer than the sensor
    can measure, `NaN` invalid; `range_min` and `range_max` are the least and the greatest valid one, the latter `+inf`
    where it is not known.

    Raises:
        InputRejectedError: no beams, or a header value that is not finite or not positive.
    """

    angle_min: float
    angle_increment: float
    ranges: FloatArray
    range_min: float
    range_max: float

    def __post_init__(self) -> None:
        if np.ndim(self.ranges) != 1 or len(self.ranges) == 0:
            raise InputRejectedError("empty", "the scan has no ranges")
        header = (self.angle_min, self.angle_increment, self.range_min, self.range_max)
        if not all(math.isfinite(value) for value in header[:3]) or math.isnan(self.range_max):
            raise InputRejectedError("header_not_finite", f"angle_min, angle_increment, range limits are {header}")
        if self.angle_increment <= 0.0:
            raise InputRejectedError("increment", f"angle_increment is {self.angle_increment}, must be > 0")
        if (len(self.ranges) - 1) * self.angle_increment > 2.0 * math.pi * (1.0 + 1e-3):
            raise InputRejectedError("increment", f"{len(self.ranges)} beams sweep more than a full turn")
        if not 0.0 <= self.range_min < self.range_max:
            raise InputRejectedError("range_limits", f"range_min {self.range_min}, range_max {self.range_max}")

    @property
    def bearings(self) -> FloatArray:
        """Bearing of each beam, shape (B,), radians."""
        return self.angle_min + self.angle_increment * np.arange(len(self.ranges))

    @property
    def field_ahead(self) -> float:
        """Opening angle of the widest cone about the line of sight that the beams fill, radians; 0 if they miss it."""
        sweep = self.angle_increment * (len(self.ranges) - 1)
        if sweep + 1.5 * self.angle_increment >= TWO_PI:
            return TWO_PI
        behind = -self.angle_min % TWO_PI  # from the first beam to the line of sight
        return 2.0 * max(min(behind, sweep - behind), 0.0)


@dataclass(frozen=True)
class RangeNoise:
    """Noise of a range d as it is measured or assumed: :math:`σ(d) = σ_0 + σ_1 d`; σ_0 is `noise_std`, metres."""

    noise_std: float
    noise_std_per_metre: float

    def std(self, distance: FloatArray) -> FloatArray:
        """Standard deviation at each `distance`, metres."""
        return self.noise_std + self.noise_std_per_metre * distance

    def scaled(self, factor: float) -> RangeNoise:
        """A multiple of it."""
        return RangeNoise(factor * self.noise_std, factor * self.noise_std_per_metre)


class SensorModel(Protocol):
    """What a camera can see from where it stands, how noisy its ranges are, and what a miss means.

    The objectives need the line of sight within the field of view, and no bearing in it beyond ±π/2.
    """

    @property
    def misses_are_free(self) -> bool:
        """Whether a beam without a return (`+inf`) met no surface up to `range_max`."""

    @property
    def bearing_min(self) -> float:
        """Least bearing of the field of view, radians, counter-clockwise from the line of sight."""

    @property
    def bearing_max(self) -> float:
        """Greatest bearing of the field of view, radians."""

    @property
    def range_min(self) -> float:
        """Least range that is measured, metres."""

    @property
    def range_max(self) -> float:
        """Greatest range that is measured, metres."""

    def in_field(self, bearing: ArrayLike) -> BoolArray:
        """Whether each bearing, radians, lies in the field of view."""

    def range_std(self, noise: RangeNoise, distance: FloatArray, incidence: FloatArray) -> FloatArray:
        """Standard deviation of ranges at each `distance`, metres, for the `noise` that somebody assumes.

        The incidence is the angle of each beam to the normal of the surface, radians; to the direction to the centre
        where the surface is not known.
        """


@dataclass(frozen=True)
class ConeSensor:
    """A field of view between two bearings, the same noise at any incidence; see :class:`SensorModel`."""

    bearing_min: float
    bearing_max: float
    range_min: float
    range_max: float
    misses_are_free: ClassVar[bool] = True

    @classmethod
    def of_scan(cls, scan: Scan) -> ConeSensor:
        """The sensor that a scan's header describes: from its first beam to its last."""
        last = scan.angle_min + scan.angle_increment * (len(scan.ranges) - 1)
        return cls(scan.angle_min, last, scan.range_min, scan.range_max)

    def in_field(self, bearing: ArrayLike) -> BoolArray:
        """Whether each bearing lies between the two."""
        bearing = np.asarray(bearing)
        return np.asarray((self.bearing_min <= bearing) & (bearing <= self.bearing_max))

    def range_std(self, noise: RangeNoise, distance: FloatArray, incidence: FloatArray) -> FloatArray:
        """Standard deviation of ranges, metres, whatever the incidence."""
        return noise.std(distance)
