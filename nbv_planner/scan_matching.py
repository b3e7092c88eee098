"""Which scans count: each scan is matched with the camera's pose at its time, and with the goal it was taken at."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, deque
from dataclasses import dataclass

from nbv_planner.camera import CameraPose, Scan
from nbv_planner.errors import SettingError
from nbv_planner.geometry import angle_difference
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
    pose_source: str = setting("topic", "Where camera poses come from.", choices=("topic",))
    scans_per_view: int = setting(1, "Number of scans that count at each goal.", ge=1, le=1000)
    pose_tolerance: float = setting(0.05, "Greatest time between a scan and its pose.", unit="s", ge=0.0)
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


class ScanMatcher:
    """Holds scans, poses and the goal, in whichever order they arrive, and hands out the scans that count.

    A scan taken at the goal may arrive before the goal itself, since they come from different senders; so matched
    scans are kept for a while, and the first ones taken at the goal after the goal was given count.
    """

    def __init__(self, matching: MatchingSettings, arrival: ArrivalSettings) -> None:
        """Start without anything."""
        self._matching = matching
        self._arrival = arrival
        self._tolerance = round(matching.pose_tolerance * 1e9)
        self._scans: deque[tuple[int, Scan]] = deque()
        self._poses: deque[tuple[int, CameraPose]] = deque(maxlen=matching.queue_size)
        self._matched: deque[MatchedScan] = deque(maxlen=matching.queue_size)
        self._goal: tuple[int, CameraPose] | None = None
        self._goals = 0
        self._taken = 0
        self.drops: Counter[str] = Counter()
        self.matches = 0

    def reset(self) -> None:
        """Forget everything that waits, and the goal."""
        self._scans.clear()
        self._poses.clear()
        self._matched.clear()
        self._goal, self._goals, self._taken, self.matches = None, 0, 0, 0

    def add_scan(self, stamp: int, scan: Scan) -> None:
        """Take in a scan (`stamp` in nanoseconds)."""
        self._scans.append((stamp, scan))
        if len(self._scans) > self._matching.queue_size:
            self._scans.popleft()
            self.drops["scan.no_pose"] += 1
        self._match()

    def add_pose(self, stamp: int, pose: CameraPose) -> None:
        """Take in a pose (`stamp` in nanoseconds)."""
        self._poses.append((stamp, pose))
        self._match()

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

    def _match(self) -> None:
        """Give each waiting scan its pose, as soon as no later pose can be nearer."""
        while self._scans and self._poses and self._poses[-1][0] >= self._scans[0][0]:
            stamp, scan = self._scans.popleft()
            pose_stamp, pose = min(self._poses, key=lambda entry: abs(entry[0] - stamp))
            if abs(pose_stamp - stamp) > self._tolerance:
                self.drops["scan.pose_too_far"] += 1
                continue
            self._matched.append(MatchedScan(stamp, scan, pose))
            self.matches += 1
