"""What the three nodes have in common: parameters, counted drops, diagnostics, a clean start and end."""

from __future__ import annotations

import gc
import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    InvalidTopicNameException,
)
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import Header

from nbv_planner.errors import InputRejectedError, NbvPlannerError
from nbv_planner.ros import qos
from nbv_planner.ros.conversions import status_message, to_stamp
from nbv_planner.ros.parameters import declare_settings
from nbv_planner.ros.worker import Worker

_WARNING_PERIOD = 5.0


class NodeFinished(Exception):  # noqa: N818 (no error: the node has done its work)
    """Raised in a callback to end the process cleanly."""


class BaseNode(Node):
    """A node with checked parameters that counts what it drops and reports it on `/diagnostics`."""

    def __init__(self, name: str, settings: Iterable[type], **kwargs: Any) -> None:
        """Declare the parameters.

        Raises:
            SettingError: a parameter is unknown or not allowed.
        """
        super().__init__(name, automatically_declare_parameters_from_overrides=True, **kwargs)
        self.worker = Worker(self)
        declare_settings(self, settings)
        self.drops: Counter[str] = Counter()
        self._warned: dict[str, float] = {}
        self._diagnostics = self.create_publisher(
            DiagnosticArray, "/diagnostics", 10, qos_overriding_options=qos.overridable()
        )
        self.create_timer(1.0, self.publish_diagnostics)

    def destroy_node(self) -> None:
        """End the worker, then the node."""
        self.worker.stop()
        super().destroy_node()

    def now_ns(self) -> int:
        """Time of the node's clock in nanoseconds."""
        return int(self.get_clock().now().nanoseconds)

    def header(self, frame: str, stamp_ns: int | None = None) -> Header:
        """Build a message header; without a stamp it is the time now."""
        return Header(stamp=to_stamp(self.now_ns() if stamp_ns is None else stamp_ns), frame_id=frame)

    def guarded(self, source: str, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        """Wrap a subscription callback: a message that cannot be used is dropped, counted and warned about."""

        def handle(msg: Any) -> None:
            try:
                callback(msg)
            except InputRejectedError as error:
                self.drop(f"{source}.{error.reason}", str(error))

        return handle

    def drop(self, reason: str, detail: str, number: int = 1) -> None:
        """Count something left out under `reason`, and warn about each reason now and then."""
        self.drops[reason] += number
        now = time.monotonic()
        if now - self._warned.get(reason, -math.inf) >= _WARNING_PERIOD:
            self._warned[reason] = now
            self.get_logger().warning(f"dropped ({reason}, {self.drops[reason]} so far): {detail}")

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Level, message and values of the node's own entry on `/diagnostics`; to be overridden."""
        return DiagnosticStatus.OK, "running", {}

    def publish_diagnostics(self) -> None:
        """Publish the node's entry now."""
        level, message, values = self.diagnosis()
        values = {**values, **{f"dropped.{reason}": number for reason, number in sorted(self.drops.items())}}
        name = self.get_fully_qualified_name().lstrip("/")
        self._diagnostics.publish(
            DiagnosticArray(header=self.header(""), status=[status_message(name, level, message, values)])
        )


def run_node(create: Callable[[], Node], args: list[str] | None = None) -> int:
    """Initialise ROS, construct a node, spin it until Ctrl-C or SIGTERM, and clean up.

    Returns:
        Exit code: 0, or 2 if the parameters or the topic names are not usable (said in one line on stderr).
    """
    try:
        rclpy.init(args=args)
    except Exception as error:  # rclpy raises a plain RCLError for a parameter file it cannot parse
        return _refuse(str(error).splitlines()[0])
    node = None
    try:
        # Before the node: rclpy complains on stderr when SIGTERM comes before its executor is complete.
        executor = SingleThreadedExecutor()
        node = create()
        # What is there now stays: the collector need not look at it again, which would take tens of milliseconds.
        gc.collect()
        gc.freeze()
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException, NodeFinished):
        pass
    except (
        NbvPlannerError, InvalidParameterTypeException, InvalidParameterValueException, InvalidTopicNameException,
    ) as error:
        return _refuse(str(error))
    except RuntimeError:
        # SIGTERM shuts ROS down at once: a callback that was about to publish then fails. That is no error.
        if rclpy.ok():
            raise
    finally:
        # A launcher and the terminal may both send SIGINT: the second must not break the clean-up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


def _refuse(message: str) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return 2
