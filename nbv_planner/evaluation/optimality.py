"""How far an episode is from the optimum, round by round (thesis ch. 4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.evaluation.best_coverage import Optimum
from nbv_planner.evaluation.metrics import views_to


@dataclass(frozen=True)
class Optimality:
    r"""An episode against the best sets of as many views.

    Attributes:
        regret: :math:`R(T) = (1 - 1/e)\,F(Θ^*_T) - F(θ_{1:T})` after each view, in surface points; not positive where
            the guarantee of the greedy planner is met.
        approximation_ratio: :math:`F(θ_{1:T}) / F(Θ^*_T)` after each view, NaN if nothing can be seen. Above 1 only if
            a view is none of the optimum's candidates.
        views_95: T95 of the episode, None if it stays below 95 %.
        views_95_relative: T95 over the least possible one, None if either does not exist.
        proved: whether the optimum is proved for each number of views that the episode has; else regret and ratio
            compare with the best set that is known.
    """

    regret: tuple[float, ...]
    approximation_ratio: tuple[float, ...]
    views_95: int | None
    views_95_relative: float | None
    proved: bool


def optimality(new_points: Sequence[int], optimum: Optimum) -> Optimality:
    """Compare an episode with the optimum for the same object, scene and candidates.

    Args:
        new_points: surface points that each view saw for the first time, `F(θ_t | θ_{1:t-1})`.
        optimum: what is possible.
    """
    seen = np.cumsum(new_points, dtype=int).tolist()
    best = [optimum.coverage_by(number) for number in range(1, len(seen) + 1)]
    own_95, least_95 = views_to(own / optimum.surface_points for own in seen), optimum.views_95
    return Optimality(
        regret=tuple((1.0 - math.exp(-1.0)) * most - own for own, most in zip(seen, best, strict=True)),
        approximation_ratio=tuple(own / most if most else math.nan for own, most in zip(seen, best, strict=True)),
        views_95=own_95,
        views_95_relative=None if own_95 is None or least_95 is None else own_95 / least_95,
        proved=all(optimum.proved[: len(seen)]),
    )
