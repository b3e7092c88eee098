"""The thesis's tables 7.1 and 7.2, and its printed values compared with ours."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import resources

from nbv_bench.experiments.summary.sweep_report import (
    ComparedCase,
    Group,
    average,
    by_class,
    by_planner,
    distinct,
    of_planner,
    reference_hint,
)
from nbv_bench.experiments.summary.sweep_tables import COVERAGE, NOT_REACHED, OBJECT_CLASS, PLANNER, REGRET, T95
from nbv_planner.episode.records import Metric
from nbv_planner.report.tables import Cell, Column, Table, table_of
from nbv_planner.world.objects import THESIS_OBJECTS

_RANK_REC, _RANK_NBV = Column("rank_rec", "#REC", 1), Column("rank_nbv", "#NBV", 1)
_T_RELATIVE = Column("t_rel_percent", "T / T* (%)", 1)
PRINTED_REGRET = Column("avg_individual_regret", "mean individual regret", 2)
_CELLS: tuple[tuple[Column, Callable[[Group], Cell]], ...] = (
    (PLANNER, lambda g: g.planner),
    (OBJECT_CLASS, lambda g: g.family),
    (_RANK_REC, lambda g: average(g.cases, lambda c: c.rank_rec)),
    (T95.plain, lambda g: average(g.cases, T95.of)),
    (_T_RELATIVE, lambda g: average(g.cases, lambda c: c.t_percent)),
    (COVERAGE.plain, lambda g: 100.0 * average(g.cases, lambda c: c[Metric.rec])),
    (_RANK_NBV, lambda g: average(g.cases, lambda c: c.rank_nbv)),
    (PRINTED_REGRET, lambda g: average(g.cases, REGRET.of)),
    (NOT_REACHED, lambda g: g.not_reached),
)
TABLE_7_1 = tuple(pair for pair in _CELLS if pair[0] != OBJECT_CLASS)
TABLE_7_2 = tuple(pair for pair in _CELLS if pair[0] not in (_T_RELATIVE, COVERAGE.plain))


def table_7_1(cases: Sequence[ComparedCase], name: str = "table_7_1") -> Table:
    """Average each planner over all cases, in the order in which planners occur in `cases`."""
    title = f"Averages over all objects{_within(cases)}, as table 7.1 of the thesis"
    return table_of(name, title, note(cases), TABLE_7_1, by_planner(cases))


def table_7_2(cases: Sequence[ComparedCase], name: str = "table_7_2") -> Table:
    """Average each planner over the cases of each class of objects."""
    title = f"Averages by class of object{_within(cases)}, as table 7.2 of the thesis"
    return table_of(name, title, note(cases), TABLE_7_2, by_class(cases))


def _within(cases: Sequence[ComparedCase]) -> str:
    """Name the protocol, if there are cases."""
    protocols = distinct(c.trial.protocol for c in cases)
    return f" in the {' and '.join(protocols)} protocol" if protocols else ""


def note(cases: Sequence[ComparedCase]) -> str:
    """Name what the averages exclude."""
    without = sum(c[Metric.T95] is not None and c.t95_percent is None for c in cases)
    trials = defaultdict(set)
    for case in cases:
        trials[case.trial].add(case.planner)
    partial = sum(present != {c.planner for c in cases} for present in trials.values())
    parts = [
        "Averages leave N/A out; the last column counts the episodes that never reach 95 %, which have neither T95 nor "
        "ranks. T95* and T* are those of the omniscient greedy planner on the same object and seed."
    ]
    parts += (hint := reference_hint(cases))
    if without and not hint:
        parts.append(f"{without} episodes reach 95 % but have no reference that does: they are left out of T95 / T95*.")
    if partial:
        parts.append(f"{partial} of {len(trials)} objects and seeds lack a planner: no ranks there.")
    return " ".join(parts)


PUBLISHED_NOT_REACHED = {"greedy_oracle": 0, "CSW": 0, "IOA": 4, "I": 5, "U": 0, "UP": 0, "CS-U": 0}
"""Objects of 22 on which each planner stayed below 95 % in the published runs; the printed tables leave them out."""
_COLUMNS = (
    PLANNER, OBJECT_CLASS, Column("figure", "figure", words={column.name: column.title for column, _ in TABLE_7_1}),
    Column("ours", "ours", 2), Column("published", "published", 2), Column("difference", "difference", 2),
)


def published_rows(name: str) -> list[dict[str, str | float]]:
    """Read a printed table, `table_7_1` or `table_7_2`, with those columns of ours that it has."""
    file = resources.files("nbv_bench.experiments") / f"published_{name}.csv"
    rows = []
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        numbers = {key: text if key in (PLANNER.name, OBJECT_CLASS.name) else float(text) for key, text in row.items()}
        rows.append({OBJECT_CLASS.name: "all", **numbers})
    return rows


def compared_with_thesis(cases: Sequence[ComparedCase]) -> Table | None:
    """Compare with the printed tables 7.1 and 7.2, a row per quantity, class of objects and planner.

    Any planners and objects; None if no published planner has run on exactly the thesis's 22 objects.
    """
    comparable = _comparable(cases)
    if not comparable:
        return None
    ranked = set(PUBLISHED_NOT_REACHED) == {c.planner for c in cases}
    note = (
        "Planners are matched by their label in the sweep. The printed tables round; objects below 95 % (not_reached) "
        "are not printed there but were counted in the published runs."
    )
    if not ranked:
        note += " Ranks are compared only where exactly the published planners have run."
    rows = tuple(row for row in _rows(comparable) if ranked or row[2] not in (_RANK_REC.name, _RANK_NBV.name))
    return Table("compared_with_thesis", "Compared with the thesis's tables 7.1 and 7.2", note, _COLUMNS, rows)


def published_means(cases: Sequence[ComparedCase], figure: str) -> dict[str, float]:
    """A value printed in table 7.1 by planner, of those that :func:`compared_with_thesis` compares."""
    table = compared_with_thesis([c for c in cases if c.trial.protocol == "thesis"])
    rows = [] if table is None else table.records()
    chosen = [row for row in rows if row["figure"] == figure and row[OBJECT_CLASS.name] == "all"]
    return {str(row[PLANNER.name]): float(str(row["published"])) for row in chosen}


def _comparable(cases: Sequence[ComparedCase]) -> list[ComparedCase]:
    """The cases of those published planners that have finished exactly the thesis's objects, of the first seed."""
    first = min((c.trial.seed for c in cases), default=0)
    everything = {text for family in THESIS_OBJECTS.values() for text in family}
    kept = list[ComparedCase]()
    for planner in distinct(c.planner for c in cases):
        own = [c for c in of_planner(cases, planner) if c.trial.seed == first]
        if planner in PUBLISHED_NOT_REACHED and {c.trial.object for c in own} == everything:
            kept += own
    return kept


def _rows(cases: Sequence[ComparedCase]) -> Iterator[tuple[Cell, ...]]:
    """Rows by quantity, then class of objects, then planner."""
    printed = {
        (row[PLANNER.name], row[OBJECT_CLASS.name]): row
        for name in ("table_7_1", "table_7_2") for row in published_rows(name)
    }
    for planner, number in PUBLISHED_NOT_REACHED.items():
        printed[planner, "all"][NOT_REACHED.name] = number
    groups = {(g.family, g.planner): g for g in (*by_planner(cases), *by_class(cases))}
    for column, cell in TABLE_7_1[1:]:
        for family in ("all", *THESIS_OBJECTS):
            for planner in distinct(c.planner for c in cases):
                value = printed[planner, family].get(column.name)
                if isinstance(value, (int, float)):
                    ours = cell(groups[family, planner])
                    difference = ours - value if isinstance(ours, (int, float)) else None
                    yield planner, family, column.name, ours, value, difference
