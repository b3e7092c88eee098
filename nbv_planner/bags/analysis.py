"""Analysis of a recorded episode: from the bag alone, with the judge of simulated episodes where the truth is known."""

from __future__ import annotations

import dataclasses

from nbv_planner.bags.accounts import drops, missing, remark_lines, seconds_by_state
from nbv_planner.bags.analysed import AnalysedView, Analysis
from nbv_planner.bags.bag import Bag, Progress
from nbv_planner.bags.ground_truth import GroundTruth, ground_truth
from nbv_planner.bags.recording import Recording
from nbv_planner.bags.recording_reader import read_recording
from nbv_planner.bags.run_parameters import RunParameters, usable_config
from nbv_planner.bags.topics import find_topics
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import NbvPlannerError
from nbv_planner.evaluation.assembly import ViewEvidence
from nbv_planner.evaluation.judge import EpisodeJudge
from nbv_planner.evaluation.records import EpisodeRecord
from nbv_planner.planning.coverage import coverage_estimate
from nbv_planner.planning.view_space import ViewSpace

# Candidates times surface points: far more than any episode has, and still no burden on the memory.
_LARGEST = 20_000_000


def analyse(
    bag: Bag, *, mapping: dict[str, str] | None = None, namespace: str | None = None,
    parameters: RunParameters | None = None, episode: int | None = None,
    progress: Progress = lambda fraction: None,
) -> Analysis:
    """Analyse a bag.

    Args:
        bag: the bag.
        mapping: relative topic names by recorded names, where they cannot be told.
        namespace: namespace of the nodes, None to find it.
        parameters: parameters of the nodes, for a bag without run_info.
        episode: number of the episode, from 1, in a bag in which the planner was reset; None for the last one.
        progress: told of the fraction read; the bag is read twice.

    Raises:
        BagError: there is nothing to read, the topics cannot be told from each other, or there is no such episode.
        DependencyError: rosbags is not installed.
    """
    inventory = bag.inventory(lambda fraction: progress(0.4 * fraction))
    topics = find_topics(inventory.counts, mapping=mapping, namespace=namespace)
    recording = read_recording(bag, inventory, topics, lambda fraction: progress(0.4 + 0.6 * fraction), episode)
    recording.parameters = recording.parameters or parameters
    return analysis_of(recording, bag.remarks.lines())


def analysis_of(recording: Recording, damage: list[str]) -> Analysis:
    """Analyse what was read; `damage` is what was wrong with the files."""
    config, why_not = usable_config(recording.parameters)
    truth, remarks = (None, ()) if config is None else ground_truth(
        recording.parameters, recording.contour, config.scene
    )
    judge, problem = _judge(recording, config, truth)
    _judge_views(recording, judge)
    views = tuple(_analysed(recording, config, judge))
    steps = () if config is None else tuple(
        step for view in views if (step := view.evidence.step(config.scene, config.measurement)) is not None
    )
    gaps = missing(recording, [view.evidence for view in views])
    if config is None:
        gaps.append(f"coverage, surface error and pictures: {why_not}")
    elif judge is None:
        gaps.append(f"true coverage, regret, surface error and calibration: {problem}")
    analysis = Analysis(
        recording, config, truth, judge, None, views, steps, seconds_by_state(recording), drops(recording), tuple(gaps),
        (*damage, *remark_lines(recording.remarks), *remarks),
    )
    return dataclasses.replace(analysis, record=_record(analysis))


def _judge(
    recording: Recording, config: EpisodeConfig | None, truth: GroundTruth | None
) -> tuple[EpisodeJudge | None, str]:
    """The judge, or None and what is in the way."""
    if config is None or truth is None:
        return None, "the bag carries no true object"
    if config.views.num_views * len(truth.points) > _LARGEST:
        return None, f"{config.views.num_views} candidates and {len(truth.points)} points are too many to judge"
    try:
        candidates = ViewSpace(config.views).angles
        return EpisodeJudge(truth.points, config.scene, candidates, truth.shape, _start(recording, config)), ""
    except NbvPlannerError as error:
        return None, str(error)


def _start(recording: Recording, config: EpisodeConfig) -> float | None:
    """Where the camera stood at first: as the simulation counts its way, or where it was first seen."""
    simulated = recording.parameters is not None and "depth_camera" in recording.parameters.nodes
    if simulated and recording.episode == 1:
        return config.motion.initial_view_angle
    return None if recording.first_pose is None else recording.camera(recording.first_pose).view_angle


def _judge_views(recording: Recording, judge: EpisodeJudge | None) -> None:
    """Judge the views that were taken; a goal for which nothing was measured at the very end is none."""
    if judge is None:
        return
    for view in _taken(recording):
        decision = view.decision
        judge.add_view(decision.view_angle, decision.utility, decision.milliseconds, view.belief)


def _taken(recording: Recording) -> list[ViewEvidence]:
    """Views that were taken: all but a last one on whose way the recording ended."""
    views = recording.assembly.views
    complete = any(view.belief is not None for view in views)
    return views[:-1] if complete and views[-1].belief is None else views


def _analysed(
    recording: Recording, config: EpisodeConfig | None, judge: EpisodeJudge | None
) -> list[AnalysedView]:
    taken = _taken(recording)
    tolerance = None if config is None else config.termination.band_tolerance
    found = []
    for number, view in enumerate(taken):
        stamp = view.decision.goal_stamp
        estimate = None
        if view.belief is not None and tolerance is not None:
            estimate = coverage_estimate(view.belief, tolerance)
        found.append(
            AnalysedView(
                evidence=view,
                judged=None if judge is None else judge.views[number],
                estimate=estimate,
                seconds=(stamp - taken[0].decision.goal_stamp) * 1e-9,
                lasted=None if view.belief_stamp is None else (view.belief_stamp - stamp) * 1e-9,
            )
        )
    return found


def _record(analysis: Analysis) -> EpisodeRecord | None:
    """The episode as a simulation would have recorded it, with the versions that it ran on."""
    if analysis.judge is None or analysis.config is None:
        return None
    config, parameters = analysis.config, analysis.recording.parameters
    record = analysis.judge.record(config.as_dict(), config.sensor.seed, analysis.termination)
    versions = parameters.versions if parameters else {}
    return dataclasses.replace(record, versions=versions or record.versions)
