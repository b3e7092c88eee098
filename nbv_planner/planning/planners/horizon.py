"""A reference planner: plan all views that are left on the mean shape, by integer programming, and take the first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.integer_programme import milp_solver
from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.planners.base import Planner, Situation
from nbv_planner.planning.planners.settings import PlannerSettings
from nbv_planner.planning.shapes.coverage import ShapeCoverage
from nbv_planner.planning.shapes.fewest_views import fewest_views
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief, uniform_grid


class HorizonPlanner(Planner):
    r"""Receding horizon: the fewest views that complete `target_coverage` of the mean shape; go to the best of them.

    The mean of the belief stands for the object (certainty equivalence), so it knows nothing of what is uncertain: a
    heuristic to compare others with. The view of the plan that sees most unseen points of the mean shape comes first.
    If the mean shape is covered, or no plan was found before the `deadline`, the largest score decides.
    """

    refinable = False

    def __init__(
        self, objective: ExpectedMarginalCoverage, scene: Scene, views: ViewSpace, settings: PlannerSettings
    ) -> None:
        """Put the parts together.

        Raises:
            SettingError: `first_candidate` is not among the candidates.
            DependencyError: SciPy is older than 1.9.
        """
        super().__init__(objective, scene, views, settings)
        milp_solver("the planner horizon")

    def _rank(self, situation: Situation) -> FloatArray:
        feasible = np.flatnonzero(situation.feasible)
        shape = self._mean_coverage(situation.belief, situation.visited)
        unseen, gains = shape.unseen[0].astype(float), shape.gains()[0].astype(float)
        needed = unseen.sum() - (1.0 - self.settings.target_coverage) * shape.points[0]
        plan = fewest_views(shape.visible[0][feasible] > 0.0, unseen, needed, self.settings.deadline)
        if not plan:
            return situation.scores
        ranks = np.full(len(situation.scores), -np.inf)
        chosen = feasible[list(plan)]
        ranks[chosen] = gains[chosen] - situation.costs[chosen]
        return ranks

    def _mean_coverage(self, belief: SurfaceBelief, taken: Sequence[float]) -> ShapeCoverage:
        """What is to be seen of the mean shape, as the one shape, once these views (radians) have been taken."""
        grid = uniform_grid(self.settings.shape_grid)
        mean = np.clip(belief.interpolate(belief.mean, grid), self._scene.radius_min, self._scene.radius_max)
        return ShapeCoverage.of(
            Shapes(grid, mean[None]), np.asarray(taken, dtype=float), self.views.angles, self._scene,
            self.settings.point_density,
        )
