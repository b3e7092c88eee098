"""The simulated 2D depth camera: beams on a true object, with noise, dropout and outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.camera import CameraPose, Scan
from nbv_planner.geometry import TWO_PI, FloatArray, polar_to_cartesian
from nbv_planner.objects import PolarObject
from nbv_planner.ray_casting import Contour, cast_beams
from nbv_planner.scene import Scene
from nbv_planner.settings import check_settings, setting

# A chord of the sampled contour then departs from a circle of radius 10 m by less than 3e-6 m.
_CONTOUR_STEPS = 4096


@dataclass(frozen=True)
class SensorSettings:
    """Beams and noise of the simulated depth camera.

    Raises:
        SettingError: a value is out of range.
    """

    num_beams: int = setting(121, "Number of beams over the field of view, both edges included.", ge=2, le=100_000)
    noise_std: float = setting(0.2, "Standard deviation of the range noise.", unit="m", ge=0.0)
    noise_std_per_metre: float = setting(0.0, "Part of the standard deviation that grows with range.",
                                         unit="m/m", ge=0.0)
    dropout_probability: float = setting(0.0, "Probability that a beam gives no valid range (NaN).", ge=0.0, le=1.0)
    outlier_probability: float = setting(
        0.0, "Probability that a return is replaced by a uniformly random range.", ge=0.0, le=1.0
    )
    pose_bias_x: float = setting(
        0.0, "How far the sensor really sits before its reported pose, along the line of sight.", unit="m"
    )
    pose_bias_y: float = setting(0.0, "How far it really sits to the left of its reported pose.", unit="m")
    pose_bias_yaw: float = setting(
        0.0, "How far it is really turned to the left of its reported heading.", unit="rad", ge=-math.pi, le=math.pi
    )
    seed: int = setting(0, "Seed of the sensor noise.", ge=0, le=2**53)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True)
class MotionSettings:
    """How the simulated camera moves and when it scans.

    It starts between two of the default candidate views: were it at the first goal already, a scan taken just before
    the goal reaches the camera could count for it, now and then, and the runs would differ.

    Raises:
        SettingError: a value is out of range.
    """

    initial_view_angle: float = setting(0.0314, "View angle at which the camera starts.", unit="rad")
    angular_speed: float = setting(0.0, "Speed along the view circle; 0 moves at once.", unit="rad/s", ge=0.0)
    scan_rate: float = setting(10.0, "Scans per second.", unit="Hz", gt=0.0, le=1000.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


def sampled_contour(shape: PolarObject) -> Contour:
    """Polyline through the object's corners and closely spaced angles."""
    angle = np.union1d(np.arange(_CONTOUR_STEPS) * (TWO_PI / _CONTOUR_STEPS), shape.corners())
    return Contour(*polar_to_cartesian(angle, shape.radius(angle)))


class SimulatedCamera:
    """Casts beams on a true object; the same seed, view and scan number give the same scan bit for bit."""

    def __init__(self, shape: PolarObject, scene: Scene, settings: SensorSettings) -> None:
        """Sample the contour once."""
        self._contour = sampled_contour(shape)
        self._scene = scene
        self._settings = settings
        # In single precision, as a LaserScan carries them: the same scan with and without ROS.
        self._angle_min = float(np.float32(-0.5 * scene.field_of_view))
        self._increment = float(np.float32(scene.field_of_view / (settings.num_beams - 1)))

    def scan(self, pose: CameraPose, view_number: int, scan_number: int = 0) -> Scan:
        """Take a scan.

        Args:
            pose: where the camera says that it stands.
            view_number: how many goals the camera has been sent to, for the noise.
            scan_number: number of the scan at this view, for the noise.
        """
        bearings = self._angle_min + self._increment * np.arange(self._settings.num_beams)
        exact = cast_beams(self._contour, self._true(pose), bearings)
        rng = np.random.default_rng([self._settings.seed, view_number, scan_number])
        ranges = self._with_limits(self._with_noise(self._with_limits(exact), rng))
        return Scan(
            angle_min=self._angle_min,
            angle_increment=self._increment,
            ranges=self._with_dropout(ranges, rng).astype(np.float32),
            range_min=float(np.float32(self._scene.range_min)),
            range_max=float(np.float32(self._scene.range_max)),
        )

    def _true(self, pose: CameraPose) -> CameraPose:
        """Where the sensor really is when the camera stands at `pose`."""
        s = self._settings
        if not (s.pose_bias_x or s.pose_bias_y or s.pose_bias_yaw):
            return pose
        cos, sin = math.cos(pose.yaw), math.sin(pose.yaw)
        return CameraPose(
            pose.x + cos * s.pose_bias_x - sin * s.pose_bias_y, pose.y + sin * s.pose_bias_x + cos * s.pose_bias_y,
            pose.yaw + s.pose_bias_yaw,
        )

    def _with_noise(self, ranges: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Gaussian noise and outliers on the returns; a fixed number of draws whatever the ranges are."""
        s = self._settings
        noise = rng.standard_normal(len(ranges))
        outlier = rng.random(len(ranges)) < s.outlier_probability
        uniform = rng.uniform(self._scene.range_min, self._scene.range_max, len(ranges))
        finite = np.isfinite(ranges)
        distance = np.where(finite, ranges, 0.0)
        noisy = distance + (s.noise_std + s.noise_std_per_metre * distance) * noise
        return np.where(finite, np.where(outlier, uniform, noisy), ranges)

    def _with_limits(self, ranges: FloatArray) -> FloatArray:
        """REP 117: `-inf` below the least range, `+inf` above the greatest."""
        ranges = np.where(ranges < self._scene.range_min, -np.inf, ranges)
        return np.where(ranges > self._scene.range_max, np.inf, ranges)

    def _with_dropout(self, ranges: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Invalid measurements are NaN (REP 117), not misses: a miss would say that the beam met no surface."""
        return np.where(rng.random(len(ranges)) < self._settings.dropout_probability, np.nan, ranges)
