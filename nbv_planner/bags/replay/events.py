"""Recorded scans, poses and decisions, one after the other by the time at which they were made."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nbv_planner.bags.bag import Bag, Progress
from nbv_planner.bags.decoding import decode, definition_problem, header_stamp
from nbv_planner.bags.topics import TopicMap
from nbv_planner.camera import CameraPose, Scan
from nbv_planner.errors import InputRejectedError
from nbv_planner.evaluation.recorded_decision import RecordedDecision
from nbv_planner.message_values import belief_from_msg, pose_from_msg, scan_from_msg
from nbv_planner.topics import CAMERA_POSE, SCAN, SURFACE

# Messages that wait for earlier ones: topics reach a recorder at different times, by some milliseconds.
_WAITING = 500
_LONGEST = 2**21


class MapperReset:
    """The mapper has forgotten all measurements."""


Input = Scan | CameraPose | MapperReset


@dataclass(frozen=True, eq=False)
class Event:
    """Something that was made at `stamp` (nanoseconds): a scan, a camera pose, a decision, or a reset of the mapper."""

    stamp: int
    what: Scan | CameraPose | RecordedDecision | MapperReset


def recorded_events(
    bag: Bag, topics: TopicMap, decisions: Sequence[RecordedDecision], progress: Progress
) -> Iterator[Event]:
    """Give what mapper and planner heard, and where the planner decided, in order of the stamps.

    A decision comes behind what has the same stamp. Messages that cannot be used are left out, as by the nodes.
    """
    coming = sorted(decisions, key=lambda decision: decision.goal_stamp)
    for event in _in_order(_inputs(bag, topics, progress)):
        while coming and coming[0].goal_stamp < event.stamp:
            decision = coming.pop(0)
            yield Event(decision.goal_stamp, decision)
        yield event
    for decision in coming:
        yield Event(decision.goal_stamp, decision)


def _inputs(bag: Bag, topics: TopicMap, progress: Progress) -> Iterator[Event]:
    names = {topic: name for topic, name in topics.names.items() if name in _READ}
    usable = {topic for topic in names if definition_problem(topic) is None}
    for message in bag.messages(usable.__contains__, progress):
        if len(message.data) > _LONGEST:
            continue
        try:
            stamp, what = header_stamp(message), _READ[names[message.topic]](decode(message))
        except InputRejectedError:
            continue
        # Stamp 0 is the prior that a mapper begins with.
        if what is not None and not (stamp == 0 and isinstance(what, MapperReset)):
            yield Event(stamp, what)


def _reset_from_msg(msg: Any) -> MapperReset | None:
    """A surface without a single hit is what a mapper says that has been reset."""
    return None if belief_from_msg(msg).hits.any() else MapperReset()


_READ: dict[str, Callable[[Any], Input | None]] = {
    SCAN: scan_from_msg, CAMERA_POSE: pose_from_msg, SURFACE: _reset_from_msg,
}


def _in_order(events: Iterator[Event]) -> Iterator[Event]:
    """Sort by stamp, as far as some hundred events show."""
    waiting: list[tuple[int, int, Event]] = []
    for number, event in enumerate(events):
        heapq.heappush(waiting, (event.stamp, number, event))
        if len(waiting) > _WAITING:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
