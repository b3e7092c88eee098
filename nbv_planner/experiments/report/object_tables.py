"""Planners by class of object, and differences between them, with confidence intervals over the objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from nbv_planner.evaluation.statistics import object_interval, paired_difference
from nbv_planner.experiments.report.cases import Trial, distinct
from nbv_planner.experiments.report.comparison import ComparedCase, Figure, figures, object_classes, of_planner
from nbv_planner.experiments.report.thesis_tables import NOT_REACHED, not_reached
from nbv_planner.reports.table import Cell, Column, Table

OptimumPercent = Mapping[tuple[str, Trial], float]
"""T95 over the least possible one, per cent, by planner and trial."""

_T95 = Column("t95_rel_percent", "T95 / T95* (%)", 1, interval=True)
_OPTIMUM = Column("t95_optimum_percent", "T95 / least T95 (%)", 1, interval=True)
_REGRET = Column("regret", "mean individual regret", 2, interval=True)
_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the objects, as if "
    "these were drawn at random from all of their kind: for random objects they say what other ones would give, for a "
    "set chosen by hand only how much its objects differ."
)


def object_table(cases: Sequence[ComparedCase], optimum: OptimumPercent, name: str) -> Table:
    """One row per planner over all objects and over each class.

    Args:
        cases: cases of one protocol.
        optimum: what is relative to the optimum; empty if that has not been computed.
        name: name of the table.
    """
    columns = [
        Column("algorithm", "planner"), Column("object_class", "objects"), Column("number", "number"), NOT_REACHED,
        _T95, *([_OPTIMUM] if optimum else []), _REGRET,
    ]
    classes = object_classes(cases)
    rows = [
        _row(planner, family, own, optimum)
        for planner in distinct(c.case.planner for c in cases)
        for family, own in _by_class(of_planner(cases, planner), classes)
    ]
    return Table(name, "Planners by class of object", _NOTE, tuple(columns), tuple(rows))


def _by_class(
    cases: Sequence[ComparedCase], classes: Sequence[str]
) -> Iterator[tuple[str, Sequence[ComparedCase]]]:
    """All cases, then those of each class if there are several."""
    yield "all", cases
    if len(classes) > 1:
        for family in classes:
            yield family, [c for c in cases if c.case.trial.object_class == family]


def _row(planner: str, family: str, cases: Sequence[ComparedCase], optimum: OptimumPercent) -> tuple[Cell, ...]:
    row: list[Cell] = [
        planner, family, len(distinct(c.case.trial.object for c in cases)), not_reached(cases),
        object_interval(figures(cases, lambda c: c.t95_percent)),
    ]
    if optimum:
        row.append(object_interval(figures(cases, lambda c: optimum.get((c.case.planner, c.case.trial)))))
    return (*row, object_interval(figures(cases, lambda c: c.case.regret)))


def paired_object_table(cases: Sequence[ComparedCase], name: str) -> Table:
    """Mean difference between each two planners on the same objects and seeds, one row per pair."""
    columns = (
        Column("algorithm", "planner"), Column("other", "minus"),
        Column("t95_rel_percent", "difference in T95 / T95* (%)", 1, interval=True), Column("pairs", "pairs"),
        Column("unpaired", "left out"), Column("regret", "difference in regret", 2, interval=True),
    )
    note = (
        f"{_NOTE} Not corrected for the number of comparisons. Left out: object and seed for which only one of the two "
        "reaches 95 %."
    )
    planners = distinct(c.case.planner for c in cases)
    rows = [_pair(cases, first, second) for first, second in itertools.combinations(planners, 2)]
    return Table(name, "Paired differences over the objects", note, columns, tuple(rows))


def _pair(cases: Sequence[ComparedCase], first: str, second: str) -> tuple[Cell, ...]:
    own, others = of_planner(cases, first), of_planner(cases, second)

    def difference(figure: Figure) -> tuple[Cell, int, int]:
        pair = paired_difference(figures(own, figure), figures(others, figure), interval=object_interval)
        return pair.difference, pair.difference.cases, pair.unpaired

    return first, second, *difference(lambda c: c.t95_percent), difference(lambda c: c.case.regret)[0]
