"""Recorded scans, poses and decisions, one after the other by the time at which they were made."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbv_planner.bags.bag import Bag, Progress
from nbv_planner.bags.decoding import decode, definition_problem, header_stamp
from nbv_planner.bags.topics import TopicMap
from nbv_planner.camera import CameraPose, Scan
from nbv_planner.errors import InputRejectedError
from nbv_planner.evaluation.recorded_decision import RecordedDecision
from nbv_planner.message_values import pose_from_msg, scan_from_msg
from nbv_planner.topics import CAMERA_POSE, SCAN

# Messages that wait for earlier ones: topics reach a recorder at different times, by some milliseconds.
_WAITING = 500
_LONGEST = 2**21


@dataclass(frozen=True, eq=False)
class Event:
    """Something that was made at `stamp` (nanoseconds): a scan, a camera pose or a decision."""

    stamp: int
    what: Scan | CameraPose | RecordedDecision


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
    names = {topic: name for topic, name in topics.names.items() if name in (SCAN, CAMERA_POSE)}
    usable = {topic for topic in names if definition_problem(topic) is None}
    for message in bag.messages(usable.__contains__, progress):
        if len(message.data) > _LONGEST:
            continue
        try:
            read = scan_from_msg if names[message.topic] == SCAN else pose_from_msg
            yield Event(header_stamp(message), read(decode(message)))
        except InputRejectedError:
            continue


def _in_order(events: Iterator[Event]) -> Iterator[Event]:
    """Sort by stamp, as far as some hundred events show."""
    waiting: list[tuple[int, int, Event]] = []
    for number, event in enumerate(events):
        heapq.heappush(waiting, (event.stamp, number, event))
        if len(waiting) > _WAITING:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
