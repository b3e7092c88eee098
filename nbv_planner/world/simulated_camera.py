"""The simulated 2D depth camera: beams on a true object, with noise, dropout and outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    FloatArray,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
    wrap_angle,
)
from nbv_planner.settings import Settings, setting
from nbv_planner.world.objects import PolarObject
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams
from nbv_planner.world.scan import RangeNoise, Scan
from nbv_planner.world.scene import Scene

# A chord of the sampled contour then departs from a circle of radius 10 m by less than 3e-6 m.
_CONTOUR_STEPS = 4096
_OTHER_STEPS = 256


@dataclass(frozen=True)
class SensorSettings(Settings):
    """Beams and noise of the simulated depth camera."""

    num_beams: int = setting(121, "Number of beams over the field of view, both edges included.", ge=2, le=100_000)
    noise_std: float = setting(
        0.2, "Standard deviation of the range noise.", unit="m", ge=0.0, scale="view_distance"
    )
    noise_std_per_metre: float = setting(0.0, "Part of the standard deviation that grows with range.",
                                         unit="m/m", ge=0.0)
    dropout_probability: float = setting(0.0, "Probability that a beam gives no valid range (NaN).", ge=0.0, le=1.0)
    outlier_probability: float = setting(
        0.0, "Probability that a return is replaced by a uniformly random range.", ge=0.0, le=1.0
    )
    pose_bias_x: float = setting(
        0.0, "Distance of the true sensor ahead of its reported pose, along the line of sight.", unit="m"
    )
    pose_bias_y: float = setting(0.0, "Distance of the true sensor to the left of its reported pose.", unit="m")
    pose_bias_yaw: float = setting(
        0.0, "Angle of the true heading to the left of the reported one.", unit="rad", ge=-math.pi, le=math.pi
    )
    seed: int = setting(0, "Seed of the sensor noise.", ge=0, le=2**53)

    @property
    def noise(self) -> RangeNoise:
        """Noise of the ranges."""
        return RangeNoise(self.noise_std, self.noise_std_per_metre)


@dataclass(frozen=True)
class MotionSettings(Settings):
    """How the simulated camera moves and when it scans.

    It starts between two of the default candidate views: were it at the first goal already, a scan taken just before
    the goal reaches the camera could sometimes count for it, and the runs would differ.
    """

    initial_view_angle: float = setting(0.0314, "View angle at which the camera starts.", unit="rad")
    angular_speed: float = setting(
        0.0, "Speed of the simulated camera along the view circle; 0 moves at once (planners expect linear_speed and "
        "turn_speed of nbv_planner).", unit="rad/s", ge=0.0,
    )
    scan_rate: float = setting(10.0, "Scans per second.", unit="Hz", gt=0.0, le=1000.0)


@dataclass(frozen=True)
class WorldSettings(Settings):
    """Where the simulated object stands, and what else does."""

    object_x: float = setting(0.0, "Position of the simulated object in object_frame.", unit="m", ge=-1e4, le=1e4)
    object_y: float = setting(0.0, "Position of the simulated object in object_frame.", unit="m", ge=-1e4, le=1e4)
    other_x: float = setting(0.0, "Position of another object, a round one.", unit="m", ge=-1e4, le=1e4)
    other_y: float = setting(0.0, "Position of another object, a round one.", unit="m", ge=-1e4, le=1e4)
    other_radius: float = setting(0.0, "Radius of the other object; 0: there is none.", unit="m", ge=0.0, le=1e4)

    @property
    def placed(self) -> tuple[float, float]:
        """Position of the simulated object, metres."""
        return self.object_x, self.object_y

    def other(self) -> Contour | None:
        """Outline of the other object as seen from the simulated one; None if there is none."""
        if self.other_radius == 0.0:
            return None
        x, y = polar_to_cartesian(np.arange(_OTHER_STEPS) * (TWO_PI / _OTHER_STEPS), self.other_radius)
        return Contour(x + self.other_x - self.object_x, y + self.other_y - self.object_y)


def sampled_contour(shape: PolarObject) -> Contour:
    """Polyline through the object's corners and closely spaced angles."""
    angle = np.union1d(np.arange(_CONTOUR_STEPS) * (TWO_PI / _CONTOUR_STEPS), shape.corners())
    return Contour(*polar_to_cartesian(angle, shape.radius(angle)))


class SimulatedCamera:
    """Casts beams on a true object; the same seed, view and scan number give the same scan bit for bit.

    The `bearings` of the beams rise, shape (B,), radians.
    """

    def __init__(
        self, shape: PolarObject | Contour, scene: Scene, settings: SensorSettings, world: WorldSettings | None = None
    ) -> None:
        """Sample the contour once; any closed one will do, also one that is not star-shaped."""
        self._world = world or WorldSettings()
        self._other = self._world.other()
        self._contour = shape if isinstance(shape, Contour) else sampled_contour(shape)
        x, y = self._contour.x, self._contour.y
        self._vertex = wrap_angle(np.arctan2(y, x))
        self._normal = np.arctan2(x - np.roll(x, -1), np.roll(y, -1) - y)
        self._sensor = sensor = scene.sensor
        self._settings = settings
        # In single precision, as a LaserScan carries them: the same scan with and without ROS.
        self._angle_min = float(np.float32(sensor.bearing_min))
        self._increment = float(np.float32((sensor.bearing_max - sensor.bearing_min) / (settings.num_beams - 1)))
        self.bearings: FloatArray = self._angle_min + self._increment * np.arange(settings.num_beams)

    def scan(self, pose: CameraPose, view_number: int, scan_number: int = 0) -> Scan:
        """Take a scan at the reported `pose`; the number of the goal (`view_number`) and of the scan give the noise."""
        exact, true, bearings = self.exact_ranges(pose), self._true(pose), self.bearings
        rng = np.random.default_rng([self._settings.seed, view_number, scan_number])
        std = self._sensor.range_std(self._settings.noise, *self._returns(exact, true, bearings))
        ranges = self._with_limits(self._with_noise(self._with_limits(exact), std, rng))
        limits = (float(np.float32(limit)) for limit in (self._sensor.range_min, self._sensor.range_max))
        return Scan(self._angle_min, self._increment, self._with_dropout(ranges, rng).astype(np.float32), *limits)

    def exact_ranges(self, pose: CameraPose) -> FloatArray:
        """Range of each beam without noise and limits, `inf` where it meets nothing, shape (B,), metres."""
        true = self._true(pose)
        ranges = cast_beams(self._contour, true, self.bearings)
        return ranges if self._other is None else np.minimum(ranges, cast_beams(self._other, true, self.bearings))

    def _true(self, pose: CameraPose) -> CameraPose:
        """True pose of the sensor, seen from the object, when the camera reports `pose`."""
        s, world = self._settings, self._world
        if world.object_x or world.object_y:
            pose = pose.relative_to(world.object_x, world.object_y)
        if not (s.pose_bias_x or s.pose_bias_y or s.pose_bias_yaw):
            return pose
        cos, sin = math.cos(pose.yaw), math.sin(pose.yaw)
        return CameraPose(
            pose.x + cos * s.pose_bias_x - sin * s.pose_bias_y, pose.y + sin * s.pose_bias_x + cos * s.pose_bias_y,
            pose.yaw + s.pose_bias_yaw,
        )

    def _returns(self, exact: FloatArray, pose: CameraPose, bearings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Range of each beam, metres, and its angle to the normal of the contour there; 0 and 0 without a return."""
        met = np.isfinite(exact)
        distance = np.where(met, exact, 0.0)
        angle = cartesian_to_polar(*pose.to_world(bearings, distance))[0]
        normal = self._normal[np.searchsorted(self._vertex, angle, side="right") - 1]
        return distance, np.where(met, np.abs(angle_difference(pose.yaw + bearings + math.pi, normal)), 0.0)

    def _with_noise(self, ranges: FloatArray, std: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Gaussian noise and outliers on the returns; a fixed number of draws whatever the ranges are."""
        s = self._settings
        noise = rng.standard_normal(len(ranges))
        outlier = rng.random(len(ranges)) < s.outlier_probability
        uniform = rng.uniform(self._sensor.range_min, self._sensor.range_max, len(ranges))
        finite = np.isfinite(ranges)
        distance = np.where(finite, ranges, 0.0)
        noisy = distance + std * noise
        return np.where(finite, np.where(outlier, uniform, noisy), ranges)

    def _with_limits(self, ranges: FloatArray) -> FloatArray:
        """REP 117: `-inf` below the least range, `+inf` above the greatest."""
        ranges = np.where(ranges < self._sensor.range_min, -np.inf, ranges)
        return np.where(ranges > self._sensor.range_max, np.inf, ranges)

    def _with_dropout(self, ranges: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Invalid measurements are NaN (REP 117), not misses: a miss would mean that the beam met no surface."""
        return np.where(rng.random(len(ranges)) < self._settings.dropout_probability, np.nan, ranges)
