"""The thesis's tables 7.1 and 7.2, its printed values compared with ours, and the regret against
its bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import binomtest

from nbv_bench.experiments.summary.sweep_tables import (
    BELOW_95,
    COVERAGE,
    OBJECT_CLASS,
    PLANNER,
    REGRET,
    T95,
    Cells,
    TableCell,
    grouped,
)
from nbv_bench.statistics import (
    LEVEL,
    TRIAL,
    average,
    groups,
    reference_hint,
    with_all,
)
from nbv_planner.episode.records import ViewColumn
from nbv_planner.report.tables import Cell, Column, Table
from nbv_planner.world.objects import THESIS_OBJECTS

_RANK_REC, _RANK_NBV = Column("rank_rec", "#REC", 1), Column("rank_nbv", "#NBV", 1)
_T_RELATIVE = Column("t_rel_percent", "T / T* (%)", 1)
_T95, _COVERAGE = (replace(merit, interval=False) for merit in (T95, COVERAGE))
PRINTED_REGRET = Column("avg_individual_regret", "mean individual regret", 2)


def _average(column: Column, name: str = "") -> TableCell:
    return column, lambda group: average(group, name or column.name)


_REST: Cells = [_average(_RANK_NBV), _average(PRINTED_REGRET, REGRET.name), BELOW_95]
TABLE_7_1 = (*map(_average, (_RANK_REC, _T95, _T_RELATIVE, _COVERAGE)), *_REST)
TABLE_7_2 = (*map(_average, (_RANK_REC, _T95)), *_REST)


def table_7_1(cases: pd.DataFrame, name: str = "table_7_1") -> Table:
    """Average each planner over all cases, in the order in which planners occur in `cases`."""
    title = f"Averages over all objects{_within(cases)}, as table 7.1 of the thesis"
    return grouped(name, title, note(cases), [PLANNER], TABLE_7_1, groups(cases, "planner"))


def table_7_2(cases: pd.DataFrame, name: str = "table_7_2") -> Table:
    """Average each planner over the cases of each class of objects."""
    title = f"Averages by class of object{_within(cases)}, as table 7.2 of the thesis"
    by, parts = [PLANNER, OBJECT_CLASS], groups(cases, "planner", "object_class")
    return grouped(name, title, note(cases), by, TABLE_7_2, parts)


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
    """Read a printed table, `table_7_1` or `table_7_2`: those columns of ours that it has, by
    planner and class.
    """
    table = pd.read_csv(Path(__file__).parents[1] / f"published_{name}.csv")
    table[OBJECT_CLASS.name] = table.get(OBJECT_CLASS.name, "all")
    return table.set_index([PLANNER.name, OBJECT_CLASS.name]).astype(float)


def compared_with_thesis(cases: pd.DataFrame) -> Table | None:
    """Compare with the printed tables 7.1 and 7.2, a row per quantity, planner and class of
    objects.

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
    parts = dict(groups(with_all(comparable), "planner", "object_class"))
    whole = published_table("table_7_1")
    missed = {place: PUBLISHED_NOT_REACHED[place[0]] for place in whole.index}
    printed = pd.concat([whole, published_table("table_7_2")])
    rows = list[tuple[Cell, ...]]()
    for column, cell in TABLE_7_1:
        known = printed[column.name].dropna() if column.name in printed else missed
        for names, theirs in known.items():
            if names in parts and (ranked or column not in (_RANK_REC, _RANK_NBV)):
                ours: Any = cell(parts[names])
                rows.append((*names, column.name, ours, theirs, ours - theirs))
    title = "Compared with the thesis's tables 7.1 and 7.2"
    return Table("compared_with_thesis", title, note, _COLUMNS, tuple(rows))


def published_means(cases: pd.DataFrame, figure: str) -> dict[str, float]:
    """A value printed in table 7.1 by planner, of those that :func:`compared_with_thesis`
    compares.
    """
    printed = published_table("table_7_1").get(figure, {})
    known = set(_comparable(cases[cases["protocol"] == "thesis"])["planner"])
    return {planner: value for (planner, _), value in printed.items() if planner in known}


def _comparable(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases of those published planners that have finished exactly the thesis's objects, of the
    first seed.
    """
    everything = {text for family in THESIS_OBJECTS.values() for text in family}
    first = cases[
        (cases["seed"] == cases["seed"].min()) & cases["planner"].isin(PUBLISHED_NOT_REACHED)
    ]
    return first.groupby("planner").filter(lambda group: set(group["object"]) == everything)


def theory_runs(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Runs as :func:`nbv_bench.experiments.theory.run_theory_case` gives them, and which are below
    the bound.

    A row per run; the bound is that with γ_T from the spectrum, `planner` is the label.
    """
    frame = pd.DataFrame([{**row, "planner": row["case"]["planner"]} for row in rows])
    below = {
        f"{name}_below": frame[name] <= frame["bound_spectral"]
        for name in ("individual_regret", "objective_sum")
    }
    return frame.assign(**below, rec_percent=100.0 * frame[ViewColumn.coverage.name])


def _least_held(held: pd.Series) -> float:
    """Lower end of the one-sided Clopper-Pearson interval of the probability that the band holds,
    per cent.
    """
    return 100.0 * float(
        binomtest(int(held.sum()), len(held), alternative="greater").proportion_ci(LEVEL).low
    )


_OF_RUNS = (
    (Column("proof", "proof"), "proof", "first"),
    (Column("confidence", "band"), "confidence", "first"),
    (Column("runs", "runs"), "proof", "size"),
    (Column("individual_regret", "R_ind(T)", 0), "individual_regret", "mean"),
    (Column("objective_sum", "Σ F_u", 0), "objective_sum", "mean"),
    (Column("bound", "bound", 0), "bound_spectral", "mean"),
    (Column("regret_below", "R_ind below"), "individual_regret_below", "sum"),
    (Column("objective_below", "Σ F_u below"), "objective_sum_below", "sum"),
    (Column("band_held", "band held"), "band_holds", "sum"),
    (Column("band_held_low", "band held, at least (%)", 1), "band_holds", _least_held),
    (replace(COVERAGE, interval=False), "rec_percent", "mean"),
)
"""Column of the table, column of the runs, and what is made of it."""


MEASURED = {"line_of_sight": "line of sight", "surface_points": "all that is seen"}


def theory_table(rows: Sequence[Mapping[str, Any]], delta: float) -> Table:
    """One row per measurement and planner; δ is the probability with which the scheduled band may
    miss the surface.
    """
    groups = theory_runs(rows).groupby(["measurement", "planner"], sort=False)
    made = groups.agg(
        **{column.name: (source, how) for column, source, how in _OF_RUNS}
    ).reset_index()
    columns = (
        Column("measured", "measured", words=MEASURED),
        PLANNER,
        *(column for column, *_ in _OF_RUNS),
    )
    note = (
        "Means over the runs. Bound: C1' sqrt(T β_T γ_T) + C2' with γ_T from the spectrum of the"
        " kernel. Band held: runs in which l <= f <= u at all grid angles in all rounds, and the"
        f" lower end of the one-sided {LEVEL:.0%} Clopper-Pearson interval of its probability; the"
        f" schedule promises 1 − δ = {1.0 - delta:g}."
    )
    return Table(
        "theory",
        "Regret and its bound",
        note,
        columns,
        tuple(made.itertuples(index=False, name=None)),
    )
