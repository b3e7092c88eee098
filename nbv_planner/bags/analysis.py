"""Analysis of a recorded episode from the bag alone, and its tables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from nbv_planner.bags.reader import Bag
from nbv_planner.bags.recording import Recording, recording_in
from nbv_planner.bags.storage import Progress, Remarks, no_progress
from nbv_planner.episode.judge import EpisodeJudge, truth_of
from nbv_planner.episode.log import LoggedView, Surface, incomplete
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    DIAGNOSTICS,
    ITERATION,
    STATUS,
    SURFACE_INFO,
)
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import EpisodeRecord, Step, t0_metric
from nbv_planner.episode.run_info import (
    GroundTruth,
    RunParameters,
    ground_truth,
    usable_config,
)
from nbv_planner.errors import NbvPlannerError
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.view_space import view_space_for
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.world.pose import CameraPose


@dataclass(frozen=True, eq=False)
class AnalysedView:
    """One recorded view, and the estimated coverage after it."""

    evidence: LoggedView
    #: as the planner said it; by the width of the band where it said nothing; NaN without either.
    estimate: float
    #: the same with its interval; None if the planner did not say that.
    interval: CoverageEstimate | None = None


_DROPPED = "dropped."


@dataclass(frozen=True, eq=False)
class RecordedEpisode:
    """What a bag holds of an episode, in the plane or in space."""

    recording: Recording  #: content of the bag.
    gaps: tuple[str, ...]  #: what cannot be computed, and why.
    remarks: tuple[str, ...]  #: problems of the bag.
    truth: GroundTruth | None  #: the true object, None if the bag does not carry it.
    judge: EpisodeJudge | None  #: judged the views, None without true object.

    @property
    def taken(self) -> int:
        """Number of views."""
        raise NotImplementedError

    @property
    def coverage_kind(self) -> str:
        """Whether coverage is `true`, `estimated`, or `unknown`."""
        raise NotImplementedError

    @property
    def termination(self) -> Termination:
        """Why the episode ended; STOPPED if the recording ends before it, as with Ctrl-C."""
        views = self.taken
        detail = f"interrupted after {views} views: the recording ends before the planner does"
        stopped = Termination(TerminationReason.STOPPED, {"views": float(views)}, detail)
        return self.recording.log.termination or stopped

    @property
    def phases(self) -> dict[str, float]:
        """Seconds that the planner spent in each state, from its message to the next one, by the
        time of reception.
        """
        seconds: dict[str, float] = defaultdict(float)
        for (begin, state), (end, _) in pairwise(self.recording.log.states):
            seconds[state] += max(0, end - begin) * 1e-9
        return dict(seconds)

    @property
    def drops(self) -> dict[tuple[str, str], int]:
        """What was dropped by node and reason, as last reported by each node."""
        found = {}
        namespace = self.recording.topics.namespace.strip("/")
        for name, values in self.recording.log.diagnostics.items():
            space, _, node = name.rpartition("/")
            for key, value in values.items() if space == namespace else ():
                if (
                    key.startswith(_DROPPED)
                    and value.isascii()
                    and value.isdigit()
                    and len(value) < 19
                ):
                    found[node, key.removeprefix(_DROPPED)] = int(value)
        return found


@dataclass(frozen=True, eq=False)
class Analysis(RecordedEpisode):
    """Results of a bag."""

    config: EpisodeConfig | None  #: parameters of the episode, None if they are not known.
    views: tuple[AnalysedView, ...]  #: the views.
    steps: tuple[Step, ...]  #: the complete views; as many as `views` if nothing is missing.

    @property
    def taken(self) -> int:
        """See :attr:`RecordedEpisode.taken`."""
        return len(self.views)

    @property
    def coverage_kind(self) -> str:
        """Whether coverage is `true`, `estimated`, or `unknown`."""
        if self.judge is not None:
            return "true"
        return (
            "estimated" if any(math.isfinite(view.estimate) for view in self.views) else "unknown"
        )

    @property
    def coverage(self) -> list[float]:
        """Coverage after each view, of the kind that is known; NaN where not even that is."""
        true = None if self.judge is None else [view.coverage for view in self.judge.views]
        return [view.estimate for view in self.views] if true is None else true

    @cached_property
    def record(self) -> EpisodeRecord | None:
        """The episode as a simulation would have recorded it, on the recorded versions; None
        without true object.
        """
        if self.judge is None or self.config is None:
            return None
        record = self.judge.record(self.config.as_dict(), self.config.sensor.seed, self.termination)
        parameters = self.recording.log.parameters
        metrics = record.metrics | t0_metric(self.near_optimal_by)
        versions = (parameters and parameters.versions) or record.versions
        return replace(record, versions=versions, metrics=metrics)

    @property
    def near_optimal_by(self) -> int | None:
        """T0 of theorem 4.1; None where nothing is proved or the parameters are not known."""
        return self.config.near_optimal_by if self.config else None


_WITHOUT = {
    ITERATION: (
        f"predicted utilities and times of decisions: {ITERATION} is not in the bag (views: from"
        " goal_pose)"
    ),
    SURFACE_INFO: f"surfaces: {SURFACE_INFO}, which belongs to them, is not in the bag",
    STATUS: f"time by phase: {STATUS} is not in the bag",
    DIAGNOSTICS: f"drops by reason: {DIAGNOSTICS} is not in the bag",
    CAMERA_POSE: f"distance travelled: {CAMERA_POSE} is not in the bag",
}


def missing_of(recording: Recording, views: Sequence[LoggedView]) -> list[str]:
    """What the bag lacks of an episode with these views, in words."""
    found = [_WITHOUT[name] for name in recording.topics.missing if name in _WITHOUT]
    if not views:
        found.append("everything about views: the bag holds no decision and no goal")
    rounds = {view.decision.round for view in views if view.decision.round > 0}
    last = max(rounds, default=0)
    if len(rounds) < last:
        found.append(
            f"{last - len(rounds)} of {last} decisions are not in the bag, and neither are their"
            " views: coverage and regret are those of the others"
        )
    if recording.log.termination is None:
        found.append("why the episode ended: no status says so")
    return found


# Candidates times surface points: far more than in any episode, and still small in memory.
_LARGEST = 20_000_000


def analyse(
    bag: Bag,
    *,
    mapping: dict[str, str] | None = None,
    namespace: str | None = None,
    parameters: RunParameters | None = None,
    episode: int | None = None,
    progress: Progress = no_progress,
) -> Analysis:
    """Analyse a bag.

    Args:
        bag: the bag; it is read twice.
        mapping: relative topic names by recorded names, where they cannot be found.
        namespace: namespace of the nodes, None to find it.
        parameters: parameters of the nodes, for a bag without run_info.
        episode: number of the episode, from 1, in a bag in which the planner was reset; None for
            the last one.
        progress: called with the fraction read.

    Raises:
        BagError: there is nothing to read, the topics cannot be told from each other, or there is
            no such episode.
        DependencyError: rosbags is not installed.
    """
    return analysed(
        bag,
        recording_in(
            bag,
            mapping=mapping,
            namespace=namespace,
            parameters=parameters,
            episode=episode,
            progress=progress,
        ),
    )


def analysed(bag: Bag, recording: Recording) -> Analysis:
    """The analysis of what has been read of a bag of the plane."""
    config, why_not = usable_config(recording.log.parameters, recording.log.info)
    truth, remarks = (
        (None, ())
        if config is None
        else ground_truth(recording.log.parameters, recording.log.contour, config.scene)
    )
    judge, problem = _judge(recording, config, truth)
    views = tuple(_analysed(recording, config, judge))
    steps = (
        ()
        if config is None
        else tuple(
            step
            for view in views
            if (step := view.evidence.step(config.scene, config.measurement, config.world.placed))
            is not None
        )
    )
    taken = [view.evidence for view in views]
    gaps = [*missing_of(recording, taken), *incomplete(taken)]
    if config is None:
        gaps.append(f"coverage, surface error and pictures: {why_not}")
    elif judge is None:
        gaps.append(f"true coverage, regret, surface error and calibration: {problem}")
    remarks = (*bag.remarks.lines(), *Remarks(recording.remarks).lines(), *remarks)
    return Analysis(recording, tuple(gaps), remarks, truth, judge, config, views, steps)


def _judge(
    recording: Recording, config: EpisodeConfig | None, truth: GroundTruth | None
) -> tuple[EpisodeJudge | None, str]:
    if config is None or truth is None:
        return None, "the bag has no true object"
    try:
        space = view_space_for(config.views, config.scene)
        tau = config.planner.completeness_tau
        space.ground = recording.log.ground()
        number = len(space.candidates)
        if number * len(truth.points) > _LARGEST:
            return None, f"{number} candidates and {len(truth.points)} points are too many to judge"
        start = _start(recording, config)
        pace = config.planner
        return (
            EpisodeJudge(
                truth_of(truth.shape, truth.points, config.scene, space.candidates),
                space,
                start,
                tau,
                pace,
                config.regions,
            ),
            "",
        )
    except NbvPlannerError as error:
        return None, str(error)


def _start(recording: Recording, config: EpisodeConfig) -> CameraPose | None:
    """First view of the camera: that of the simulation, or the first one recorded."""
    log = recording.log
    if (
        log.parameters is not None
        and "depth_camera" in log.parameters.nodes
        and recording.episode == 1
    ):
        return config.motion.start(config.scene.view_distance)
    return None if log.first_pose is None else log.camera(log.first_pose)


def _analysed(
    recording: Recording, config: EpisodeConfig | None, judge: EpisodeJudge | None
) -> Iterator[AnalysedView]:
    """Judge the views that were taken: all except a last one that was not reached before the
    recording ended.
    """
    views = recording.log.views
    if views and views[-1].belief is None and any(view.belief is not None for view in views):
        views = views[:-1]
    before: Surface | None = None
    said = {view.decision.round - 1: view.decision.estimate for view in recording.log.views}
    if recording.log.status is not None:
        said[recording.log.status.views] = recording.log.status.estimate
    for view in views:
        decision = view.decision
        estimate = math.nan
        interval = said.get(view.decision.round)
        if judge is not None and config is not None:  # no judge without it
            x, y = config.world.placed
            taken = decision.view(judge.truth.scene.view_distance, (x, y))
            if judge.views and before is not None:
                judge.space.update(before, None, judge.truth.scene.radius_max)
            before = view.belief and view.belief.seen_from(x, y)
            passed = [pose.relative_to(x, y) for pose in view.passed]
            judge.add_view(taken, decision.utility, decision.milliseconds, before, passed)
        if interval is not None:
            estimate = interval.mean
        elif view.belief is not None and config is not None:
            narrow = config.termination.band_tolerance, config.target.regions
            estimate = view.belief.measured(*narrow)
        yield AnalysedView(view, estimate, interval)
