"""Metrics of an episode (thesis ch. 7.1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

FULL_ENOUGH = 0.95
"""Coverage at which T95 counts an object as reconstructed."""


class JudgedView(Protocol):
    """What the metrics need to know of a view."""

    @property
    def coverage(self) -> float:
        """Fraction of the surface points seen up to this view."""
        ...

    @property
    def new_points(self) -> int:
        """Surface points seen for the first time."""
        ...

    @property
    def greedy_gain(self) -> int:
        """Most new points that any candidate would have seen."""
        ...


def episode_metrics(views: Sequence[JudgedView], surface_points: int) -> dict[str, float | int | None]:
    r"""Compute `T`, `T95`, `rec`, `mean_individual_regret` and `surface_points`.

    `T95` is the number of views until the coverage reaches 95 %, None if it never does;
    :math:`\bar r = \frac1T \sum_t (F(θ^*_t|θ_{1:t-1}) - F(θ_t|θ_{1:t-1}))`, None without views.
    """
    regrets = [view.greedy_gain - view.new_points for view in views]
    reached = [number for number, view in enumerate(views, start=1) if view.coverage >= FULL_ENOUGH]
    return {
        "T": len(views),
        "T95": reached[0] if reached else None,
        "rec": views[-1].coverage if views else 0.0,
        "mean_individual_regret": float(np.mean(regrets)) if regrets else None,
        "surface_points": surface_points,
    }
