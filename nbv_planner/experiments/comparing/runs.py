"""Runs to be compared, from wherever they were kept: bags, results of an episode, results of a sweep."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbv_planner.bags.analysed import Analysis
from nbv_planner.errors import ResultsError
from nbv_planner.experiments.sweep_results import MANIFEST_FILE, read_sweep
from nbv_planner.results import RECORD_FILE

Case = tuple[str, int]
"""Object and seed: what two runs must have in common to be compared."""


@dataclass(frozen=True)
class ComparedEpisode:
    """One episode.

    Attributes:
        coverage: after each view, 0 to 1.
        true: whether that is the true coverage, not the estimated one.
        figures: `T`, `T95`, `rec`, `mean_individual_regret`, `travelled`, those that are known.
    """

    coverage: Sequence[float]
    true: bool
    figures: Mapping[str, float]


@dataclass(frozen=True)
class ComparedRun:
    """One planner's episodes.

    Attributes:
        label: what it is called.
        episodes: by object and seed.
    """

    label: str
    episodes: Mapping[Case, ComparedEpisode]


def short_names(paths: Sequence[str]) -> list[str]:
    """Names of files and folders as far as they differ: without the folder in which all of them are."""
    whole = [os.path.abspath(path) for path in paths]
    common = os.path.commonpath([os.path.dirname(path) for path in whole])
    return [os.path.relpath(path, common) for path in whole]


def compared_runs(path: str, name: str, analyse_bag: Callable[[str], Analysis]) -> list[ComparedRun]:
    """Read what is at `path`: a run per planner of a sweep, else a single one.

    Args:
        path: a bag, a folder with `episode.json`, or the results folder of a sweep.
        name: what a single run is called.
        analyse_bag: analyses a bag.

    Raises:
        NbvPlannerError: it is none of these, or cannot be read.
    """
    folder = Path(path)
    if (folder / MANIFEST_FILE).is_file():
        return _runs_of_sweep(folder)
    if (folder / RECORD_FILE).is_file():
        episode = _read(folder / RECORD_FILE)
        return [ComparedRun(name, {_case(episode): _of_record(episode, folder / RECORD_FILE)})]
    analysis = analyse_bag(path)
    return [ComparedRun(name, {_case_of_bag(analysis, name): _of_analysis(analysis)})]


def _runs_of_sweep(folder: Path) -> list[ComparedRun]:
    results = read_sweep(folder)
    by_planner: dict[str, dict[Case, ComparedEpisode]] = defaultdict(dict)
    for episode in results.episodes:
        case = episode["case"]
        label = f"{case['planner']} ({case['protocol']}, {folder.name})"
        by_planner[label][case["object"], case["seed"]] = _of_record(episode, folder)
    if not by_planner:
        raise ResultsError(f"{folder}: no episode of the sweep is finished")
    return [ComparedRun(label, episodes) for label, episodes in by_planner.items()]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from error
    if not isinstance(content, dict):
        raise ResultsError(f"cannot read {path}: holds a {type(content).__name__}, must be an object")
    return content


def _case(episode: Mapping[str, Any]) -> Case:
    config = episode.get("config")
    return str(config.get("object")) if isinstance(config, dict) else "", int(episode.get("seed") or 0)


def _case_of_bag(analysis: Analysis, name: str) -> Case:
    """Object and seed; a bag without true object is a case of its own."""
    if analysis.truth is None or analysis.config is None:
        return f"object of {name}", 0
    return analysis.config.object, analysis.config.sensor.seed


def _of_record(episode: Mapping[str, Any], path: Path) -> ComparedEpisode:
    try:
        views, metrics = episode["views"], episode["metrics"]
        figures = {name: float(value) for name, value in metrics.items() if value is not None}
        if views and views[-1].get("travelled") is not None:
            figures["travelled"] = float(views[-1]["travelled"])
        return ComparedEpisode([float(view["coverage"]) for view in views], True, figures)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ResultsError(f"cannot read {path}: {type(error).__name__} {error}: not an episode of ours") from error


def _of_analysis(analysis: Analysis) -> ComparedEpisode:
    if analysis.record is not None:
        return _of_record(analysis.record.to_json(), Path(RECORD_FILE))
    figures = {"T": float(len(analysis.views))}
    return ComparedEpisode(analysis.coverage, False, figures)
