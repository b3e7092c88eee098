"""The pictures that set what planners achieve against the time that they take."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from nbv_planner.cli.report_pictures.drawn import picture
from nbv_planner.experiments.report.contents import SweepReport
from nbv_planner.experiments.report.run_tables import timing_table
from nbv_planner.experiments.report.varied import Series, series_around
from nbv_planner.plotting.sweep.planner_style import planner_styles
from nbv_planner.plotting.sweep.tradeoff import TradeOff, draw_tradeoff
from nbv_planner.plotting.sweep.tradeoff_lines import draw_tradeoff_lines
from nbv_planner.reports.page import Picture

_SHORTEST = 1e-3  # ms: the axis is logarithmic
_QUALITY, _REFERENCE = "T95 / T95* (%)", 100.0
_CAPTION = (
    "Views to 95 % relative to the omniscient greedy planner over the processor time of a decision. Vertical bars: "
    "95 % confidence intervals over the objects. Times are those of the machine that ran the sweep."
)


def tradeoff_pictures(report: SweepReport, protocol: str) -> list[Picture]:
    """T95 relative to the reference over the time of a decision; none without reference.

    Planners that differ from another one in a single number are in a picture of their own, as lines.
    """
    points = _points(report, protocol)
    series = {centre: _drawable(of, points) for centre, of in series_around(report.sweep).items()}
    series = {centre: of for centre, of in series.items() if of}
    varied = {label for centre, of in series.items() for one in of for label in one.planners.values()} - set(series)
    single = [point for label, point in points.items() if label not in varied]
    suffix, pictures = report.suffix(protocol), []
    if single:
        styles = planner_styles([point.label for point in single], None)
        figure = draw_tradeoff(single, _QUALITY, styles, _REFERENCE)
        pictures.append(picture(f"tradeoff{suffix}", "Quality against time", _CAPTION, figure))
    if series:
        lines = {centre: {one.name: _line(one, points) for one in of} for centre, of in series.items()}
        caption = f"{_CAPTION} Along a line one parameter is varied, to the values beside its points."
        figure = draw_tradeoff_lines(lines, _QUALITY, _REFERENCE)
        pictures.append(picture(f"tradeoff_varied{suffix}", "Quality against time, one number varied", caption, figure))
    return pictures


def _points(report: SweepReport, protocol: str) -> dict[str, TradeOff]:
    """Points by planner, without the reference and planners that never reach 95 %."""
    table = timing_table(report.episodes, report.cases)
    names = [column.name for column in table.columns]
    rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in table.rows]
    return {
        row["algorithm"]: _point(row) for row in rows
        if row["protocol"] == protocol and row["algorithm"] != report.reference and row["decisions"]
        and row["t95_rel_percent"].cases
    }


def _point(row: dict[str, Any]) -> TradeOff:
    quality = row["t95_rel_percent"]
    ends = (quality.low, quality.high) if math.isfinite(quality.low) else ()
    median, slow = (max(row[name], _SHORTEST) for name in ("median_ms", "p95_ms"))
    return TradeOff(row["algorithm"], median, slow, quality.mean, *ends)


def _drawable(series: Sequence[Series], points: Mapping[str, TradeOff]) -> list[Series]:
    """Series of planners that all have a point."""
    return [one for one in series if points.keys() >= set(one.planners.values())]


def _line(series: Series, points: Mapping[str, TradeOff]) -> list[TradeOff]:
    """Points of a series, labelled by the value that is varied."""
    return [dataclasses.replace(points[label], label=f"{value:g}") for value, label in series.planners.items()]
