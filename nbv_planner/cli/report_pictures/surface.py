"""Picture of the band: how often the surface lies in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbv_planner.cli.report_pictures.drawn import picture
from nbv_planner.experiments.report.cases import distinct
from nbv_planner.experiments.report.contents import SweepReport
from nbv_planner.geometry import FloatArray
from nbv_planner.plotting.sweep.calibration import draw_calibration
from nbv_planner.plotting.sweep.planner_style import planner_styles
from nbv_planner.reports.page import Picture


def calibration_picture(report: SweepReport, protocol: str) -> Picture | None:
    """Measured over nominal frequencies, and by angle; None if no episode has any."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for episode in report.episodes:
        if episode["case"]["protocol"] == protocol and episode.get("calibration"):
            found[episode["case"]["planner"]].append(episode["calibration"])
    if not found:
        return None
    planners = distinct(c.case.planner for c in report.of_protocol(protocol))
    levels = next(iter(found.values()))[0]["levels"]
    inside = {label: _mean([c["inside"] for c in many]) for label, many in found.items()}
    by_angle = {label: _mean([c["inside_by_angle"] for c in many]) for label, many in found.items()}
    caption = (
        "How often the true radius lies in intervals around the mean, at the end of the episodes, averaged over "
        "objects and seeds. Left: measured over nominal frequency; above the diagonal the belief is too cautious, "
        "below it too sure. Right: how often it lies between the bounds, by polar angle. Angles "
        "are not independent of each other."
    )
    figure = draw_calibration(levels, inside, by_angle, planner_styles(planners, report.reference))
    return picture(f"calibration{report.suffix(protocol)}", "Calibration of the band", caption, figure)


def _mean(rows: Sequence[Sequence[float | None]]) -> FloatArray:
    """Mean over episodes, None left out; NaN where nothing is left."""
    values = np.array(rows, dtype=float)
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))
