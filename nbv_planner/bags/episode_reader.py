"""Reading what a bag says about an episode: each message into its place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from nbv_planner.bags.decoding import decode, header_stamp
from nbv_planner.bags.episodes import Episodes
from nbv_planner.bags.recording import Recording
from nbv_planner.bags.run_parameters import parameters_from_text
from nbv_planner.bags.state_log import StateLog
from nbv_planner.bags.storage.raw import RawMessage
from nbv_planner.camera import CameraPose
from nbv_planner.errors import InputRejectedError
from nbv_planner.evaluation.recorded_decision import RecordedDecision, decision_from_values, termination_from_values
from nbv_planner.message_values import (
    belief_from_msg,
    candidates_from_msg,
    contour_from_msg,
    pose_from_msg,
    scan_from_msg,
    status_values,
    to_nanoseconds,
)
from nbv_planner.surface import SurfaceBelief
from nbv_planner.topics import (
    CAMERA_POSE,
    CANDIDATES,
    DIAGNOSTICS,
    GOAL_POSE,
    GROUND_TRUTH,
    ITERATION,
    RUN_INFO,
    SCAN,
    STATUS,
    SURFACE,
)

T = TypeVar("T")

# Bounds that no real recording reaches; a hostile one must not fill the memory.
_LONGEST = {SCAN: 2**21, SURFACE: 2**22, CANDIDATES: 2**22, GROUND_TRUTH: 2**23, RUN_INFO: 2**20}
_LONGEST_OTHER = 2**18
_MOST_VIEWS = 2000
_MOST_GRID_ANGLES = 4_000_000
_MOST_SURFACES = 1_000_000


class EpisodeReader:
    """Puts each message of the chosen episode into its place in a recording."""

    def __init__(self, recording: Recording, episode: int | None) -> None:
        """Read the episode with this number, from 1, into the recording; None for the last one."""
        self._to, self._episodes = recording, Episodes(episode)
        self._log = StateLog()
        self._last_pose: CameraPose | None = None
        self._grid_angles = 0
        self._takers: dict[str, Callable[[RawMessage], None]] = {
            SCAN: self._scan, CAMERA_POSE: self._pose, GOAL_POSE: self._goal, SURFACE: self._surface,
            CANDIDATES: self._candidates, ITERATION: self._iteration, STATUS: self._status,
            GROUND_TRUTH: self._truth, RUN_INFO: self._run_info, DIAGNOSTICS: self._diagnosis,
        }

    def take(self, name: str, message: RawMessage) -> None:
        """Take in a message; one that cannot be used is counted, as the nodes do."""
        if self._episodes.over and name not in (ITERATION, STATUS):
            return
        try:
            if len(message.data) > _LONGEST.get(name, _LONGEST_OTHER):
                raise InputRejectedError("too_long", f"{len(message.data)} bytes")
            self._takers[name](message)
        except InputRejectedError as error:
            self._count(message, error)

    def _count(self, message: RawMessage, error: InputRejectedError) -> None:
        self._to.remarks[f"{message.topic.name}: messages that cannot be used ({error.reason}): left out"] += 1

    def _later(self, message: RawMessage, read: Callable[[Any], T]) -> Callable[[], T]:
        """Read a message when it is asked for."""

        def value() -> T:
            try:
                return read(decode(message))
            except InputRejectedError as error:
                self._count(message, error)
                raise

        return value

    def finish(self) -> None:
        """Put in what is known only now; fall back on the goals where no decision was recorded.

        Raises:
            BagError: there is no episode of the number that was asked for.
        """
        self._to.states, self._to.termination = self._log.states, self._log.termination
        self._to.episode, self._to.episodes = self._episodes.chosen(), max(self._episodes.number, 1)
        self._to.earlier = tuple(self._episodes.earlier)
        if not self._to.assembly.views:
            for goal in self._to.goals:
                self._to.assembly.add_decision(goal)

    def _scan(self, message: RawMessage) -> None:
        self._to.assembly.add_scan(header_stamp(message), self._later(message, scan_from_msg), len(message.data))

    def _pose(self, message: RawMessage) -> None:
        msg = decode(message)
        pose = pose_from_msg(msg)
        if self._last_pose is None:
            self._to.first_pose = pose
        else:
            self._to.path += math.hypot(pose.x - self._last_pose.x, pose.y - self._last_pose.y)
        self._last_pose = pose
        self._to.assembly.add_pose(to_nanoseconds(msg.header.stamp), lambda: self._to.camera(pose))

    def _goal(self, message: RawMessage) -> None:
        msg = decode(message)
        stamp = to_nanoseconds(msg.header.stamp)
        known = self._to.goals[-1].goal_stamp if self._to.goals else None
        if stamp != known and len(self._to.goals) < _MOST_VIEWS:
            angle = self._to.camera(pose_from_msg(msg)).view_angle
            self._to.goals.append(RecordedDecision(len(self._to.goals) + 1, stamp, angle, math.nan, math.nan))

    def _surface(self, message: RawMessage) -> None:
        stamp = header_stamp(message)
        if len(self._to.surface_stamps) < _MOST_SURFACES:
            self._to.surface_stamps.append(stamp)
        self._to.assembly.add_surface(stamp, self._later(message, self._belief), len(message.data))

    def _belief(self, msg: Any) -> SurfaceBelief:
        belief = belief_from_msg(msg)
        self._grid_angles += len(belief.angle)
        if self._grid_angles > _MOST_GRID_ANGLES:
            raise InputRejectedError("too_many", "more surfaces than any episode has")
        return belief

    def _candidates(self, message: RawMessage) -> None:
        read = self._later(message, candidates_from_msg)
        self._to.assembly.add_candidates(header_stamp(message), read, len(message.data))

    def _iteration(self, message: RawMessage) -> None:
        decision = decision_from_values(status_values(decode(message)))
        begins = self._episodes.decided(decision)
        if self._episodes.over:
            return
        if begins:
            self._begin_episode()
        if len(self._to.assembly.views) >= _MOST_VIEWS:
            raise InputRejectedError("too_many", "more views than any episode has")
        self._to.assembly.add_decision(decision)

    def _begin_episode(self) -> None:
        self._to.assembly = self._to.assembly.next_episode()
        self._log.next_episode()
        self._to.first_pose, self._to.path = self._last_pose, 0.0
        self._grid_angles = 0

    def _status(self, message: RawMessage) -> None:
        values = status_values(decode(message))
        if "state" not in values:
            raise InputRejectedError("status", "no state")
        ended = termination_from_values(values)
        if ended is not None:
            self._episodes.ended()
        if not self._episodes.over:
            self._log.add(message.time, values["state"], ended)

    def _truth(self, message: RawMessage) -> None:
        self._to.contour = contour_from_msg(decode(message))

    def _run_info(self, message: RawMessage) -> None:
        self._to.parameters = parameters_from_text(decode(message).data)

    def _diagnosis(self, message: RawMessage) -> None:
        namespace = self._to.topics.namespace.strip("/")
        for status in decode(message).status:
            space, _, node = status.name.rpartition("/")
            if space == namespace and len(self._to.diagnostics) < 100:
                self._to.diagnostics[node] = status_values(status)
