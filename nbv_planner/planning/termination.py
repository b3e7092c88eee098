"""When an episode ends: the limits, and what they are judged by."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.planners import Decision, Planner
from nbv_planner.planning.planners.planner import LEAST_PROMISE
from nbv_planner.planning.view_space import Exclusion, excluded_text
from nbv_planner.settings import Settings, python_setting, setting
from nbv_planner.surface.checks import failed_checks, forbidding, untested
from nbv_planner.surface.coverage import CoverageEstimate, named
from nbv_planner.surface.regions import Regions
from nbv_planner.surface.seam import Banded, Certificate, PublishedSurface
from nbv_planner.world.pose import CameraPose, Poses

# Most barred views that are named, and how far apart they are, in distances from the centre.
_NAMED, _NAMED_APART = 4, 0.5
# Angle about the centre, radians, from which on another view sees the same at another incidence.
_ASIDE = 0.3
# Part of the radius of the object that the tolerance of the band may be at most, for the band to
# show the shape.
_OF_RADIUS = 0.5


@dataclass(frozen=True)
class TerminationSettings(Settings):
    """Limits that end an episode; 0 switches a limit off if its description says so.

    Raises:
        SettingError: a value is out of range.
    """

    certify: bool = setting(
        True,
        "COVERED: end when target_coverage is reached according to posterior shapes; false:"
        " continue until the band is narrow.",
    )
    calibrate: bool = python_setting(
        True,
        "COVERED: correct the estimate of the shapes by how far it was from the truth in recorded"
        " episodes.",
    )
    certificate_delta: float = python_setting(
        0.05,
        "COVERED: accepted probability that less than target_coverage was reached.",
        gt=0.0,
        lt=1.0,
        read_only=False,
    )
    certificate_margin: float = python_setting(
        0.0075,
        "COVERED without calibrate: coverage required of the shapes beyond target_coverage, for"
        " what they do not model.",
        ge=0.0,
        lt=1.0,
        read_only=False,
    )
    certificate_shapes: int = python_setting(
        200, "COVERED: number of posterior shapes.", ge=20, le=10_000
    )
    band_tolerance: float = setting(
        0.7,
        "Width of the confidence band below which an angle counts as reconstructed: lower it for"
        " a finer outline.",
        unit="m",
        gt=0.0,
        read_only=False,
        scale="span",
    )
    target_fraction: float = python_setting(
        0.99,
        "BAND_NARROW: fraction of the circle on which the band must be so narrow.",
        gt=0.0,
        le=1.0,
    )
    doubt_views: int = python_setting(
        2,
        "DOUBTFUL: number of further views before the episode ends so, where checks forbid a"
        " success or could not be made yet.",
        ge=0,
        read_only=False,
    )
    min_gain: float = python_setting(
        0.0,
        "NO_GAIN: least predicted utility of a view worth taking, in units of the objective; 0"
        " switches it off.",
        ge=0.0,
        read_only=False,
    )
    stall_views: int = setting(
        4,
        "STALLED: end after so many views in a row without a change: raise it for an object with"
        " many hidden parts; 0 switches it off.",
        ge=0,
        read_only=False,
    )
    stall_change: float = python_setting(
        0.001,
        "STALLED: rise of the estimated coverage that counts as a change.",
        ge=0.0,
        le=1.0,
        read_only=False,
    )
    max_views: int = setting(
        40,
        "MAX_VIEWS: end after so many views: what you can afford; 0 switches it off.",
        ge=0,
        read_only=False,
    )
    max_duration: float = setting(
        0.0,
        "MAX_DURATION: end after this time: what the battery allows; 0 switches it off.",
        unit="s",
        ge=0.0,
        read_only=False,
    )
    max_travel: float = python_setting(
        0.0,
        "MAX_TRAVEL: distance from the first view on, along the view circle, that no further view"
        " may exceed; 0 switches it off.",
        unit="m",
        ge=0.0,
        read_only=False,
    )


def _places(views: Poses) -> str:
    """Text on where the first of `views` are; of those near each other the first one."""
    named: list[CameraPose] = []
    for view in views:
        apart = (math.hypot(view.x - one.x, view.y - one.y) for one in named)
        if len(named) < _NAMED and all(length > _NAMED_APART * view.distance for length in apart):
            named.append(view)
    return "; ".join(
        f"x {v.x:.3g} m, y {v.y:.3g} m ({math.degrees(math.atan2(v.y, v.x)) % 360.0:.0f}°)"
        for v in named
    )


def vouched(success: Termination, belief: PublishedSurface, views: int) -> Termination:
    """The `success`, after a number of `views`, with what is not tested; DOUBTFUL where the checks
    forbid it.
    """
    forbid = forbidding(belief.checks, views)
    if not forbid:
        detail = "; ".join((success.detail, *(check.summary for check in untested(belief.checks))))
        return dataclasses.replace(success, detail=detail)
    scores = {check.name: check.score for check in failed_checks(belief.checks)}
    why = "; ".join(check.summary for check in forbid)
    detail = f"{success.reason.value} ({success.detail}) cannot be confirmed: {why}"
    return Termination(TerminationReason.DOUBTFUL, {**success.figures, **scores}, detail)


class TerminationMonitor:
    """Watches an episode and decides when it ends."""

    def __init__(
        self,
        settings: TerminationSettings,
        certificate: Certificate | None = None,
        regions: Regions | None = None,
    ) -> None:
        self.settings = settings  #: its limits.
        self.regions = regions  #: by whose weights the surface counts.
        self._by_weight = "" if regions is None else f", {regions.summary}"
        #: judges the coverage by posterior shapes; None if switched off.
        self.certificate = certificate
        self.history: list[float] = []  #: estimated coverage after each view so far.
        #: result of the certificate after the last view; None before the first, and without a
        #: certificate.
        self.estimate: CoverageEstimate | None = None
        #: after which of these the episode would have been a success but for the checks.
        self.doubts: list[bool] = []
        #: a success that no check forbids, but which waits for a view that may: it holds if none
        #: can be taken.
        self.withheld: Termination | None = None
        self._covered: tuple[PublishedSurface | None, float, float] = (None, 0.0, 0.0)

    def coverage(self, belief: PublishedSurface) -> float:
        """Estimated coverage of the surface, in [0, 1]; cached for the newest belief, which is
        evaluated again.
        """
        known, tolerance, coverage = self._covered
        if known is not belief or tolerance != self.settings.band_tolerance:
            tolerance = self.settings.band_tolerance
            coverage = belief.by_noise.measured(tolerance, self.regions)  # views change no more
            self._covered = belief, tolerance, coverage
        return coverage

    @property
    def in_doubt(self) -> bool:
        """Whether the next view is to tell whether a success after the newest one is right."""
        return bool(self.doubts) and self.doubts[-1]

    def _waits(self, belief: PublishedSurface, farthest: Callable[[], float]) -> bool:
        """Whether a success waits for a further view, as one may contradict it, or test what is not
        tested yet.
        """
        left = self.settings.doubt_views - sum(self.doubts[:-1])
        untold = any(check.name == "accuracy" for check in untested(belief.checks))
        may_tell = untold and farthest() >= _ASIDE
        forbid = forbidding(belief.checks, len(self.history) + max(left, 0))
        self.doubts[-1] |= may_tell or bool(forbid)
        return self.in_doubt and left > 0

    def after_view(
        self,
        belief: PublishedSurface,
        elapsed: float,
        taken: Sequence[CameraPose] = (),
        farthest: Callable[[], float] = lambda: math.pi,
    ) -> Termination | None:
        """Judge the belief after a view; call it once per view.

        Args:
            belief: the belief with that view's measurements.
            elapsed: time since the start of the episode, seconds.
            taken: the views taken so far; used by a certificate.
            farthest: gives the angle about the centre from them to the farthest view that may be
                chosen, radians.

        Returns:
            The termination, or None if the episode continues.
        """
        self.history.append(self.coverage(belief))
        self.doubts.append(False)
        self.withheld = None
        covered = self._claim(belief, taken)  # estimates the coverage for any termination
        # where both hold, what says more
        success = covered or self._with_estimate(self._band_narrow(belief))
        stalled = self._stalled() if isinstance(belief, Banded) else None
        ended = self._with_estimate(stalled or self._used_up(elapsed))
        if not success:
            return ended
        judged = vouched(success, belief, len(self.history))
        if not self._waits(belief, farthest):
            return judged
        self.withheld = judged if judged.reason is success.reason else None
        return ended and (self.withheld or ended)

    def _with_estimate(self, ended: Termination | None) -> Termination | None:
        """The end with what is known of the coverage, where shapes estimate it."""
        if ended is None or self.estimate is None:
            return ended
        estimated = f"estimated {self.estimate.target.name} {self.estimate.summary}"
        return dataclasses.replace(ended, detail=f"{ended.detail}; {estimated}")

    def _band_narrow(self, belief: PublishedSurface) -> Termination | None:
        s = self.settings
        if not isinstance(belief, Banded):
            return None
        _, lower, upper = belief.band()
        fraction = belief.narrow_part(s.band_tolerance, self.regions)
        radius = float(np.median(0.5 * (lower + upper)))
        if fraction < s.target_fraction or s.band_tolerance > _OF_RADIUS * radius:
            return None
        withheld = ""
        if self.certificate is not None and self.estimate:
            target = self.certificate.target
            if self.estimate.mean < target or self.estimate.lower < 2.0 * target - 1.0:
                return None  # narrow, but too little of the surface may have been met by beams
            withheld = f"; at least {target:.1%} cannot be claimed"
        figures = {
            "narrow_fraction": fraction,
            "band_tolerance": s.band_tolerance,
            "target_fraction": s.target_fraction,
        }
        where = f"on {fraction:.1%} of the circle{self._by_weight}{withheld}"
        detail = f"the band is narrower than {s.band_tolerance:g} m {where}"
        return Termination(TerminationReason.BAND_NARROW, figures, detail)

    def _claim(self, belief: PublishedSurface, taken: Sequence[CameraPose]) -> Termination | None:
        s = self.settings
        if self.certificate is None:
            return None
        before = 0 if self.estimate is None else self.estimate.reached
        found = self.certificate.estimate(
            belief, Poses.of(taken), s.certificate_delta, s.certificate_margin
        )
        reached = before + 1 if found.probability >= 1.0 - s.certificate_delta else 0
        self.estimate = found = dataclasses.replace(found, reached=reached)
        if reached < found.asked:
            return None
        target = self.certificate.target
        what, hypotheses = named(taken)
        place = f"the {what} is within {found.tau:g} m of the measured surface"
        covered = place if found.tau else "the surface has been seen"
        held = f" in {found.probability:.1%} of the {hypotheses}"
        if found.asked > 1:
            held += f", and in enough of them for {found.asked} views in a row"
        if found.calibrated:
            held = (
                f"; such claims held in {found.probability:.1%} of the tuning episodes; "
                f"estimated {found.target.name} {found.summary}"
            )
        return Termination(
            TerminationReason.COVERED,
            {
                "probability": found.probability,
                "target_coverage": target,
                "certificate_delta": s.certificate_delta,
                **({"completeness_tau": found.tau} if found.tau else {}),
            },
            f"at least {target:.1%} of {covered}{self._by_weight}{held}",
        )

    def before_view(
        self, predicted_gain: float, belief: PublishedSurface, path_length: float = 0.0
    ) -> Termination | None:
        """Judge the best gain of the next view that `belief` predicts, and the length of the path
        through all views with it, metres.
        """
        most = self.settings.max_travel
        if most and path_length > most:
            figures = {"travel": path_length, "max_travel": most}
            length = f"{path_length:.3g} m, more than {most:g} m"
            detail = f"with the next view the camera would have travelled {length}"
            return self.withheld or Termination(TerminationReason.MAX_TRAVEL, figures, detail)
        if self.settings.min_gain == 0.0 or predicted_gain >= self.settings.min_gain:
            return None
        figures = {"predicted_gain": predicted_gain, "min_gain": self.settings.min_gain}
        detail = f"the best view promises {predicted_gain:g}, less than {self.settings.min_gain:g}"
        ended = Termination(TerminationReason.NO_GAIN, figures, detail)
        return vouched(ended, belief, len(self.history))

    def only_barred(self, decision: Decision, planner: Planner) -> Termination | None:
        """Judge a decision by numbers of points: whether arcs and ground bar all views that would
        see another one.

        They are those of EMC, whatever the objective. Views that are left out for a while, or as
        not yet known to be safe, are not barred. A view that is to tell whether what was seen is
        right need not see more.
        """
        excluded, gain = decision.excluded, decision.promised
        if gain is None:
            return None
        closed = planner.views.barred(excluded)
        barred = closed & (gain >= LEAST_PROMISE)
        rest = gain[~closed & (excluded & Exclusion.REVISIT == 0)]
        if self.in_doubt or not barred.any() or rest.max() >= LEAST_PROMISE:
            return None
        number = int(barred.sum())
        most = float(gain[barred].max())
        best = np.flatnonzero(barred)[np.argsort(-gain[barred], kind="stable")]
        figures = {
            "barred_candidates": float(number),
            "barred_gain": most,
            "predicted_gain": float(rest.max()),
        }
        detail = (
            "no view that may be chosen is expected to see a further point of the surface, but"
            f" {number} barred ones are, up to {most:.0f} points"
            f" ({excluded_text(excluded[barred])}), the best at"
            f" {_places(decision.candidates.chosen(best))}"
        )
        ended = Termination(TerminationReason.NO_REACHABLE_VIEW, figures, detail)
        return self._with_estimate(ended)

    def _stalled(self) -> Termination | None:
        s = self.settings
        if s.stall_views == 0 or len(self.history) <= s.stall_views:
            return None
        rise = max(self.history[-s.stall_views :]) - self.history[-s.stall_views - 1]
        if rise >= s.stall_change:
            return None
        figures = {
            "stall_views": float(s.stall_views),
            "coverage_rise": rise,
            "stall_change": s.stall_change,
        }
        detail = (
            f"the last {s.stall_views} views raised the part of the circle whose band is narrower"
            f" than {s.band_tolerance:g} m by {rise:.2%}"
        )
        return Termination(TerminationReason.STALLED, figures, detail)

    def _used_up(self, elapsed: float) -> Termination | None:
        s = self.settings
        views = len(self.history)
        if s.max_views and views >= s.max_views:
            figures = {"views": float(views)}
            return Termination(TerminationReason.MAX_VIEWS, figures, f"{views} views taken")
        return self.out_of_time(elapsed)

    def out_of_time(self, elapsed: float) -> Termination | None:
        """Judge the time since the start, seconds; may be called at any moment."""
        limit = self.settings.max_duration
        if limit == 0.0 or elapsed < limit:
            return None
        detail = f"{elapsed:.1f} s passed"
        figures = {"seconds": elapsed}
        return self.withheld or Termination(TerminationReason.MAX_DURATION, figures, detail)
