"""The thesis's tables 7.1 and 7.2, and its printed values compared with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from itertools import product

import pandas as pd

from nbv_bench.experiments.compared_cases import (
    TRIAL,
    Groups,
    average,
    by_class,
    by_planner,
    reference_hint,
)
from nbv_bench.experiments.summary.sweep_tables import (
    BELOW_95,
    COVERAGE,
    NOT_REACHED,
    OBJECT_CLASS,
    PLANNER,
    REGRET,
    T95,
    Cells,
    grouped,
)
from nbv_planner.report.tables import Cell, Column, Table
from nbv_planner.world.objects import THESIS_OBJECTS

_RANK_REC, _RANK_NBV = Column("rank_rec", "#REC", 1), Column("rank_nbv", "#NBV", 1)
_T_RELATIVE = Column("t_rel_percent", "T / T* (%)", 1)
_T95, _COVERAGE = (replace(merit, interval=False) for merit in (T95, COVERAGE))
PRINTED_REGRET = Column("avg_individual_regret", "mean individual regret", 2)


def _average(column: Column, name: str = "") -> tuple[Column, Callable[[pd.DataFrame], Cell]]:
    return column, lambda group: average(group, name or column.name)


_REST: Cells = [_average(_RANK_NBV), _average(PRINTED_REGRET, REGRET.name), *BELOW_95]
TABLE_7_1 = (*map(_average, (_RANK_REC, _T95, _T_RELATIVE, _COVERAGE)), *_REST)
TABLE_7_2 = (*map(_average, (_RANK_REC, _T95)), *_REST)


def _whole(cases: pd.DataFrame) -> Groups:
    return (((planner,), group) for planner, group in by_planner(cases))


def table_7_1(cases: pd.DataFrame, name: str = "table_7_1") -> Table:
    """Average each planner over all cases, in the order in which planners occur in `cases`."""
    title = f"Averages over all objects{_within(cases)}, as table 7.1 of the thesis"
    return grouped(name, title, note(cases), [PLANNER], TABLE_7_1, _whole(cases))


def table_7_2(cases: pd.DataFrame, name: str = "table_7_2") -> Table:
    """Average each planner over the cases of each class of objects."""
    title = f"Averages by class of object{_within(cases)}, as table 7.2 of the thesis"
    return grouped(name, title, note(cases), [PLANNER, OBJECT_CLASS], TABLE_7_2, by_class(cases))


def _within(cases: pd.DataFrame) -> str:
    """Name the protocol, if there are cases."""
    return f" in the {' and '.join(cases['protocol'].unique())} protocol" if len(cases) else ""


def note(cases: pd.DataFrame) -> str:
    """Name what the averages exclude."""
    without = int((cases["t95"].notna() & cases[T95.name].isna()).sum())
    planners = cases.groupby(TRIAL)["planner"].nunique()
    partial = int((planners < cases["planner"].nunique()).sum())
    parts = [
        "Averages leave N/A out; the last column counts the episodes that never reach 95 %, which"
        " have neither T95 nor ranks. T95* and T* are those of the omniscient greedy planner on the"
        " same object and seed."
    ]
    parts += (hint := reference_hint(cases))
    if without and not hint:
        parts.append(
            f"{without} episodes reach 95 % but have no reference that does: they are left out of"
            " T95 / T95*."
        )
    if partial:
        parts.append(
            f"{partial} of {len(planners)} objects and seeds lack a planner: no ranks there."
        )
    return " ".join(parts)


PUBLISHED_NOT_REACHED = {"greedy_oracle": 0, "CSW": 0, "IOA": 4, "I": 5, "U": 0, "UP": 0, "CS-U": 0}
"""Objects of 22 on which each planner stayed below 95 % in the published runs; the printed tables
leave them out.
"""
_COLUMNS = (
    PLANNER,
    OBJECT_CLASS,
    Column("figure", "figure", words={column.name: column.title for column, _ in TABLE_7_1}),
    Column("ours", "ours", 2),
    Column("published", "published", 2),
    Column("difference", "difference", 2),
)


def published_table(name: str) -> pd.DataFrame:
    """Read a printed table, `table_7_1` or `table_7_2`: those columns of ours that it has, by class
    and planner.
    """
    with (resources.files("nbv_bench.experiments") / f"published_{name}.csv").open(
        encoding="utf-8"
    ) as file:
        table = pd.read_csv(file)
    table[OBJECT_CLASS.name] = table.get(OBJECT_CLASS.name, "all")
    return table.set_index([OBJECT_CLASS.name, PLANNER.name]).astype(float)


def compared_with_thesis(cases: pd.DataFrame) -> Table | None:
    """Compare with the printed tables 7.1 and 7.2, a row per quantity, class of objects and
    planner.

    Any planners and objects; None if no published planner has run on exactly the thesis's 22
    objects.
    """
    comparable = _comparable(cases)
    if comparable.empty:
        return None
    ranked = set(PUBLISHED_NOT_REACHED) == set(cases["planner"])
    note = (
        "Planners are matched by their label in the sweep. The printed tables round; objects below"
        " 95 % (not_reached) are not printed there but were counted in the published runs."
    )
    if not ranked:
        note += " Ranks are compared only where exactly the published planners have run."
    rows = tuple(
        row for row in _rows(comparable) if ranked or row[2] not in (_RANK_REC.name, _RANK_NBV.name)
    )
    return Table(
        "compared_with_thesis",
        "Compared with the thesis's tables 7.1 and 7.2",
        note,
        _COLUMNS,
        rows,
    )


def published_means(cases: pd.DataFrame, figure: str) -> dict[str, float]:
    """A value printed in table 7.1 by planner, of those that :func:`compared_with_thesis`
    compares.
    """
    table = compared_with_thesis(cases[cases["protocol"] == "thesis"])
    rows = [] if table is None else table.records()
    chosen = [row for row in rows if row["figure"] == figure and row[OBJECT_CLASS.name] == "all"]
    return {str(row[PLANNER.name]): float(str(row["published"])) for row in chosen}


def _comparable(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases of those published planners that have finished exactly the thesis's objects, of the
    first seed.
    """
    everything = {text for family in THESIS_OBJECTS.values() for text in family}
    first = cases[
        (cases["seed"] == cases["seed"].min()) & cases["planner"].isin(PUBLISHED_NOT_REACHED)
    ]
    return first.groupby("planner").filter(lambda group: set(group["object"]) == everything)


def _rows(cases: pd.DataFrame) -> Iterator[tuple[Cell, ...]]:
    """Rows by quantity, then class of objects, then planner."""
    whole = published_table("table_7_1")
    missed = whole.index.get_level_values(PLANNER.name).map(PUBLISHED_NOT_REACHED)
    printed = pd.concat(
        [whole.assign(**{NOT_REACHED.name: missed.astype(object)}), published_table("table_7_2")]
    )
    groups = {("all", *planner): group for planner, group in _whole(cases)}
    groups |= {names[::-1]: group for names, group in by_class(cases)}
    for column, cell in TABLE_7_1:
        known = printed[column.name].dropna() if column.name in printed else {}
        for place in product(("all", *THESIS_OBJECTS), cases["planner"].unique()):
            if place in known:
                ours = cell(groups[place])
                difference = ours - known[place] if isinstance(ours, (int, float)) else None
                yield *place[::-1], column.name, ours, known[place], difference
