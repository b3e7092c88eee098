"""What the nodes have in common: parameters, topics and services, counted drops, diagnostics."""

from __future__ import annotations

import inspect
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import Header

from nbv_planner.episode.parameter_files import check_sections
from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.mapping.matching import ScanMatcher
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.inputs import InputMonitor
from nbv_planner.ros.core.managed_node import ManagedNode
from nbv_planner.ros.core.node_parameters import check_changes, declare_settings, warn_of_overruled
from nbv_planner.ros.core.worker import Worker
from nbv_planner.ros.io.conversions import status_message, to_stamp

# History, depth and reliability, by `qos_overrides.` parameters.
_OVERRIDABLE = QoSOverridingOptions.with_default_policies()
# Seconds between two log lines of one kind: a reason to drop messages, a status that is not OK.
_WARNING_PERIOD, _STATUS_PERIOD = 5.0, 30.0


class _StatusLog:
    """Logs a status that is not OK when it appears, changes or ends, and at intervals."""

    def __init__(self) -> None:
        self._complaint: tuple[bytes, str] | None = None
        self._complained = 0.0

    def write(self, logger: Any, level: bytes, message: str) -> None:
        """Log the newest status, if it is to be."""
        doing, _, wrong = re.sub(r"\d", "", message).partition("; ")
        complaint = None if level == DiagnosticStatus.OK else (level, wrong or doing)
        now = time.monotonic()
        if complaint == self._complaint and (
            complaint is None or now - self._complained < _STATUS_PERIOD
        ):
            return
        self._complaint, self._complained = complaint, now
        if complaint is None:
            logger.info(f"no more warnings: {message}")
        elif level == DiagnosticStatus.ERROR:
            logger.error(message)
        else:
            logger.warning(message)


class BaseNode(ManagedNode):
    """A managed node with checked parameters that counts what it drops and reports it on
    `/diagnostics`.

    Subclasses call :meth:`autostart` at the end of their constructor.
    """

    def __init__(self, name: str, settings: Iterable[type], **kwargs: Any) -> None:
        """Declare the parameters.

        Raises:
            SettingError: a parameter is unknown or not allowed.
            ConfigFileError: a parameter file meant for this node does not apply to it.
        """
        super().__init__(name, automatically_declare_parameters_from_overrides=True, **kwargs)
        self.worker = Worker(self)
        words = list(pairwise([*sys.argv, *(kwargs.get("cli_args") or ())]))
        files = [file for flag, file in words if flag == "--params-file"]
        for file in files:
            if unused := check_sections(file, self.get_fully_qualified_name()):
                self.get_logger().warning(unused)
        self._settings = tuple(settings)
        #: names of the parameters that were given.
        self.given = declare_settings(self, self._settings, files)
        warn_of_overruled(self, [rule for flag, rule in words if flag in ("-p", "--param")], files)
        self.add_on_set_parameters_callback(self.on_parameters)
        self.drops: Counter[str] = Counter()
        self._warned: dict[str, float] = {}
        self._status_log = _StatusLog()
        self.inputs = InputMonitor(self)
        self._diagnostics = self.advertise(DiagnosticArray, "/diagnostics", qos.reliable())
        # By the machine's clock: a simulation time that stands still can be reported.
        self.steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0, self.look_around, clock=self.steady_clock)

    def transitioned(self) -> None:
        """Publish the state."""
        self.publish_diagnostics()

    def look_around(self) -> None:
        """Check the inputs, and publish diagnostics."""
        self.inputs.look()
        self.publish_diagnostics()

    def destroy_node(self) -> None:
        """End the worker, then the node."""
        self.worker.stop()
        super().destroy_node()

    def now_ns(self) -> int:
        """Time of the node's clock in nanoseconds."""
        return int(self.get_clock().now().nanoseconds)

    def header(self, frame: str, stamp_ns: int | None = None) -> Header:
        """Build a message header, by default with the current time."""
        return Header(
            stamp=to_stamp(self.now_ns() if stamp_ns is None else stamp_ns), frame_id=frame
        )

    def guarded(self, source: str, callback: Callable[[Any], None]) -> Callable[[Any, Any], None]:
        """Wrap the callback of topic `source`: unusable messages are dropped, counted and warned
        about.

        Usable messages update the input's heartbeat.
        """
        self.inputs.add(source)

        def handle(msg: Any, info: Any) -> None:
            try:
                self.inputs.check_source(source, info)
                callback(msg)
                self.inputs.beat(source)
            except InputRejectedError as error:
                self.inputs.refuse(source, str(error))
                self.drop(f"{source}.{error.reason}", str(error))

        return handle

    def serve(self, kind: type, name: str, answer: Callable[..., Any]) -> None:
        """Offer a service with `success` and `message`; an inactive node answers why it refuses.

        `answer` receives the values of the request, and returns the message, now or when it is
        awaited; its ValueError says why the request is refused. Each service has its own group: one
        that waits delays no other callback.
        """

        async def respond(request: Any, response: Any) -> Any:
            try:
                if not self.active:
                    raise ValueError(self.resting())
                message = answer(
                    *(getattr(request, field) for field in request.get_fields_and_field_types())
                )
                response.message = await message if inspect.isawaitable(message) else message
                response.success = True
            except ValueError as error:
                response.success = False
                response.message = str(error)
            except Exception as error:
                response.success = False
                response.message = error_text(error)
                self.callback_failed(error)
            return response

        self.create_service(kind, name, respond, callback_group=MutuallyExclusiveCallbackGroup())

    def callback_failed(self, error: Exception) -> None:
        """Process an error of the program that a callback has raised; to be overridden. Here it
        ends the node.
        """
        raise error

    def advertise(self, kind: type, topic: str, profile: QoSProfile) -> Any:
        """Create a publisher whose quality of service parameters can override; a subscriber that
        requests more is reported.
        """
        events = PublisherEventCallbacks(incompatible_qos=lambda _: self.look_around())
        return self.create_publisher(
            kind, topic, profile, event_callbacks=events, qos_overriding_options=_OVERRIDABLE
        )

    def subscribe(
        self, kind: type, topic: str, callback: Callable[..., None], profile: QoSProfile
    ) -> Any:
        """Create a subscription whose quality of service parameters can override; a publisher that
        offers less is reported.
        """
        events = SubscriptionEventCallbacks(incompatible_qos=lambda _: self.look_around())
        return self.create_subscription(
            kind,
            topic,
            callback,
            profile,
            event_callbacks=events,
            qos_overriding_options=_OVERRIDABLE,
        )

    def listen(
        self, kind: type, topic: str, callback: Callable[[Any], None], profile: QoSProfile
    ) -> None:
        """Subscribe with a callback as :meth:`guarded` wraps it."""
        self.subscribe(kind, topic, self.guarded(topic, callback), profile)

    def drop(self, reason: str, detail: str, number: int = 1) -> None:
        """Count something dropped under `reason`, and warn about each reason at intervals."""
        self.drops[reason] += number
        self.warn_now_and_then(reason, f"dropped ({reason}, {self.drops[reason]} so far): {detail}")

    def count_drops(self, matcher: ScanMatcher) -> None:
        """Count the scans that a matcher has dropped, and warn; before the first pose a few are
        normal.
        """
        drops = matcher.drops
        known = matcher.matches or drops.trouble(self.now_ns())
        for reason, number in drops.numbers.items():
            if known:
                self.drop(reason, drops.details[reason], number)
            else:
                self.drops[reason] += number
        drops.numbers.clear()

    def warn_now_and_then(self, reason: str, message: str) -> None:
        """Log a warning, unless there was one for the same reason a short while ago."""
        now = time.monotonic()
        if now - self._warned.get(reason, -math.inf) >= _WARNING_PERIOD:
            self._warned[reason] = now
            self.get_logger().warning(message)

    def on_parameters(self, parameters: Iterable[Parameter]) -> SetParametersResult:
        """Check new values of parameters and apply them, all or none.

        Until the node is configured every parameter may change; incompatible values are refused by
        the configuration.
        """
        try:
            parameters = list(parameters)
            check_changes(self._settings, parameters, configured=self.configured)
            if self.configured:
                self.change(parameters)
            self.given |= {parameter.name for parameter in parameters}
        except SettingError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def change(self, parameters: list[Parameter]) -> None:
        """Apply new values of parameters that may change at run time; to be overridden.

        Raises:
            SettingError: they do not fit the others; nothing is changed then.
        """

    def doing(self) -> tuple[bytes, str]:
        """Level and message of the node's own entry on `/diagnostics`; to be overridden."""
        return DiagnosticStatus.OK, "running"

    def figures(self) -> dict[str, object]:
        """Values of that entry; to be overridden."""
        return {}

    def publish_diagnostics(self) -> None:
        """Publish the node's entry now."""
        level, message = self.doing() if self.configured else (b"", "")
        if not self.active:
            level = DiagnosticStatus.WARN if self.failure is None else DiagnosticStatus.ERROR
            message = self.resting()
        troubles = [*self.inputs.clock(), *self.inputs.problems()]
        level = max(level, DiagnosticStatus.WARN if troubles else level)
        message = "; ".join([message, *(text for text in troubles if text not in message)])
        self._status_log.write(self.get_logger(), level, message)
        own = self.figures() if self.configured else {}
        drops = {f"dropped.{reason}": number for reason, number in sorted(self.drops.items())}
        values = {"stage": self.stage.value, **own, **self.inputs.values(), **drops}
        name = self.get_fully_qualified_name().lstrip("/")
        self._diagnostics.publish(
            DiagnosticArray(
                header=self.header(""), status=[status_message(name, level, message, values)]
            )
        )


def error_text(error: Exception) -> str:
    """Type and message of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
