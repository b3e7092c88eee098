"""A scan of a 2D depth camera, the sensor that takes it, and the free space that it shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class FreeRays:
    """Stretches of rays from one camera on which there is no surface, in the object frame."""

    origin: FloatArray  #: where the camera stood, shape (D,), metres.
    direction: FloatArray  #: unit vector of each ray, shape (B, D).
    length: FloatArray  #: free stretch from the camera on, shape (B,), metres, not negative.
    #: whether each ray is that of a hit, in the order of the hits of its scan, shape (B,).
    of_hit: BoolArray


@dataclass(frozen=True, eq=False)
class Scan:
    """Ranges at equally spaced bearings (radians, metres), as a LaserScan carries them (REP 117:
    ±inf, NaN).

    The step between beams is positive. Of the ranges, shape (B,), `+inf` is no return, `-inf`
    closer than the sensor can measure, `NaN` invalid; `range_min` and `range_max` are the least and
    the greatest valid one, the latter `+inf` where it is not known.

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
            raise InputRejectedError(
                "header_not_finite", f"angle_min, angle_increment, range limits are {header}"
            )
        if self.angle_increment <= 0.0:
            raise InputRejectedError(
                "increment", f"angle_increment is {self.angle_increment}, must be > 0"
            )
        if (len(self.ranges) - 1) * self.angle_increment > 2.0 * math.pi * (1.0 + 1e-3):
            raise InputRejectedError(
                "increment", f"{len(self.ranges)} beams sweep more than a full turn"
            )
        if not 0.0 <= self.range_min < self.range_max:
            raise InputRejectedError(
                "range_limits", f"range_min {self.range_min}, range_max {self.range_max}"
            )

    @property
    def bearings(self) -> FloatArray:
        """Bearing of each beam, shape (B,), radians."""
        return self.angle_min + self.angle_increment * np.arange(len(self.ranges))

    @property
    def field_ahead(self) -> float:
        """Opening angle of the widest cone about the line of sight that the beams fill, radians; 0
        if they miss it.
        """
        sweep = self.angle_increment * (len(self.ranges) - 1)
        if sweep + 1.5 * self.angle_increment >= TWO_PI:
            return TWO_PI
        behind = -self.angle_min % TWO_PI  # from the first beam to the line of sight
        return 2.0 * max(min(behind, sweep - behind), 0.0)


@dataclass(frozen=True)
class RangeNoise:
    """Noise of a range d as it is measured or assumed: :math:`σ(d) = σ_0 + σ_1 d`; σ_0 is
    `noise_std`, metres.
    """

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

    The objectives need the line of sight within the field of view, and no bearing in it beyond
    ±π/2.
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

    def range_std(
        self, noise: RangeNoise, distance: FloatArray, incidence: FloatArray
    ) -> FloatArray:
        """Standard deviation of ranges at each `distance`, metres, for an assumed `noise`.

        The incidence is the angle of each beam to the normal of the surface, radians; to the
        direction to the centre where the surface is not known.
        """


@dataclass(frozen=True)
class ConeSensor:
    """A field of view between two bearings, the same noise at any incidence; see
    :class:`SensorModel`.
    """

    bearing_min: float
    bearing_max: float
    range_min: float
    range_max: float
    misses_are_free: ClassVar[bool] = True

    def in_field(self, bearing: ArrayLike) -> BoolArray:
        """Whether each bearing lies between the two."""
        bearing = np.asarray(bearing)
        return (self.bearing_min <= bearing) & (bearing <= self.bearing_max)

    def range_std(
        self, noise: RangeNoise, distance: FloatArray, incidence: FloatArray
    ) -> FloatArray:
        """Standard deviation of ranges, metres, whatever the incidence."""
        return noise.std(distance)


@dataclass(frozen=True)
class Pinhole:
    """A pinhole camera without distortion: focal lengths and principal point, pixels.

    Raises:
        InputRejectedError: reason `camera_info`: a number is not finite, or a focal length not
            positive.
    """

    fx: float
    fy: float
    cx: float
    cy: float

    def __post_init__(self) -> None:
        numbers = (self.fx, self.fy, self.cx, self.cy)
        if not all(map(math.isfinite, numbers)) or min(self.fx, self.fy) <= 0.0:
            raise InputRejectedError(
                "camera_info", f"fx, fy, cx, cy are {numbers}: the camera is not calibrated"
            )
