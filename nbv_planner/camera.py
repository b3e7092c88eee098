r"""The camera: its pose, its scans, and what a scan says about the surface."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.errors import InputRejectedError
from nbv_planner.free_space import FreeRays
from nbv_planner.geometry import BoolArray, FloatArray, angle_difference, cartesian_to_polar, wrap_angle
from nbv_planner.pose_covariance import PoseCovariance
from nbv_planner.scene import Scene
from nbv_planner.settings import check_settings, setting
from nbv_planner.surface import Measurements

# A beam counts as free up to this many standard deviations short of what it met.
_NOISE_MARGIN = 3.0


@dataclass(frozen=True)
class CameraPose:
    """Pose of the camera in the object frame; its x axis is the line of sight.

    Attributes:
        x: position, metres.
        y: position, metres.
        yaw: direction of the line of sight, radians, counter-clockwise from +x.
        covariance: of the errors of the three; None if they are not known or do not matter.
    """

    x: float
    y: float
    yaw: float
    covariance: PoseCovariance | None = None

    @classmethod
    def on_view_circle(cls, view_angle: float, view_distance: float) -> CameraPose:
        """Stand at `view_angle` on the circle and look at the centre."""
        return cls(
            x=view_distance * math.cos(view_angle),
            y=view_distance * math.sin(view_angle),
            yaw=float(wrap_angle(view_angle + math.pi)),
        )

    @property
    def view_angle(self) -> float:
        """Polar angle of the position, in [0, 2π)."""
        return float(wrap_angle(math.atan2(self.y, self.x)))

    def then(self, relative: CameraPose) -> CameraPose:
        """Pose in the object frame of what stands at `relative`, known exactly, in this pose's own frame."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        ahead, aside = cos * relative.x - sin * relative.y, sin * relative.x + cos * relative.y
        covariance = None if self.covariance is None else self.covariance.at_lever(ahead, aside)
        return CameraPose(self.x + ahead, self.y + aside, self.yaw + relative.yaw, covariance)

    def inverse(self) -> CameraPose:
        """Pose of the frame in which this pose is given, in this pose's own frame."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return CameraPose(x=-cos * self.x - sin * self.y, y=sin * self.x - cos * self.y, yaw=-self.yaw)

    def to_camera(self, x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Camera coordinates (x along the line of sight, y to the left) of world points."""
        dx, dy = np.asarray(x, dtype=float) - self.x, np.asarray(y, dtype=float) - self.y
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return cos * dx + sin * dy, cos * dy - sin * dx

    def to_world(self, bearing: ArrayLike, distance: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """World coordinates of points at `bearing` and range `distance`."""
        direction, reach = self.yaw + np.asarray(bearing, dtype=float), np.asarray(distance, dtype=float)
        return self.x + reach * np.cos(direction), self.y + reach * np.sin(direction)


@dataclass(frozen=True, eq=False)
class Scan:
    """Ranges at equally spaced bearings, as a LaserScan carries them (REP 117: ±inf, NaN).

    Attributes:
        angle_min: bearing of the first beam, radians.
        angle_increment: step between beams, radians, positive.
        ranges: shape (B,), metres; `+inf` no return, `-inf` closer than the sensor can measure, `NaN` invalid.
        range_min: least valid range, metres.
        range_max: greatest valid range, metres.

    Raises:
        InputRejectedError: no beams, or a header value that is not finite or not positive.
    """

    angle_min: float
    angle_increment: float
    ranges: FloatArray
    range_min: float
    range_max: float

    def __post_init__(self) -> None:
        """Check the header; single ranges are judged later."""
        if np.ndim(self.ranges) != 1 or len(self.ranges) == 0:
            raise InputRejectedError("empty", "the scan has no ranges")
        header = (self.angle_min, self.angle_increment, self.range_min, self.range_max)
        if not all(math.isfinite(value) for value in header):
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


@dataclass(frozen=True)
class MeasurementSettings:
    """How returns become surface measurements.

    Raises:
        SettingError: a value is out of range.
    """

    noise_std: float = setting(0.2, "Standard deviation of a range measurement, as the mapper assumes it.",
                               unit="m", ge=1e-6)
    noise_std_per_metre: float = setting(0.0, "Part of the standard deviation that grows with range.",
                                         unit="m/m", ge=0.0)
    radius_margin: float = setting(1.0, "How far outside [radius_min, radius_max] a return still counts.",
                                   unit="m", ge=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True, eq=False)
class ScanMeasurements:
    """What one scan says about the surface.

    Attributes:
        measurements: the returns that count.
        misses: bearings of beams that met no surface (`+inf`), shape (m,), radians: free-space evidence.
        free: what the beams found free on their way.
        dropped: number of beams left out, by reason.
    """

    measurements: Measurements
    misses: FloatArray
    free: FreeRays
    dropped: dict[str, int] = field(default_factory=dict)


def scan_to_measurements(
    scan: Scan, pose: CameraPose, scene: Scene, settings: MeasurementSettings
) -> ScanMeasurements:
    """Turn the returns of a scan taken at any camera pose into surface measurements.

    The standard deviations are those of the ranges; with the tilt of each beam the mapper can turn them into those of
    the radii (:meth:`nbv_planner.surface.Measurements.radial`). Beams are left out, and counted, for these reasons:
    `nan`, `too_close` (-inf or below the least range), `not_positive`, `too_far` (above the greatest range), and
    `outside_bounds` (radius outside the bounds by more than `radius_margin`). A miss (`+inf`) is no drop.
    """
    ranges = np.asarray(scan.ranges, dtype=float)
    low, high = max(scan.range_min, scene.range_min), min(scan.range_max, scene.range_max)
    nan, miss = np.isnan(ranges), np.isposinf(ranges)
    reasons = {
        "nan": nan,
        "not_positive": np.isfinite(ranges) & (ranges <= 0.0),
        "too_close": np.isneginf(ranges) | ((ranges > 0.0) & (ranges < low)),
        "too_far": np.isfinite(ranges) & (ranges > high) & (ranges >= low),
    }
    kept = np.flatnonzero((ranges >= low) & (ranges <= high) & (ranges > 0.0))
    bearings = scan.bearings[kept]
    angle, radius = cartesian_to_polar(*pose.to_world(bearings, ranges[kept]))
    tilt = angle_difference(pose.yaw + bearings, angle)
    margin = settings.radius_margin
    inside = (radius >= scene.radius_min - margin) & (radius <= scene.radius_max + margin)
    dropped = {reason: int(mask.sum()) for reason, mask in reasons.items()}
    dropped["outside_bounds"] = int((~inside).sum())
    distance = ranges[kept][inside]
    std = settings.noise_std + settings.noise_std_per_metre * distance
    spread = None if pose.covariance is None else pose.covariance.hit_spread(angle[inside], tilt[inside], distance)
    return ScanMeasurements(
        measurements=Measurements(
            angle[inside], radius[inside], std, tilt[inside], distance, bearings[inside], spread
        ),
        misses=scan.bearings[miss],
        free=_free_rays(pose, scan.bearings, np.where(miss, high, ranges), miss, _at(kept[inside], ranges), settings),
        dropped={reason: number for reason, number in dropped.items() if number},
    )


def _at(index: NDArray[np.intp], like: FloatArray) -> BoolArray:
    """Mask of the shape of `like` that is true at `index`."""
    mask = np.zeros(len(like), dtype=bool)
    mask[index] = True
    return mask


def _free_rays(
    pose: CameraPose, bearing: FloatArray, ranges: FloatArray, miss: BoolArray, hit: BoolArray,
    settings: MeasurementSettings,
) -> FreeRays:
    """What the beams found free that missed or hit: their range less some standard deviations of its noise."""
    chosen = miss | hit
    ranges = ranges[chosen]
    std = settings.noise_std + settings.noise_std_per_metre * ranges
    centre = wrap_angle(pose.view_angle + np.pi)
    return FreeRays(
        pose.view_angle, math.hypot(pose.x, pose.y), angle_difference(pose.yaw + bearing[chosen], centre),
        np.maximum(ranges - _NOISE_MARGIN * std, 0.0), hit[chosen],
    )
