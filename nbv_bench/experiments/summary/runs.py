"""Runs to compare, from bags, episode results or sweep results, and their tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from nbv_bench.experiments.folder import MANIFEST_FILE
from nbv_bench.experiments.results import checked_episode, read_episodes
from nbv_bench.experiments.summary.sweep_tables import (
    NUMBER,
    PAIRS,
    UNPAIRED,
    grouped,
    mean_of,
    numbers,
)
from nbv_bench.experiments.sweep import setting_text
from nbv_bench.statistics import coverage_band, each_pair, figures_of, mean_interval
from nbv_planner.bags.analysis import Analysis
from nbv_planner.episode.records import Metric, ViewColumn
from nbv_planner.errors import ResultsError, SettingError
from nbv_planner.files.results_folder import RECORD_FILE, read_json
from nbv_planner.report.tables import Cell, Column, Table

_COLUMNS = tuple(
    Column.of(quantity, interval=True)
    for quantity in (
        Metric.T,
        Metric.T95,
        Metric.C95,
        Metric.rec,
        Metric.completeness,
        Metric.accuracy,
        Metric.mean_individual_regret,
        ViewColumn.chamfer,
        ViewColumn.travelled,
        ViewColumn.seconds,
        Metric.time95,
    )
)
_NAMES = [column.name for column in _COLUMNS]


class ComparedRun(NamedTuple):
    """The episodes of one planner, and its label.

    A row per episode: `object` and `seed`, which two runs must have in common to be compared;
    `curve`, the coverage after each view, 0 to 1; `true`, whether that is the true one, not the
    estimated one; and the columns of :func:`runs_table`, NaN where nothing is known.
    """

    label: str
    episodes: pd.DataFrame

    @property
    def coverage_kind(self) -> str:
        """`true`, `estimated` or `mixed`."""
        kinds = self.episodes["true"]
        return "true" if kinds.all() else "mixed" if kinds.any() else "estimated"

    @property
    def mean_coverage(self) -> list[float]:
        """Mean over the episodes after each view; one that has ended keeps its coverage."""
        curves = list(self.episodes["curve"])
        mean = coverage_band(curves, max(len(curve) for curve in curves)).mean
        return [float(value) for value in mean[1:]]


def compared_episodes(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Episodes of a :class:`ComparedRun`, given what is known of each by the name of its column."""
    frame = pd.DataFrame(rows, columns=["run", "object", "seed", "curve", "true", *_NAMES])
    return frame.astype(dict.fromkeys(_NAMES, float))


def short_names(paths: Sequence[str]) -> list[str]:
    """Names of files and folders without their common parent folder."""
    whole = [os.path.abspath(path) for path in paths]
    common = os.path.commonpath([os.path.dirname(path) for path in whole])
    return [os.path.relpath(path, common) for path in whole]


def compared_runs(
    path: str, name: str, analyse_bag: Callable[[str], Analysis]
) -> list[ComparedRun]:
    """Read a bag, a folder with `episode.json`, or the results of a sweep, which are a run per
    planner.

    A single run is called `name`; `analyse_bag` analyses a bag.

    Raises:
        NbvPlannerError: it is something else, or cannot be read.
    """
    folder = Path(path)
    if (folder / MANIFEST_FILE).is_file():
        return _runs_of_sweep(folder)
    if (folder / RECORD_FILE).is_file():
        episode = checked_episode(
            read_json(folder / RECORD_FILE), folder / RECORD_FILE, (ViewColumn.coverage,), ()
        )
        seed = episode.get("seed")
        case = {
            "object": str(episode["config"].get("object")),
            "seed": seed if isinstance(seed, int) else 0,
        }
        return [ComparedRun(name, compared_episodes([case | _of_record(episode)]))]
    analysis = analyse_bag(path)
    # a bag without a true object is a case of its own
    case = {"object": f"object of {name}", "seed": 0}
    if analysis.truth is not None and analysis.config is not None:
        case = {"object": analysis.config.object, "seed": analysis.config.sensor.seed}
    known = {"curve": analysis.coverage, "true": False, Metric.T.name: len(analysis.views)}
    if analysis.record is not None:
        known = _of_record(analysis.record.to_json())
    return [ComparedRun(name, compared_episodes([case | known]))]


def all_runs(paths: Sequence[str], analyse_bag: Callable[[str], Analysis]) -> list[ComparedRun]:
    """The runs of several paths, see :func:`compared_runs`.

    Raises:
        NbvPlannerError: one cannot be read, or two have the same label.
    """
    named = zip(paths, short_names(paths), strict=True)
    runs = [run for path, name in named for run in compared_runs(path, name, analyse_bag)]
    labels = [run.label for run in runs]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise SettingError(f"{min(twice)} is named twice")
    return runs


def _runs_of_sweep(folder: Path) -> list[ComparedRun]:
    rows = []
    for episode in read_episodes(folder).episodes:
        case = episode["case"]
        rows.append(
            {
                **case,
                "run": f"{case['planner']} ({setting_text(case)}, {folder.name})",
                **_of_record(episode),
            }
        )
    if not rows:
        raise ResultsError(f"{folder}: no episode of the sweep is finished")
    return [
        ComparedRun(label, group)
        for label, group in compared_episodes(rows).groupby("run", sort=False)
    ]


def _of_record(episode: Mapping[str, Any]) -> dict[str, Any]:
    coverage = ViewColumn.coverage.each(episode["views"])
    return {**figures_of(episode), "curve": coverage, "true": True}


def runs_table(runs: Sequence[ComparedRun]) -> Table:
    """Each run separately: means over objects and seeds."""
    note = (
        "Means with 95 % confidence intervals over the seeds, from three on. Episodes that never"
        " reach 95 % count in no T95, those that never reach 95 % completeness in no C95."
    )
    kinds = [((run.label, run.coverage_kind), run.episodes) for run in runs]
    by = Column("run", "run"), Column("coverage", "coverage")
    return grouped("runs", "Runs", note, by, [NUMBER, *map(mean_of, _COLUMNS)], kinds)


def paired_runs_table(runs: Sequence[ComparedRun]) -> Table:
    """Differences between runs on the same objects and seeds; of many runs each with the first."""
    columns = (Column("pair", "first − second"), PAIRS, UNPAIRED, *_COLUMNS)
    note = (
        "Mean difference over the same objects and seeds, with 95 % confidence intervals over the"
        " seeds; N/A where the runs have no episode of the same object and seed with that value."
    )
    figures = {run.label: run.episodes.set_index(["object", "seed"])[_NAMES] for run in runs}
    rows = list[tuple[Cell, ...]]()
    for first, second in each_pair(runs):
        found = figures[first.label] - figures[second.label]
        means = (mean_interval(found[name]) for name in _NAMES)
        label = f"{first.label} − {second.label}"
        rows.append((label, *numbers(found[Metric.T.name]), *means))
    return Table("paired", "Differences", note, columns, tuple(rows))
