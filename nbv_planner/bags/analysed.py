"""What comes out of the analysis of a bag."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nbv_planner.bags.ground_truth import GroundTruth
from nbv_planner.bags.recording import Recording
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.evaluation.assembly import ViewEvidence
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.evaluation.records import EpisodeRecord, Step, ViewRecord
from nbv_planner.planning.termination import Termination, TerminationReason


@dataclass(frozen=True, eq=False)
class AnalysedView:
    """One recorded view.

    Attributes:
        evidence: what the bag holds of it.
        judged: the view against the true object, None without one.
        estimate: estimated coverage after it, None without a surface or parameters.
        seconds: time of its decision since the first one, seconds.
        lasted: time from its decision to the scan that it gave, seconds; None without a surface.
    """

    evidence: ViewEvidence
    judged: ViewRecord | None
    estimate: float | None
    seconds: float
    lasted: float | None


@dataclass(frozen=True, eq=False)
class Analysis:
    """What came out of a bag.

    Attributes:
        recording: what the bag says.
        config: parameters of the episode, None if they are not known.
        truth: the true object, None if the bag does not carry it.
        judge: judged the views, None without true object.
        record: the episode as a simulation would have recorded it, None without true object.
        views: the views.
        steps: the views of which everything is in the bag; as many as `views` if nothing is missing.
        phases: seconds that the planner spent in each state.
        drops: what was left out, by node and reason.
        gaps: what cannot be computed, and why.
        remarks: what was wrong with the bag.
    """

    recording: Recording
    config: EpisodeConfig | None
    truth: GroundTruth | None
    judge: EpisodeJudge | None
    record: EpisodeRecord | None
    views: tuple[AnalysedView, ...]
    steps: tuple[Step, ...]
    phases: dict[str, float]
    drops: dict[tuple[str, str], int]
    gaps: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def coverage_kind(self) -> str:
        """Whether coverage is `true`, `estimated`, or `unknown`."""
        if self.judge is not None:
            return "true"
        return "estimated" if any(view.estimate is not None for view in self.views) else "unknown"

    @property
    def coverage(self) -> list[float]:
        """Coverage after each view, of the kind that is known; NaN where not even that is."""
        if self.judge is not None:
            return [view.coverage for view in self.judge.views]
        return [math.nan if view.estimate is None else view.estimate for view in self.views]

    @property
    def termination(self) -> Termination:
        """Why the episode ended; FAILED if the recording ends before it."""
        known = self.recording.termination
        return known or Termination(TerminationReason.FAILED, {}, "the recording ends before the planner does")
