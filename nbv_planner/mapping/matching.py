"""Which scans count: each is matched with the camera's pose at its time, and with the goal it was
taken at.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nbv_planner.errors import InputRejectedError, SettingError, shown
from nbv_planner.geometry import BoolArray, angle_difference
from nbv_planner.mapping.arrival import (
    REMEMBERED,
    SPEED_TIME,
    ArrivalSettings,
    DroppedScan,
    PoseSource,
    PoseTrack,
    ScanDrops,
    in_ms,
)
from nbv_planner.settings import Settings, setting
from nbv_planner.world.pose import CameraPose


@dataclass(frozen=True)
class DwellSettings(Settings):
    """How long the camera looks from each goal."""

    scans_per_view: int = setting(
        1, "Number of scans that count at each goal: raise it for a noisy sensor.", ge=1, le=1000
    )


@dataclass(frozen=True)
class MatchingSettings(DwellSettings):
    """How scans are matched with poses.

    Raises:
        SettingError: a value is out of range, or `scans_per_view` exceeds `queue_size`.
    """

    scans_per_view: int = setting(
        3, "Number of scans that count at each goal: raise it for a noisy sensor.", ge=1, le=1000
    )

    integrate: str = setting(
        "at_view",
        "Which scans count: at_view: while the camera is at its goal; always: also while it"
        " moves, if poses are accurately stamped.",
        choices=("at_view", "always"),
    )
    pose_tolerance: float = setting(
        0.05,
        "Greatest time between a scan and its pose if the pose cannot be interpolated: raise it"
        " if poses are rare.",
        unit="s",
        ge=0.0,
    )
    pose_gap: float = setting(
        0.5,
        "Greatest time between the poses before and after a scan for interpolation: raise it if"
        " poses are rare; 0 takes the nearest pose.",
        unit="s",
        ge=0.0,
    )
    pose_timeout: float = setting(
        2.0,
        "Time for which a scan waits for its pose, by the stamps of later scans: raise it if the"
        " localisation is slow.",
        unit="s",
        gt=0.0,
    )
    queue_size: int = setting(
        40,
        "Number of scans and poses that may wait for each other: raise it if the status"
        " counts queue drops.",
        ge=1,
        le=10_000,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scans_per_view > self.queue_size:
            raise SettingError(
                f"scans_per_view: {self.scans_per_view} must be <= {self.queue_size} (queue_size)"
            )

    @property
    def timeout(self) -> int:
        """Time for which a scan waits for its pose, nanoseconds."""
        return round(self.pose_timeout * 1e9)

    def track(self, size: int) -> PoseTrack:
        """A track of at most so many poses, in which scans find theirs."""
        return PoseTrack(size, round(self.pose_tolerance * 1e9), round(self.pose_gap * 1e9))


# A quaternion whose length is off 1 by more is none.
_NO_UNIT = 1e-6
# Of a pose that does not change, m/s, m/s and rad/s.
_NO_RATE = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class MatchedScan:
    """A scan and the pose it was taken at."""

    stamp: int  #: time of the scan, nanoseconds.
    #: the scan: a :class:`~nbv_planner.world.scan.Scan`, in space a DepthScan.
    scan: Any
    pose: CameraPose  #: pose of the camera at that time.
    view: int = 0  #: number of goals received before it was returned.
    frame: str = ""  #: frame of the camera.
    #: rate of the pose at that time: x, y (m/s) and heading (rad/s), in the object frame; 0 where
    #: it is not known.
    rate: tuple[float, float, float] = _NO_RATE
    #: which beams met something else than the object, shape (B,); None if none did.
    background: BoolArray | None = None


# The last time that ROS can express, nanoseconds.
_LATEST = 2**31 * 10**9


def check_saved(*values: CameraPose | int | None) -> None:
    """Refuse a pose, stamp or count that no saved state has.

    Raises:
        ValueError: names it.
    """
    for value in values:
        if isinstance(value, CameraPose):
            numbers = (*value.polar, value.x, value.y, value.yaw, value.height)
            unit = 1.0 if value.attitude is None else math.hypot(*value.attitude)
            good = all(map(math.isfinite, numbers)) and abs(unit - 1.0) < _NO_UNIT
        else:
            good = value is None or abs(value) < _LATEST
        if not good:
            raise ValueError(f"{shown(value)} is no pose, stamp or count")


@dataclass(frozen=True)
class MatchingState:
    """What a restarted matcher goes on from.

    Raises:
        ValueError: a value is impossible.
    """

    stamp: int = 0  #: of the goal, nanoseconds.
    goal: CameraPose | None = None  #: None before the first.
    goals: int = 0  #: number of goals.
    taken: int = 0  #: number of scans at the goal that have counted.

    def __post_init__(self) -> None:
        check_saved(self.goal, self.stamp, self.goals, self.taken)
        if min(self.goals, self.taken) < 0:
            raise ValueError("goals, taken: must be integers >= 0")


@dataclass
class _AtGoal:
    """Which goal scans are to be taken at, and which of them have been."""

    stamp: int = 0  #: of the goal, nanoseconds.
    pose: CameraPose | None = None  #: the goal; None before the first.
    taken: int = 0  #: number of scans that have counted.
    since: int = 0  #: stamp from which on scans count, nanoseconds.
    frame: str = ""  #: of the newest scan that has counted.


class ScanMatcher:
    """Holds scans, poses and the goal, in any order of arrival, and returns the scans that count.

    A scan taken at the goal may arrive before the goal itself, since they come from different
    senders; so matched scans are kept for a while, and the first ones taken at the goal after the
    goal was received count. If the camera leaves the goal after that and comes back, the first ones
    after its return count too: a planner that has seen it leave waits for them.
    """

    def __init__(
        self, matching: MatchingSettings, arrival: ArrivalSettings, poses: PoseSource | None = None
    ) -> None:
        """Start empty; without a source of `poses`, those passed to :meth:`add_pose` count."""
        self._matching = matching
        self._arrival = arrival
        self._track = matching.track(max(matching.queue_size, REMEMBERED))
        self._poses: PoseSource = self._track if poses is None else poses
        self._scans: deque[tuple[int, Any, str]] = deque()  # stamp, scan, frame
        self._matched: deque[MatchedScan] = deque(maxlen=matching.queue_size)
        # those of the matched that count
        self._here: deque[MatchedScan] = deque(maxlen=matching.queue_size)
        self.drops = ScanDrops(matching.timeout)  #: scans dropped for their poses.
        self.reset()

    def reset(self) -> None:
        """Forget everything that waits, and the goal."""
        self._scans.clear()
        self._track.clear()
        self._matched.clear()
        self._here.clear()
        self._goal = _AtGoal()
        self._goals = 0
        self.matches = 0  #: number of scans that have found their poses.
        self.first_frame = ""  #: of the first of these.

    def state(self) -> MatchingState:
        """The goal, and how many goals and scans there were; what waits is not in it."""
        goal = self._goal
        return MatchingState(goal.stamp, goal.pose, self._goals, goal.taken)

    def restore(self, state: MatchingState) -> None:
        """Restore the :meth:`state` of another matcher: scans of its goal do not count twice."""
        self.reset()
        self._goals = state.goals
        self._goal = _AtGoal(state.stamp, state.goal, state.taken, since=state.stamp)

    def add_scan(self, stamp: int, scan: Any, frame: str = "") -> list[MatchedScan]:
        """Add a scan (`stamp` in nanoseconds) of the camera frame `frame`; returns those that can
        be matched now.
        """
        self._scans.append((stamp, scan, frame))
        if len(self._scans) > self._matching.queue_size:
            *_, its_frame = self._scans.popleft()
            detail = f"{self._matching.queue_size} newer ones wait for their poses"
            self._drop("no_pose", detail, stamp, its_frame)
        found = self.match()
        self._give_up(stamp)
        return found

    def add_pose(self, stamp: int, pose: CameraPose) -> list[MatchedScan]:
        """Add a pose (`stamp` in nanoseconds); returns those that can be matched now."""
        self._track.add(stamp, pose)
        return self.match()

    def set_goal(self, stamp: int, goal: CameraPose) -> None:
        """Set the goal; the same one again (same stamp) changes nothing."""
        if self._goal.pose is None or self._goal.stamp != stamp:
            self._goal = _AtGoal(stamp, goal, since=stamp, frame=self._goal.frame)
            self._goals += 1
            self._here.clear()
            self._here.extend(filter(self._counts, self._matched))

    def take(self) -> list[MatchedScan]:
        """Return the scans that count, each once: those of the current goal once all of them have
        arrived, or all.
        """
        if self._matching.integrate == "always":
            return self._hand_out(list(self._matched))
        goal = self._goal
        if goal.pose is None or (goal.taken and not self._left(goal.pose)):
            return []
        if len(self._here) < self._matching.scans_per_view:
            return []
        here = list(self._here)[: self._matching.scans_per_view]
        goal.taken = len(here)
        goal.since = here[-1].stamp
        goal.frame = here[-1].frame
        # There the camera stands: how it moved before is no rate of these poses.
        return self._hand_out([dataclasses.replace(match, rate=_NO_RATE) for match in here])

    def _counts(self, match: MatchedScan) -> bool:
        """Whether the camera had been at its goal for `settle_time` when the scan was taken."""
        goal = self._goal.pose
        if goal is None or match.stamp < self._goal.since:
            return False
        arrival = self._arrival
        here = (match.stamp, match.pose)
        poses = [here]
        settle = round(arrival.settle_time * 1e9)
        if settle:
            before = self._poses.during(match.stamp - settle, match.stamp, match.frame)
            poses = before and [*before, here]
        return bool(poses) and all(arrival.reached(pose, goal) for _, pose in poses)

    def _left(self, goal: CameraPose) -> bool:
        """Whether the camera has left the goal since its scans were taken; scans after that count
        again.
        """
        with suppress(InputRejectedError):
            newest = self._poses.latest(self._goal.frame)
            if newest is not None and newest[0] > self._goal.since:
                stamp, pose = newest
                if not self._arrival.reached(pose, goal):
                    self._goal.taken = 0
                    self._goal.since = stamp
                    self._here.clear()
        return self._goal.taken == 0

    def _hand_out(self, scans: list[MatchedScan]) -> list[MatchedScan]:
        self._matched.clear()
        self._here.clear()
        return [dataclasses.replace(match, view=self._goals) for match in scans]

    def match(self) -> list[MatchedScan]:
        """Match each waiting scan with its pose, if available; returns the matched ones."""
        waiting = self._scans
        self._scans = deque()
        found = [match for scan in waiting if (match := self._with_pose(*scan)) is not None]
        self._matched.extend(found)
        self._here.extend(filter(self._counts, found))
        self.matches += len(found)
        self.first_frame = self.first_frame or (found[0].frame if found else "")
        return found

    def _with_pose(self, stamp: int, scan: Any, frame: str) -> MatchedScan | None:
        """The scan with its pose, or None if it keeps waiting or is dropped."""
        try:
            pose = self._poses.at(stamp, frame)
        except InputRejectedError as error:
            self._drop(error.reason, str(error), stamp, frame)
            return None
        if pose is None:
            self._scans.append((stamp, scan, frame))
            return None
        self.drops.add(None)
        return MatchedScan(stamp, scan, pose, frame=frame, rate=self._rate(stamp, pose, frame))

    def _rate(self, stamp: int, pose: CameraPose, frame: str) -> tuple[float, float, float]:
        """Rate of the pose up to `stamp` (nanoseconds), on average over :data:`SPEED_TIME`; 0 where
        it is not known.
        """
        (since, before), *_ = [*self._poses.during(stamp - SPEED_TIME, stamp, frame), (stamp, pose)]
        if not 0 < stamp - since <= SPEED_TIME + round(self._matching.pose_gap * 1e9):
            return _NO_RATE
        seconds = (stamp - since) * 1e-9
        turn = float(angle_difference(pose.yaw, before.yaw))
        return (pose.x - before.x) / seconds, (pose.y - before.y) / seconds, turn / seconds

    def _give_up(self, newest: int) -> None:
        """Drop the scans that have waited too long for a pose, and those of a clock that has jumped
        back since.
        """
        waiting = self._scans
        self._scans = deque()
        for stamp, scan, frame in waiting:
            if abs(newest - stamp) <= self._matching.timeout:
                self._scans.append((stamp, scan, frame))
            else:
                detail = f"no pose as new as it came within {in_ms(self._matching.timeout)}"
                self._drop("no_pose", detail, newest, frame)

    def _drop(self, reason: str, detail: str, stamp: int, frame: str) -> None:
        """Count a dropped scan, and remember why."""
        newest = None
        with suppress(InputRejectedError):
            newest = self._poses.latest(frame)
        self.drops.add(DroppedScan(reason, detail, stamp, newest and newest[0]))
