"""Means of each planner and differences between planners, with confidence intervals over the seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbv_planner.evaluation.statistics import mean_interval, paired_difference
from nbv_planner.experiments.report.cases import distinct
from nbv_planner.experiments.report.comparison import ComparedCase, Figure, figures, of_planner
from nbv_planner.experiments.report.thesis_tables import NOT_REACHED, not_reached
from nbv_planner.reports.table import Cell, Column, Table


@dataclass(frozen=True)
class Merit:
    """A figure of merit.

    Attributes:
        name: its name in CSV.
        title: its name and unit for people.
        digits: decimals for people.
        of: takes it from a case.
    """

    name: str
    title: str
    digits: int
    of: Figure


MERITS = (
    Merit("t95_rel_percent", "T95 / T95* (%)", 1, lambda c: c.t95_percent),
    Merit("regret", "mean individual regret", 2, lambda c: c.case.regret),
    Merit("rec_percent", "coverage (%)", 1, lambda c: 100.0 * c.case.coverage),
    Merit("rmse", "RMSE (m)", 3, lambda c: c.case.rmse),
    Merit("hausdorff", "Hausdorff distance (m)", 3, lambda c: c.case.hausdorff),
    Merit("iou", "IoU", 4, lambda c: c.case.iou),
    Merit("band_coverage", "in the band (fraction)", 3, lambda c: c.case.band_coverage),
    Merit("travelled", "way travelled (m)", 1, lambda c: c.case.travelled),
)
"""What planners are compared by."""

_NOTE = (
    "Means over objects of the means over seeds, N/A left out. Intervals: 95 %, Student's, over the seeds; the objects "
    "are a fixed set, so an interval says nothing about other objects, and with one seed there is none."
)


def planner_table(cases: Sequence[ComparedCase]) -> Table:
    """Mean and interval of each figure, one row per protocol and planner."""
    columns = [
        Column("protocol", "protocol"), Column("algorithm", "planner"), Column("episodes", "episodes"), NOT_REACHED,
        *(Column(merit.name, merit.title, merit.digits, interval=True) for merit in MERITS),
    ]
    rows = [_planner_row(protocol, planner, own) for protocol, planner, own in _groups(cases)]
    return Table("planners", "Planners", _NOTE, tuple(columns), tuple(rows))


def _planner_row(protocol: str, planner: str, cases: Sequence[ComparedCase]) -> tuple[Cell, ...]:
    row: list[Cell] = [protocol, planner, len(cases), not_reached(cases)]
    row += [mean_interval(figures(cases, merit.of)) for merit in MERITS]
    return tuple(row)


def _groups(cases: Sequence[ComparedCase]) -> Iterator[tuple[str, str, list[ComparedCase]]]:
    """Cases by protocol and planner."""
    for protocol in distinct(c.case.trial.protocol for c in cases):
        within = [c for c in cases if c.case.trial.protocol == protocol]
        for planner in distinct(c.case.planner for c in within):
            yield protocol, planner, of_planner(within, planner)


def paired_table(cases: Sequence[ComparedCase]) -> Table:
    """Mean difference of each figure between each two planners on the same objects and seeds."""
    columns = (
        Column("protocol", "protocol"), Column("figure", "figure", words={m.name: m.title for m in MERITS}),
        Column("algorithm", "planner"), Column("other", "minus"),
        Column("difference", "mean difference", interval=True), Column("pairs", "pairs"),
        Column("unpaired", "left out"),
    )
    note = (
        "Differences on the same object and seed, averaged; intervals as in the table of planners, not corrected for "
        "the number of comparisons. Left out: object and seed for which only one of the two has a value."
    )
    rows = [row for merit in MERITS for row in _paired_rows(cases, merit)]
    return Table("paired", "Paired differences between planners", note, columns, tuple(rows))


def _paired_rows(cases: Sequence[ComparedCase], merit: Merit) -> Iterator[tuple[Cell, ...]]:
    for (protocol, first, own), (other_protocol, second, others) in itertools.combinations(_groups(cases), 2):
        if protocol == other_protocol:
            pair = paired_difference(figures(own, merit.of), figures(others, merit.of))
            yield protocol, merit.name, first, second, pair.difference, pair.difference.cases, pair.unpaired
