"""What a message must at least be for a node to take it: plain rules, independent of those of the nodes."""

from __future__ import annotations

import math
import struct
from typing import Any

from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import LaserScan

_CLOUD = ("x", "y", "z", "angle", "mean", "std", "lower", "upper")


def is_sound(msg: Any, frame: str) -> bool:
    """Whether nothing forbids to take `msg`, of which the frame must be `frame`."""
    if msg.header.frame_id != frame:
        return False
    if isinstance(msg, LaserScan):
        return _sound_scan(msg)
    return _sound_pose(msg) if isinstance(msg, PoseStamped) else _sound_cloud(msg)


def _sound_scan(msg: LaserScan) -> bool:
    numbers = (msg.angle_min, msg.angle_max, msg.angle_increment, msg.range_min, msg.range_max)
    if not all(math.isfinite(number) for number in numbers) or len(msg.ranges) == 0:
        return False
    if msg.angle_increment <= 0.0 or not 0.0 <= msg.range_min < msg.range_max:
        return False
    return abs((msg.angle_max - msg.angle_min) / msg.angle_increment + 1.0 - len(msg.ranges)) < 1.6


def _sound_pose(msg: PoseStamped) -> bool:
    p, q = msg.pose.position, msg.pose.orientation
    finite = all(math.isfinite(number) for number in (p.x, p.y, p.z, q.x, q.y, q.z, q.w))
    return finite and abs(math.hypot(q.x, q.y, q.z, q.w) - 1.0) < 0.01


def _sound_cloud(msg: Any) -> bool:
    """Every number of every point is there and finite, and no lower bound above an upper one."""
    offsets = {field.name: field.offset for field in msg.fields}
    count = msg.width * msg.height
    if not set(_CLOUD) <= set(offsets) or count < 2 or len(msg.data) != count * msg.point_step:
        return False
    data = bytes(msg.data)
    for start in range(0, len(data), msg.point_step):
        point = {name: struct.unpack_from("<f", data, start + offsets[name])[0] for name in _CLOUD[3:]}
        if not all(math.isfinite(value) for value in point.values()) or point["lower"] > point["upper"]:
            return False
    return True
