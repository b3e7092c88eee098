"""Planners of one objective (greedy; thesis ch. 5.3) and of none (uniform, random)."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, angle_difference
from nbv_planner.planning.planners.planner import Options, Planner


class GreedyPlanner(Planner):
    r"""Choose the view of largest score: :math:`\arg\max_{θ\in C} F_u(θ) - λ\,c(θ)` (def.
    greedy-algorithm).

    :math:`c(θ)` is the distance along the view circle; with λ = 0 (the thesis) the objective alone
    decides.
    """

    def _rank(self, options: Options) -> FloatArray:
        return options.scores


class UniformPlanner(Planner):
    r"""Sweep around the object in equal steps; further turns go between the views of those before.

    View number :math:`k = n\,i + j` (:math:`0 \le j < n`, n = `sweep_views`) is the feasible
    candidate nearest to :math:`θ_1 + (j + v_i)\,2π/n`, where
    :math:`v_i = 0, \frac12, \frac14, \frac34, \dots` is the van der Corput sequence and :math:`θ_1`
    the first view taken; all by their polar angles.
    """

    refinable = False
    heeds_objective = False

    def _rank(self, options: Options) -> FloatArray:
        angles = self.views.candidates.view_angle
        visited = options.situation.visited
        steps = self.settings.sweep_views
        turn, place = divmod(len(visited), steps)
        first = visited.view_angle[0] if len(visited) else angles[0]
        return -np.abs(
            angle_difference(angles, first + (place + _van_der_corput(turn)) * TWO_PI / steps)
        )


class RandomPlanner(Planner):
    """Take any feasible candidate, each with the same probability.

    The draw depends on `planner_seed` and the number of views taken alone, so that an episode can
    be repeated.
    """

    refinable = False
    heeds_objective = False

    def _rank(self, options: Options) -> FloatArray:
        generator = np.random.default_rng(
            [self.settings.planner_seed, len(options.situation.visited)]
        )
        return generator.random(len(self.views.candidates))


def _van_der_corput(number: int) -> float:
    """Binary digits of `number` mirrored at the point: 0, 1/2, 1/4, 3/4, 1/8, ..."""
    digits = f"{number:b}"
    return float(int(digits[::-1], 2) / 2 ** len(digits))
