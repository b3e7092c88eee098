"""The thesis's tables 7.1 (all objects) and 7.2 (by class of object), with a count of what they leave out."""

from __future__ import annotations

from collections.abc import Sequence

from nbv_planner.experiments.report.cases import by_trial, distinct
from nbv_planner.experiments.report.comparison import ComparedCase, average, object_classes, of_planner
from nbv_planner.reports.table import Cell, Column, Table

_ALGORITHM = Column("algorithm", "planner")
_CLASS = Column("object_class", "objects")
_RANK_REC = Column("rank_rec", "#REC", 1)
_T95 = Column("t95_rel_percent", "T95 / T95* (%)", 1)
_T = Column("t_rel_percent", "T / T* (%)", 1)
_REC = Column("rec_percent", "coverage (%)", 1)
_RANK_NBV = Column("rank_nbv", "#NBV", 1)
_REGRET = Column("avg_individual_regret", "mean individual regret", 2)
NOT_REACHED = Column("not_reached", "N/A: below 95 %")

TABLE_7_1 = (_ALGORITHM, _RANK_REC, _T95, _T, _REC, _RANK_NBV, _REGRET, NOT_REACHED)
TABLE_7_2 = (_ALGORITHM, _CLASS, _RANK_REC, _T95, _RANK_NBV, _REGRET, NOT_REACHED)


def table_7_1(cases: Sequence[ComparedCase], name: str = "table_7_1") -> Table:
    """Average each planner over all cases, in the order in which planners occur in `cases`."""
    planners = distinct(c.case.planner for c in cases)
    rows = [_row(TABLE_7_1, planner, "all", of_planner(cases, planner)) for planner in planners]
    title = f"Averages over all objects{_within(cases)}, as table 7.1 of the thesis"
    return Table(name, title, note(cases), TABLE_7_1, tuple(rows))


def table_7_2(cases: Sequence[ComparedCase], name: str = "table_7_2") -> Table:
    """Average each planner over the cases of each class of objects."""
    rows = [
        _row(TABLE_7_2, planner, family, [c for c in of_planner(cases, planner) if c.case.trial.object_class == family])
        for planner in distinct(c.case.planner for c in cases)
        for family in object_classes(cases)
    ]
    title = f"Averages by class of object{_within(cases)}, as table 7.2 of the thesis"
    return Table(name, title, note(cases), TABLE_7_2, tuple(rows))


def _row(
    columns: Sequence[Column], planner: str, family: str, cases: Sequence[ComparedCase]
) -> tuple[Cell, ...]:
    values: dict[str, Cell] = {
        "algorithm": planner,
        "object_class": family,
        "rank_rec": average(cases, lambda c: c.rank_rec),
        "t95_rel_percent": average(cases, lambda c: c.t95_percent),
        "t_rel_percent": average(cases, lambda c: c.t_percent),
        "rec_percent": 100.0 * average(cases, lambda c: c.case.coverage),
        "rank_nbv": average(cases, lambda c: c.rank_nbv),
        "avg_individual_regret": average(cases, lambda c: c.case.regret),
        "not_reached": not_reached(cases),
    }
    return tuple(values[column.name] for column in columns)


def _within(cases: Sequence[ComparedCase]) -> str:
    """Say in which protocol, if there are cases."""
    protocols = distinct(c.case.trial.protocol for c in cases)
    return f" in the {' and '.join(protocols)} protocol" if protocols else ""


def not_reached(cases: Sequence[ComparedCase]) -> int:
    """Number of cases in which the planner itself stays below 95 %."""
    return sum(c.case.views_95 is None for c in cases)


def note(cases: Sequence[ComparedCase]) -> str:
    """Say what the averages leave out."""
    without = sum(c.case.views_95 is not None and c.t95_percent is None for c in cases)
    trials = by_trial([c.case for c in cases])
    planners = set(distinct(c.case.planner for c in cases))
    partial = sum(present.keys() != planners for present in trials.values())
    parts = [
        "Averages leave N/A out; the last column counts the episodes that never reach 95 %, which have neither T95 nor "
        "ranks. T95* and T* are those of the omniscient greedy planner on the same object and seed."
    ]
    if without:
        parts.append(f"{without} episodes reach 95 % but have no reference that does: they are left out of T95 / T95*.")
    if partial:
        parts.append(f"{partial} of {len(trials)} objects and seeds lack a planner: nobody is ranked there.")
    return " ".join(parts)
