"""Verbs that need ROS find out here whether it is there."""

from __future__ import annotations

import sys

from nbv_planner.errors import RosUnavailableError


def require_ros(instead: str) -> None:
    """Refuse to go on without ROS, and say which one is used if that may surprise.

    Args:
        instead: what can be done without ROS, in a few words.

    Raises:
        RosUnavailableError: says how to get it.
    """
    try:
        from nbv_planner.ros.runner import foreign_rclpy

        warning = foreign_rclpy()
    except ImportError as error:
        raise RosUnavailableError(
            f"cannot import {error.name}: source a ROS 2 installation or install the wheels with "
            f"pip install '.[ros]' in the checkout (Linux x86_64); {instead}"
        ) from error
    if warning:
        print(f"note: {warning}", file=sys.stderr)
