"""Tables of compared runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from nbv_planner.evaluation.statistics import Cases, mean_interval, paired_difference
from nbv_planner.experiments.comparing.runs import ComparedRun
from nbv_planner.reports.table import Cell, Column, Table

_FIGURES = (
    ("T", "T, views", 2),
    ("T95", "T95, views", 2),
    ("rec", "coverage at the end", 4),
    ("mean_individual_regret", "mean individual regret, points", 2),
    ("travelled", "travelled, m", 2),
)
_COLUMNS = tuple(Column(name, title, digits, interval=True) for name, title, digits in _FIGURES)
_MOST_RUNS = 8


def runs_table(runs: Sequence[ComparedRun]) -> Table:
    """Each run by itself: means over objects and seeds."""
    rows = tuple((run.label, len(run.episodes), _coverage_kind(run), *_means(run)) for run in runs)
    columns = (Column("run", "run"), Column("episodes", "episodes"), Column("coverage", "coverage"), *_COLUMNS)
    note = (
        "Means with 95 % confidence intervals over the seeds; without interval there is one seed. Episodes that never "
        "reach 95 % count in no T95."
    )
    return Table("runs", "Runs", note, columns, rows)


def _coverage_kind(run: ComparedRun) -> str:
    kinds = {episode.true for episode in run.episodes.values()}
    return "mixed" if len(kinds) > 1 else "true" if True in kinds else "estimated"


def _figures(run: ComparedRun, name: str) -> Cases:
    return {case: episode.figures[name] for case, episode in run.episodes.items() if name in episode.figures}


def _means(run: ComparedRun) -> list[Cell]:
    return [mean_interval(_figures(run, name)) for name, _, _ in _FIGURES]


def paired_runs_table(runs: Sequence[ComparedRun]) -> Table:
    """Differences between runs on the same objects and seeds; of many runs each one with the first."""
    pairs = list(itertools.combinations(runs, 2)) if len(runs) <= _MOST_RUNS else [(runs[0], run) for run in runs[1:]]
    rows = []
    for first, second in pairs:
        shared = len(set(first.episodes) & set(second.episodes))
        left_out = len(set(first.episodes) ^ set(second.episodes))
        rows.append((f"{first.label} − {second.label}", shared, left_out, *_differences(first, second)))
    columns = (Column("pair", "first − second"), Column("pairs", "pairs"), Column("unpaired", "left out"), *_COLUMNS)
    note = (
        "Mean difference over the same objects and seeds, with 95 % confidence intervals over the seeds; N/A where the "
        "runs have no episode of the same object and seed with that figure."
    )
    return Table("paired", "Differences", note, columns, tuple(rows))


def _differences(first: ComparedRun, second: ComparedRun) -> list[Cell]:
    return [
        paired_difference(_figures(first, name), _figures(second, name)).difference for name, _, _ in _FIGURES
    ]
