"""The pictures of a report: what goes into each, and its caption."""

from __future__ import annotations

from collections.abc import Callable

from nbv_planner.cli.report_pictures.comparison import coverage_picture, paired_picture, planner_picture
from nbv_planner.cli.report_pictures.objects import landscape_picture, view_pictures
from nbv_planner.cli.report_pictures.surface import calibration_picture
from nbv_planner.cli.report_pictures.theory import theory_picture
from nbv_planner.cli.report_pictures.tradeoff import tradeoff_pictures
from nbv_planner.errors import NbvPlannerError
from nbv_planner.experiments.report.contents import SweepReport
from nbv_planner.reports.page import Picture


def draw_pictures(report: SweepReport, say: Callable[[str], None]) -> list[Picture]:
    """Draw all pictures for which there is something to see.

    Args:
        report: the sweep.
        say: called with a line of text for each picture that cannot be drawn.
    """
    pictures: list[Picture | None] = [theory_picture(report)]
    for protocol in report.protocols:
        pictures += [
            planner_picture(report, protocol),
            paired_picture(report, protocol),
            coverage_picture(report, protocol),
            calibration_picture(report, protocol),
            *tradeoff_pictures(report, protocol),
        ]
        try:
            pictures.append(landscape_picture(report, protocol))
        except NbvPlannerError as error:
            say(f"no picture of the objectives in the {protocol} protocol: {error}")
        pictures += view_pictures(report, protocol)
    return [picture for picture in pictures if picture is not None]


__all__ = ["draw_pictures"]
