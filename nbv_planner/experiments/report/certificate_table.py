"""Whether what a certificate of coverage claimed was so, and how late it was claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import binomtest

from nbv_planner.evaluation.metrics import views_to
from nbv_planner.evaluation.statistics import MeanInterval, object_interval
from nbv_planner.experiments.report.cases import distinct
from nbv_planner.planning.termination import TerminationReason
from nbv_planner.reports.table import Cell, Column, Table

_COLUMNS = (
    Column("protocol", "protocol"), Column("algorithm", "planner"), Column("object_class", "objects"),
    Column("episodes", "episodes"), Column("claims", "ended COVERED"), Column("held", "claim held"),
    Column("held_percent", "claim held (%)", 1, interval=True),
    Column("views_late", "views late, where it held", 2, interval=True), Column("most_late", "most views late"),
)
_NOTE = (
    "Held: the coverage at the end was the one claimed. Views late: those taken after the first view at which it was; "
    "where a claim did not hold, that view never came. Intervals: 95 %, Wilson's for the part that held, Student's "
    "over the episodes for the views, as if these were independent."
)


@dataclass(frozen=True)
class _Ending:
    """How one episode ended.

    Attributes:
        group: protocol, planner and class of the object.
        claimed: whether it ended COVERED.
        late: views taken after the coverage claimed was reached; None if it was not, or nothing was claimed.
    """

    group: tuple[str, str, str]
    claimed: bool
    late: int | None


def certificate_table(episodes: Sequence[Mapping[str, Any]]) -> Table | None:
    """One row per protocol and planner over all objects and over each class; None if no episode ended COVERED.

    Args:
        episodes: as they were written to their files; the rows follow their order.
    """
    endings = [_ending(episode) for episode in episodes]
    certified = distinct(ending.group[:2] for ending in endings if ending.claimed)
    rows = []
    for protocol, planner in certified:
        own = [ending for ending in endings if ending.group[:2] == (protocol, planner)]
        rows.append(_row((protocol, planner, "all"), own))
        classes = distinct(ending.group for ending in own)
        if len(classes) > 1:
            rows += [_row(group, [ending for ending in own if ending.group == group]) for group in classes]
    return Table("certificate", "Certificate of coverage", _NOTE, _COLUMNS, tuple(rows)) if rows else None


def _ending(episode: Mapping[str, Any]) -> _Ending:
    case, termination, views = episode["case"], episode["termination"], episode["views"]
    group = case["protocol"], case["planner"], case["object_class"]
    if termination["reason"] != TerminationReason.COVERED.value:
        return _Ending(group, False, None)
    target = termination["target_coverage"]
    reached = views_to((view["coverage"] for view in views), target)
    return _Ending(group, True, None if reached is None else len(views) - reached)


def _row(group: tuple[str, str, str], endings: Sequence[_Ending]) -> tuple[Cell, ...]:
    claims = sum(ending.claimed for ending in endings)
    late = [ending.late for ending in endings if ending.late is not None]
    mean = object_interval({(number, 0): float(views) for number, views in enumerate(late)})
    return (*group, len(endings), claims, len(late), _percent(len(late), claims), mean, max(late, default=None))


def _percent(held: int, claims: int) -> MeanInterval | None:
    if not claims:
        return None
    low, high = binomtest(held, claims).proportion_ci(0.95, method="wilson")
    return MeanInterval(100.0 * held / claims, 100.0 * low, 100.0 * high, claims)
