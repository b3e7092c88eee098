"""Monitors the inputs of a node, and reports what is missing, lost or incompatible."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from nbv_planner.episode.messages import INPUT_TROUBLE
from nbv_planner.errors import InputRejectedError
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.graph import Sources, full_node_name, mismatches, qos_text, type_name

# Beats for the rate: enough to be steady, few enough to follow a change.
_REMEMBERED = 50


class Heartbeat:
    """Heartbeat of one input. Times are seconds of any monotonic clock, given by the caller."""

    def __init__(self, timeout: float = math.inf) -> None:
        #: age beyond which the input counts as lost, seconds; infinite for an irregular one.
        self.timeout = timeout
        self._beats: deque[float] = deque(maxlen=_REMEMBERED)

    def beat(self, now: float) -> None:
        """Record that the input was received."""
        self._beats.append(now)

    @property
    def received(self) -> bool:
        """Whether the input has ever been received."""
        return bool(self._beats)

    def age(self, now: float) -> float:
        """Seconds since the input was last received; infinite if it never was."""
        return now - self._beats[-1] if self._beats else math.inf

    def lost(self, now: float) -> bool:
        """Whether the input has been received, but not within its timeout."""
        return self.received and self.age(now) > self.timeout

    def rate(self, now: float) -> float:
        """Recent inputs per second: (n - 1) / (t_n - t_1); 0 for one that is lost or was received
        only once.
        """
        if len(self._beats) < 2 or self.lost(now):
            return 0.0
        span = self._beats[-1] - self._beats[0]
        return (len(self._beats) - 1) / span if span > 0.0 else 0.0


class Partners:
    """Nodes that publish a topic, known to be alive by their messages on /diagnostics.

    The middleware reports a killed process only after 20 seconds.
    """

    def __init__(self, topic: str = "", name: str = "") -> None:
        """Watch the publishers of a `topic` as an input `name`; none without it."""
        self.topic, self.name = topic, name
        #: what is wrong with the inputs of each, by its name; empty if nothing is.
        self.trouble_of: dict[str, str] = {}

    def receive(self, msg: DiagnosticArray) -> bool:
        """Receive diagnostics; returns whether any are of these nodes."""
        theirs = [status for status in msg.status if status.name in self.trouble_of]
        for status in theirs:
            values = {one.key: one.value for one in status.values}
            resting = "" if values.get("stage", _ACTIVE) == _ACTIVE else status.message
            self.trouble_of[status.name] = resting or values.get(INPUT_TROUBLE, "")
        return bool(theirs)

    def are(self, names: set[str]) -> bool:
        """Set the names of the nodes; returns whether they have changed."""
        before = self.trouble_of
        self.trouble_of = {one: before.get(one, "") for one in names}
        return names != before.keys()

    @property
    def troubles(self) -> list[str]:
        """What these nodes report to be wrong with their inputs."""
        return [
            f"{name}: {trouble}" for name, trouble in sorted(self.trouble_of.items()) if trouble
        ]


# Seconds of real time for which the time on /clock may stand still.
_CLOCK_TIMEOUT = 5.0
# Seconds for which another node of the same name must be listed to count: one that has ended still
# is for a moment.
_NAMESAKE_SECONDS = 3.0
# The stage of a node at work, as in its diagnostics.
_ACTIVE = "active"
# Inputs for which the messages of two senders could not be distinguished.
_OF_ONE_SOURCE = ("scan", "camera_pose", "goal_pose", "surface", "surface_info", "map")


class InputMonitor:
    """A heartbeat for each input of a node, by its relative topic name, and the state of its topics
    in the graph.

    Ages are measured by the machine's monotonic clock, not by that of the node.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        #: the node's full name, under which :meth:`problems` reports a node of the same name.
        self.name = node.get_fully_qualified_name()
        self._beats: dict[str, Heartbeat] = {}
        self._instead: dict[str, str] = {}
        self.refused: dict[str, str] = {}  #: why the newest message of an input could not be used
        self._problems: dict[str, list[str]] = {}
        self._sources: dict[str, Sources] = {}
        self._namesake_since = math.inf
        self.partners = Partners()  #: the nodes that publish a watched topic.
        self._clock = Heartbeat(_CLOCK_TIMEOUT)
        self._last_time = -1
        # Remapping rules are fixed at start, and names are resolved for every message.
        self._resolved = lru_cache(maxsize=256)(node.resolve_topic_name)

    def add(self, topic: str, instead: str = "") -> None:
        """Monitor an input, as if it had not been received; :meth:`expect` sets its timeout.

        The topic has its relative name; `instead` names what replaces it, if anything.
        """
        self._beats[topic] = Heartbeat()
        self._instead[topic] = instead
        self._sources.pop(topic, None)
        if topic in _OF_ONE_SOURCE and not instead:
            self._sources[topic] = Sources()

    def check_source(self, topic: str, info: Mapping[str, Any]) -> None:
        """Refuse a message of an input that several sources publish; `info` is that of rclpy.

        Raises:
            InputRejectedError: reason `several_publishers`.
        """
        sources = self._sources.get(topic)
        if sources is None:
            return
        mine = self._endpoint(topic)
        if mine.get_publisher_count() != sources.matched:
            self.look()
        sources.take(info)
        if problem := sources.problem(mine.topic_name):
            raise InputRejectedError("several_publishers", problem)

    def watch_publishers(self, topic: str, name: str) -> None:
        """Monitor the nodes that publish `topic` as an input `name`, see :class:`Partners`."""

        def receive(msg: DiagnosticArray) -> None:
            if self.partners.receive(msg):
                self.beat(name)

        self.partners = Partners(topic, name)
        self.add(name, "/diagnostics of ")
        self._node.subscribe(DiagnosticArray, "/diagnostics", receive, qos.sensor_data(100))

    def not_received_by(self, node_name: str, *topics: str) -> tuple[str, ...]:
        """Full names of those `topics` to which no node of that name is subscribed."""
        return tuple(
            name
            for name in map(self._resolved, topics)
            if node_name
            not in {info.node_name for info in self._node.get_subscriptions_info_by_topic(name)}
        )

    def beat(self, topic: str) -> None:
        """Record a usable message of the input."""
        self._beats[topic].beat(time.monotonic())
        self.refused.pop(topic, None)

    def refuse(self, topic: str, why: str) -> None:
        """Record a message of the input that cannot be used."""
        self.refused[topic] = why

    def expect(self, timeout: float, *topics: str) -> None:
        """Inputs count as lost when not received for `timeout` seconds."""
        for topic in topics:
            self._beats[topic].timeout = timeout

    def look(self) -> bool:
        """Check the graph and the clock; logs new and resolved problems, and returns whether there
        were such.
        """
        now = self._node.now_ns()
        if now != self._last_time:
            self._last_time = now
            self._clock.beat(time.monotonic())
        self._find_partners()
        before = self._problems
        self._problems = mismatches(self._node)
        self._confirm_namesake(time.monotonic())
        for mine in self._node.subscriptions:
            for topic, sources in self._sources.items():
                if self._resolved(topic) == mine.topic_name and (
                    problem := sources.look(self._node, mine)
                ):
                    self._problems.setdefault(mine.topic_name, []).append(problem)
        for problem in _lines(self._problems, without=before):
            self._node.get_logger().warning(problem)
        for problem in _lines(before, without=self._problems):
            self._node.get_logger().info(f"resolved: {problem}")
        return before != self._problems

    def _find_partners(self) -> None:
        """Expect the heartbeat of the nodes that publish the watched topic now."""
        partners = self.partners
        if not partners.topic:
            return
        found = self._node.get_publishers_info_by_topic(self._resolved(partners.topic))
        if partners.are({full_node_name(info).lstrip("/") for info in found}):
            timeout = self._beats[partners.name].timeout
            self.add(partners.name, f"/diagnostics of {', '.join(sorted(partners.trouble_of))}")
            self.expect(timeout, partners.name)

    def _confirm_namesake(self, now: float) -> None:
        """Ignore a node of the same name until it has been listed for a while."""
        self._namesake_since = (
            min(self._namesake_since, now) if self.name in self._problems else math.inf
        )
        if now - self._namesake_since < _NAMESAKE_SECONDS:
            self._problems.pop(self.name, None)

    def missing(self, *topics: str) -> list[str]:
        """Describe the inputs that were never received or are lost, with the reason."""
        return [
            f"{self.described(topic)}: {why}"
            for topic in topics
            if (why := self._why_missing(topic))
        ]

    def lost(self, *topics: str) -> list[str]:
        """As :meth:`missing`, but only inputs that were received before."""
        return self.missing(
            *(topic for topic in topics if topic in self._beats and self._beats[topic].received)
        )

    def described(self, topic: str) -> str:
        """Full name of a topic of the node, with its type and quality of service there."""
        if self._instead.get(topic):
            return self._instead[topic]
        mine = self._endpoint(topic)
        return f"{mine.topic_name} ({type_name(mine.msg_type)}; {qos_text(mine.qos_profile)})"

    def _endpoint(self, topic: str) -> Any:
        name = self._resolved(topic)
        endpoints = (*self._node.subscriptions, *self._node.publishers)
        return next(mine for mine in endpoints if self._resolved(mine.topic_name) == name)

    def _why_missing(self, topic: str) -> str:
        beat = self._beats[topic]
        now = time.monotonic()
        if beat.received and not beat.lost(now):
            return ""
        problems = self.problems(topic)
        if problems:
            return "; ".join(problems)
        what = (
            f"nothing usable for more than {beat.timeout:g} s"
            if beat.received
            else "nothing usable received yet"
        )
        if topic in self.refused:
            what += f", the last one: {self.refused[topic]}"
        if self._instead[topic]:
            return what
        number = self._endpoint(topic).get_publisher_count()
        return f"{number or 'nobody'} publish{'es' if number < 2 else ''} it, {what}"

    def gone(self, *topics: str) -> list[str]:
        """Describe the inputs received earlier whose publisher no longer exists."""
        return [
            f"{self.described(topic)}: its publisher is gone"
            for topic in topics
            if self._beats[topic].received and self._endpoint(topic).get_publisher_count() == 0
        ]

    def problems(self, *topics: str) -> list[str]:
        """Problems of these topics (or node names), or all."""
        names = [self._resolved(topic) for topic in topics] or list(self._problems)
        return [problem for name in names for problem in self._problems.get(name, [])]

    def clock(self) -> list[str]:
        """Problem of the simulation time, if any."""
        if not self._node.get_parameter("use_sim_time").value:
            return []
        if self._last_time <= 0:
            return [
                "/clock (rosgraph_msgs/msg/Clock): use_sim_time is set, but no time has been"
                " received"
            ]
        if self._clock.lost(time.monotonic()):
            return [f"/clock: its time has stood still for more than {_CLOCK_TIMEOUT:g} s"]
        return []

    def values(self) -> dict[str, object]:
        """Age (s) and rate (Hz) of each input, for the diagnostics."""
        now = time.monotonic()
        found = {}
        for topic, beat in self._beats.items():
            found[f"input.{topic}.age"] = beat.age(now)
            found[f"input.{topic}.rate"] = beat.rate(now)
        return found


def _lines(problems: dict[str, list[str]], *, without: dict[str, list[str]]) -> Iterable[str]:
    return [
        line
        for topic, lines in problems.items()
        for line in lines
        if line not in without.get(topic, [])
    ]
