"""Measurements for display: which scans went into the surfaces that were heard."""

from __future__ import annotations

from collections import OrderedDict, deque

import numpy as np

from nbv_planner.camera import CameraPose, MeasurementSettings, Scan, scan_to_measurements
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements

# Scans and poses that wait for the surface that holds them, and surfaces that wait for their scan.
_KEPT_SCANS, _KEPT_POSES, _KEPT_STAMPS = 100, 400, 20
# A scan belongs to the pose nearest in time, if that is near: nanoseconds.
_POSE_TOLERANCE = 50_000_000
# Points shown at most; beyond it every second one is left out. Scans kept apart; beyond it the older half is joined.
_MOST_POINTS, _MOST_SCANS = 8000, 64


class HitCollector:
    """Pairs surfaces, scans and poses by their stamps, in whichever order they arrive; in bounded memory."""

    def __init__(self) -> None:
        """Start without anything."""
        self.scene, self.measurement = Scene(), MeasurementSettings()
        self._scans: OrderedDict[int, Scan] = OrderedDict()
        self._poses: deque[tuple[int, CameraPose]] = deque(maxlen=_KEPT_POSES)
        self._wanted: deque[int] = deque(maxlen=_KEPT_STAMPS)
        self._found: list[tuple[int, Measurements]] = []

    def clear(self) -> None:
        """Forget the measurements: the mapper has been reset."""
        self._found.clear()
        self._wanted.clear()

    def add_scan(self, stamp: int, scan: Scan) -> bool:
        """Take in a scan; return whether there is something new to show."""
        self._scans[stamp] = scan
        while len(self._scans) > _KEPT_SCANS:
            self._scans.popitem(last=False)
        return self._match()

    def add_pose(self, stamp: int, pose: CameraPose) -> bool:
        """Take in a pose; return whether there is something new to show."""
        self._poses.append((stamp, pose))
        return self._match()

    def add_surface(self, stamp: int) -> bool:
        """Take in the stamp of a surface, that of the newest scan in it; return whether there is something to show."""
        if stamp and stamp not in self._wanted and all(stamp != known for known, _ in self._found):
            self._wanted.append(stamp)
        return self._match()

    @property
    def newest(self) -> int:
        """Time of the newest measurements, nanoseconds; -1 without any."""
        return max((stamp for stamp, _ in self._found), default=-1)

    def since(self, stamp: int) -> tuple[Measurements, Measurements]:
        """Measurements from before `stamp`, and from then on."""
        earlier = [hits for time, hits in self._found if time < stamp]
        later = [hits for time, hits in self._found if time >= stamp]
        return _joined(earlier), _joined(later)

    def _match(self) -> bool:
        """Find the measurements of the surfaces that wait for them."""
        ready = [(stamp, pose) for stamp in self._wanted if stamp in self._scans and (pose := self._pose_at(stamp))]
        for stamp, pose in ready:
            self._wanted.remove(stamp)
            found = scan_to_measurements(self._scans[stamp], pose, self.scene, self.measurement)
            self._found.append((stamp, found.measurements))
        self._thin_out()
        return bool(ready)

    def _thin_out(self) -> None:
        """Keep what is shown within bounds, spread over the surface and over time."""
        if len(self._found) > _MOST_SCANS:
            half = _MOST_SCANS // 2
            older = self._found[:half]
            self._found[:half] = [(max(stamp for stamp, _ in older), _joined([hits for _, hits in older]))]
        while sum(len(hits) for _, hits in self._found) > _MOST_POINTS:
            self._found = [(stamp, _half(hits)) for stamp, hits in self._found]

    def _pose_at(self, stamp: int) -> CameraPose | None:
        if not self._poses:
            return None
        time, pose = min(self._poses, key=lambda entry: abs(entry[0] - stamp))
        return pose if abs(time - stamp) <= _POSE_TOLERANCE else None


def _half(hits: Measurements) -> Measurements:
    return Measurements(hits.angle[1::2], hits.radius[1::2], hits.std[1::2])


def _joined(parts: list[Measurements]) -> Measurements:
    names = ("angle", "radius", "std")
    return Measurements(*(np.concatenate([np.empty(0), *(getattr(part, name) for part in parts)]) for name in names))
