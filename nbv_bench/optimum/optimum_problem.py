"""The best set of views of a known object, as a covering problem solved by integer programming."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nbv_bench.rivals.set_cover import cover_programme
from nbv_planner.episode.records import FULL_ENOUGH, views_to
from nbv_planner.geometry import BoolArray, FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CoverageProblem:
    """Which view sees which class of surface points, `visible` (V, P): the same views see all
    points of a class.

    The `weights` are the numbers of points in each class, shape (P,); `candidates` are the indices
    of the views among the original ones, shape (V,).
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
        """Number of points `F(θ | Θ)` that each view would add to the views of the given rows,
        shape (V,).
        """
        return np.asarray((self.visible & ~self._seen(views)) @ self.weights)

    def _seen(self, views: Sequence[int]) -> BoolArray:
        return np.asarray(self.visible[np.asarray(views, dtype=int)].any(axis=0))


def plain_problem(visible: BoolArray) -> CoverageProblem:
    """State the problem without reduction, each point separately; `visible` has shape (V, P)."""
    views, points = visible.shape
    return CoverageProblem(visible, np.ones(points, dtype=np.int64), np.arange(views))


def reduced_problem(visible: BoolArray, place: FloatArray | None = None) -> CoverageProblem:
    """State the problem with fewer views and classes and the same best coverage by any number of
    views.

    Removes points that no view (row of `visible`) sees and views that see nothing beyond what
    another one does, of equal views all but the first; then merges points that the same views see.
    Where the `place` of a view counts too, shape (V,), only views at one place are compared.
    """
    _, first = np.unique(
        visible if place is None else np.column_stack([visible, place]), axis=0, return_index=True
    )
    distinct = np.sort(first)
    kept = distinct[_undominated(visible[distinct], None if place is None else place[distinct])]
    columns = visible[np.ix_(kept, np.flatnonzero(visible.any(axis=0)))]
    classes, member = np.unique(columns, axis=1, return_inverse=True)
    weights = np.bincount(member.ravel(), minlength=classes.shape[1])
    return CoverageProblem(classes, weights.astype(np.int64), kept)


def _undominated(visible: BoolArray, place: FloatArray | None) -> BoolArray:
    """Which of distinct views see something beyond what any other one at their place does, shape
    (V,).
    """
    counts = visible.astype(np.float32)  # exact, and BLAS multiplies it
    common = counts @ counts.T
    part_of = common == np.diag(common)[:, None]
    if place is not None:
        part_of &= place[:, None] == place
    return np.asarray(part_of.sum(axis=1) == 1)  # of itself


def greedy_views(problem: CoverageProblem, points: int | None = None) -> list[int]:
    r"""Rows that the omniscient greedy planner takes, :math:`θ^*_t = \arg\max F(θ | θ_{1:t-1})`.

    It ends when `points` points have been seen, or all that can be seen. Of equal views the first
    is taken. Its coverage by T views is at least :math:`(1 - 1/e) F(Θ^*_T)` (thesis
    ch. 4.1; Nemhauser, Wolsey and Fisher 1978).
    """
    taken = list[int]()
    while problem.coverage(taken) < (
        problem.reachable if points is None else min(points, problem.reachable)
    ):
        taken.append(int(problem.gains(taken).argmax()))
    return taken


# Largest rounding error of the solver's bound on an integer number of points.
ROUNDING = 1e-3


@dataclass(frozen=True)
class BestSet:
    """A set of views, rows of the problem; the points `F(Θ)` that they see; a bound of
    :math:`F(Θ^*_T)` for as many.
    """

    views: tuple[int, ...]
    coverage: int
    bound: int


def maximum_coverage(problem: CoverageProblem, views: int, *, time_limit: float) -> BestSet:
    r"""Find :math:`Θ^*_T = \arg\max_{|Θ| = T} F(Θ)` by :func:`cover_programme`, for T = `views` of
    the problem's.

    .. math:: \max \sum_p w_p z_p, \quad \sum_θ x_θ = T

    If the views that see a point are consecutive on the circle for every point, the linear
    relaxation is integral: an arc through θ = 0 is T less its complement, so that every row is an
    interval with one sign, beside an identity; such a matrix is totally unimodular. On star-shaped
    objects that holds for all but few points, and the solver needs hardly any branching.

    Returns:
        The best set found within `time_limit` (seconds) and the proved bound; an empty set if that
        was too short.

    Raises:
        DependencyError: SciPy is older than 1.9 and has no `scipy.optimize.milp`.
    """
    count, classes = problem.visible.shape
    cost = np.concatenate([np.zeros(count), -problem.weights.astype(float)])
    number = np.concatenate([np.ones(count), np.zeros(classes)])
    chosen, lowest = cover_programme(
        "the optimum",
        problem.visible,
        cost,
        (number, views, views),
        time_limit=time_limit,
        mip_rel_gap=0.0,
    )
    bound = problem.reachable if lowest is None else math.floor(ROUNDING - lowest)
    return BestSet(chosen or (), problem.coverage(chosen or ()), min(bound, problem.reachable))


@dataclass(frozen=True)
class Cheapest:
    """The cheapest set of views that was found, rows of the problem; its cost, and a proved bound
    of any such set's.
    """

    views: tuple[int, ...]
    cost: float  #: number of views, or seconds.
    bound: float

    @property
    def proved(self) -> bool:
        """Whether there is no cheaper one."""
        return self.bound >= self.cost - ROUNDING

    def among(self, candidates: IntArray) -> Cheapest:
        """The same with the indices of the views among all, of which the rows of the problem are
        `candidates`.
        """
        return replace(self, views=tuple(int(candidates[view]) for view in self.views))


def points_for_95(points: int) -> int:
    """Least number of surface points that are 95 % of all, as
    :func:`~nbv_planner.episode.records.views_to` counts.
    """
    return next(
        number
        for number in range(int(FULL_ENOUGH * points), points + 1)
        if number / points >= FULL_ENOUGH
    )


def least_views(problem: CoverageProblem, points: int, *, time_limit: float) -> Cheapest | None:
    r"""Find the fewest views that see at least `points` points, :math:`\min |Θ|, F(Θ) \ge n`; None
    if all
    see fewer.

    After `time_limit` (seconds) the best set found so far is taken, the greedy one if there is
    none.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    if problem.reachable < points:
        return None
    views, classes = problem.visible.shape
    cost = np.concatenate([np.ones(views), np.zeros(classes)])
    enough = np.concatenate([np.zeros(views), problem.weights.astype(float)])
    chosen, lowest = cover_programme(
        "the optimum",
        problem.visible,
        cost,
        (enough, points, np.inf),
        time_limit=time_limit,
        mip_rel_gap=0.0,
    )
    best = min(
        [found for found in (chosen, tuple(greedy_views(problem, points))) if found is not None],
        key=len,
    )
    return Cheapest(best, len(best), max(0, math.ceil((lowest or 0.0) - ROUNDING)))


@dataclass(frozen=True)
class Optimum:
    r"""The best coverage by each number of views, up to all that the candidates can see."""

    surface_points: int  #: number `|S|` of surface points.
    #: number of points that some candidate sees; the others cannot be covered at all.
    reachable: int
    #: :math:`F(Θ^*_T)` in points at index T − 1, or the best that was found; ends with `reachable`.
    best_coverage: tuple[int, ...]
    bounds: tuple[int, ...]  #: proved upper bound of each.
    best_views: tuple[tuple[int, ...], ...]  #: indices of the candidates of each best set.

    @property
    def proved(self) -> tuple[bool, ...]:
        """Per number of views, whether no better set exists."""
        return tuple(c == b for c, b in zip(self.best_coverage, self.bounds, strict=True))

    @property
    def views_95(self) -> int | None:
        """Least number of views that see 95 % of the surface points; None if the candidates
        cannot.
        """
        return views_to((seen / self.surface_points for seen in self.best_coverage), FULL_ENOUGH)

    @property
    def views_100(self) -> int | None:
        """Least number of views that see every surface point; None if the candidates cannot."""
        return self.views_reachable if 0 < self.reachable == self.surface_points else None

    @property
    def views_reachable(self) -> int:
        """Least number of views that see all that any candidate sees; `views_100` where that is
        everything.
        """
        return len(self.best_coverage)

    @property
    def views_95_proved(self) -> bool:
        """Whether fewer views than `views_95` are proved too few."""
        return self._is_least(self.views_95, FULL_ENOUGH)

    @property
    def views_reachable_proved(self) -> bool:
        """Whether fewer views than `views_reachable` are proved too few."""
        return self._is_least(self.views_reachable, self.reachable / self.surface_points)

    def coverage_by(self, views: int) -> int:
        r""":math:`F(Θ^*_T)` for T = `views`, at least 1; more views than needed see what is
        reachable.
        """
        return (
            self.best_coverage[min(views, len(self.best_coverage)) - 1] if self.best_coverage else 0
        )

    def _is_least(self, views: int | None, fraction: float) -> bool:
        fewer = len(self.bounds) if views is None else views - 1
        return fewer <= 0 or self.bounds[fewer - 1] / self.surface_points < fraction
