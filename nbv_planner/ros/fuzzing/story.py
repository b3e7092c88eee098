"""The good messages of an episode, between and out of which the hostile ones are made."""

from __future__ import annotations

import math
from collections.abc import Iterator

from std_msgs.msg import Header

from nbv_planner.camera import CameraPose
from nbv_planner.objects import parse_object
from nbv_planner.ros import conversions
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SensorSettings, SimulatedCamera

_STEP = 10_000_000

Message = tuple[str, object]
"""Relative topic and message."""


def header(frame: str, stamp: int) -> Header:
    """Header with a stamp in nanoseconds."""
    return Header(stamp=conversions.to_stamp(stamp), frame_id=frame)


def views(number: int) -> Iterator[list[Message]]:
    """Goal, pose and scan of each of `number` views around the object, with rising stamps."""
    scene = Scene()
    camera = SimulatedCamera(parse_object("polygon:star", scene), scene, SensorSettings(num_beams=31))
    for view in range(number):
        pose, stamp = CameraPose.on_view_circle(2.4 * view % (2.0 * math.pi), scene.view_distance), (view + 1) * _STEP
        scan = conversions.scan_to_msg(camera.scan(pose, view), header("camera", stamp))
        told = conversions.pose_to_msg(pose, header("object", stamp))
        yield [("goal_pose", told), ("camera_pose", told), ("scan", scan)]
