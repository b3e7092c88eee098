"""What was run in a sweep, what went wrong, and how long decisions took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nbv_planner.evaluation.statistics import object_interval
from nbv_planner.experiments.report.comparison import ComparedCase, figures
from nbv_planner.experiments.report.thesis_tables import NOT_REACHED, not_reached
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.reports.table import Cell, Column, Table
from nbv_planner.settings import settings_of

_CASE = (
    Column("protocol", "protocol"), Column("algorithm", "planner"), Column("object", "object"), Column("seed", "seed"),
)
_SHOWN = ("planner", "phase_one_objective", "objective")


def failure_table(failures: Sequence[Mapping[str, Any]]) -> Table:
    """One row per case that failed, sorted by case."""
    rows = sorted(
        (f["case"]["protocol"], f["case"]["planner"], f["case"]["object"], f["case"]["seed"], f["error"])
        for f in failures
    )
    note = "" if rows else "No case has failed."
    return Table("failures", "Failed cases", note, (*_CASE, Column("error", "error")), tuple(rows))


def timing_table(episodes: Sequence[Mapping[str, Any]], cases: Sequence[ComparedCase]) -> Table:
    """Time per decision beside what it buys, by protocol and planner.

    Args:
        episodes: the episodes, whose order the rows follow.
        cases: the same in numbers.
    """
    times: dict[tuple[str, str], list[float]] = {}
    for episode in episodes:
        group = times.setdefault((episode["case"]["protocol"], episode["case"]["planner"]), [])
        group += [view["milliseconds"] for view in episode["views"]]
    columns = (
        Column("protocol", "protocol"), Column("algorithm", "planner"), Column("decisions", "decisions"),
        Column("median_ms", "median (ms)", 2), Column("p95_ms", "95 % below (ms)", 2),
        Column("max_ms", "longest (ms)", 2), Column("t95_rel_percent", "T95 / T95* (%)", 1, interval=True), NOT_REACHED,
    )
    note = (
        "Processor time of a decision on the machine that ran the sweep: the only figures that differ from run to "
        "run. T95 / T95*: N/A left out, intervals over the objects."
    )
    rows = [(*group, *_summary(values), *_quality(group, cases)) for group, values in times.items()]
    return Table("timing", "Time per decision", note, columns, tuple(rows))


def _summary(milliseconds: Sequence[float]) -> tuple[Cell, ...]:
    if not milliseconds:
        return 0, None, None, None
    median, p95, longest = np.quantile(milliseconds, [0.5, 0.95, 1.0])
    return len(milliseconds), float(median), float(p95), float(longest)


def _quality(group: tuple[str, str], cases: Sequence[ComparedCase]) -> tuple[Cell, ...]:
    own = [c for c in cases if (c.case.trial.protocol, c.case.planner) == group]
    return object_interval(figures(own, lambda c: c.t95_percent)), not_reached(own)


def planner_settings_table(planners: Mapping[str, Mapping[str, Any]], reference: str | None) -> Table:
    """Which planner and which objectives stand behind each label."""
    columns = (
        Column("algorithm", "label"), Column("planner", "planner"),
        Column("phase_one_objective", "objective of phase 1"), Column("objective", "objective"),
        Column("parameters", "other parameters than the default, and settings of its own"),
    )
    rows = [
        (
            label, s["planner"], s["phase_one_objective"] if s["planner"] == "two_phase" else None, s["objective"],
            ", ".join(_parameters(s)),
        )
        for label, s in planners.items()
    ]
    note = f"{reference} knows the object: the omniscient greedy planner." if reference else (
        "There is no omniscient greedy planner (objective OSM) to compare with: nothing is relative to it."
    )
    return Table("planner_settings", "Planners", note, columns, tuple(rows))


def _parameters(planner: Mapping[str, Any]) -> Iterator[str]:
    """What a planner has of its own, apart from what the other columns show."""
    for name, default, _ in settings_of(PlannerSettings):
        if name not in _SHOWN and planner.get(name, default) != default:
            yield f"{name}={planner[name]}"
    for group, values in planner.get("settings", {}).items():
        yield from (f"{group}.{name}={value}" for name, value in values.items())


def version_table(versions: Mapping[str, str]) -> Table:
    """Versions of what the figures rest on."""
    columns = Column("name", "name"), Column("version", "version")
    return Table("versions", "Versions", "", columns, tuple(versions.items()))
