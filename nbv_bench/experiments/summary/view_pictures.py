"""Pictures of the episodes of a sweep: coverage, calibration, views taken, and the values of the
objectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbv_bench import statistics
from nbv_bench.experiments.summary.sweep_report import SweepReport
from nbv_bench.experiments.summary.sweep_tables import REGRET
from nbv_bench.figures import sweep_figures as draw
from nbv_bench.figures.view_maps import (
    ViewMap,
    draw_landscapes,
    draw_view_maps,
    recorded_poses,
)
from nbv_bench.statistics import Episode
from nbv_planner.episode.judge import EpisodeJudge
from nbv_planner.episode.parameters import PlannerSettings, recorded_config
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import objective_named
from nbv_planner.errors import NbvPlannerError, ResultsError
from nbv_planner.planning.objectives import OMNISCIENT, TRUTH_OBJECTIVES, Situation
from nbv_planner.report.figures.episode_content import true_lines
from nbv_planner.report.figures.recorded_figure import draw_calibration
from nbv_planner.report.figures.style import file_name, picture, planner_styles
from nbv_planner.report.page import Picture
from nbv_planner.report.tables import Landscape
from nbv_planner.settings import from_mapping
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.thesis import TrueSurface
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.objects.true_outlines import true_object
from nbv_planner.world.pose import Poses


def coverage_picture(report: SweepReport, protocol: str) -> Picture:
    """Coverage over the number of views, one panel per planner."""
    curves = {
        planner: [ViewColumn.coverage.each(episode["views"]) for episode in episodes]
        for planner, episodes in report.by_planner(protocol).items()
    }
    views = max(len(curve) for episodes in curves.values() for curve in episodes)
    bands = {
        planner: statistics.coverage_band(episodes, views) for planner, episodes in curves.items()
    }
    caption = (
        "True coverage over the number of views. Line: mean over objects and seeds; band: where 80"
        " % of the episodes lie (quantiles 10 % to 90 %). An episode that has ended keeps its"
        " coverage."
    )
    figure = draw.draw_coverage_curves(bands, report.reference)
    return picture(
        f"coverage{report.suffix(protocol)}", "Coverage over the number of views", caption, figure
    )


def calibration_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Measured over nominal frequencies, and by angle; None if no episode has any."""
    found = {
        planner: known
        for planner, episodes in report.by_planner(protocol).items()
        if (known := [episode["calibration"] for episode in episodes if episode.get("calibration")])
    }
    if not found:
        return None
    levels = next(iter(found.values()))[0]["levels"]
    inside, by_angle = (
        {
            label: pd.DataFrame([one[name] for one in many], dtype=float).mean().to_numpy()
            for label, many in found.items()
        }
        for name in ("inside", "inside_by_angle")  # what is None is left out
    )
    caption = (
        "How often the true radius lies in intervals around the mean, at the end of the episodes,"
        " averaged over objects and seeds. Left: measured over nominal frequency; above the"
        " diagonal the belief is too cautious, below it overconfident. Right: how often the radius"
        " lies between the bounds, by polar angle. Angles are not independent of each other."
    )
    figure = draw_calibration(levels, inside, by_angle, planner_styles([*found], report.reference))
    return picture(
        f"calibration{report.suffix(protocol)}", "Calibration of the band", caption, figure
    )


def rerun(episode: Episode) -> Simulation:
    """Run an episode again from its configuration, to the same views.

    Raises:
        ResultsError: it takes other views than were recorded, as another version of the package or
            of numpy may.
        NbvPlannerError: the configuration does not fit (any more).
    """
    simulation = Simulation(recorded_config(episode["config"]))
    simulation.finish()
    recorded = ViewColumn.angle.each(episode["views"])
    found = [view.angle for view in simulation.judge.views]
    if len(found) != len(recorded) or not np.allclose(found, recorded, rtol=0.0, atol=1e-9):
        case = episode["case"]
        raise ResultsError(
            f"{case['planner']} on {case['object']} takes other views now than were recorded; the"
            " sweep was run by another version, or on another machine where rounding decides"
        )
    return simulation


_RANKING_PLANNERS = ("greedy", "two_phase")


def ranking_objectives(planners: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Ids of the objectives by which the planners of a sweep choose, those that know the object
    left out.
    """
    settings = [from_mapping(PlannerSettings, values) for values in planners.values()]
    used = [name for s in settings if s.planner in _RANKING_PLANNERS for name in s.used_objectives]
    return [name for name in dict.fromkeys(used) if name not in TRUTH_OBJECTIVES]


def landscape_episode(cases: pd.DataFrame, reference: str | None) -> Episode | None:
    """Choose the episode that shows most: that of the largest regret, the first of equals.

    The omniscient greedy planner, the `reference`, is not chosen; None if no other one has taken
    two views.
    """
    shown = cases[(cases["planner"] != reference) & (cases[Metric.T.name] >= 2)]
    regret = shown[REGRET.name].dropna()
    return None if regret.empty else shown["episode"][regret.idxmax()]


def episode_landscapes(episode: Episode, objectives: Sequence[str]) -> list[list[Landscape]]:
    """Run an episode again and evaluate objectives at its second decision, at that for T95 (or the
    last), and between.

    The episode has two views at least; for each decision there is one landscape per objective.

    Raises:
        NbvPlannerError: it cannot be run again as it was, see :func:`rerun`, or its surface is not
            one of the radius.
    """
    judge = rerun(episode).judge
    if any(isinstance(step.belief, VolumeSurface) for step in judge.steps):
        raise ResultsError(
            f"{episode['case']['object']} is not star-shaped, and objectives are compared by the"
            " radius"
        )
    last = max(2, int(Metric.T95.of(judge.metrics()) or len(judge.steps)))
    return [_landscapes(judge, objectives, number) for number in sorted({2, (last + 2) // 2, last})]


def _landscapes(judge: EpisodeJudge, objectives: Sequence[str], decision: int) -> list[Landscape]:
    """Evaluate objectives, by their ids, on the belief on which the view number `decision` was
    chosen.

    That is 2 to the number of views: before the first the belief is flat.
    """
    scene = judge.truth.scene
    earlier = judge.steps[: decision - 1]
    candidates = judge.steps[decision - 1].candidates
    taken = Poses.of([step.view for step in earlier])
    truth = TrueSurface(judge.truth.points.angle, judge.truth.points.radius)
    truth.seen = np.asarray(truth.observed(taken, scene).any(axis=0))
    situation = Situation(StarReader(scene)(earlier[-1].belief), scene, candidates, taken)
    gain = objective_named(OMNISCIENT, truth).evaluate(situation)
    return [
        Landscape(
            name,
            decision,
            candidates.polar[:, 0],
            objective_named(name, truth).evaluate(situation),
            gain,
        )
        for name in objectives
    ]


_MOST_MAPS = 24
_LONGEST_NAME = 34


def view_pictures(report: SweepReport, protocol: str) -> Iterator[Picture]:
    """For each planner the objects with the views it chose."""
    seed = report.of_protocol(protocol)["seed"].min()
    for number, (planner, episodes) in enumerate(report.by_planner(protocol).items(), start=1):
        if of_seed := [e for e in episodes if e["case"]["seed"] == seed]:
            shown = f"{min(len(of_seed), _MOST_MAPS)} of {len(of_seed)} objects, seed {seed}"
            caption = (
                f"Views that {planner} chose, numbered in the order taken, the last one"
                f" emphasised; {shown}. Below each name: number of views and coverage at the end."
                " All maps have the same scale; a number that finds no room is left out."
            )
            yield picture(
                f"views_{number}_{file_name(planner)}{report.suffix(protocol)}",
                f"Views chosen by {planner}",
                caption,
                draw_view_maps([view_map(episode) for episode in of_seed[:_MOST_MAPS]]),
                folded=True,
            )


def view_map(episode: Episode) -> ViewMap:
    """The true outlines with the views of an episode; none where their file cannot be read."""
    config = recorded_config(episode["config"])
    text = episode["case"]["object"]
    metrics = episode["metrics"]
    scene = config.scene
    views = episode["views"]
    try:
        # fewer points than for a large picture
        lines = true_lines(true_object(text, scene, config.surface_model), steps=240)
    except NbvPlannerError:  # a contour file may have moved since
        lines = []
    half = _LONGEST_NAME // 2
    name = text if len(text) <= _LONGEST_NAME else f"{text[:half]}…{text[-half:]}"
    title = f"{name}\n{Metric.T.of(metrics)} views, {100.0 * Metric.rec.of(metrics):.1f} %"
    return ViewMap(title, lines, recorded_poses(views), scene.view_distance)


def landscape_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Values of the objectives at some decisions of one episode, see :func:`rerun`.

    None if no episode has two views, or candidates are not on the view circle: they are no curve
    over the angle.
    """
    episode = landscape_episode(report.of_protocol(protocol), report.reference)
    objectives = ranking_objectives(report.sweep["planners"])
    if episode is None or not objectives or not recorded_config(episode["config"]).views.on_circle:
        return None
    rows = episode_landscapes(episode, objectives)
    case = episode["case"]
    caption = (
        f"Objectives over the candidate views on {case['object']}, at decisions of"
        f" {case['planner']} (seed {case['seed']}), all evaluated on the same belief. Grey: new"
        " surface points that each view would add. Both are scaled to a greatest value of 1, since"
        " objectives have different units; where one has values below 0, the least is drawn at 0."
        " The planner may have chosen another view than an objective prefers: it may leave out"
        " views taken before, or use two objectives."
    )
    title = "Objectives over the candidate views"
    return picture(f"objectives{report.suffix(protocol)}", title, caption, draw_landscapes(rows))
