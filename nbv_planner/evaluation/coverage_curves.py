"""Coverage over the number of views, of many episodes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray


@dataclass(frozen=True, eq=False)
class CoverageBand:
    """Coverage after 0, 1, 2, ... views over a set of episodes.

    Attributes:
        mean: mean over the episodes, shape (V + 1,), 0 to 1.
        low: quantile `tail`, shape (V + 1,).
        high: quantile `1 - tail`, shape (V + 1,).
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def coverage_band(coverages: Sequence[Sequence[float]], views: int, *, tail: float = 0.1) -> CoverageBand:
    """Average the coverage of episodes after each number of views.

    Args:
        coverages: coverage after each view, one sequence per episode, at least one episode. An episode that has ended
            keeps the coverage it ended with.
        views: number of views to go to.
        tail: part of the episodes that lies below the band, and above it.
    """
    held = np.zeros((len(coverages), views + 1))
    for row, coverage in zip(held, coverages, strict=True):
        known = np.concatenate([[0.0], coverage])[: views + 1]
        row[: len(known)] = known
        row[len(known):] = known[-1]
    low, high = np.quantile(held, [tail, 1.0 - tail], axis=0)
    return CoverageBand(held.mean(axis=0), low, high)
