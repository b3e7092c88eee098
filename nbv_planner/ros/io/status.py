"""Publishes the status of the planner, and `run_info`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.msg import ParameterEvent
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events
from std_msgs.msg import String

from nbv_planner.episode.messages import RECORDED_TOPICS
from nbv_planner.episode.parameters import packages_named
from nbv_planner.files.located_yaml import dumped
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.node_parameters import plain_value
from nbv_planner.ros.io.conversions import status_message
from nbv_planner.ros.io.status_text import planner_status, status_text
from nbv_planner.session.questions import State
from nbv_planner.versions import versions

# States between two views: too short for a log line or an update of /diagnostics.
_AT_WORK = {State.PLANNING, State.MOVING, State.MEASURING}
_PASSING = {State.PLANNING, State.MEASURING}
# Seconds between two log lines about views: each costs half a millisecond.
_LINE_PERIOD = 0.5


class StatusReport:
    """Publishes the status of the planner when it changes, and logs the important states."""

    def __init__(self, node: BaseNode, on_done: Callable[[], str]) -> None:
        """Take the planner's node; `on_done` is called at the end of the episode, and returns its
        summary.
        """
        self._node, self._on_done = node, on_done
        self._publisher = node.advertise(DiagnosticStatus, "~/status", qos.latched())
        self._last: tuple[State, str] | None = None
        self._line_at = -math.inf
        self._unreached = self._withdrawn = 0
        self._remedy = ""

    def text(self) -> tuple[bytes, str]:
        """Level and message."""
        node = self._node
        if node.active:
            return status_text(node.core, node.inputs, node.now_ns())
        return (
            DiagnosticStatus.WARN if node.failure is None else DiagnosticStatus.ERROR
        ), node.resting()

    def values(self) -> dict[str, object]:
        """State and numbers."""
        known: dict[str, object] = {"views": 0, "coverage_estimate": 0.0, "elapsed": 0.0}
        if self._node.core is not None:
            known = planner_status(self._node.core, self._node.now_ns())
        return {**known, "state": self._state().value}

    def _state(self) -> State:
        if self._node.active:
            return self._node.core.state
        return State.PAUSED if self._node.configured else State.WAITING

    def publish(self) -> None:
        """Publish what has changed."""
        node = self._node
        state = self._state()
        level, message = self.text()
        self._log_missed_view()
        if (state, message) == self._last:
            return
        before = self._last
        self._last = (state, message)
        self._publisher.publish(
            status_message(f"{node.get_name()}: status", level, message, self.values())
        )
        done = state is State.DONE and self._on_done()
        if level == DiagnosticStatus.OK or done:
            self._log(
                state, f"{state.value}: {message}; {done}" if done else f"{state.value}: {message}"
            )
        if level != DiagnosticStatus.OK or not (before and {state, before[0]} <= _AT_WORK):
            node.publish_diagnostics()

    def _log(self, state: State, line: str) -> None:
        """Log the important states; the status has all of them."""
        now = time.monotonic()
        if state in _PASSING or (state in _AT_WORK and now - self._line_at < _LINE_PERIOD):
            self._node.get_logger().debug(line)
        else:
            self._line_at = now
            self._node.get_logger().info(line)

    def _log_missed_view(self) -> None:
        """Log that a view was not reached, or withdrawn; during a retry the status reports it."""
        core = self._node.core
        before = self._unreached
        self._unreached = core.episode.unreached_views if core else 0
        if self._unreached > before and core.episode.last_miss is not None:
            self._node.get_logger().warning(
                f"view {len(core.episode.visited) + 1} {core.episode.last_miss}; left out, with its"
                f" neighbours, for {core.settings.unreachable_duration:g} s"
            )
        before = self._remedy
        self._remedy = core.episode.remedy if core else ""
        if self._remedy and not before and core.episode.termination is None:
            self._node.get_logger().warning(self._remedy)
        before = self._withdrawn
        self._withdrawn = core.episode.withdrawn_views if core else 0
        if self._withdrawn > before:
            self._node.get_logger().warning(core.episode.withdrawal)


class RunInfo:
    """Collects the parameters of the other nodes as they appear, tracks changes, and publishes
    them.
    """

    def __init__(self, node: BaseNode, others: Sequence[str]) -> None:
        """Start collecting; `others` are names of nodes in the same namespace."""
        self._node = node
        self._publisher = node.advertise(String, "run_info", qos.latched())
        own = {
            name: plain_value(parameter.value)
            for name, parameter in sorted(node.get_parameters_by_prefix("").items())
        }
        if "completeness_tau" not in node.given:  # it follows from the noise of the mapper
            del own["completeness_tau"]
        self._known = {node.get_name(): own}
        self._others = tuple(others)
        # Two services only: every entity of a node costs time whenever it waits, and rclpy's own
        # client has six.
        self._clients = {
            name: (
                node.create_client(ListParameters, f"{name}/list_parameters"),
                node.create_client(GetParameters, f"{name}/get_parameters"),
            )
            for name in others
        }
        self._asked: set[str] = set()
        self._publish()
        node.create_subscription(
            ParameterEvent, "/parameter_events", self._on_event, qos_profile_parameter_events
        )
        self._timer = node.create_timer(0.5, self._ask)

    def _ask(self) -> None:
        """Request the parameter names of each new node; clients with an answer are destroyed."""
        for name, clients in list(self._clients.items()):
            if name in self._known:
                for client in self._clients.pop(name):
                    self._node.destroy_client(client)
            elif name not in self._asked and all(client.service_is_ready() for client in clients):
                self._asked.add(name)
                names = clients[0].call_async(ListParameters.Request())
                names.add_done_callback(lambda future, name=name: self._got_names(name, future))
        if not self._clients:
            self._timer.cancel()

    def _got_names(self, name: str, future: Any) -> None:
        names = sorted(future.result().result.names)

        def take(done: Any) -> None:
            values = map(plain_value, map(parameter_value_to_python, done.result().values))
            self._known[name] = dict(zip(names, values, strict=True))
            self._publish()

        self._clients[name][1].call_async(GetParameters.Request(names=names)).add_done_callback(
            take
        )

    def _on_event(self, event: ParameterEvent) -> None:
        """Receive a change at run time; before a node is queried, its answer will contain the
        change.
        """
        prefix = self._node.get_namespace().rstrip("/") + "/"
        known = self._known.get(event.node.removeprefix(prefix))
        changes = {
            changed.name: plain_value(parameter_value_to_python(changed.value))
            for changed in (*event.new_parameters, *event.changed_parameters)
        }
        if known is not None and {**known, **changes} != known:
            known.update(changes)
            self._publish()

    def _publish(self) -> None:
        missing = [name for name in self._others if name not in self._known]
        topics = {
            topic.name: self._node.resolve_topic_name(topic.name) for topic in RECORDED_TOPICS
        }
        named = {name: value for values in self._known.values() for name, value in values.items()}
        info = {
            "versions": versions(**packages_named(named)),
            "nodes": self._known,
            "nodes_not_found_yet": missing,
            "topics": topics,
        }
        self._publisher.publish(String(data=dumped(info)))
