"""How time and memory of the mapper grow with the number of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

LEAST = 1000
"""Number of measurements from which the growth is looked at."""

_GRID = 1000


def growth_slope(x: Sequence[float], y: Sequence[float]) -> float:
    r"""Exponent a of the power law :math:`y \propto x^a` that fits best, by least squares of the logarithms.

    Args:
        x: positive numbers, not all the same.
        y: positive numbers, as many.
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def growth_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fit the growth from 1000 measurements on to the rows of :func:`nbv_planner.benchmarking.mapper.mapper_rows`.

    Returns:
        For each smoothness with rows of different such numbers: `smoothness`, `from` and `to` (numbers of
        measurements), and the slopes `update` (time) and `megabytes` (memory).
    """
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["grid"] == _GRID and row["measurements"] >= LEAST:
            cases.setdefault(row["smoothness"], []).append(row)
    return [_slopes(nu, chosen) for nu, chosen in cases.items() if len({row["measurements"] for row in chosen}) > 1]


def _slopes(smoothness: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    numbers = [row["measurements"] for row in rows]
    slopes = {name: growth_slope(numbers, [row[name] for row in rows]) for name in ("update", "megabytes")}
    return {"smoothness": smoothness, "from": min(numbers), "to": max(numbers), **slopes}
