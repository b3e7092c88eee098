"""Planners of one objective (greedy, two-phase; thesis ch. 5.3) and of none (uniform, random)."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, angle_difference
from nbv_planner.planning.objectives import Objective
from nbv_planner.planning.objectives.expected_coverage import after_views
from nbv_planner.planning.planners.planner import Planner, PlannerSettings, Situation
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.world.scene import Scene


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
        super().__init__(objective, scene, views, settings)
        views.check_circle("planner two_phase", scene.view_distance)
        self._phase_one = phase_one

    def _rank(self, situation: Situation) -> FloatArray:
        phase_one = after_views(self._phase_one, situation.visited)
        angles = self.views.candidates.view_angle
        areas = phase_one.evaluate(situation.belief, situation.scene, angles) - situation.costs
        middle = self._first_best(np.where(situation.feasible, areas, -np.inf))
        near = situation.scene.in_simple_interval(angles, angles[middle])
        return np.where(near, situation.scores, -np.inf)


class GreedyPlanner(Planner):
    r"""Choose the view of largest score: :math:`\arg\max_{θ\in C} F_u(θ) - λ\,c(θ)` (def. greedy-algorithm).

    :math:`c(θ)` is the distance along the view circle; with λ = 0 (the thesis) the objective alone decides.
    """

    def _rank(self, situation: Situation) -> FloatArray:
        return situation.scores


class UniformPlanner(Planner):
    r"""Sweep around the object in equal steps; further turns go between the views of those before.

    View number :math:`k = n\,i + j` (:math:`0 \le j < n`, n = `sweep_views`) is the feasible candidate nearest to
    :math:`θ_1 + (j + v_i)\,2π/n`, where :math:`v_i = 0, \frac12, \frac14, \frac34, \dots` is the van der Corput
    sequence and :math:`θ_1` the first view taken; all by their polar angles.
    """

    refinable = False
    heeds_objective = False

    def _rank(self, situation: Situation) -> FloatArray:
        angles, visited, steps = self.views.candidates.view_angle, situation.visited, self.settings.sweep_views
        turn, place = divmod(len(visited), steps)
        first = visited[0].view_angle if visited else angles[0]
        return -np.abs(angle_difference(angles, first + (place + _van_der_corput(turn)) * TWO_PI / steps))


class RandomPlanner(Planner):
    """Take any feasible candidate, each with the same probability.

    The draw depends on `planner_seed` and the number of views taken alone, so that an episode can be repeated.
    """

    refinable = False
    heeds_objective = False

    def _rank(self, situation: Situation) -> FloatArray:
        generator = np.random.default_rng([self.settings.planner_seed, len(situation.visited)])
        return generator.random(len(self.views.candidates))


def _van_der_corput(number: int) -> float:
    """Binary digits of `number` mirrored at the point: 0, 1/2, 1/4, 3/4, 1/8, ..."""
    digits = f"{number:b}"
    return float(int(digits[::-1], 2) / 2 ** len(digits))
