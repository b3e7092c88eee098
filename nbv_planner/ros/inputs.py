"""Watches what comes in to a node, and says what is missing, lost or does not fit."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rclpy.node import Node

from nbv_planner.heartbeat import Heartbeat
from nbv_planner.ros.wiring import mismatches, qos_words, type_name

# Seconds of a real clock for which the time on /clock may stand still.
_CLOCK_TIMEOUT = 5.0


class Inputs:
    """A heartbeat for each input of a node, by its relative topic name, and what the graph says about its topics.

    Ages are measured by a clock that nobody sets or stops, not by that of the node.
    """

    def __init__(self, node: Node) -> None:
        """Watch the topics of `node`."""
        self._node = node
        self._beats: dict[str, Heartbeat] = {}
        self._words: dict[str, str] = {}
        self._problems: dict[str, list[str]] = {}
        self._clock, self._last_time = Heartbeat(_CLOCK_TIMEOUT), -1
        # Names are resolved by rules that are fixed at start, and asked for with every message.
        self._resolved = lru_cache(maxsize=256)(node.resolve_topic_name)

    def add(self, topic: str, words: str = "") -> None:
        """Watch an input (anew); it never counts as lost until :meth:`expect` says how often it must come.

        Args:
            topic: relative name of the topic, or of what comes in its place.
            words: what comes in its place; empty for the topic itself.
        """
        self._beats[topic] = Heartbeat()
        self._words[topic] = words

    def beat(self, topic: str) -> None:
        """Note that the input has come, and could be used."""
        self._beats[topic].beat(time.monotonic())

    def expect(self, timeout: float, *topics: str) -> None:
        """Let inputs count as lost when they have not come for `timeout` seconds."""
        for topic in topics:
            self._beats[topic].timeout = timeout

    def look(self) -> bool:
        """Look at the graph and the clock again; log what has become wrong, and give whether anything has changed."""
        now = self._node.now_ns()
        if now != self._last_time:
            self._last_time = now
            self._clock.beat(time.monotonic())
        before, self._problems = self._problems, mismatches(self._node)
        for problem in _lines(self._problems, without=before):
            self._node.get_logger().warning(problem)
        for problem in _lines(before, without=self._problems):
            self._node.get_logger().info(f"no longer: {problem}")
        return before != self._problems

    def missing(self, *topics: str) -> list[str]:
        """Inputs that never came or have been lost: name, type and quality of service expected, and what is known."""
        return [f"{self.described(topic)}: {why}" for topic in topics if (why := self._why_missing(topic))]

    def described(self, topic: str) -> str:
        """Full name of a topic of the node, with the type and quality of service that the node has for it."""
        if self._words.get(topic):
            return self._words[topic]
        mine = self._endpoint(topic)
        return f"{mine.topic_name} ({type_name(mine.msg_type)}; {qos_words(mine.qos_profile)})"

    def _endpoint(self, topic: str) -> Any:
        name = self._resolved(topic)
        endpoints = (*self._node.subscriptions, *self._node.publishers)
        return next(mine for mine in endpoints if self._resolved(mine.topic_name) == name)

    def _why_missing(self, topic: str) -> str:
        beat, now = self._beats[topic], time.monotonic()
        if beat.heard and not beat.lost(now):
            return ""
        problems = self.problems(topic)
        if problems:
            return "; ".join(problems)
        who = "" if self._words[topic] else _publishers(self._endpoint(topic).get_publisher_count())
        what = f"nothing usable for more than {beat.timeout:g} s" if beat.heard else "nothing usable received yet"
        return ", ".join(text for text in (who, what) if text)

    def gone(self, *topics: str) -> list[str]:
        """Inputs that have come and that nobody publishes any more."""
        return [
            f"{self.described(topic)}: its publisher is gone" for topic in topics
            if self._beats[topic].heard and self._endpoint(topic).get_publisher_count() == 0
        ]

    def problems(self, *topics: str) -> list[str]:
        """Mismatches on these topics, or on all."""
        names = [self._resolved(topic) for topic in topics] or list(self._problems)
        return [problem for name in names for problem in self._problems.get(name, [])]

    def clock(self) -> list[str]:
        """What is wrong with the time of a simulation."""
        if not self._node.get_parameter("use_sim_time").value:
            return []
        if self._last_time <= 0:
            return ["/clock (rosgraph_msgs/msg/Clock): use_sim_time is set and no time has come"]
        if self._clock.lost(time.monotonic()):
            return [f"/clock: its time has stood still for more than {_CLOCK_TIMEOUT:g} s"]
        return []

    def values(self) -> dict[str, object]:
        """Age (s) and rate (Hz) of each input, for the diagnostics."""
        now, found = time.monotonic(), {}
        for topic, beat in self._beats.items():
            found[f"input.{topic}.age"] = beat.age(now)
            found[f"input.{topic}.rate"] = beat.rate(now)
        return found


def _publishers(number: int) -> str:
    return "nobody publishes it" if number == 0 else f"{number} publish{'es' if number == 1 else ''} it"


def _lines(problems: dict[str, list[str]], *, without: dict[str, list[str]]) -> Iterable[str]:
    return [line for topic, lines in problems.items() for line in lines if line not in without.get(topic, [])]
