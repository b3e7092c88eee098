"""Pictures of single objects: the views that were chosen, and what the objectives said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nbv_planner.cli.report_pictures.drawn import file_name, picture
from nbv_planner.errors import NbvPlannerError
from nbv_planner.experiments.report.cases import distinct
from nbv_planner.experiments.report.contents import SweepReport
from nbv_planner.experiments.report.landscape_case import episode_landscapes, landscape_episode, ranking_objectives
from nbv_planner.experiments.report.rerun import recorded_config
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.objects import PolarObject, parse_object
from nbv_planner.plotting.sweep.landscapes import draw_landscapes
from nbv_planner.plotting.sweep.view_maps import ViewMap, draw_view_maps
from nbv_planner.reports.page import Picture

_MOST_MAPS = 24
_LONGEST_NAME = 34
_CONTOUR_ANGLES = 241


def view_pictures(report: SweepReport, protocol: str) -> Iterator[Picture]:
    """For each planner the objects with the views it chose."""
    within = [e for e in report.episodes if e["case"]["protocol"] == protocol]
    seed = min(e["case"]["seed"] for e in within)
    for number, planner in enumerate(distinct(e["case"]["planner"] for e in within), start=1):
        own = [e for e in within if e["case"]["planner"] == planner and e["case"]["seed"] == seed]
        if own:
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


def _map(episode: Mapping[str, Any]) -> ViewMap:
    scene = recorded_config(episode["config"]).scene
    try:
        contour = _contour(parse_object(episode["case"]["object"], scene))
    except NbvPlannerError:  # a contour file may have moved since
        contour = None
    metrics = episode["metrics"]
    title = f"{_short(episode['case']['object'])}\n{metrics['T']} views, {100.0 * metrics['rec']:.1f} %"
    return ViewMap(title, contour, [view["angle"] for view in episode["views"]], scene.view_distance)


def _contour(shape: PolarObject) -> tuple[FloatArray, FloatArray]:
    """Angles and radii, corners included; fewer than for a large picture."""
    angle = np.unique(np.concatenate([np.linspace(0.0, TWO_PI, _CONTOUR_ANGLES), shape.corners()]))
    return angle, shape.radius(angle)


def _short(text: str) -> str:
    """Leave out the middle of a long text."""
    half = _LONGEST_NAME // 2
    return text if len(text) <= _LONGEST_NAME else f"{text[:half]}…{text[-half:]}"


def landscape_picture(report: SweepReport, protocol: str) -> Picture | None:
    """What the objectives said at some decisions of one episode; None if no episode has two views.

    Raises:
        NbvPlannerError: the episode cannot be run again as it was.
    """
    episode = landscape_episode(report.episodes, report.of_protocol(protocol), report.reference)
    objectives = ranking_objectives(report.sweep["planners"])
    if episode is None or not objectives:
        return None
    rows = episode_landscapes(episode, objectives)
    case = episode["case"]
    caption = (
        f"Objectives over the candidate views on {case['object']}, at decisions of {case['planner']} (seed "
        f"{case['seed']}), all evaluated on the same belief. Grey: new surface points that each view would "
        "really bring. Both are scaled to a greatest value of 1, for objectives have units of their own. Each is "
        "asked alone; where the planner went may differ, for it may leave out views taken before, or "
        "look at two objectives."
    )
    title = "Objectives over the candidate views"
    return picture(f"objectives{report.suffix(protocol)}", title, caption, draw_landscapes(rows))
