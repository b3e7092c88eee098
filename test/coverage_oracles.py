"""Slow, plain solutions of covering problems; the integer programme is held to them.

Nothing here imports the package.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def best_by_trying_all(visible: np.ndarray, views: int) -> int:
    """Most points that any set of so many views sees."""
    return max(
        int(visible[list(chosen)].any(axis=0).sum())
        for chosen in combinations(range(len(visible)), views)
    )


def arcs(visible: np.ndarray) -> np.ndarray:
    """Number of runs of consecutive views, around the circle, that see each point."""
    return ((visible == 1) & (np.roll(visible, 1, axis=0) == 0)).sum(axis=0)


def best_on_a_circle(visible: np.ndarray, most: int) -> list[int]:
    """Most points that 1, 2, ..., `most` views see, if each point is seen by one run of consecutive
    views.

    Dynamic programming round the circle: between two neighbouring chosen views i and j, those
    points are counted that j sees and whose run begins behind i. So each point is counted once, at
    the first chosen view of its run.
    """
    count = len(visible)
    start = np.argmax(visible & ~np.roll(visible, 1, axis=0), axis=0)
    step = np.empty((count, count))
    for i in range(count):
        for j in range(count):
            behind = (start - i - 1) % count <= (j - i - 1) % count
            step[i, j] = np.count_nonzero(visible[j] & behind)
    forward = np.where(np.triu(np.ones((count, count), dtype=bool), 1), step, -np.inf)
    way = np.where(np.eye(count, dtype=bool), 0.0, -np.inf)  # from each first view to each last one
    best = []
    for _ in range(most):
        best.append(int(np.max(way + step.T)))  # close the circle
        way = np.array([np.max(row[:, None] + forward, axis=0) for row in way])
    return best
