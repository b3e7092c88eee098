"""The solver of integer programmes: HiGHS through SciPy, where that is new enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy

from nbv_planner.errors import DependencyError


def milp_solver(who: str) -> Callable[..., Any]:
    """Return `scipy.optimize.milp`.

    Args:
        who: what needs it, for the error message.

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
