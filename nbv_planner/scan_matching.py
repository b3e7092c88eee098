"""Which scans count: each scan is matched with the camera's pose at its time, and with the goal it was taken at."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nbv_planner.camera import CameraPose, Scan
from nbv_planner.errors import InputRejectedError, SettingError, StateFileError
from nbv_planner.geometry import angle_difference
from nbv_planner.pose_track import PoseTrack
from nbv_planner.settings import check_settings, setting


@dataclass(frozen=True)
class ArrivalSettings:
    """When the camera counts as standing at its goal.

    Raises:
        SettingError: a value is out of range.
    """

    position_tolerance: float = setting(0.05, "Distance to the goal within which the camera is there.", unit="m",
                                        gt=0.0)
    heading_tolerance: float = setting(
        0.02, "Difference to the goal's heading within which the camera is there.", unit="rad", gt=0.0, le=math.pi
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    def reached(self, pose: CameraPose, goal: CameraPose) -> bool:
        """Whether `pose` counts as `goal`."""
        near = math.hypot(pose.x - goal.x, pose.y - goal.y) <= self.position_tolerance
        return near and abs(float(angle_difference(pose.yaw, goal.yaw))) <= self.heading_tolerance


@dataclass(frozen=True)
class MatchingSettings:
    """How scans are matched with poses.

    Raises:
        SettingError: a value is out of range, or more scans are asked for than may wait.
    """

    integrate: str = setting(
        "at_view",
        "Which scans count: at_view takes those taken while the camera stands at its goal, always takes all.",
        choices=("at_view", "always"),
    )
    scans_per_view: int = setting(1, "Number of scans that count at each goal.", ge=1, le=1000)
    pose_tolerance: float = setting(
        0.05, "Greatest time between a scan and its pose where it cannot be interpolated.", unit="s", ge=0.0
    )
    pose_gap: float = setting(
        0.5, "Greatest time between the two poses around a scan for interpolating; 0 takes the nearest.", unit="s",
        ge=0.0,
    )
    pose_timeout: float = setting(
        2.0, "Time for which a scan waits for its pose, by the stamps of later scans.", unit="s", gt=0.0
    )
    queue_size: int = setting(40, "Number of scans and poses that may wait for each other.", ge=1, le=10_000)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)
        if self.scans_per_view > self.queue_size:
            raise SettingError(f"scans_per_view: {self.scans_per_view} must be <= {self.queue_size} (queue_size)")


@dataclass(frozen=True, eq=False)
class MatchedScan:
    """A scan and the pose it was taken at.

    Attributes:
        stamp: time of the scan, nanoseconds.
        scan: the scan.
        pose: pose of the camera at that time.
        view: number of goals given before it was handed out.
    """

    stamp: int
    scan: Scan
    pose: CameraPose
    view: int = 0


class PoseSource(Protocol):
    """Knows the camera's poses of the last moments."""

    def at(self, stamp: int, frame: str) -> CameraPose | None:
        """Pose of the camera frame `frame` at `stamp` (nanoseconds), or None while it is not there yet.

        Raises:
            InputRejectedError: it will never be there.
        """


@dataclass(frozen=True, eq=False)
class _WaitingScan:
    """A scan that has no pose yet, its time (nanoseconds) and its frame."""

    stamp: int
    scan: Scan
    frame: str


class ScanMatcher:
    """Holds scans, poses and the goal, in whichever order they arrive, and hands out the scans that count.

    A scan taken at the goal may arrive before the goal itself, since they come from different senders; so matched
    scans are kept for a while, and the first ones taken at the goal after the goal was given count.
    """

    def __init__(
        self, matching: MatchingSettings, arrival: ArrivalSettings, poses: PoseSource | None = None
    ) -> None:
        """Start without anything.

        Args:
            matching: how scans find their poses, and which count.
            arrival: when the camera is at its goal.
            poses: where poses come from; None for those handed in by :meth:`add_pose`.
        """
        self._matching = matching
        self._arrival = arrival
        self._track = PoseTrack(
            matching.queue_size, round(matching.pose_tolerance * 1e9), round(matching.pose_gap * 1e9)
        )
        self._poses: PoseSource = self._track if poses is None else poses
        self._timeout = round(matching.pose_timeout * 1e9)
        self._scans: deque[_WaitingScan] = deque()
        self._matched: deque[MatchedScan] = deque(maxlen=matching.queue_size)
        self._goal: tuple[int, CameraPose] | None = None
        self._goals = 0
        self._taken = 0
        self.drops: Counter[str] = Counter()
        self.matches = 0

    def reset(self) -> None:
        """Forget everything that waits, and the goal."""
        self._scans.clear()
        self._track.clear()
        self._matched.clear()
        self._goal, self._goals, self._taken, self.matches = None, 0, 0, 0

    def state(self) -> dict[str, Any]:
        """The goal, and how many goals and scans there were, as plain values; what waits is not in it."""
        goal = None
        if self._goal is not None:
            stamp, pose = self._goal
            goal = [stamp, pose.x, pose.y, pose.yaw]
        return {"goal": goal, "goals": self._goals, "taken": self._taken}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Know the goal that another matcher gave as its :meth:`state`: its scans do not count twice.

        Raises:
            StateFileError: `content`: it is no such state; nothing has changed then.
        """
        goal, goals, taken = (state.get(name) for name in ("goal", "goals", "taken"))
        if type(goals) is not int or type(taken) is not int or min(goals, taken) < 0:
            raise StateFileError("content", f"goals, taken: {goals!r}, {taken!r} must be integers >= 0")
        if goal is not None and not _is_goal(goal):
            raise StateFileError("content", f"goal: {goal!r} must be stamp, x, y, yaw")
        self.reset()
        self._goal = None if goal is None else (goal[0], CameraPose(*goal[1:]))
        self._goals, self._taken = goals, taken

    def add_scan(self, stamp: int, scan: Scan, frame: str = "") -> list[MatchedScan]:
        """Take in a scan (`stamp` in nanoseconds) of the camera frame `frame`; returns what has found its pose."""
        self._scans.append(_WaitingScan(stamp, scan, frame))
        if len(self._scans) > self._matching.queue_size:
            self._scans.popleft()
            self.drops["scan.no_pose"] += 1
        found = self.match()
        self._give_up(stamp)
        return found

    def add_pose(self, stamp: int, pose: CameraPose) -> list[MatchedScan]:
        """Take in a pose (`stamp` in nanoseconds); returns what has found its pose."""
        self._track.add(stamp, pose)
        return self.match()

    def set_goal(self, stamp: int, goal: CameraPose) -> None:
        """Take in a goal; the same one again (same stamp) changes nothing."""
        if self._goal is None or self._goal[0] != stamp:
            self._goal, self._taken = (stamp, goal), 0
            self._goals += 1

    def take(self) -> list[MatchedScan]:
        """Hand out the scans that count, each once: those of the current goal once all of them are there, or all."""
        if self._matching.integrate == "always":
            return self._hand_out(list(self._matched))
        if self._goal is None or self._taken:
            return []
        stamp, goal = self._goal
        here = [m for m in self._matched if m.stamp >= stamp and self._arrival.reached(m.pose, goal)]
        if len(here) < self._matching.scans_per_view:
            return []
        self._taken = self._matching.scans_per_view
        return self._hand_out(here[: self._taken])

    def _hand_out(self, scans: list[MatchedScan]) -> list[MatchedScan]:
        self._matched.clear()
        return [dataclasses.replace(match, view=self._goals) for match in scans]

    def match(self) -> list[MatchedScan]:
        """Give each waiting scan its pose, as far as it is there; returns those that have found theirs."""
        waiting, self._scans = self._scans, deque()
        found = [match for scan in waiting if (match := self._with_pose(scan)) is not None]
        self._matched.extend(found)
        self.matches += len(found)
        return found

    def _with_pose(self, waiting: _WaitingScan) -> MatchedScan | None:
        """The scan with its pose, or None if it waits on or is dropped."""
        try:
            pose = self._poses.at(waiting.stamp, waiting.frame)
        except InputRejectedError as error:
            self.drops[f"scan.{error.reason}"] += 1
            return None
        if pose is None:
            self._scans.append(waiting)
            return None
        return MatchedScan(waiting.stamp, waiting.scan, pose)

    def _give_up(self, newest: int) -> None:
        """Drop the scans whose pose has not come for too long, and those of a clock that has jumped back since."""
        kept = deque(scan for scan in self._scans if abs(newest - scan.stamp) <= self._timeout)
        if late := len(self._scans) - len(kept):
            self.drops["scan.no_pose"] += late
        self._scans = kept


def _is_goal(values: object) -> bool:
    """Whether `values` are a stamp and three finite numbers."""
    if not isinstance(values, list) or len(values) != 4 or type(values[0]) is not int:
        return False
    return all(type(value) in (int, float) and math.isfinite(value) for value in values[1:])
