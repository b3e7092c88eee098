"""Metrics of an episode (thesis ch. 7.1.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

FULL_ENOUGH = 0.95
"""Coverage at which T95 counts an object as reconstructed."""


def views_to(coverage: Iterable[float], fraction: float = FULL_ENOUGH) -> int | None:
    """Count the views until the coverage (a fraction of the surface points) reaches `fraction`; None if never."""
    return next((number for number, covered in enumerate(coverage, start=1) if covered >= fraction), None)


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
    return {
        "T": len(views),
        "T95": views_to(view.coverage for view in views),
        "rec": views[-1].coverage if views else 0.0,
        "mean_individual_regret": float(np.mean(regrets)) if regrets else None,
        "surface_points": surface_points,
    }
