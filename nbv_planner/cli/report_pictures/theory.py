"""The picture of regret and its bound."""

from __future__ import annotations

import numpy as np

from nbv_planner.cli.report_pictures.drawn import picture
from nbv_planner.experiments.report.contents import SweepReport
from nbv_planner.experiments.report.theory_table import TheoryGroup, theory_groups
from nbv_planner.plotting.sweep.dots import Dot, DotPanel, draw_dots
from nbv_planner.reports.page import Picture

_SHORT = {"line_of_sight": "line of sight", "surface_points": "all seen"}


def theory_picture(report: SweepReport) -> Picture | None:
    """Individual regret and sum of the objective, each as a percentage of the bound; None without such measures."""
    groups = theory_groups(report.theory)
    if not groups:
        return None
    panels = [
        DotPanel("individual regret / bound (%)", [_dot(group, "individual_regret") for group in groups]),
        DotPanel("sum of the objective / bound (%)", [_dot(group, "objective_sum") for group in groups], line=100.0),
    ]
    caption = (
        "What was measured as a percentage of the regret bound, which both must stay below (dashed: 100 %; the left "
        "axis ends far below it). Light dots: single surfaces drawn from the prior."
    )
    return picture("theory", "Regret and its bound", caption, draw_dots(panels))


def _dot(group: TheoryGroup, name: str) -> Dot:
    values = group.percent_of_bound(name)
    return Dot(f"{group.planner}, {_SHORT[group.measurement]}", float(np.mean(values)), points=values)
