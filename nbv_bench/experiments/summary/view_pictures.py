"""Pictures of single episodes of a sweep: the views taken, and what objectives said of all candidates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nbv_bench import statistics
from nbv_bench.experiments.summary.sweep_report import (
    ComparedCase,
    Episode,
    SweepReport,
    Trial,
    trial_of,
)
from nbv_bench.experiments.summary.sweep_tables import (
    REGRET,
)
from nbv_bench.figures.view_maps import ViewMap, draw_landscapes, draw_view_maps
from nbv_planner.episode.parameters import PlannerSettings, recorded_config
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import NbvPlannerError, ResultsError
from nbv_planner.planning.objectives import TRUTH_OBJECTIVES
from nbv_planner.report.figures.episode_figure import true_contour
from nbv_planner.report.figures.style import file_name, picture
from nbv_planner.report.page import Picture
from nbv_planner.report.tables import Landscape
from nbv_planner.settings import from_mapping
from nbv_planner.thesis import TrueSurface
from nbv_planner.world.objects import parse_object


def rerun(episode: Episode) -> Simulation:
    """Run an episode again from its configuration, to the same views.

    Raises:
        ResultsError: it takes other views than were recorded, as another version of the package or of numpy may.
        NbvPlannerError: the configuration does not fit (any more).
    """
    simulation = Simulation(recorded_config(episode["config"]))
    simulation.finish()
    recorded = ViewColumn.angle.each(episode["views"])
    found = [view.angle for view in simulation.judge.views]
    if len(found) != len(recorded) or not np.allclose(found, recorded, rtol=0.0, atol=1e-9):
        case = episode["case"]
        raise ResultsError(
            f"{case['planner']} on {case['object']} takes other views now than were recorded; the sweep was run by "
            "another version, or on another machine where rounding decides"
        )
    return simulation


_RANKING_PLANNERS = ("greedy", "two_phase")


def ranking_objectives(planners: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Ids of the objectives by which the planners of a sweep choose, those that know the object left out."""
    settings = [from_mapping(PlannerSettings, values) for values in planners.values()]
    used = [name for s in settings if s.planner in _RANKING_PLANNERS for name in s.used_objectives]
    return [name for name in dict.fromkeys(used) if name not in TRUTH_OBJECTIVES]


def landscape_episode(
    episodes: Sequence[Episode], cases: Sequence[ComparedCase], reference: str | None
) -> Mapping[str, Any] | None:
    """Choose an episode that shows much: that with the least regret on the trial with the largest mean regret.

    The omniscient greedy planner, the `reference`, is not chosen; None if no other one has taken two views.
    """
    regrets: dict[Trial, list[tuple[float, str]]] = defaultdict(list)
    for c in cases:
        if c.planner != reference and c[Metric.T] >= 2 and (regret := REGRET.of(c)) is not None:
            regrets[c.trial].append((regret, c.planner))
    if not regrets:
        return None
    hardest = max(regrets, key=lambda trial: float(np.mean([regret for regret, _ in regrets[trial]])))
    planner = min(regrets[hardest])[1]
    return next(e for e in episodes if trial_of(e) == hardest and e["case"]["planner"] == planner)


def episode_landscapes(episode: Episode, objectives: Sequence[str]) -> list[list[Landscape]]:
    """Run an episode again and evaluate objectives at its second decision, at that for T95 (or the last), and between.

    The episode has two views at least; for each decision there is one landscape per objective.

    Raises:
        NbvPlannerError: it cannot be run again as it was, see :func:`rerun`.
    """
    judge = rerun(episode).judge
    truth = TrueSurface(judge.truth.points.angle, judge.truth.points.radius)
    last = max(2, int(Metric.T95.of(judge.metrics()) or len(judge.steps)))
    decisions = sorted({2, (last + 2) // 2, last})
    evaluated = statistics.objective_landscapes
    return [evaluated(judge.steps, objectives, number, truth, judge.truth.scene) for number in decisions]


_MOST_MAPS = 24
_LONGEST_NAME = 34


def view_pictures(report: SweepReport, protocol: str) -> Iterator[Picture]:
    """For each planner the objects with the views it chose."""
    seed = min(e["case"]["seed"] for e in report.episodes_of(protocol))
    for number, (planner, episodes) in enumerate(report.by_planner(protocol).items(), start=1):
        if own := [e for e in episodes if e["case"]["seed"] == seed]:
            shown = f"{min(len(own), _MOST_MAPS)} of {len(own)} objects, seed {seed}"
            caption = (
                f"Views that {planner} chose, numbered in the order taken, the first one emphasised; {shown}. Below "
                "each name: number of views and coverage at the end. All maps have the same scale; a number that finds "
                "no room is left out."
            )
            yield picture(
                f"views_{number}_{file_name(planner)}{report.suffix(protocol)}", f"Views chosen by {planner}", caption,
                draw_view_maps([_map(episode) for episode in own[:_MOST_MAPS]]), folded=True,
            )


def _map(episode: Episode) -> ViewMap:
    config, text, metrics = recorded_config(episode["config"]), episode["case"]["object"], episode["metrics"]
    scene, views = config.scene, episode["views"]
    try:
        contour = true_contour(parse_object(text, scene), steps=240)  # fewer than for a large picture
    except NbvPlannerError:  # a contour file may have moved since
        contour = None
    half = _LONGEST_NAME // 2
    name = text if len(text) <= _LONGEST_NAME else f"{text[:half]}…{text[-half:]}"
    title = f"{name}\n{Metric.T.of(metrics)} views, {100.0 * Metric.rec.of(metrics):.1f} %"
    distances = () if config.views.on_circle else ViewColumn.distance.each(views)
    return ViewMap(title, contour, ViewColumn.angle.each(views), scene.view_distance, distances)


def landscape_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Values of the objectives at some decisions of one episode, see :func:`rerun`.

    None if no episode has two views, or candidates are not on the view circle: they are no curve over the angle.
    """
    episode = landscape_episode(report.episodes, report.of_protocol(protocol), report.reference)
    objectives = ranking_objectives(report.sweep["planners"])
    if episode is None or not objectives or not recorded_config(episode["config"]).views.on_circle:
        return None
    rows = episode_landscapes(episode, objectives)
    case = episode["case"]
    caption = (
        f"Objectives over the candidate views on {case['object']}, at decisions of {case['planner']} (seed "
        f"{case['seed']}), all evaluated on the same belief. Grey: new surface points that each view would "
        "really bring. Both are scaled to a greatest value of 1, for objectives have units of their own; where one has "
        "values below 0, the least is drawn at 0. Each is "
        "asked alone; where the planner went may differ, for it may leave out views taken before, or "
        "look at two objectives."
    )
    title = "Objectives over the candidate views"
    return picture(f"objectives{report.suffix(protocol)}", title, caption, draw_landscapes(rows))
