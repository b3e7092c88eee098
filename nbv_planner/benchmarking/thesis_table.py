"""Speed of the thesis's whole comparison: 22 objects, 7 planners, noise-free protocol."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.benchmarking.episode import obvious_episode, thesis_planners, timed_episode
from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import NbvPlannerError
from nbv_planner.experiments.sweep_file import sweep_path

_WORKERS = 2
_SAMPLE = "polygon:star"


def table_rows(quick: bool) -> Iterator[dict[str, Any]]:
    """Time `nbv-planner experiment thesis` as a process of its own, from its start to its end.

    Args:
        quick: only the planner U on the star.

    Returns:
        One row with `objects`, `planners`, `workers`; `wall_s` and `cpu_s` (all processes together) in seconds; and
        from one object, for its episodes with the planners that do not know it, in milliseconds of processor time,
        `sample_ms`, `reference_ms` (objectives one candidate at a time) and their `ratio`.

    Raises:
        NbvPlannerError: the command failed; says why.
    """
    labels = ("U",) if quick else tuple(thesis_planners())
    yield {**_timed_sweep(_sweep(quick)), **_sample(labels)}


def _sweep(quick: bool) -> dict[str, Any]:
    sweep: dict[str, Any] = yaml.safe_load(sweep_path("thesis").read_text(encoding="utf-8"))
    return {**sweep, "objects": [_SAMPLE], "planners": {"U": sweep["planners"]["U"]}} if quick else sweep


def _timed_sweep(sweep: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep, sort_keys=False), encoding="utf-8")
        wall, processor = _timed_command(
            "experiment", str(folder / "sweep.yaml"), "--out", str(folder / "out"), "--workers", str(_WORKERS)
        )
        cases = len(list((folder / "out" / "episodes").iterdir()))
    planners = len(sweep["planners"])
    return {
        "objects": cases // planners, "planners": planners, "workers": _WORKERS, "wall_s": wall, "cpu_s": processor
    }


def _timed_command(*arguments: str) -> tuple[float, float]:
    """Wall time and processor time of a command with all its processes, seconds."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "nbv_planner.cli.main", *arguments], capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NbvPlannerError(f"nbv-planner {arguments[0]} ended with code {done.returncode}: {''.join(last)}")
    user = after.children_user - before.children_user
    return wall, user + after.children_system - before.children_system


def _sample(labels: tuple[str, ...]) -> dict[str, float]:
    """Time one object both ways."""
    planners = thesis_planners()
    configs = [EpisodeConfig(object=_SAMPLE, protocol="thesis", planner=planners[label]) for label in labels]
    for config in configs:
        timed_episode(config)  # geometry that is computed once per process
    fast = sum(_milliseconds(timed_episode(config)) for config in configs)
    reference = sum(_milliseconds(obvious_episode(config)) for config in configs)
    return {"sample_ms": fast, "reference_ms": reference, "ratio": reference / fast}


def _milliseconds(times: dict[str, float]) -> float:
    return times["views"] * times["episode"]
