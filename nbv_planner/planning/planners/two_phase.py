r"""The two-phase planner: find a wide area first, then the best view inside it (thesis ch. 5.3.2)."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives import Objective
from nbv_planner.planning.objectives.expected_coverage import after_views
from nbv_planner.planning.planners.base import Planner, Situation
from nbv_planner.planning.planners.settings import PlannerSettings
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.scene import Scene


class TwoPhasePlanner(Planner):
    r"""Maximise an area objective, then a second one inside the maximiser's interval (def. twophase-algorithm).

    .. math:: \arg\max_{θ \in C \cap Φ_S(θ^{(1)})} F^{(2)}(θ) - λ\,c(θ), \quad
        θ^{(1)} = \arg\max_{θ\in C} F^{(1)}(θ) - λ\,c(θ)

    Both maxima are taken over the feasible candidates, so the second is never empty: it holds :math:`θ^{(1)}`.
    With `refine` the view may leave the interval by half the distance of two candidates.
    """

    def __init__(
        self, phase_one: Objective, objective: Objective, scene: Scene, views: ViewSpace, settings: PlannerSettings
    ) -> None:
        """Put the parts together.

        Raises:
            SettingError: `first_candidate` is not among the candidates.
        """
        super().__init__(objective, scene, views, settings)
        self._phase_one = phase_one

    def _rank(self, situation: Situation) -> FloatArray:
        phase_one = after_views(self._phase_one, situation.visited)
        areas = phase_one.evaluate(situation.belief, self._scene, self.views.angles) - situation.costs
        middle = self._first_best(np.where(situation.feasible, areas, -np.inf))
        near = self._scene.in_simple_interval(self.views.angles, self.views.angles[middle])
        return np.where(near, situation.scores, -np.inf)
