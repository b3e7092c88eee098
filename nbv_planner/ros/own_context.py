"""ROS in a process that is not a node: in the command line's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rclpy
from rclpy.signals import SignalHandlerOptions


@contextmanager
def ros_of_its_own(domain: int | None = None) -> Iterator[None]:
    """ROS in this process, leaving Ctrl-C to the caller; without `domain` on that of the environment."""
    rclpy.init(args=[], domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield
    finally:
        rclpy.try_shutdown()
