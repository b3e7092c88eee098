"""The candidate views: equally spaced on the view circle, inside the allowed arcs, not marked unreachable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, angle_difference, wrap_angle
from nbv_planner.planning.exclusion import Exclusion, ExclusionArray
from nbv_planner.settings import check_settings, setting

# A view at the very end of an arc belongs to it, whatever rounding says.
_SLACK = 1e-9


@dataclass(frozen=True)
class ViewSpaceSettings:
    """Candidate views and where the camera may go.

    An arc is a pair of angles, counter-clockwise from the first to the second; a list holds one arc after another.

    Raises:
        SettingError: a value is out of range, or an arc is not a pair.
    """

    num_views: int = setting(100, "Number of candidate views on the circle.", ge=1, le=100_000)
    allowed_arcs: tuple[float, ...] = setting(
        (0.0, TWO_PI), "Arcs of the view circle that the camera may use: start, end, start, end, ...", unit="rad"
    )
    blocked_arcs: tuple[float, ...] = setting(
        (0.0, 0.0), "Arcs that it must not use: start, end, ...; an empty arc (start = end) blocks nothing.",
        unit="rad",
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)
        for name in ("allowed_arcs", "blocked_arcs"):
            if len(getattr(self, name)) % 2:
                raise SettingError(f"{name}: has {len(getattr(self, name))} angles, must be pairs start, end")


class ViewSpace:
    """Candidate views and which of them may be chosen now."""

    def __init__(self, settings: ViewSpaceSettings, *, angles: FloatArray | None = None) -> None:
        """Lay out the candidates.

        Args:
            settings: number of views and arcs.
            angles: candidates to use instead of equally spaced ones (the thesis protocol's hold 0 twice).

        Raises:
            SettingError: the arcs leave no view.
        """
        self.angles = np.arange(settings.num_views) * (TWO_PI / settings.num_views) if angles is None else angles
        self._settings = settings
        self._on_arcs = self._allowed(self.angles)
        if not self._on_arcs.any():
            raise SettingError("allowed_arcs, blocked_arcs: leave none of the candidate views")
        # Replaced as a whole, never changed: a copy of this object keeps what it has.
        self._unreachable_until: Mapping[int, float] = {}

    def nearest(self, view_angle: float) -> int:
        """Index of the candidate nearest to `view_angle`."""
        return int(np.argmin(np.abs(angle_difference(self.angles, view_angle))))

    def mark_unreachable(self, view_angle: float, until: float) -> None:
        """Leave out the candidate nearest to `view_angle` until the time `until` (seconds of the caller's clock)."""
        self._unreachable_until = {**self._unreachable_until, self.nearest(view_angle): until}

    def clear_unreachable(self) -> None:
        """Forget which views could not be reached."""
        self._unreachable_until = {}

    @property
    def unreachable(self) -> Mapping[int, float]:
        """Time until which a candidate is left out, seconds of the caller's clock, by its index."""
        return self._unreachable_until

    @unreachable.setter
    def unreachable(self, until: Mapping[int, float]) -> None:
        """Take over what another view space of the same candidates knew.

        Raises:
            IndexError: an index is that of no candidate.
        """
        for index in until:
            if not 0 <= index < len(self.angles):
                raise IndexError(f"unreachable: {index} is no candidate; there are {len(self.angles)}")
        self._unreachable_until = dict(until)

    def shift_unreachable(self, seconds: float) -> None:
        """Follow a clock that has been set by `seconds`."""
        self._unreachable_until = {index: until + seconds for index, until in self._unreachable_until.items()}

    def excluded(self, now: float, visited: Iterable[float] = (), revisit_radius: float = 0.0) -> ExclusionArray:
        """Why candidates may not be chosen: sums of :class:`~nbv_planner.planning.exclusion.Exclusion`, shape (V,).

        Args:
            now: time, seconds of the caller's clock.
            visited: angles of the views taken so far, radians.
            revisit_radius: candidates nearer to a visited view than this are left out, radians; 0 leaves out none.
        """
        unreachable = np.zeros(len(self.angles), dtype=bool)
        for index, until in self._unreachable_until.items():
            unreachable[index] = now < until
        reasons = (
            Exclusion.ARC * ~self._on_arcs
            + Exclusion.REVISIT * ~_apart(self.angles, visited, revisit_radius)
            + Exclusion.UNREACHABLE * unreachable
        )
        return np.asarray(reasons, dtype=np.uint8)

    def permitted(self, angles: FloatArray, visited: Iterable[float] = (), revisit_radius: float = 0.0) -> BoolArray:
        """Which of any view `angles` lie on allowed arcs and not too near to a visited view, shape as `angles`."""
        return self._allowed(angles) & _apart(angles, visited, revisit_radius)

    def _allowed(self, angles: FloatArray) -> BoolArray:
        """Whether each angle lies on an allowed arc and on no blocked one."""
        return _in_arcs(angles, self._settings.allowed_arcs) & ~_in_arcs(angles, self._settings.blocked_arcs)


def _apart(angles: FloatArray, visited: Iterable[float], radius: float) -> BoolArray:
    """Whether each angle is at least `radius` away from all visited ones, around the circle."""
    taken = np.sort(wrap_angle(np.fromiter(visited, dtype=float)))
    if radius <= 0.0 or len(taken) == 0:
        return np.ones(len(angles), dtype=bool)
    around = np.concatenate([taken[-1:] - TWO_PI, taken, taken[:1] + TWO_PI])
    place = wrap_angle(angles)
    after = np.searchsorted(around, place)
    return np.asarray(np.minimum(around[after] - place, place - around[after - 1]) >= radius)


def _in_arcs(angles: FloatArray, arcs: tuple[float, ...]) -> BoolArray:
    """Whether each angle lies on one of the arcs."""
    inside = np.zeros(len(angles), dtype=bool)
    for start, end in zip(arcs[::2], arcs[1::2], strict=True):
        if end == start:
            continue
        length = TWO_PI if end - start >= TWO_PI - _SLACK else (end - start) % TWO_PI
        inside |= wrap_angle(angles - start + _SLACK) <= length + 2.0 * _SLACK
    return inside
