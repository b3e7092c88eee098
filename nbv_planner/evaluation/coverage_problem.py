"""Covering surface points with views: the problem, its reduction, and the greedy solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import BoolArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CoverageProblem:
    """Which view sees which class of surface points.

    Attributes:
        visible: shape (V, P); column p is a class of points that exactly the same views see.
        weights: number of points in each class, shape (P,).
        candidates: index of each view among the original candidates, shape (V,).
    """

    visible: BoolArray
    weights: IntArray
    candidates: IntArray

    @property
    def reachable(self) -> int:
        """Number of points that some view sees."""
        return int(self.weights[self.visible.any(axis=0)].sum())

    def coverage(self, views: Sequence[int]) -> int:
        """Number of points `F(Θ)` that the views of the given rows see together."""
        return int(self.weights[self._seen(views)].sum())

    def gains(self, views: Sequence[int]) -> IntArray:
        """Number of points `F(θ | Θ)` that each view would add to the views of the given rows, shape (V,)."""
        return np.asarray((self.visible & ~self._seen(views)) @ self.weights)

    def _seen(self, views: Sequence[int]) -> BoolArray:
        return np.asarray(self.visible[np.asarray(views, dtype=int)].any(axis=0))


def plain_problem(visible: BoolArray) -> CoverageProblem:
    """State the problem as it is, every point by itself; `visible` has shape (V, P)."""
    views, points = visible.shape
    return CoverageProblem(visible, np.ones(points, dtype=np.int64), np.arange(views))


def reduced_problem(visible: BoolArray) -> CoverageProblem:
    """State the problem with fewer views and classes and the same best coverage by any number of views.

    Leaves out points that no view sees and views that see nothing beyond what another one does, of equal views all but
    the first; then merges points that the same views see.

    Args:
        visible: which candidate sees which point, shape (V, P).
    """
    kept = np.flatnonzero(~_dominated(visible))
    columns = visible[np.ix_(kept, np.flatnonzero(visible.any(axis=0)))]
    classes, member = np.unique(columns, axis=1, return_inverse=True)
    weights = np.bincount(member.ravel(), minlength=classes.shape[1])
    return CoverageProblem(classes, weights.astype(np.int64), kept)


def _dominated(visible: BoolArray) -> BoolArray:
    """Which views see a proper part of what another one sees, or the same as an earlier one, shape (V,)."""
    counts = visible.astype(float)  # exact, and BLAS multiplies it
    common = counts @ counts.T
    part_of = common == np.diag(common)[:, None]
    equal = part_of & part_of.T
    return np.asarray((part_of & ~equal).any(axis=1) | np.tril(equal, -1).any(axis=1))


def greedy_views(problem: CoverageProblem) -> list[int]:
    r"""Rows that the omniscient greedy planner takes, :math:`θ^*_t = \arg\max F(θ | θ_{1:t-1})`, while any is new.

    The first of equals wins. Its coverage by T views is at least :math:`(1 - 1/e) F(Θ^*_T)` (thesis ch. 4.1; Nemhauser,
    Wolsey and Fisher 1978).
    """
    taken: list[int] = []
    while problem.coverage(taken) < problem.reachable:
        taken.append(int(problem.gains(taken).argmax()))
    return taken
