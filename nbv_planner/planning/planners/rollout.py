"""The rollout planner: go where, over posterior shapes, the fewest views are then still to go."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.planning.objectives.expected_coverage import ExpectedMarginalCoverage
from nbv_planner.planning.planners.base import Decision, Planner, Situation
from nbv_planner.planning.planners.settings import PlannerSettings
from nbv_planner.planning.shapes.views_to_go import views_to_go
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

# Shapes that are looked ahead on between two looks at the clock.
_SHAPES_AT_A_TIME = 4
# Means that differ by rounding alone are equal.
_DECIMALS = 9


class RolloutPlanner(Planner):
    r"""Minimise the mean number of views to go (rollout; Bertsekas 2013) over posterior shapes.

    For each of the `first_views` feasible candidates of largest score and each shape the cover is completed greedily
    on that shape until `target_coverage`. The candidate with the smallest mean number of views wins, the one of larger
    score among equals. At the `deadline` the mean is taken over the shapes done so far (those of a first block at
    least); only then does a decision depend on the speed of the machine.
    """

    refinable = False

    def __init__(
        self, objective: ExpectedMarginalCoverage, scene: Scene, views: ViewSpace, settings: PlannerSettings
    ) -> None:
        """Put the parts together.

        Raises:
            SettingError: `first_candidate` is not among the candidates.
        """
        super().__init__(objective, scene, views, settings)
        self._expected = objective

    def _rank(self, situation: Situation) -> FloatArray:
        candidates = np.flatnonzero(situation.feasible)
        order = candidates[np.argsort(-situation.scores[candidates], kind="stable")]
        first = order[: self.settings.first_views]
        to_go = self._views_to_go(situation, first)
        ranks = np.full(len(situation.scores), -np.inf)
        # A stable sort: `first` already falls by score.
        ranks[first[np.argsort(np.round(to_go, _DECIMALS), kind="stable")]] = -np.arange(len(first))
        return ranks

    def decide(
        self, belief: SurfaceBelief, *, current_view: float | None = None, visited: Sequence[float] = (),
        now: float = 0.0,
    ) -> Decision | None:
        """Choose the next best view within the `deadline`, see :meth:`Planner.decide`."""
        self._until = time.perf_counter() + self.settings.deadline
        return super().decide(belief, current_view=current_view, visited=visited, now=now)

    def _views_to_go(self, situation: Situation, first: IntArray) -> FloatArray:
        """Mean number of views to go from each of the views `first` (K,) on, shape (K,)."""
        expected = self._expected.after(situation.visited)
        coverage = expected.coverage(situation.belief, self._scene, self.views.angles)
        total, done = np.zeros(len(first)), 0
        for part in coverage.blocks(_SHAPES_AT_A_TIME):
            total += views_to_go(part, first, situation.feasible, self.settings.target_coverage).sum(axis=0)
            done += len(part.points)
            if time.perf_counter() > self._until:
                break
        return total / done
