"""Poses of a camera over time: when it has arrived at a goal, and which scans found no pose."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import angle_difference
from nbv_planner.settings import Settings, setting
from nbv_planner.world.pose import CameraPose

# A pose older than the newest by more than this (nanoseconds) does not arrive late: the clock has
# jumped back.
_LATE = 1_000_000_000


class PoseTrack:
    """A bounded number of poses in the order of their stamps, in any order of arrival.

    Between two poses that are not too far apart the pose is interpolated: position and heading
    along straight lines, the heading the shorter way. Elsewhere the nearest pose in time counts, if
    it is near enough.
    """

    def __init__(self, size: int, tolerance: int, gap: int) -> None:
        """Keep `size` poses; interpolate between two up to a `gap` apart, else take one up to
        `tolerance` away; ns.
        """
        self._size, self._tolerance, self._gap = size, tolerance, gap
        self._stamps: list[int] = []
        self._poses: dict[int, CameraPose] = {}

    def clear(self) -> None:
        """Forget all poses."""
        self._stamps.clear()
        self._poses.clear()

    def add(self, stamp: int, pose: CameraPose) -> None:
        """Add a pose (`stamp` in nanoseconds); one of a clock that has jumped back replaces all
        others.
        """
        if self._stamps and stamp < self._stamps[-1] - _LATE:
            self.clear()
        if stamp not in self._poses:
            insort(self._stamps, stamp)
        self._poses[stamp] = pose
        if len(self._stamps) > self._size:
            del self._poses[self._stamps.pop(0)]

    def at(self, stamp: int, frame: str = "") -> CameraPose | None:
        """Pose at `stamp` (nanoseconds), or None as long as no later pose has arrived; it holds for
        every `frame`.

        Raises:
            InputRejectedError: `pose_too_far` (no pose is near enough) or `pose_gap` (the poses
                around are too far apart).
        """
        after = bisect_left(self._stamps, stamp)
        if after == len(self._stamps):
            return None
        later = self._stamps[after]
        earlier = later if later == stamp or after == 0 else self._stamps[after - 1]
        if later - earlier <= self._gap and earlier <= stamp:
            return self._between(earlier, later, stamp)
        nearest = min(earlier, later, key=lambda other: abs(other - stamp))
        if abs(nearest - stamp) <= self._tolerance:
            return self._poses[nearest]
        if earlier == later:
            raise InputRejectedError(
                "pose_too_far", f"the first pose is {in_ms(later - stamp)} later than the scan"
            )
        apart = in_ms(later - earlier)
        most = in_ms(self._gap)
        raise InputRejectedError(
            "pose_gap", f"the poses around the scan are {apart} apart, pose_gap is {most}"
        )

    def latest(self, frame: str = "") -> tuple[int, CameraPose] | None:
        """Stamp (nanoseconds) and pose of the newest one, or None."""
        return (self._stamps[-1], self._poses[self._stamps[-1]]) if self._stamps else None

    def during(self, first: int, last: int, frame: str = "") -> list[tuple[int, CameraPose]]:
        """Stamps and poses from the last one at `first` or before to the last one at `last` or
        before (nanoseconds).

        None of them as long as the poses do not reach back that far; from a full track, those that
        it still has.
        """
        start = bisect_right(self._stamps, first) - 1
        if start < 0 and len(self._stamps) < self._size:
            return []
        stamps = self._stamps[max(start, 0) : bisect_right(self._stamps, last)]
        return [(stamp, self._poses[stamp]) for stamp in stamps]

    def _between(self, earlier: int, later: int, stamp: int) -> CameraPose:
        first, second = self._poses[earlier], self._poses[later]
        if earlier == later:
            return first
        part = (stamp - earlier) / (later - earlier)
        if first.attitude is not None and second.attitude is not None:
            return first.towards(second, part)
        turn = float(angle_difference(second.yaw, first.yaw))
        covariance = None
        if first.covariance is not None and second.covariance is not None:
            covariance = first.covariance.between(second.covariance, part)
        return CameraPose(
            x=first.x + part * (second.x - first.x),
            y=first.y + part * (second.y - first.y),
            yaw=first.yaw + part * turn,
            covariance=covariance,
            height=first.height + part * (second.height - first.height),
        )


def in_ms(nanoseconds: int) -> str:
    """Text for a time."""
    return f"{nanoseconds / 1e6:.0f} ms"


# Most poses kept for settle_time: ten seconds at 100 Hz.
REMEMBERED = 1000
SPEED_TIME = 250_000_000
"""Nanoseconds over which speeds are taken: much longer than from pose to pose, whose noise would
look like motion.
"""


@dataclass(frozen=True)
class ArrivalSettings(Settings):
    """When the camera counts as being at its goal."""

    position_tolerance: float = setting(
        0.05,
        "Distance to the goal within which the camera has arrived: more than the goal tolerance"
        " of your motion stack.",
        unit="m",
        gt=0.0,
        scale="view_distance",
    )
    heading_tolerance: float = setting(
        0.02,
        "Heading difference to the goal within which the camera has arrived: more than the goal"
        " tolerance of your motion stack.",
        unit="rad",
        gt=0.0,
        le=math.pi,
    )
    settle_time: float = setting(
        0.5,
        "Time within the tolerances after which scans count: raise it for a robot that overshoots"
        " or sways.",
        unit="s",
        ge=0.0,
        le=10.0,
    )

    def reached(self, pose: CameraPose, goal: CameraPose) -> bool:
        """Whether `pose` counts as `goal`."""
        distance, turn = pose.offset(goal)
        return distance <= self.position_tolerance and turn <= self.heading_tolerance


class PoseSource(Protocol):
    """Source of the camera's latest poses."""

    def at(self, stamp: int, frame: str) -> CameraPose | None:
        """Pose of the camera frame `frame` at `stamp` (nanoseconds), or None while it is not
        available yet.

        Raises:
            InputRejectedError: it will never be available.
        """

    def latest(self, frame: str) -> tuple[int, CameraPose] | None:
        """Stamp (nanoseconds) and pose of the newest one of `frame`, or None.

        Raises:
            InputRejectedError: it cannot be used.
        """

    def during(self, first: int, last: int, frame: str) -> list[tuple[int, CameraPose]]:
        """Stamps and poses of `frame` from the last one at `first` or before to the last one at
        `last` or before.
        """


# Number of the newest scans by which it is judged whether scans find their poses, and the fewest
# by which it can be.
_JUDGED, _FEWEST = 20, 5


@dataclass(frozen=True)
class DroppedScan:
    """A scan that was dropped for its pose, and why; the stamps of the newest scan and pose then,
    if any; ns.
    """

    reason: str
    detail: str
    stamp: int
    pose_stamp: int | None


class ScanDrops:
    """Scans that were dropped for their poses, and how many of the newest scans were."""

    def __init__(self, timeout: int) -> None:
        """Start without any; stamps that are more than the `timeout` apart (nanoseconds) are of
        different clocks.
        """
        self._timeout = timeout
        #: number of scans dropped by reason; for the caller to clear.
        self.numbers: Counter[str] = Counter()
        self.details: dict[str, str] = {}  #: text of the newest of each reason.
        # of the newest scans; None with a pose
        self._outcomes: deque[DroppedScan | None] = deque(maxlen=_JUDGED)

    def add(self, dropped: DroppedScan | None) -> None:
        """Count a dropped scan, and remember why; None stands for one that has found its pose."""
        self._outcomes.append(dropped)
        if dropped is not None:
            self.numbers[f"scan.{dropped.reason}"] += 1
            self.details[f"scan.{dropped.reason}"] = dropped.detail

    def trouble(self, now: int) -> str:
        """Why the newest scans were dropped, with their stamps; empty while at least half of them
        find a pose.

        The time `now` (nanoseconds) is that of the caller's clock, which shows whether stamps are
        of another one.
        """
        dropped = [outcome for outcome in self._outcomes if outcome is not None]
        judged = len(self._outcomes)
        if judged < _FEWEST or 2 * len(dropped) <= judged:
            return ""
        (reason, _), *_ = Counter(one.reason for one in dropped).most_common(1)
        return (
            f"{len(dropped)} of the last {judged} scans dropped (scan.{reason}):"
            f" {self._cause(dropped, now)}"
        )

    def _cause(self, dropped: Sequence[DroppedScan], now: int) -> str:
        """What the stamps of `dropped` scans and of the poses say."""
        last = dropped[-1]
        if last.pose_stamp is None:
            return f"no pose is known, {last.detail}"
        if abs(last.stamp - last.pose_stamp) <= self._timeout:
            return last.detail
        stamps = {"scans": last.stamp, "poses": last.pose_stamp}
        text = ", ".join(f"the {kind} are stamped {_seconds(at)}" for kind, at in stamps.items())
        text += f", {_seconds(abs(last.stamp - last.pose_stamp))} apart"
        if len({one.pose_stamp for one in dropped}) == 1:
            return f"{text}; no newer pose comes"
        far = [kind for kind, stamp in stamps.items() if abs(now - stamp) > self._timeout]
        which = " and ".join(far) or "scans or poses"
        return (
            f"{text}, the clock of this node says {_seconds(now)}: the {which} have another clock"
        )


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds * 1e-9:.3f} s"
