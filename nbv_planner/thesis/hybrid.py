"""Planners of the thesis's kind: two phases (ch. 5.3), and the rollout as long as the regret bound
of U can be kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives import Objective
from nbv_planner.planning.planners.decision_settings import DecisionSettings
from nbv_planner.planning.planners.planner import Decision, Options, Planner
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.belief import SurfaceBelief, uniform_grid
from nbv_planner.star2d.shapes.sampler import ShapeSettings
from nbv_planner.star2d.shapes.shape_coverage import seen_points
from nbv_planner.star2d.star_surface import star2d, star_reader
from nbv_planner.surface.seam import Reader
from nbv_planner.thesis.area import Uncertainty
from nbv_planner.thesis.intervals import in_simple_interval
from nbv_planner.thesis.regret import RegretLedger, Round
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene


class TwoPhasePlanner(Planner):
    r"""Maximise an area objective, then a second one inside the maximiser's interval (def.
    twophase-algorithm).

    .. math:: \arg\max_{θ \in C \cap Φ_S(θ^{(1)})} F^{(2)}(θ) - λ\,c(θ), \quad
        θ^{(1)} = \arg\max_{θ\in C} F^{(1)}(θ) - λ\,c(θ)

    Both maxima are taken over the feasible candidates, so the second is never empty: it holds
    :math:`θ^{(1)}`. With `refine` the view may leave the interval by half the distance of two
    candidates.
    """

    def __init__(
        self,
        phase_one: Objective,
        objective: Objective,
        scene: Scene,
        views: ViewSpace,
        settings: DecisionSettings,
        reader: Reader = lambda surface: surface,
    ) -> None:
        super().__init__(objective, scene, views, settings, reader)
        views.check_circle("planner two_phase", scene.view_distance)
        self._phase_one = phase_one

    def _rank(self, options: Options) -> FloatArray:
        situation = options.situation
        angles = options.situation.views.view_angle
        areas = self._phase_one.evaluate(situation) - options.costs
        middle = self._first_best(np.where(options.feasible, areas, -np.inf))
        near = in_simple_interval(situation.scene, angles, angles[middle])
        return np.where(near, options.scores, -np.inf)


class HybridPlanner(RolloutPlanner):
    r"""Follow the rollout, unless it falls behind the bound of U; then take the view of U (docs,
    theory).

    With :math:`U_t = \max_θ F_u(θ|θ_{1:t-1})`, an upper bound of what any view adds, the view θ of
    the rollout is taken if

    .. math:: \sum_{s \le t} U_s \le κ \Bigl(\sum_{s<t} F_u(θ_s|θ_{1:s-1})
        + F_u(θ|θ_{1:t-1})\Bigr) + M_t/ρ

    and else the maximiser of :math:`F_u`, for which the left side grows by no more than the right
    one. κ is `hybrid_factor`, ρ `hybrid_share`, and :math:`M_t` the number of surface points seen
    so far (:func:`count_measured`). So

    .. math:: R_{ind}(T) \le κ \sum_{t \le T} F_u(θ_t|θ_{1:t-1}) + (1/ρ - 1)|S|,

    whose sum the thesis bounds for whatever views are taken. A round of which nothing is known (the
    planner was restarted without its state, or the view was chosen elsewhere) counts with the
    greatest bound that any can have and with the value 0.

    The utilities reported are those of the rollout, EMC, also where U decides.
    """

    refinable = False

    def _set_up(self) -> None:
        self._shapes = star_reader(self._reader, "planner hybrid").settings
        if self.settings.regions:
            raise SettingError("planner hybrid: its bound counts no regions; leave region_file out")
        self.views.check_circle("planner hybrid", self.circle)
        self.ledger = self._ledger = RegretLedger()

    def _entered(self, visited: Sequence[CameraPose], decision: Decision) -> Decision:
        """Enter the round, and record which rule chose."""
        at_view = decision.candidates.view_angle == decision.view_angle
        taken = self._bounds[np.flatnonzero(at_view)[0]]
        self._ledger.enter(visited, decision.view, Round(float(self._bounds.max()), float(taken)))
        forced = decision.decided_by != self.settings.label
        return decision if forced else dataclasses.replace(decision, decided_by=self._decided_by)

    def _rank(self, options: Options) -> FloatArray:
        belief = star2d(options.situation.surface, "planner hybrid").belief
        angles = self.views.candidates.view_angle
        self._bounds = Uncertainty.values(belief, options.situation.scene, angles)
        ranks = super()._rank(options)
        proposed = self._first_best(np.where(options.feasible, ranks, -np.inf))
        best = self._bounds.max()
        taken = self._bounds[proposed]
        follows = self._affords(options, Round(float(best), float(taken)))
        self._decided_by = "rollout" if follows else Uncertainty.info.id
        return ranks if follows else self._bounds - options.costs

    def _affords(self, options: Options, proposed: Round) -> bool:
        """Whether the bound is kept if the round is `proposed`."""
        s, situation = self.settings, options.situation
        before = self._ledger.total(situation.visited, Round(most_points(self._scene), 0.0))
        belief = star2d(situation.surface, "planner hybrid").belief
        seen = count_measured(belief, self._scene, self._shapes)
        worth = s.hybrid_factor * (before.taken + proposed.taken) + seen / s.hybrid_share
        return bool(before.best + proposed.best <= worth * (1.0 + s.tie_tolerance))


def count_measured(belief: SurfaceBelief, scene: Scene, settings: ShapeSettings) -> float:
    """Number of surface points seen so far, from the measurements alone, rather too few than too
    many.

    The contour may be counted where it only jumps from what is seen before a gap to what is seen
    behind. Where surface points themselves are measured, no more can have been seen than there are
    grid angles with a measurement.
    """
    points = seen_points(
        belief, uniform_grid(settings.shape_grid), scene.pixel_size, settings.point_density
    )
    return min(points, float(np.count_nonzero(belief.hits)))


def most_points(scene: Scene) -> float:
    r"""Upper bound of what any view adds: :math:`h^{-2}\,\tfrac12|Φ_S|(d_{max}^2 - d_{min}^2)`,
    with no knowledge.

    It is the bound U for a band from the least to the greatest radius that an object may have.
    """
    ring = scene.radius_max**2 - scene.radius_min**2
    return scene.simple_half_width * ring / scene.pixel_size**2
