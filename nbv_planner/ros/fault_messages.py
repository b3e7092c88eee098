"""Messages that are broken on purpose."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import LaserScan

from nbv_planner.camera import CameraPose
from nbv_planner.faults.kinds import Bias, Corrupt, Freeze, OutOfRange, StreamFault
from nbv_planner.ros import conversions

_PARTS = ("frame", "number", "bits")


class MessageBreaker:
    """Breaks messages of one topic; remembers what a frozen sensor shows."""

    def __init__(self) -> None:
        """Nothing is frozen yet."""
        self._frozen: dict[int, Any] = {}

    def broken(self, message: Any, fault: StreamFault, rng: np.random.Generator) -> Any:
        """Another message with `fault` in it."""
        message = copy.deepcopy(message)
        if isinstance(fault, Corrupt):
            _corrupt(message, rng)
        elif isinstance(fault, Bias):
            pose = conversions.pose_from_msg(message)
            off = CameraPose(pose.x + fault.x, pose.y + fault.y, pose.yaw + fault.yaw)
            return conversions.pose_to_msg(off, message.header)
        elif isinstance(fault, OutOfRange) and isinstance(message, LaserScan):
            beyond = [math.inf, -math.inf, math.nan, 2.0 * message.range_max, 0.0, -1.0]
            message.ranges = rng.choice(beyond, len(message.ranges)).astype(np.float32).tolist()
        elif isinstance(fault, Freeze) and isinstance(message, LaserScan):
            message.ranges = self._frozen.setdefault(id(fault), message.ranges)
        return message


def _corrupt(message: Any, rng: np.random.Generator) -> None:
    """Break one part of a message: its frame, a number, or bits at random."""
    part = _PARTS[int(rng.integers(len(_PARTS)))]
    if part == "frame":
        message.header.frame_id = "elsewhere"
    elif isinstance(message, LaserScan):
        _corrupt_scan(message, part, rng)
    elif isinstance(message, PoseStamped):
        _corrupt_pose(message, part, rng)


def _corrupt_scan(scan: LaserScan, part: str, rng: np.random.Generator) -> None:
    if part == "number":
        name = ("angle_min", "angle_increment", "range_min", "range_max")[int(rng.integers(4))]
        setattr(scan, name, math.nan)
        return
    ranges = np.array(scan.ranges, dtype=np.float32)
    hit = rng.random(len(ranges)) < 0.1
    ranges[hit] = rng.integers(0, 2**32, int(hit.sum()), dtype=np.uint32).view(np.float32)
    scan.ranges = ranges.tolist()


def _corrupt_pose(pose: PoseStamped, part: str, rng: np.random.Generator) -> None:
    position, orientation = pose.pose.position, pose.pose.orientation
    if part == "number":
        setattr(position, "xyz"[int(rng.integers(3))], math.nan)
    else:
        bits = rng.integers(0, 2**64, 4, dtype=np.uint64).view(np.float64)
        orientation.x, orientation.y, orientation.z, orientation.w = (float(value) for value in bits)
