"""Small sweeps for the tests, and what is compared of their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.runner import SweepProgress, run_sweep
from nbv_bench.experiments.sweep import Sweep
from nbv_bench.experiments.sweep_file import load_sweep

TINY = """\
name: tiny
objects:
  - square:width=4
  - ellipse:a=6,b=4   # comments are kept in the copy
planners:
  greedy_oracle: {objective: OSM}
  random: {planner: random, objective: U}
protocols: [thesis, sensor]
seeds: [3]
settings:
  sensor: {num_beams: 31}
  mapper: {grid_size: 60}
  views: {num_views: 12}
  termination: {max_views: 2}
"""
"""Eight cases in less than a second."""


def write(folder: Path, text: str = TINY, name: str = "tiny.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def load(folder: Path, text: str = TINY) -> Sweep:
    return load_sweep(str(write(folder, text)))


def run(
    path: Path, sweep: Sweep, *, resume: bool = False, workers: int = 1, backend: str = "sequential"
) -> SweepProgress:
    """Run a sweep to its end."""
    with SweepFolder(path, sweep, resume=resume) as folder:
        return run_sweep(folder, workers=workers, backend=backend)


def files(folder: Path) -> dict[str, str]:
    """Every file of a results folder by name; times left out."""
    return {
        str(path.relative_to(folder)): without_times(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def without_times(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return json.dumps(_without(json.loads(text))) if path.suffix == ".json" else text


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key != "milliseconds"}
    return [_without(item) for item in value] if isinstance(value, list) else value
