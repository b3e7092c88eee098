"""The best set of a given number of views, by integer programming (HiGHS through SciPy)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nbv_planner.evaluation.coverage_problem import CoverageProblem
from nbv_planner.integer_programme import milp_solver

# The solver's bound on a whole number of points carries rounding of this size at most.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class BestSet:
    r"""A set of views, and how good any set of as many views can be.

    Attributes:
        views: rows of the problem.
        coverage: number of points that they see, `F(Θ)`.
        bound: upper bound of :math:`F(Θ^*_T)`.
    """

    views: tuple[int, ...]
    coverage: int
    bound: int

    @property
    def proved(self) -> bool:
        """Whether no set of as many views can be better."""
        return self.coverage == self.bound


def maximum_coverage(problem: CoverageProblem, views: int, *, time_limit: float) -> BestSet:
    r"""Find :math:`Θ^*_T = \arg\max_{|Θ| = T} F(Θ)`.

    .. math:: \max \sum_p w_p z_p, \quad z_p \le \sum_{θ\,\text{sees}\,p} x_θ, \quad \sum_θ x_θ = T, \quad
        x_θ \in \{0, 1\},\; 0 \le z_p \le 1

    If the views that see a point are consecutive on the circle for every point, the linear relaxation is integral: an
    arc through θ = 0 is T less its complement, so that every row is an interval with one sign, beside an identity; such
    a matrix is totally unimodular. On star-shaped objects that holds for all but few points, and the solver needs
    hardly any branching.

    Args:
        problem: who sees what.
        views: number of views T, at most the number of the problem's views.
        time_limit: time after which the best set so far is returned, seconds.

    Returns:
        The best set found and the proved bound; an empty set if the time was too short for any.

    Raises:
        DependencyError: SciPy is older than 1.9 and has no `scipy.optimize.milp`.
    """
    count, classes = problem.visible.shape
    found = milp_solver("the optimum")(
        np.concatenate([np.zeros(count), -problem.weights.astype(float)]),
        integrality=np.concatenate([np.ones(count), np.zeros(classes)]),
        bounds=(0.0, 1.0),
        constraints=_constraints(problem, views),
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    chosen = () if found.x is None else tuple(np.flatnonzero(found.x[:count] > 0.5).tolist())
    known = found.mip_dual_bound is not None and math.isfinite(found.mip_dual_bound)
    bound = math.floor(_ROUNDING - found.mip_dual_bound) if known else problem.reachable
    return BestSet(chosen, problem.coverage(chosen), min(bound, problem.reachable))


def _constraints(problem: CoverageProblem, views: int) -> list[tuple[Any, float, float]]:
    """A point counts only if a view sees it, and there are just so many views: (matrix, least, greatest)."""
    count, classes = problem.visible.shape
    seen = sparse.hstack([sparse.csr_matrix(-problem.visible.T.astype(float)), sparse.eye(classes)])
    number = sparse.hstack([sparse.csr_matrix(np.ones((1, count))), sparse.csr_matrix((1, classes))])
    return [(seen.tocsr(), -np.inf, 0.0), (number.tocsr(), views, views)]
