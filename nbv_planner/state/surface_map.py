"""What the mapper knows: the surface model, which scans are in it, and at which goal the last ones were taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbv_planner.errors import StateFileError
from nbv_planner.state.state_file import Arrays, SavedState
from nbv_planner.surface import SurfaceMapper

KIND = "surface map"

_COUNTS = ("stamp", "newest_view", "views", "scans")


@dataclass(frozen=True, eq=False)
class SurfaceMap:
    """What has been mapped up to a moment. Nothing that happens later changes it.

    Attributes:
        mapper: the surface model; must not be added to, but copied.
        matching: goals and scans handed out, see :meth:`ScanMatcher.state`; every scan handed out is in the model.
        stamp: time of the newest scan in the model, nanoseconds; 0 before the first.
        newest_view: number of the newest view of which the model holds a scan; -1 before the first.
        views: number of views in the model.
        scans: number of scans in the model.
    """

    mapper: SurfaceMapper
    matching: Mapping[str, Any]
    stamp: int = 0
    newest_view: int = -1
    views: int = 0
    scans: int = 0

    def values(self) -> dict[str, Any]:
        """Plain values for a state file."""
        return {"matching": dict(self.matching), **{name: getattr(self, name) for name in _COUNTS}}

    def arrays(self) -> Arrays:
        """Arrays for a state file."""
        return self.mapper.state()


def map_from_state(state: SavedState, blank: SurfaceMapper) -> SurfaceMap:
    """The map that a state file holds.

    Args:
        state: content of the file.
        blank: mapper without measurements of the same kernel and settings; it is filled.

    Raises:
        StateFileError: `content`: a value cannot be.
        MeasurementError: an array cannot be.
    """
    counts = {name: state.values.get(name) for name in _COUNTS}
    for name, count in counts.items():
        if type(count) is not int or count < (-1 if name == "newest_view" else 0):
            raise StateFileError("content", f"{name}: {count!r} is no number of {name}")
    matching = state.values.get("matching")
    if not isinstance(matching, dict):
        raise StateFileError("content", "matching: is missing")
    blank.restore(state.arrays)
    return SurfaceMap(blank, matching, **counts)  # type: ignore[arg-type]
