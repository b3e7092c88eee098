"""Planners that look at no objective, to compare others with; it is evaluated only to report the utility."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, angle_difference
from nbv_planner.planning.planners.base import Planner, Situation


class UniformPlanner(Planner):
    r"""Sweep around the object in equal steps; further turns go between the views of those before.

    View number :math:`k = n\,i + j` (:math:`0 \le j < n`, n = `sweep_views`) is the feasible candidate nearest to
    :math:`θ_1 + (j + v_i)\,2π/n`, where :math:`v_i = 0, \frac12, \frac14, \frac34, \dots` is the van der Corput
    sequence and :math:`θ_1` the first view taken.
    """

    refinable = False
    heeds_objective = False

    def _rank(self, situation: Situation) -> FloatArray:
        return -np.abs(angle_difference(self.views.angles, self._target(situation.visited)))

    def _target(self, visited: Sequence[float]) -> float:
        """Angle to go to, radians: that of the first candidate if no view has been taken."""
        if not visited:
            return float(self.views.angles[0])
        turn, place = divmod(len(visited), self.settings.sweep_views)
        return visited[0] + (place + _van_der_corput(turn)) * TWO_PI / self.settings.sweep_views


class RandomPlanner(Planner):
    """Take any feasible candidate, each with the same probability.

    The draw depends on `planner_seed` and the number of views taken alone, so that an episode can be repeated.
    """

    refinable = False
    heeds_objective = False

    def _rank(self, situation: Situation) -> FloatArray:
        generator = np.random.default_rng([self.settings.planner_seed, len(situation.visited)])
        return generator.random(len(self.views.angles))


def _van_der_corput(number: int) -> float:
    """Binary digits of `number` mirrored at the point: 0, 1/2, 1/4, 3/4, 1/8, ..."""
    digits = f"{number:b}"
    return float(int(digits[::-1], 2) / 2 ** len(digits))
