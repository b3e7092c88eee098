"""The picture that sets what planners achieve against the time that they take."""

from __future__ import annotations

import math
from typing import Any

from nbv_planner.cli.report_pictures.drawn import picture
from nbv_planner.experiments.report.contents import SweepReport
from nbv_planner.experiments.report.run_tables import timing_table
from nbv_planner.plotting.sweep.planner_style import planner_styles
from nbv_planner.plotting.sweep.tradeoff import TradeOff, draw_tradeoff
from nbv_planner.reports.page import Picture

_SHORTEST = 1e-3  # ms: the axis is logarithmic


def tradeoff_picture(report: SweepReport, protocol: str) -> Picture | None:
    """T95 relative to the reference over the time of a decision; None without reference."""
    table = timing_table(report.episodes, report.cases)
    names = [column.name for column in table.columns]
    rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in table.rows]
    points = [
        _point(row) for row in rows
        if row["protocol"] == protocol and row["algorithm"] != report.reference and row["decisions"]
        and row["t95_rel_percent"].cases
    ]
    if not points:
        return None
    figure = draw_tradeoff(points, "T95 / T95* (%)", planner_styles([point.label for point in points], None), 100.0)
    caption = (
        "Views to 95 % relative to the omniscient greedy planner over the time of a decision. Vertical bars: 95 % "
        "confidence intervals over the objects. Times are those of the machine that ran the sweep."
    )
    return picture(f"tradeoff{report.suffix(protocol)}", "Quality against time", caption, figure)


def _point(row: dict[str, Any]) -> TradeOff:
    quality = row["t95_rel_percent"]
    ends = (quality.low, quality.high) if math.isfinite(quality.low) else ()
    median, slow = (max(row[name], _SHORTEST) for name in ("median_ms", "p95_ms"))
    return TradeOff(row["algorithm"], median, slow, quality.mean, *ends)
