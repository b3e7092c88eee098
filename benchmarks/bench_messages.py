"""Messages to values and back: processor time of each conversion, and of rclpy's own serialisation.

The least of several rounds; needs rclpy.
"""

from __future__ import annotations

import argparse
import time
import timeit
from collections.abc import Callable

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Header

from nbv_planner.clouds.sensor_messages import pose_from_msg, scan_from_msg
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.ros.io import conversions
from nbv_planner.star2d.belief import SurfaceBelief, uniform_grid
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan

_CALLS = 100


def microseconds(call: Callable[[], object]) -> float:
    return (
        min(timeit.repeat(call, number=_CALLS, repeat=20, timer=time.process_time)) * 1e6 / _CALLS
    )


def report(what: str, value: object, to_msg: Callable, from_msg: Callable) -> None:
    header = Header(frame_id="object")
    msg = to_msg(value, header)
    raw = serialize_message(msg)
    received = deserialize_message(raw, type(msg))
    calls = (
        lambda: to_msg(value, header),
        lambda: serialize_message(msg),
        lambda: deserialize_message(raw, type(msg)),
        lambda: from_msg(received),
    )
    print(f"{what:<28}", *(f"{microseconds(call):>12.1f}" for call in calls))


def belief(size: int) -> SurfaceBelief:
    angle = uniform_grid(size)
    mean, std = 5.0 + np.sin(3.0 * angle), np.full(size, 0.5)
    return SurfaceBelief(angle, mean, std, mean - std, mean + std, np.zeros(size, dtype=np.uint32))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are no options."""


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    print(
        f"{'microseconds':<28}",
        *(f"{name:>12}" for name in ("to message", "serialise", "deserialise", "to value")),
    )
    scan = Scan(-0.3, 0.6 / 639, np.linspace(3.0, 7.0, 640, dtype=np.float32), 0.05, 10.0)
    report("scan, 640 beams", scan, conversions.scan_to_msg, scan_from_msg)
    for size in (1000, 4096):
        report(f"surface, {size} angles", belief(size), conversions.belief_to_msg, belief_from_msg)
    report("pose", CameraPose(1.0, 2.0, 0.3), conversions.pose_to_msg, pose_from_msg)
    return 0
