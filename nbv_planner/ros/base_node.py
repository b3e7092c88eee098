"""What the three nodes have in common: parameters, life cycle, counted drops, diagnostics, a clean start and end."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_policy_name_from_kind
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Header

from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.ros import qos
from nbv_planner.ros.conversions import status_message, to_stamp
from nbv_planner.ros.end_signals import EndSignals, NodeFinished
from nbv_planner.ros.executors import make_executor
from nbv_planner.ros.inputs import Inputs
from nbv_planner.ros.managed_node import REFUSALS, ManagedNode, Stage
from nbv_planner.ros.parameters import check_changes, declare_settings
from nbv_planner.ros.worker import Worker

_WARNING_PERIOD = 5.0


class BaseNode(ManagedNode):
    """A managed node with checked parameters that counts what it drops and reports it on `/diagnostics`.

    A subclass makes what lasts in its constructor and calls :meth:`autostart` at the end of it.
    """

    def __init__(self, name: str, settings: Iterable[type], **kwargs: Any) -> None:
        """Declare the parameters.

        Raises:
            SettingError: a parameter is unknown or not allowed.
        """
        super().__init__(name, automatically_declare_parameters_from_overrides=True, **kwargs)
        self.worker = Worker(self)
        self._settings = tuple(settings)
        declare_settings(self, self._settings)
        self.add_on_set_parameters_callback(self.on_parameters)
        self.drops: Counter[str] = Counter()
        self._warned: dict[str, float] = {}
        self.inputs = Inputs(self)
        self._diagnostics = self.create_publisher(
            DiagnosticArray, "/diagnostics", 10, qos_overriding_options=qos.overridable()
        )
        # By a clock that nobody stops: where the simulation's time stands still, that can be told.
        self.steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0, self.look_around, clock=self.steady_clock)

    def create_publisher(self, *args: Any, **kwargs: Any) -> Any:
        """Create a publisher that looks around when a subscriber asks for more than it offers."""
        events = PublisherEventCallbacks(incompatible_qos=self._on_incompatible)
        return super().create_publisher(*args, **{"event_callbacks": events, **kwargs})

    def create_subscription(self, *args: Any, **kwargs: Any) -> Any:
        """Create a subscription that looks around when a publisher offers less than it asks for."""
        events = SubscriptionEventCallbacks(incompatible_qos=self._on_incompatible)
        return super().create_subscription(*args, **{"event_callbacks": events, **kwargs})

    def _on_incompatible(self, event: Any) -> None:
        """Say which policy it is, and find out whose."""
        policy = qos_policy_name_from_kind(event.last_policy_kind)
        self.get_logger().debug(f"incompatible quality of service: {policy}")
        self.look_around()

    def look_around(self) -> None:
        """See whether types and qualities of service fit, and say how the node is."""
        self.inputs.look()
        self.publish_diagnostics()

    def autostart(self) -> None:
        """Become active, if the parameter `autostart` says so.

        Raises:
            Exception: what the parameters or the program have wrong.
        """
        if self.get_parameter("autostart").value:
            self.go_active()

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
        """Wrap the callback of topic `source`: what cannot be used is dropped, counted and warned about.

        What can be used is a beat of the input's heart.
        """
        self.inputs.add(source)

        def handle(msg: Any) -> None:
            try:
                callback(msg)
                self.inputs.beat(source)
            except InputRejectedError as error:
                self.drop(f"{source}.{error.reason}", str(error))

        return handle

    def serve(self, kind: type, name: str, callback: Callable[[Any, Any], Any]) -> None:
        """Offer a service that lasts as long as the node, and answers why it cannot while the node rests."""

        def answer(request: Any, response: Any) -> Any:
            if self.active:
                return callback(request, response)
            response.success, response.message = False, self.resting()
            return response

        self.create_service(kind, name, answer)

    def drop(self, reason: str, detail: str, number: int = 1) -> None:
        """Count something left out under `reason`, and warn about each reason now and then."""
        self.drops[reason] += number
        now = time.monotonic()
        if now - self._warned.get(reason, -math.inf) >= _WARNING_PERIOD:
            self._warned[reason] = now
            self.get_logger().warning(f"dropped ({reason}, {self.drops[reason]} so far): {detail}")

    def on_parameters(self, parameters: Iterable[Parameter]) -> SetParametersResult:
        """Check new values of parameters and apply them, all or none.

        Until the node is configured every parameter may change; what does not fit together shows in the configuration.
        """
        try:
            parameters = list(parameters)
            check_changes(self._settings, parameters, configured=self.configured)
            if self.configured:
                self.change(parameters)
        except SettingError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def change(self, parameters: list[Parameter]) -> None:
        """Apply new values of parameters that may change at run time; to be overridden.

        Raises:
            SettingError: they do not fit with others; nothing has been changed then.
        """

    def transitioned(self) -> None:
        """Say on `/diagnostics` where the node stands now."""
        self.publish_diagnostics()

    def resting(self) -> str:
        """Say why the node does nothing; empty if it is active."""
        if self.active:
            return ""
        next_one = {Stage.UNCONFIGURED: "configure", Stage.INACTIVE: "activate"}.get(self.stage)
        waits = f"waiting for the transition {next_one} of the life cycle" if next_one else "only its end is left"
        reason = f"; the last transition failed: {' '.join(str(self.failure).split())}" if self.failure else ""
        return f"{self.stage.value}: {waits}{reason}"

    def diagnosis(self) -> tuple[bytes, str, dict[str, object]]:
        """Level, message and values of the node's own entry on `/diagnostics`; to be overridden."""
        return DiagnosticStatus.OK, "running", {}

    def publish_diagnostics(self) -> None:
        """Publish the node's entry now."""
        level, message, values = self.diagnosis() if self.configured else (b"", "", {})
        if not self.active:
            level = DiagnosticStatus.WARN if self.failure is None else DiagnosticStatus.ERROR
            message = self.resting()
        level, message = self._with_troubles(level, message)
        drops = {f"dropped.{reason}": number for reason, number in sorted(self.drops.items())}
        values = {"stage": self.stage.value, **values, **self.inputs.values(), **drops}
        name = self.get_fully_qualified_name().lstrip("/")
        self._diagnostics.publish(
            DiagnosticArray(header=self.header(""), status=[status_message(name, level, message, values)])
        )


    def _with_troubles(self, level: bytes, message: str) -> tuple[bytes, str]:
        """Add what is wrong around the node, if it is not in the message already."""
        troubles = [*self.inputs.clock(), *self.inputs.problems()]
        more = [text for text in troubles if text not in message]
        return max(level, DiagnosticStatus.WARN if troubles else level), "; ".join([message, *more])


def run_node(create: Callable[[], Node], args: list[str] | None = None) -> int:
    """Initialise ROS, construct a node, spin it until Ctrl-C or SIGTERM, and clean up.

    Returns:
        Exit code: 0, or 2 if the parameters or the topic names are not usable (said in one line on stderr).
    """
    with EndSignals() as signals:
        try:
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        except Exception as error:  # rclpy raises a plain RCLError for a parameter file it cannot parse
            return _refuse(str(error).splitlines()[0])
        try:
            _spin(create, signals)
        except NodeFinished:
            pass
        except REFUSALS as error:
            return _refuse(str(error))
        finally:
            rclpy.try_shutdown()
    return 0


def _spin(create: Callable[[], Node], signals: EndSignals) -> None:
    """Construct a node, spin it until it has finished, and destroy it."""
    node = create()
    try:
        signals.end(node)
        executor = make_executor()
        # What is there now stays: the collector need not look at it again, which would take tens of milliseconds.
        gc.collect()
        gc.freeze()
        executor.add_node(node)
        executor.spin()
    finally:
        node.destroy_node()


def _refuse(message: str) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return 2
