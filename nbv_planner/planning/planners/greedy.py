r"""The greedy planner: go where the objective is largest (thesis ch. 5.3.1)."""

from __future__ import annotations

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.planners.base import Planner, Situation


class GreedyPlanner(Planner):
    r"""Go where the score is largest: :math:`\arg\max_{θ\in C} F_u(θ) - λ\,c(θ)` (def. greedy-algorithm).

    :math:`c(θ)` is the way along the view circle; with λ = 0 (the thesis) the objective alone decides.
    """

    def _rank(self, situation: Situation) -> FloatArray:
        return situation.scores
