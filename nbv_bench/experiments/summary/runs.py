"""Runs to compare, from bags, episode results or sweep results, and their tables."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbv_bench.experiments.folder import MANIFEST_FILE, read_episodes
from nbv_bench.experiments.summary.sweep_tables import EPISODES, PAIRS, UNPAIRED
from nbv_bench.experiments.sweep import setting_words
from nbv_bench.statistics import Cases, coverage_band, mean_interval, paired_difference
from nbv_planner.bags.analysis import Analysis
from nbv_planner.episode.records import Metric, ViewColumn, checked_episode
from nbv_planner.errors import ResultsError
from nbv_planner.files.results_folder import RECORD_FILE, read_json
from nbv_planner.report.tables import Cell, Column, Table

Case = tuple[str, int]
"""Object and seed: what two runs must have in common to be compared."""


@dataclass(frozen=True)
class ComparedEpisode:
    """One episode: coverage after each view, 0 to 1, and whether that is the true one, not the estimated one.

    The figures are those that are known of the columns of :func:`runs_table`.
    """

    coverage: Sequence[float]
    true: bool
    figures: Mapping[str, float]


@dataclass(frozen=True)
class ComparedRun:
    """One planner's episodes by object and seed, and what it is called."""

    label: str
    episodes: Mapping[Case, ComparedEpisode]

    def figures(self, name: str) -> Cases:
        """A value of the episodes that have it, by object and seed."""
        return {case: episode.figures[name] for case, episode in self.episodes.items() if name in episode.figures}

    @property
    def coverage_kind(self) -> str:
        """`true`, `estimated` or `mixed`."""
        kinds = {episode.true for episode in self.episodes.values()}
        return "mixed" if len(kinds) > 1 else "true" if True in kinds else "estimated"

    @property
    def mean_coverage(self) -> list[float]:
        """Mean over the episodes after each view; one that has ended keeps its coverage."""
        coverages = [episode.coverage for episode in self.episodes.values()]
        mean = coverage_band(coverages, max(len(coverage) for coverage in coverages)).mean
        return [float(value) for value in mean[1:]]


def short_names(paths: Sequence[str]) -> list[str]:
    """Names of files and folders without their common parent folder."""
    whole = [os.path.abspath(path) for path in paths]
    common = os.path.commonpath([os.path.dirname(path) for path in whole])
    return [os.path.relpath(path, common) for path in whole]


def compared_runs(path: str, name: str, analyse_bag: Callable[[str], Analysis]) -> list[ComparedRun]:
    """Read a bag, a folder with `episode.json`, or the results of a sweep, which are a run per planner.

    A single run is called `name`; `analyse_bag` analyses a bag.

    Raises:
        NbvPlannerError: it is none of these, or cannot be read.
    """
    folder = Path(path)
    if (folder / MANIFEST_FILE).is_file():
        return _runs_of_sweep(folder)
    if (folder / RECORD_FILE).is_file():
        episode = checked_episode(read_json(folder / RECORD_FILE), folder / RECORD_FILE, (ViewColumn.coverage,), ())
        seed = episode.get("seed")
        case = str(episode["config"].get("object")), seed if isinstance(seed, int) else 0
        return [ComparedRun(name, {case: _of_record(episode)})]
    analysis = analyse_bag(path)
    case = (f"object of {name}", 0)  # a bag without true object is a separate case
    if analysis.truth is not None and analysis.config is not None:
        case = (analysis.config.object, analysis.config.sensor.seed)
    if analysis.record is not None:
        return [ComparedRun(name, {case: _of_record(analysis.record.to_json())})]
    figures = {Metric.T.name: float(len(analysis.views))}
    return [ComparedRun(name, {case: ComparedEpisode(analysis.coverage, False, figures)})]


def _runs_of_sweep(folder: Path) -> list[ComparedRun]:
    results = read_episodes(folder)
    by_planner: dict[str, dict[Case, ComparedEpisode]] = defaultdict(dict)
    for episode in results.episodes:
        case = episode["case"]
        label = f"{case['planner']} ({setting_words(case)}, {folder.name})"
        by_planner[label][case["object"], case["seed"]] = _of_record(episode)
    if not by_planner:
        raise ResultsError(f"{folder}: no episode of the sweep is finished")
    return [ComparedRun(label, episodes) for label, episodes in by_planner.items()]


def _of_record(episode: Mapping[str, Any]) -> ComparedEpisode:
    views, metrics = episode["views"], episode["metrics"]
    figures = {name: float(value) for name, value in metrics.items() if value is not None}
    for column in _AT_END if views else ():
        if (value := column.of(views[-1])) is not None:
            figures[column.name] = float(value)
    return ComparedEpisode([float(ViewColumn.coverage.of(view)) for view in views], True, figures)


_AT_END = (ViewColumn.chamfer, ViewColumn.travelled, ViewColumn.seconds)
_COLUMNS = tuple(
    Column.of(quantity, interval=True)
    for quantity in (
        Metric.T, Metric.T95, Metric.C95, Metric.rec, Metric.completeness, Metric.accuracy,
        Metric.mean_individual_regret, *_AT_END, Metric.time95,
    )
)
_MOST_RUNS = 8


def runs_table(runs: Sequence[ComparedRun]) -> Table:
    """Each run separately: means over objects and seeds."""
    columns = (Column("run", "run"), EPISODES, Column("coverage", "coverage"), *_COLUMNS)
    note = (
        "Means with 95 % confidence intervals over the seeds, from three on. Episodes that never reach 95 % count in "
        "no T95, those that never reach 95 % completeness in no C95."
    )
    rows = list[tuple[Cell, ...]]()
    for run in runs:
        means = (mean_interval(run.figures(column.name)) for column in _COLUMNS)
        rows.append((run.label, len(run.episodes), run.coverage_kind, *means))
    return Table("runs", "Runs", note, columns, tuple(rows))


def paired_runs_table(runs: Sequence[ComparedRun]) -> Table:
    """Differences between runs on the same objects and seeds; of many runs each with the first."""
    columns = (Column("pair", "first − second"), PAIRS, UNPAIRED, *_COLUMNS)
    note = (
        "Mean difference over the same objects and seeds, with 95 % confidence intervals over the seeds; N/A where the "
        "runs have no episode of the same object and seed with that value."
    )
    pairs = list(itertools.combinations(runs, 2)) if len(runs) <= _MOST_RUNS else [(runs[0], run) for run in runs[1:]]
    rows = list[tuple[Cell, ...]]()
    for first, second in pairs:
        own, others = set(first.episodes), set(second.episodes)
        found = (paired_difference(first.figures(c.name), second.figures(c.name)).difference for c in _COLUMNS)
        rows.append((f"{first.label} − {second.label}", len(own & others), len(own ^ others), *found))
    return Table("paired", "Differences", note, columns, tuple(rows))
