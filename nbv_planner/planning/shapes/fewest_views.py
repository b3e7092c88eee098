"""The fewest views that see enough of a shape, by integer programming."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.integer_programme import milp_solver

# Weight of the part that is seen beside the number of views: below 1, so that it only chooses among equal numbers.
_PART_SEEN = 0.5
# Points that count as none: rounding of the solver.
_ROUNDING = 1e-6


def fewest_views(
    visible: BoolArray, weight: FloatArray, needed: float, time_limit: float = np.inf
) -> tuple[int, ...] | None:
    r"""Find the fewest views that see `needed` points, among equal numbers those that see most.

    .. math:: \min \sum_θ x_θ - \tfrac12 \frac{\sum_c w_c z_c}{\sum_c w_c}, \quad \sum_c w_c z_c \ge n, \quad
        z_c \le \sum_{θ\,\text{sees}\,c} x_θ, \quad x_θ \in \{0, 1\},\; 0 \le z_c \le 1

    Args:
        visible: which view sees which cell, shape (V, M).
        weight: points of each cell, shape (M,), not negative.
        needed: n; what no view sees is not asked for.
        time_limit: time after which the best found so far is taken, seconds.

    Returns:
        Indices of the views, rising; None if none were found in time.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    seen, weight = _classes(visible, weight)
    needed = min(needed, float(weight.sum())) - _ROUNDING
    if needed <= 0.0:
        return ()
    views, cells = seen.shape
    cost = np.concatenate([np.ones(views), -_PART_SEEN * weight / weight.sum()])
    covered = sparse.hstack([sparse.csr_matrix(-seen.T.astype(float)), sparse.eye(cells)]).tocsr()
    enough = sparse.csr_matrix(np.concatenate([np.zeros(views), weight])[None])
    found = milp_solver("the planner horizon")(
        cost, integrality=np.concatenate([np.ones(views), np.zeros(cells)]), bounds=(0.0, 1.0),
        constraints=[(covered, -np.inf, 0.0), (enough, needed, np.inf)], options={"time_limit": time_limit},
    )
    return None if found.x is None else tuple(np.flatnonzero(found.x[:views] > 0.5).tolist())


def _classes(visible: BoolArray, weight: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Merge cells that the same views see and leave out those that none does or that weigh nothing."""
    kept = visible.any(axis=0) & (weight > 0.0)
    classes, member = np.unique(visible[:, kept], axis=1, return_inverse=True)
    return classes, np.bincount(member.ravel(), weight[kept], minlength=classes.shape[1]).astype(float)
