"""Covering problems as integer programmes, solved by HiGHS through SciPy, where that is new enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from nbv_planner.errors import DependencyError
from nbv_planner.geometry import BoolArray, FloatArray


def milp_solver(who: str) -> Callable[..., Any]:
    """Return `scipy.optimize.milp`; `who` needs it.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    try:
        from scipy.optimize import milp
    except ImportError as error:
        raise DependencyError(
            f"{who} needs scipy >= 1.9 (scipy.optimize.milp); installed is scipy {scipy.__version__}"
        ) from error
    return milp  # type: ignore[no-any-return]


def cover_programme(
    who: str, visible: BoolArray, cost: FloatArray, row: tuple[FloatArray, float, float], **options: float
) -> tuple[tuple[int, ...] | None, float | None]:
    r"""Choose views, of which a point counts as seen only if one sees it.

    .. math:: \min c^T [x; z], \quad z_p \le \sum_{θ\,\text{sees}\,p} x_θ, \quad l \le a^T [x; z] \le u, \quad
        x_θ \in \{0, 1\},\; 0 \le z_p \le 1

    for views that see points as in `visible`, shape (V, P), and `row` (a, l, u).

    Returns:
        Indices of the views, rising, and the proved lower bound of the minimum; None where there is none in time.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    views, points = visible.shape
    seen = sparse.hstack([sparse.csr_matrix(-visible.T.astype(float)), sparse.eye(points)]).tocsr()
    found = milp_solver(who)(
        cost, integrality=np.concatenate([np.ones(views), np.zeros(points)]), bounds=(0.0, 1.0),
        constraints=[(seen, -np.inf, 0.0), (sparse.csr_matrix(row[0][None]), *row[1:])], options=options,
    )
    bound = found.mip_dual_bound
    chosen = None if found.x is None else tuple(np.flatnonzero(found.x[:views] > 0.5).tolist())
    return chosen, None if bound is None or not np.isfinite(bound) else float(bound)
