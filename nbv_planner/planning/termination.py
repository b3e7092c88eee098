"""When to stop: typed reasons, each reported with its figures."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nbv_planner.planning.coverage import coverage_estimate, narrow_fraction
from nbv_planner.planning.shapes.certificate import CoverageCertificate, CoverageEstimate
from nbv_planner.settings import check_settings, setting
from nbv_planner.surface import SurfaceBelief


class TerminationReason(str, enum.Enum):
    """Why an episode ended."""

    COVERED = "COVERED"
    BAND_NARROW = "BAND_NARROW"
    NO_GAIN = "NO_GAIN"
    STALLED = "STALLED"
    MAX_VIEWS = "MAX_VIEWS"
    MAX_DURATION = "MAX_DURATION"
    NO_REACHABLE_VIEW = "NO_REACHABLE_VIEW"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    # The thesis protocol, which knows the surface points:
    COMPLETE = "COMPLETE"
    NO_NEW_POINTS = "NO_NEW_POINTS"


@dataclass(frozen=True)
class Termination:
    """Why an episode ended.

    Attributes:
        reason: which rule ended it.
        figures: the numbers the rule looked at, by name.
        detail: one sentence for people.
    """

    reason: TerminationReason
    figures: dict[str, float] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True)
class TerminationSettings:
    """Limits that end an episode; a limit of 0 is switched off where it says so.

    Raises:
        SettingError: a value is out of range.
    """

    certify: bool = setting(
        False, "COVERED: end when the posterior shapes say that target_coverage has been reached."
    )
    certificate_delta: float = setting(
        0.05, "COVERED: probability that is left for less than target_coverage.", gt=0.0, lt=1.0, read_only=False
    )
    certificate_margin: float = setting(
        0.0125, "COVERED: coverage asked of the shapes beyond target_coverage, for what they do not know.",
        ge=0.0, lt=1.0, read_only=False,
    )
    certificate_shapes: int = setting(
        200, "COVERED: number of posterior shapes that are asked.", ge=20, le=100_000
    )
    band_tolerance: float = setting(
        0.7, "Width of the confidence band below which an angle counts as reconstructed.", unit="m", gt=0.0,
        read_only=False,
    )
    target_fraction: float = setting(
        0.99, "BAND_NARROW: fraction of the circle on which the band must be narrower than band_tolerance.",
        gt=0.0, le=1.0, read_only=False,
    )
    min_gain: float = setting(
        0.0, "NO_GAIN: least predicted utility of a view worth taking, in units of the objective; 0 switches it off.",
        ge=0.0, read_only=False,
    )
    stall_views: int = setting(
        4, "STALLED: number of views in a row that may change nothing; 0 switches it off.", ge=0, read_only=False
    )
    stall_change: float = setting(
        0.001, "STALLED: rise of the estimated coverage that counts as a change.", ge=0.0, le=1.0, read_only=False
    )
    max_views: int = setting(40, "MAX_VIEWS: number of views; 0 switches it off.", ge=0, read_only=False)
    max_duration: float = setting(
        0.0, "MAX_DURATION: time since the start; 0 switches it off.", unit="s", ge=0.0, read_only=False
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


class TerminationMonitor:
    """Watches an episode and says when it is over.

    Attributes:
        settings: its limits.
        certificate: judges the coverage by posterior shapes; None if nobody asked for it.
        history: estimated coverage after each view so far.
        estimate: what the certificate said after the last view; None before the first, and without a certificate.
    """

    def __init__(self, settings: TerminationSettings, certificate: CoverageCertificate | None = None) -> None:
        """Start with an empty history."""
        self.settings = settings
        self.certificate = certificate
        self.history: list[float] = []
        self.estimate: CoverageEstimate | None = None
        self._covered: tuple[SurfaceBelief | None, float, float] = (None, 0.0, 0.0)

    def reset(self) -> None:
        """Forget the episode so far."""
        self.history.clear()
        self.estimate = None

    def coverage(self, belief: SurfaceBelief) -> float:
        """Estimated coverage of the surface, in [0, 1]; kept for the newest belief, which is asked for again."""
        known, tolerance, coverage = self._covered
        if known is not belief or tolerance != self.settings.band_tolerance:
            tolerance = self.settings.band_tolerance
            coverage = coverage_estimate(belief, tolerance)
            self._covered = belief, tolerance, coverage
        return coverage

    def after_view(
        self, belief: SurfaceBelief, elapsed: float, taken: Sequence[float] = ()
    ) -> Termination | None:
        """Judge the belief after a view; call it once per view.

        Args:
            belief: the belief with that view's measurements.
            elapsed: time since the start of the episode, seconds.
            taken: angles of the views taken so far, radians; what a certificate goes by.

        Returns:
            The termination, or None if the episode goes on.
        """
        s = self.settings
        self.history.append(self.coverage(belief))
        covered = self._covered_enough(belief, taken)  # estimates the coverage, whatever ends the episode
        fraction = narrow_fraction(belief, s.band_tolerance)
        if fraction >= s.target_fraction:
            return Termination(
                TerminationReason.BAND_NARROW,
                {"narrow_fraction": fraction, "band_tolerance": s.band_tolerance, "target_fraction": s.target_fraction},
                f"the band is narrower than {s.band_tolerance:g} m on {fraction:.1%} of the circle",
            )
        return covered or self._stalled() or self._used_up(elapsed)

    def _covered_enough(self, belief: SurfaceBelief, taken: Sequence[float]) -> Termination | None:
        s = self.settings
        if self.certificate is None:
            return None
        self.estimate = found = self.certificate.estimate(
            belief, np.asarray(taken, dtype=float), s.certificate_delta, s.certificate_margin
        )
        target = self.certificate.target
        if found.probability < 1.0 - s.certificate_delta:
            return None
        return Termination(
            TerminationReason.COVERED,
            {"probability": found.probability, "target_coverage": target, "certificate_delta": s.certificate_delta},
            f"at least {target:.1%} of the surface has been seen by {found.probability:.1%} of the posterior shapes",
        )

    def before_view(self, predicted_gain: float) -> Termination | None:
        """Judge the best predicted gain of the next view."""
        if self.settings.min_gain == 0.0 or predicted_gain >= self.settings.min_gain:
            return None
        return Termination(
            TerminationReason.NO_GAIN,
            {"predicted_gain": predicted_gain, "min_gain": self.settings.min_gain},
            f"the best view promises {predicted_gain:g}, less than {self.settings.min_gain:g}",
        )

    def _stalled(self) -> Termination | None:
        s = self.settings
        if s.stall_views == 0 or len(self.history) <= s.stall_views:
            return None
        rise = max(self.history[-s.stall_views :]) - self.history[-s.stall_views - 1]
        if rise >= s.stall_change:
            return None
        return Termination(
            TerminationReason.STALLED,
            {"stall_views": float(s.stall_views), "coverage_rise": rise, "stall_change": s.stall_change},
            f"the last {s.stall_views} views raised the estimated coverage by {rise:.2%}",
        )

    def _used_up(self, elapsed: float) -> Termination | None:
        s, views = self.settings, len(self.history)
        if s.max_views and views >= s.max_views:
            return Termination(TerminationReason.MAX_VIEWS, {"views": float(views)}, f"{views} views taken")
        return self.out_of_time(elapsed)

    def out_of_time(self, elapsed: float) -> Termination | None:
        """Judge the time since the start, seconds; may be called at any moment."""
        limit = self.settings.max_duration
        if limit == 0.0 or elapsed < limit:
            return None
        return Termination(TerminationReason.MAX_DURATION, {"seconds": elapsed}, f"{elapsed:.1f} s passed")
