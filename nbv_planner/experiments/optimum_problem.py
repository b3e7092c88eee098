"""The best set of views of a known object, as a covering problem solved by integer programming."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.episode.records import FULL_ENOUGH, views_to
from nbv_planner.errors import ResultsError, reason
from nbv_planner.geometry import BoolArray
from nbv_planner.planning.integer_programme import cover_programme

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CoverageProblem:
    """Which view sees which class of surface points, `visible` (V, P): the same views see all points of a class.

    The `weights` are the numbers of points in each class, shape (P,); `candidates` are the indices of the views among
    the original ones, shape (V,).
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
    """State the problem without reduction, each point separately; `visible` has shape (V, P)."""
    views, points = visible.shape
    return CoverageProblem(visible, np.ones(points, dtype=np.int64), np.arange(views))


def reduced_problem(visible: BoolArray) -> CoverageProblem:
    """State the problem with fewer views and classes and the same best coverage by any number of views.

    Removes points that no view (row of `visible`) sees and views that see nothing beyond what another one does, of
    equal views all but the first; then merges points that the same views see.
    """
    counts = visible.astype(float)  # exact, and BLAS multiplies it
    common = counts @ counts.T
    part_of = common == np.diag(common)[:, None]
    equal = part_of & part_of.T
    kept = np.flatnonzero(~((part_of & ~equal).any(axis=1) | np.tril(equal, -1).any(axis=1)))
    columns = visible[np.ix_(kept, np.flatnonzero(visible.any(axis=0)))]
    classes, member = np.unique(columns, axis=1, return_inverse=True)
    weights = np.bincount(member.ravel(), minlength=classes.shape[1])
    return CoverageProblem(classes, weights.astype(np.int64), kept)


def greedy_views(problem: CoverageProblem) -> list[int]:
    r"""Rows that the omniscient greedy planner takes, :math:`θ^*_t = \arg\max F(θ | θ_{1:t-1})`, while any is new.

    The first of equals wins. Its coverage by T views is at least :math:`(1 - 1/e) F(Θ^*_T)` (thesis ch. 4.1; Nemhauser,
    Wolsey and Fisher 1978).
    """
    taken: list[int] = []
    while problem.coverage(taken) < problem.reachable:
        taken.append(int(problem.gains(taken).argmax()))
    return taken


# Largest rounding error of the solver's bound on an integer number of points.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class BestSet:
    """A set of views, rows of the problem; the points `F(Θ)` that they see; a bound of :math:`F(Θ^*_T)` for as many."""

    views: tuple[int, ...]
    coverage: int
    bound: int


def maximum_coverage(problem: CoverageProblem, views: int, *, time_limit: float) -> BestSet:
    r"""Find :math:`Θ^*_T = \arg\max_{|Θ| = T} F(Θ)` by :func:`cover_programme`, for T = `views` of the problem's.

    .. math:: \max \sum_p w_p z_p, \quad \sum_θ x_θ = T

    If the views that see a point are consecutive on the circle for every point, the linear relaxation is integral: an
    arc through θ = 0 is T less its complement, so that every row is an interval with one sign, beside an identity; such
    a matrix is totally unimodular. On star-shaped objects that holds for all but few points, and the solver needs
    hardly any branching.

    Returns:
        The best set found within `time_limit` (seconds) and the proved bound; an empty set if that was too short.

    Raises:
        DependencyError: SciPy is older than 1.9 and has no `scipy.optimize.milp`.
    """
    count, classes = problem.visible.shape
    cost = np.concatenate([np.zeros(count), -problem.weights.astype(float)])
    number = np.concatenate([np.ones(count), np.zeros(classes)])
    chosen, lowest = cover_programme(
        "the optimum", problem.visible, cost, (number, views, views), time_limit=time_limit, mip_rel_gap=0.0
    )
    bound = problem.reachable if lowest is None else math.floor(_ROUNDING - lowest)
    return BestSet(chosen or (), problem.coverage(chosen or ()), min(bound, problem.reachable))


@dataclass(frozen=True)
class Optimum:
    r"""The best coverage by each number of views, up to all that the candidates can see."""

    surface_points: int  #: number `|S|` of surface points.
    reachable: int  #: number of points that some candidate sees; the others cannot be covered at all.
    #: :math:`F(Θ^*_T)` in points at index T − 1, or the best that was found; ends with `reachable`.
    best_coverage: tuple[int, ...]
    bounds: tuple[int, ...]  #: proved upper bound of each.
    best_views: tuple[tuple[int, ...], ...]  #: indices of the candidates of each best set.

    def __post_init__(self) -> None:
        """Check that the parts are consistent; those of a file may not be."""
        sizes = {len(self.best_coverage), len(self.bounds), len(self.best_views)}
        rising = all(a < b for a, b in zip((0, *self.best_coverage), self.best_coverage, strict=False))
        bounded = all(c <= b <= self.reachable for c, b in zip(self.best_coverage, self.bounds, strict=False))
        ends = self.best_coverage[-1:] == ((self.reachable,) if self.reachable else ())
        if not (len(sizes) == 1 and rising and bounded and ends and self.reachable <= self.surface_points):
            raise ResultsError("the values of the optimum contradict each other")

    @property
    def proved(self) -> tuple[bool, ...]:
        """Per number of views, whether no better set exists."""
        return tuple(c == b for c, b in zip(self.best_coverage, self.bounds, strict=True))

    @property
    def views_95(self) -> int | None:
        """Least number of views that see 95 % of the surface points; None if the candidates cannot."""
        return views_to((seen / self.surface_points for seen in self.best_coverage), FULL_ENOUGH)

    @property
    def views_100(self) -> int | None:
        """Least number of views that see every surface point; None if the candidates cannot."""
        return self.views_reachable if 0 < self.reachable == self.surface_points else None

    @property
    def views_reachable(self) -> int:
        """Least number of views that see all that any candidate sees; `views_100` where that is everything."""
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
        r""":math:`F(Θ^*_T)` for T = `views`, at least 1; more views than needed see what is reachable."""
        return self.best_coverage[min(views, len(self.best_coverage)) - 1] if self.best_coverage else 0

    def _is_least(self, views: int | None, fraction: float) -> bool:
        fewer = len(self.bounds) if views is None else views - 1
        return fewer <= 0 or self.bounds[fewer - 1] / self.surface_points < fraction

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Optimum:
        """Build an optimum from the plain values of its fields.

        Raises:
            ResultsError: a field is missing or is not what it must be.
        """
        try:
            sets = tuple(tuple(int(view) for view in views) for views in content["best_views"])
            best, bounds = (tuple(int(number) for number in content[name]) for name in ("best_coverage", "bounds"))
            return cls(int(content["surface_points"]), int(content["reachable"]), best, bounds, sets)
        except (KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"not the values of an optimum: {reason(error)}") from error
