"""What messages of rclpy or of a bag say in space: scans of a depth camera, and views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nbv_planner.clouds.sensor_messages import (
    depth_from_msg,
    pinhole_from_msg,
    points_from_msg,
)
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import of_optical, optical
from nbv_planner.volume.bodies.depth_sensor import DepthScan, DepthSensor
from nbv_planner.volume.bodies.thinned import depth_scan, point_scan
from nbv_planner.world.pose import CameraPose, Poses

IMAGE, CAMERA_INFO, POINTS = "image", "camera_info", "points"
"""Topics of a depth camera."""
_VALUES = tuple(f"view_{name}" for name in ("x", "y", "z", "qx", "qy", "qz", "qw"))
# A quaternion whose length is off 1 by more is none.
_NO_UNIT = 1e-6


def values_of_pose(pose: CameraPose) -> dict[str, float]:
    """Position (m) and orientation of the optical frame of a pose in space, by the names that they
    have in an `iteration`; none in the plane.
    """
    if pose.attitude is None:
        return {}
    one = Poses.of([pose])
    numbers = [*one.position[0].tolist(), *optical(one.rotation)[0].tolist()]
    return dict(zip(_VALUES, numbers, strict=True))


def pose_of_values(values: Mapping[str, str]) -> CameraPose | None:
    """The pose of :func:`values_of_pose`, None where there are none.

    Raises:
        KeyError: one is missing.
        ValueError: they are no pose.
    """
    if _VALUES[0] not in values:
        return None
    numbers = np.array([float(values[name]) for name in _VALUES])
    if not (np.isfinite(numbers).all() and abs(np.linalg.norm(numbers[3:]) - 1.0) < _NO_UNIT):
        raise ValueError(f"{', '.join(_VALUES)} are not a pose")
    return CameraPose.in_space(numbers[:3], of_optical(numbers[3:]))


class DepthReader:
    """Makes scans of images, by the calibration that came last, or of clouds; both are thinned to
    about the beams of a sensor.
    """

    def __init__(self, sensor: DepthSensor) -> None:
        """Start without a calibration."""
        self._sensor = sensor
        self._camera: Any = None

    def take(self, topic: str, msg: Any) -> DepthScan | None:
        """The scan of a message of one of the topics; None of a calibration.

        Raises:
            InputRejectedError: `no_camera_info`, and those of the functions that read the message.
        """
        if topic == CAMERA_INFO:
            self._camera = msg
            return None
        if topic == POINTS:
            return point_scan(points_from_msg(msg), msg.width, self._sensor)
        if self._camera is None:
            raise InputRejectedError("no_camera_info", "no camera_info received yet")
        pinhole = pinhole_from_msg(self._camera, msg)
        return depth_scan(depth_from_msg(msg), pinhole, self._sensor)
