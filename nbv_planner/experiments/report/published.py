"""The figures printed in the thesis beside ours."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from nbv_planner.experiments.report.cases import distinct
from nbv_planner.experiments.report.comparison import ComparedCase, of_planner
from nbv_planner.experiments.report.thesis_tables import TABLE_7_1, table_7_1, table_7_2
from nbv_planner.objects import THESIS_OBJECTS
from nbv_planner.reports.table import Cell, Column, Table

PUBLISHED_NOT_REACHED = {"greedy_oracle": 0, "CSW": 0, "IOA": 4, "I": 5, "U": 0, "UP": 0, "CS-U": 0}
"""Objects of 22 on which each planner stayed below 95 % in the published runs; the printed tables leave them out."""

_RANKS = ("rank_rec", "rank_nbv")
_COLUMNS = (
    Column("algorithm", "planner"),
    Column("object_class", "objects"),
    Column("figure", "figure", words={column.name: column.title for column in TABLE_7_1}),
    Column("ours", "ours", 2),
    Column("published", "published", 2),
    Column("difference", "difference", 2),
)


def published_rows(name: str) -> list[dict[str, str | float]]:
    """Read a printed table, `table_7_1` or `table_7_2`, with the columns of :mod:`.thesis_tables` that it has."""
    file = resources.files("nbv_planner.experiments") / f"published_{name}.csv"
    rows = []
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        numbers = {key: text if key in ("algorithm", "object_class") else float(text) for key, text in row.items()}
        rows.append({"object_class": "all", **numbers})
    return rows


def compared_with_thesis(cases: Sequence[ComparedCase]) -> Table | None:
    """Compare with the printed tables 7.1 and 7.2.

    Args:
        cases: the cases of the thesis protocol, any planners and objects.

    Returns:
        A row per figure, class of objects and planner; None if no published planner has run on exactly the thesis's 22
        objects.
    """
    comparable = _comparable(cases)
    if not comparable:
        return None
    ranked = set(PUBLISHED_NOT_REACHED) == set(distinct(c.case.planner for c in cases))
    rows = tuple(_rows(comparable, with_ranks=ranked))
    note = (
        "Planners are matched by their label in the sweep. The printed tables round; objects below 95 % (not_reached) "
        "are not printed there but were counted in the published runs."
    )
    if not ranked:
        note += " Ranks are compared only where exactly the published planners have run."
    return Table("compared_with_thesis", "Compared with the thesis's tables 7.1 and 7.2", note, _COLUMNS, rows)


def published_means(cases: Sequence[ComparedCase], figure: str) -> dict[str, float]:
    """A figure printed in table 7.1 by planner, of those that :func:`compared_with_thesis` compares."""
    table = compared_with_thesis([c for c in cases if c.case.trial.protocol == "thesis"])
    rows = [] if table is None else [dict(zip([c.name for c in _COLUMNS], row, strict=True)) for row in table.rows]
    chosen = [row for row in rows if row["figure"] == figure and row["object_class"] == "all"]
    return {str(row["algorithm"]): float(str(row["published"])) for row in chosen}


def _comparable(cases: Sequence[ComparedCase]) -> list[ComparedCase]:
    """The cases of those published planners that have finished exactly the thesis's objects, of the first seed."""
    first = min((c.case.trial.seed for c in cases), default=0)
    everything = {text for family in THESIS_OBJECTS.values() for text in family}
    kept: list[ComparedCase] = []
    for planner in distinct(c.case.planner for c in cases):
        own = [c for c in of_planner(cases, planner) if c.case.trial.seed == first]
        if planner in PUBLISHED_NOT_REACHED and {c.case.trial.object for c in own} == everything:
            kept += own
    return kept


def _rows(cases: Sequence[ComparedCase], *, with_ranks: bool) -> Iterator[tuple[Cell, ...]]:
    """Rows by figure, then class of objects, then planner."""
    printed: dict[tuple[object, object], dict[str, str | float]] = {}
    ours: dict[tuple[object, object], Mapping[str, Cell]] = {}
    for name, table in (("table_7_1", table_7_1(cases)), ("table_7_2", table_7_2(cases))):
        printed.update({(row["algorithm"], row["object_class"]): row for row in published_rows(name)})
        for row in _named_rows(table):
            ours[row["algorithm"], row["object_class"]] = row
    for planner, number in PUBLISHED_NOT_REACHED.items():
        printed[planner, "all"]["not_reached"] = number
    families = ["all", *THESIS_OBJECTS]
    for column in TABLE_7_1[1:]:
        if column.name in _RANKS and not with_ranks:
            continue
        for family in families:
            for planner in distinct(c.case.planner for c in cases):
                value = printed[planner, family].get(column.name)
                if isinstance(value, (int, float)):
                    yield _difference(planner, family, column.name, ours[planner, family][column.name], value)


def _named_rows(table: Table) -> Iterator[dict[str, Cell]]:
    names = [column.name for column in table.columns]
    for row in table.rows:
        yield {"object_class": "all", **dict(zip(names, row, strict=True))}


def _difference(planner: str, family: str, figure: str, ours: Cell, published: float) -> tuple[Cell, ...]:
    difference = ours - published if isinstance(ours, (int, float)) else None
    return planner, family, figure, ours, published, difference
