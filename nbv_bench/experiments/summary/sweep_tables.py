"""Tables of a sweep: planners, classes of objects, runs, certificates, theory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from nbv_bench.experiments.compared_cases import (
    AT_END,
    Groups,
    by_class,
    by_planner,
    figures,
    not_complete,
    not_reached,
    pairs,
    reference_hint,
)
from nbv_bench.statistics import FEWEST, Cases, mean_interval, object_interval
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.report.tables import Cell, Column, MeanInterval, Table
from nbv_planner.settings import settings_of

Cells = Sequence[tuple[Column, Callable[[pd.DataFrame], Cell]]]
"""Columns with what they show of a group of cases."""
PROTOCOL = Column("protocol", "protocol")
PLANNER = Column("algorithm", "planner")
OBJECT_CLASS = Column("object_class", "objects")
EPISODES = Column("episodes", "episodes")
NOT_REACHED = Column("not_reached", "N/A: below 95 %")
NO_C95 = Column("c95_not_reached", "N/A: completeness below 95 %")
OTHER = Column("other", "minus")
PAIRS = Column("pairs", "pairs")
UNPAIRED = Column("unpaired", "left out")
T95_OPTIMUM = Column("t95_optimum_percent", "T95 / least T95 (%)", 1, interval=True)


MERITS = (
    Column("t95_rel_percent", "T95 / T95* (%)", 1, interval=True),
    Column("regret", "mean individual regret", 2, interval=True),
    Column("rec_percent", "coverage (%)", 1, interval=True),
    Column("c95_rel_percent", "C95 / C95* (%)", 1, interval=True),
    Column("completeness_percent", "completeness (%)", 1, interval=True),
    Column("accuracy_percent", "accuracy (%)", 1, interval=True),
    *(Column.of(quantity, interval=True) for quantity in (*AT_END, Metric.time95)),
)
"""The figures of merit of the comparison, columns of :func:`compare_cases` too."""
T95, REGRET, COVERAGE, C95, COMPLETENESS = MERITS[:5]
VIEWS_95 = Column("t95", "T95 (views)", 2, interval=True)


def grouped(
    name: str, title: str, note: str, by: Sequence[Column], cells: Cells, groups: Groups
) -> Table:
    """A table with a row per group: its names in the columns `by`, then the cells."""
    rows = tuple((*names, *(cell(group) for _, cell in cells)) for names, group in groups)
    return Table(name, title, note, (*by, *(column for column, _ in cells)), rows)


def mean_of(
    merit: Column, interval: Callable[[Cases], MeanInterval] = mean_interval
) -> tuple[Column, Callable[[pd.DataFrame], MeanInterval]]:
    """The column with the mean of a figure of merit in a group, with that `interval`."""
    return merit, lambda group: interval(figures(group, merit.name))


NUMBER: Cells = [(EPISODES, len)]
BELOW_95: Cells = [(NOT_REACHED, not_reached)]
_INCOMPLETE: Cells = [(NO_C95, not_complete)]


_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the"
    " seeds; the objects are a fixed set, so an interval says nothing about other objects."
)


def _note(text: str, cases: pd.DataFrame, over: str) -> str:
    """Add hints to a note: if there is no reference, or too few of `over` (`seed`, `object`) for
    intervals.
    """
    number = cases[over].nunique()
    subject = f"One {over} is" if number == 1 else f"{number} {over}s are"
    hint = (
        f"{subject} too few for an interval: give"
        f" more{', for example seeds: 10' if over == 'seed' else ''}."
    )
    return " ".join([text, *reference_hint(cases), *([hint] if number < FEWEST[over] else [])])


def summary_table(cases: pd.DataFrame) -> Table:
    """The summary, one row per protocol and planner."""
    merits = map(mean_of, (REGRET, COVERAGE, COMPLETENESS))
    cells = [*NUMBER, mean_of(VIEWS_95), mean_of(T95), *BELOW_95, *merits]
    note = (
        "T95: views to 95 % of the surface points, T95*: those of the planner that knows the"
        f" object. {_NOTE}"
    )
    return grouped(
        "summary", "Summary", _note(note, cases, "seed"), (PROTOCOL, PLANNER), cells, _groups(cases)
    )


def planner_table(cases: pd.DataFrame) -> Table:
    """Mean and interval of each figure of merit, one row per protocol and planner."""
    cells = [*NUMBER, *BELOW_95, *_INCOMPLETE, *map(mean_of, MERITS)]
    note = _note(_NOTE, cases, "seed")
    return grouped("planners", "Planners", note, (PROTOCOL, PLANNER), cells, _groups(cases))


def _groups(cases: pd.DataFrame) -> Groups:
    for protocol, within in cases.groupby("protocol", sort=False):
        yield from (((protocol, planner), group) for planner, group in by_planner(within))


def paired_table(cases: pd.DataFrame) -> Table:
    """Mean difference of each figure of merit between each two planners on the same objects and
    seeds.
    """
    columns = (
        PROTOCOL,
        Column("figure", "figure", words={m.name: m.title for m in MERITS}),
        PLANNER,
        OTHER,
        Column("difference", "mean difference", interval=True),
        PAIRS,
        UNPAIRED,
    )
    note = (
        "Differences on the same object and seed, averaged; intervals as in the table of planners,"
        " not corrected for the number of comparisons. Left out: object and seed for which only one"
        " of the two has a value."
    )
    rows = list[tuple[Cell, ...]]()
    for merit, (protocol, within) in product(MERITS, cases.groupby("protocol", sort=False)):
        for *planners, pair in pairs(within, merit.name):
            rows.append(
                (
                    protocol,
                    merit.name,
                    *planners,
                    pair.difference,
                    pair.difference.cases,
                    pair.unpaired,
                )
            )
    return Table(
        "paired",
        "Paired differences between planners",
        _note(note, cases, "seed"),
        columns,
        tuple(rows),
    )


_OBJECT_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the"
    " objects, as if these were drawn at random from all of their kind: for random objects they say"
    " what other ones would give, for a set chosen by hand only how much its objects differ."
)


def object_table(cases: pd.DataFrame, name: str) -> Table:
    """One row per planner over all objects of one protocol and, if there are several classes, over
    each class.

    T95 over the least possible one has a column if the `cases` have one of it, named as
    :data:`T95_OPTIMUM`.
    """
    merits = [one for one in (T95, T95_OPTIMUM, REGRET, C95, COMPLETENESS) if one.name in cases]
    cells = [
        (Column("number", "number"), lambda part: part["object"].nunique()),
        *BELOW_95,
        *(mean_of(merit, object_interval) for merit in merits),
    ]
    cells[-2:-2] = _INCOMPLETE
    several = cases["object_class"].nunique() > 1
    groups = [
        group
        for planner, part in by_planner(cases)
        for group in (
            ((planner, "all"), part),
            *(one for one in by_class(cases) if several and one[0][0] == planner),
        )
    ]
    note = _note(_OBJECT_NOTE, cases, "object")
    return grouped(
        name, "Planners by class of object", note, (PLANNER, OBJECT_CLASS), cells, groups
    )


def paired_object_table(cases: pd.DataFrame, name: str) -> Table:
    """Mean difference between each two planners on the same objects and seeds, one row per pair."""
    merits = T95, REGRET, C95
    t95, *further = (replace(merit, title=f"difference in {merit.title}") for merit in merits)
    note = (
        f"{_OBJECT_NOTE} Not corrected for the number of comparisons. Left out: object and seed for"
        " which only one of the two reaches 95 %."
    )
    rows = list[tuple[Cell, ...]]()
    for first, *others in zip(
        *(pairs(cases, merit.name, object_interval) for merit in merits), strict=True
    ):
        *planners, pair = first
        counts = pair.difference.cases, pair.unpaired
        rows.append(
            (*planners, pair.difference, *counts, *(other.difference for _, _, other in others))
        )
    columns = (PLANNER, OTHER, t95, PAIRS, UNPAIRED, *further)
    return Table(
        name,
        "Paired differences over the objects",
        _note(note, cases, "object"),
        columns,
        tuple(rows),
    )


_CASE = ("protocol", "planner", "object", "seed")


def failure_table(failures: Sequence[Mapping[str, Any]]) -> Table:
    """One row per case that failed, sorted by case."""
    columns = (
        PROTOCOL,
        PLANNER,
        Column("object", "object"),
        Column("seed", "seed"),
        Column("error", "error"),
    )
    rows = sorted((*(f["case"][name] for name in _CASE), f["error"]) for f in failures)
    return Table(
        "failures", "Failed cases", "" if rows else "No case has failed.", columns, tuple(rows)
    )


def timing_table(cases: pd.DataFrame) -> Table:
    """Time per decision and quality, by protocol and planner."""

    def times(group: pd.DataFrame) -> list[float]:
        return [
            ms
            for episode in group["episode"]
            for ms in ViewColumn.milliseconds.each(episode["views"])
        ]

    def quantile(column: Column, level: float) -> tuple[Column, Callable[[pd.DataFrame], Cell]]:
        return (
            column,
            lambda group: float(np.quantile(values, level)) if (values := times(group)) else None,
        )

    note = (
        "Processor time of a decision on the machine that ran the sweep: the only values that"
        " differ from run to run. T95 / T95*: N/A left out, intervals over the objects."
    )
    cells: Cells = [
        (Column("decisions", "decisions"), lambda group: len(times(group))),
        quantile(Column("median_ms", "median (ms)", 2), 0.5),
        quantile(Column("p95_ms", "95 % below (ms)", 2), 0.95),
        quantile(Column("max_ms", "longest (ms)", 2), 1.0),
        mean_of(T95, object_interval),
        *BELOW_95,
        mean_of(C95, object_interval),
        *_INCOMPLETE,
    ]
    note = _note(note, cases, "object")
    return grouped("timing", "Time per decision", note, (PROTOCOL, PLANNER), cells, _groups(cases))


def planner_settings_table(
    planners: Mapping[str, Mapping[str, Any]], reference: str | None
) -> Table:
    """Planner and objectives of each label."""
    columns = (
        Column("algorithm", "label"),
        Column("planner", "planner"),
        Column("phase_one_objective", "objective of phase 1"),
        Column("objective", "objective"),
        Column("parameters", "other parameters than the default, and settings of its own"),
    )
    rows = [
        (
            label,
            s["planner"],
            s["phase_one_objective"] if s["planner"] == "two_phase" else None,
            s["objective"],
            ", ".join(_parameters(s)),
        )
        for label, s in planners.items()
    ]
    note = (
        f"{reference} knows the object: the omniscient greedy planner."
        if reference
        else (
            "There is no omniscient greedy planner (objective OSM) to compare with: nothing is"
            " relative to it."
        )
    )
    return Table("planner_settings", "Planners", note, columns, tuple(rows))


def _parameters(planner: Mapping[str, Any]) -> Iterator[str]:
    """Settings of a planner that the other columns do not show."""
    for name, default, _ in settings_of(PlannerSettings):
        shown = name in ("planner", "phase_one_objective", "objective")
        if not shown and planner.get(name, default) != default:
            yield f"{name}={planner[name]}"
    for group, values in planner.get("settings", {}).items():
        yield from (f"{group}.{name}={value}" for name, value in values.items())
