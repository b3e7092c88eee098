"""The poses of the last moments, and the pose at any time between them."""

from __future__ import annotations

from bisect import bisect_left, insort

from nbv_planner.camera import CameraPose
from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import angle_difference

# A pose older than the newest by more than this (nanoseconds) is not late: the clock has jumped back.
_LATE = 1_000_000_000


class PoseTrack:
    """A bounded number of poses in the order of their stamps, in whichever order they come.

    Between two poses that are not too far apart the pose is interpolated: position and heading along straight lines,
    the heading the shorter way. Elsewhere the nearest pose in time counts, if it is near enough.
    """

    def __init__(self, size: int, tolerance: int, gap: int) -> None:
        """Start without a pose.

        Args:
            size: number of poses kept.
            tolerance: greatest time to a pose that counts without interpolation, nanoseconds.
            gap: greatest time between two poses that are interpolated, nanoseconds.
        """
        self._size, self._tolerance, self._gap = size, tolerance, gap
        self._stamps: list[int] = []
        self._poses: dict[int, CameraPose] = {}

    def clear(self) -> None:
        """Forget all poses."""
        self._stamps.clear()
        self._poses.clear()

    def add(self, stamp: int, pose: CameraPose) -> None:
        """Take in a pose (`stamp` in nanoseconds); one of a clock that has jumped back replaces all others."""
        if self._stamps and stamp < self._stamps[-1] - _LATE:
            self.clear()
        if stamp not in self._poses:
            insort(self._stamps, stamp)
        self._poses[stamp] = pose
        if len(self._stamps) > self._size:
            del self._poses[self._stamps.pop(0)]

    def at(self, stamp: int, frame: str = "") -> CameraPose | None:
        """Pose at `stamp` (nanoseconds), or None as long as no later pose has come; it holds for every `frame`.

        Raises:
            InputRejectedError: `pose_too_far` (no pose is near enough) or `pose_gap` (the poses around are too far
                apart).
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
            raise InputRejectedError("pose_too_far", f"the first pose is {_ms(later - stamp)} later than the scan")
        raise InputRejectedError("pose_gap", f"the poses around the scan are {_ms(later - earlier)} apart")

    def _between(self, earlier: int, later: int, stamp: int) -> CameraPose:
        first, second = self._poses[earlier], self._poses[later]
        if earlier == later:
            return first
        part = (stamp - earlier) / (later - earlier)
        turn = float(angle_difference(second.yaw, first.yaw))
        covariance = first.covariance
        if covariance is not None:
            covariance = None if second.covariance is None else covariance.between(second.covariance, part)
        return CameraPose(
            x=first.x + part * (second.x - first.x),
            y=first.y + part * (second.y - first.y),
            yaw=first.yaw + part * turn,
            covariance=covariance,
        )


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.0f} ms"
