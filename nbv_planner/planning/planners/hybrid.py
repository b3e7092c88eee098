"""The hybrid planner: follow the rollout as long as the regret bound of U can be kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.objectives.area import Uncertainty
from nbv_planner.planning.planners.account import Account, Round
from nbv_planner.planning.planners.planner import Decision, PlannerSettings, Situation
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.belief import SurfaceBelief, uniform_grid
from nbv_planner.star2d.shapes.shape_coverage import seen_points
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene


class HybridPlanner(RolloutPlanner):
    r"""Follow the rollout, unless it falls behind the bound of U; then take the view of U (docs, theory).

    With :math:`U_t = \max_θ F_u(θ|θ_{1:t-1})`, an upper bound of what any view adds, the view θ of the rollout is
    taken if

    .. math:: \sum_{s \le t} U_s \le κ \Bigl(\sum_{s<t} F_u(θ_s|θ_{1:s-1}) + F_u(θ|θ_{1:t-1})\Bigr) + M_t/ρ

    and else the maximiser of :math:`F_u`, for which the left side grows by no more than the right one. κ is
    `hybrid_factor`, ρ `hybrid_share`, and :math:`M_t` the number of surface points seen so far
    (:func:`measured_points`). So

    .. math:: R_{ind}(T) \le κ \sum_{t \le T} F_u(θ_t|θ_{1:t-1}) + (1/ρ - 1)|S|,

    whose sum the thesis bounds for whatever views are taken. A round of which nothing is known (the planner was
    restarted without its state, or the view was chosen elsewhere) counts with the greatest bound that any can have and
    with the value 0.

    The utilities reported are those of the rollout, EMC, also where U decides.
    """

    refinable = False
    _bound = Uncertainty()

    def __init__(
        self, objective: ExpectedMarginalCoverage, scene: Scene, views: ViewSpace, settings: PlannerSettings
    ) -> None:
        super().__init__(objective, scene, views, settings)
        views.check_circle("planner hybrid", scene.view_distance)
        self.account: Account = Account()

    def decide(
        self, belief: SurfaceBelief, *, current_view: CameraPose | None = None, visited: Sequence[CameraPose] = (),
        now: float = 0.0,
    ) -> Decision | None:
        """Choose the next best view and record which rule chose it, see :meth:`Planner.decide`."""
        decision = super().decide(belief, current_view=current_view, visited=visited, now=now)
        if decision is None:
            return None
        taken = self._bounds[np.flatnonzero(decision.candidates.view_angle == decision.view_angle)[0]]
        self.account.enter(visited, decision.view, Round(float(self._bounds.max()), float(taken)))
        forced = decision.decided_by != self.settings.label
        return decision if forced else dataclasses.replace(decision, decided_by=self._decided_by)

    def _rank(self, situation: Situation) -> FloatArray:
        self._bounds = self._bound.evaluate(situation.belief, situation.scene, self.views.candidates.view_angle)
        ranks = super()._rank(situation)
        proposed = self._first_best(np.where(situation.feasible, ranks, -np.inf))
        follows = self._affords(situation, Round(float(self._bounds.max()), float(self._bounds[proposed])))
        self._decided_by = "rollout" if follows else self._bound.info.id
        return ranks if follows else self._bounds - situation.costs

    def _affords(self, situation: Situation, proposed: Round) -> bool:
        """Whether the bound is kept if the round is `proposed`."""
        s = self.settings
        before = self.account.total(situation.visited, Round(most_points(self._scene), 0.0))
        seen = measured_points(situation.belief, self._scene, s)
        worth = s.hybrid_factor * (before.taken + proposed.taken) + seen / s.hybrid_share
        return before.best + proposed.best <= worth * (1.0 + s.tie_tolerance)


def measured_points(belief: SurfaceBelief, scene: Scene, settings: PlannerSettings) -> float:
    """Number of surface points seen so far, from the measurements alone, rather too few than too many.

    The contour may be counted where it only jumps from what is seen before a gap to what is seen behind. Where surface
    points themselves are measured, no more can have been seen than there are grid angles with a measurement.
    """
    points = seen_points(belief, uniform_grid(settings.shape_grid), scene.pixel_size, settings.point_density)
    return min(points, float(np.count_nonzero(belief.hits)))


def most_points(scene: Scene) -> float:
    r"""Upper bound of what any view adds: :math:`h^{-2}\,\tfrac12|Φ_S|(d_{max}^2 - d_{min}^2)`, with no knowledge.

    It is the bound U for a band from the least to the greatest radius that an object may have.
    """
    ring = scene.radius_max**2 - scene.radius_min**2
    return scene.simple_half_width * ring / scene.pixel_size**2
