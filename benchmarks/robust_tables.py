"""Tables of docs/explanation/robustness.md out of the results of the sweeps robust and
robust_parts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_HEAD = "coverage: mean | worst | band holds the surface: mean | worst | below 95 % | RMSE, m |"


def episodes(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Label of the variant, object, and the last view of each episode of a sweep."""
    for path in sorted((folder / "episodes").glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        yield case["case"]["planner"], case["case"]["object"], case["views"][-1]


def row(name: str, last: list[dict[str, Any]]) -> str:
    """One line: results at the last views of some episodes."""
    covered, held, rmse = (
        np.array([view[key] for view in last]) for key in ("coverage", "band_coverage", "rmse")
    )
    return (
        f"| {name} | {covered.mean():.2%} | {covered.min():.2%} | {held.mean():.2%} |"
        f" {held.min():.2%} | {(held < 0.95).sum()} of {len(last)} | {rmse.mean():.3f} |"
    )


def table(groups: dict[str, list[dict[str, Any]]], title: str) -> str:
    """Markdown table with a line for each group."""
    return "\n".join(
        [
            f"| {title} | {_HEAD}",
            "|---" * 7 + "|",
            *(row(name, last) for name, last in groups.items()),
        ]
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "sweeps", nargs="+", metavar="DIR", type=Path, help="results folder of a sweep"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the tables."""
    for folder in arguments.sweeps:
        variants: dict[str, list[dict[str, Any]]] = {}
        objects: dict[str, list[dict[str, Any]]] = {}
        for label, shape, last in episodes(folder):
            variants.setdefault(label, []).append(last)
            if label == "robust":
                objects.setdefault(f"`{shape}`", []).append(last)
        print(f"\n{table(variants, 'mapper')}\n\n{table(objects, 'object')}")
    return 0
