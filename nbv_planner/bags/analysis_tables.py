"""Tables of an analysed bag."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nbv_planner.bags.analysed import AnalysedView, Analysis
from nbv_planner.reports.table import Cell, Column, Table

_KINDS = {
    "true": "against the true object in the bag",
    "estimated": "estimated from the belief, for the bag carries no true object",
    "unknown": "not known",
}
_VIEW_COLUMNS = (
    Column("view", "view"),
    Column("angle_deg", "angle, °", 2),
    Column("seconds", "decided after, s", 2),
    Column("lasted", "until its scan, s", 3),
    Column("new_points", "new points"),
    Column("regret", "regret, points"),
    Column("coverage", "true coverage", 4),
    Column("coverage_estimate", "estimated coverage", 4),
    Column("utility", "predicted utility", 4),
    Column("milliseconds", "decision, ms", 2),
    Column("rmse", "RMSE, m", 4),
    Column("max_error", "greatest error, m", 4),
    Column("hausdorff", "Hausdorff, m", 4),
    Column("iou", "IoU", 4),
    Column("band_coverage", "inside the band", 4),
    Column("travelled", "travelled, m", 2),
)


def analysis_tables(analysis: Analysis) -> list[Table]:
    """All tables for which there is something to say."""
    tables = [_summary(analysis), _views(analysis), _phases(analysis), _drops(analysis), _calibration(analysis)]
    return [table for table in [*tables, _gaps(analysis), _remarks(analysis), _contents(analysis)] if table.rows]


def _summary(analysis: Analysis) -> Table:
    recording, ended = analysis.recording, analysis.termination
    rows: list[tuple[Cell, ...]] = [
        ("coverage is", f"{analysis.coverage_kind}: {_KINDS[analysis.coverage_kind]}"),
        ("true object", analysis.truth.source if analysis.truth else None),
        ("planner", analysis.config.planner.label if analysis.config else None),
        ("episode", f"{recording.episode} of {recording.episodes}" if recording.episodes > 1 else "the only one"),
        ("views", str(len(analysis.views))),
        ("coverage at the end", f"{analysis.coverage[-1]:.4f}" if analysis.coverage else None),
        ("ended", f"{ended.reason.value}: {ended.detail}"),
        ("length of the recording", f"{recording.inventory.seconds:.3f} s"),
        ("way of the camera as recorded", f"{recording.path:.3f} m" if recording.first_pose else None),
    ]
    if analysis.record is not None:
        rows += [(_METRICS[name], _metric(value)) for name, value in analysis.record.metrics.items()]
    columns = (Column("figure", "figure"), Column("value", "value"))
    return Table("summary", "Summary", "", columns, tuple(rows))


_METRICS = {
    "T": "T (views)",
    "T95": "T95 (views to 95 % of the surface points)",
    "rec": "rec (coverage at the end)",
    "mean_individual_regret": "mean individual regret, surface points per view",
    "surface_points": "surface points",
}


def _metric(value: float | int | None) -> str | None:
    return None if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _views(analysis: Analysis) -> Table:
    note = (
        f"Coverage: {_KINDS[analysis.coverage_kind]}. Regret: new points of the best candidate less those of the view. "
        "Errors are those of the belief with the view's measurements. Travelled: along the view circle."
    )
    rows = tuple(_view_row(number, view) for number, view in enumerate(analysis.views, start=1))
    return Table("views", "View by view", note, _VIEW_COLUMNS, rows)


def _view_row(number: int, view: AnalysedView) -> tuple[Cell, ...]:
    decision, judged = view.evidence.decision, view.judged
    errors = ("rmse", "max_error", "hausdorff", "iou", "band_coverage", "travelled")
    return (
        number, math.degrees(decision.view_angle), view.seconds, view.lasted,
        None if judged is None else judged.new_points,
        None if judged is None else judged.greedy_gain - judged.new_points,
        None if judged is None else judged.coverage,
        view.estimate, decision.utility, decision.milliseconds,
        *(None if judged is None else float(getattr(judged, name)) for name in errors),
    )


def _phases(analysis: Analysis) -> Table:
    total = sum(analysis.phases.values())
    rows = tuple((name, seconds, seconds / total if total else math.nan) for name, seconds in analysis.phases.items())
    note = "From each status to the next, by the time at which they were recorded."
    columns = (Column("state", "state of the planner"), Column("seconds", "s", 3), Column("part", "part", 3))
    return Table("time_by_phase", "Time by phase", note, columns, rows)


def _drops(analysis: Analysis) -> Table:
    rows = tuple((node, reason, number) for (node, reason), number in sorted(analysis.drops.items()))
    columns = (Column("node", "node"), Column("reason", "reason"), Column("number", "number"))
    return Table("drops", "What the nodes left out", "As each node said last on /diagnostics.", columns, rows)


def _calibration(analysis: Analysis) -> Table:
    found = analysis.record.calibration if analysis.record else None
    rows = () if found is None else tuple(zip(found.levels, found.inside, strict=True))
    columns = (Column("level", "nominal", 2), Column("inside", "observed", 4))
    note = "How often the true radius lies in the central interval of each level, over the grid, after the last view."
    return Table("calibration", "Calibration of the belief", note, columns, rows)


def _gaps(analysis: Analysis) -> Table:
    rows = tuple((gap,) for gap in analysis.gaps)
    return Table("not_computed", "What cannot be computed, and why", "", (Column("gap", "what, why"),), rows)


def _remarks(analysis: Analysis) -> Table:
    rows = tuple((remark,) for remark in analysis.remarks)
    return Table("remarks", "What is wrong with the bag", "", (Column("remark", "what"),), rows)


def _contents(analysis: Analysis) -> Table:
    names = analysis.recording.topics.names
    counts: Mapping[Any, int] = analysis.recording.inventory.counts
    rows = tuple(
        (topic.name, topic.type, names.get(topic, "not used"), number)
        for topic, number in sorted(counts.items(), key=lambda entry: entry[0].name)
    )
    columns = (Column("topic", "topic"), Column("type", "type"), Column("used_as", "used as"), Column("n", "messages"))
    return Table("topics", "What the bag holds", "", columns, rows)
