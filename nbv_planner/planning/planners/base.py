"""What all planners share: feasible views, cost of travel, ties, the first view, and the account of a decision."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray, angle_difference, wrap_angle
from nbv_planner.planning.exclusion import ExclusionArray
from nbv_planner.planning.objectives import Objective
from nbv_planner.planning.objectives.expected_coverage import ExpectedMarginalCoverage, after_views
from nbv_planner.planning.objectives.uncertainty import Uncertainty
from nbv_planner.planning.planners.account import Account
from nbv_planner.planning.planners.settings import PlannerSettings
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

# Surface points. Where no view promises as many, the posterior shapes have nothing more to say: if points are unseen
# nevertheless, the shapes are smoother than the object, and their differences between views are chance.
_LEAST_PROMISE = 1.0


@dataclass(frozen=True, eq=False)
class Decision:
    """A next best view, and why.

    Attributes:
        view_angle: where to go, radians.
        utility: value of the objective there.
        score: utility less the cost of travel; what greedy and two_phase maximise.
        runner_up: angle of the candidate that would have been next, radians; NaN if there is none.
        margin: score above the runner-up's; NaN if there is none. Negative only if the score did not decide.
        candidates: all candidate views, shape (V,), radians.
        utilities: value of the objective at each, shape (V,).
        costs: cost of travel to each, shape (V,).
        excluded: why the camera may not go there, sums of :class:`~nbv_planner.planning.exclusion.Exclusion`, 0 where
            it may, shape (V,).
        decided_by: which rule chose: the planner's label, or `first_candidate`; in hybrid `rollout` or `U`;
            `U` also where EMC promises nothing.
    """

    view_angle: float
    utility: float
    score: float
    runner_up: float
    margin: float
    candidates: FloatArray
    utilities: FloatArray
    costs: FloatArray
    excluded: ExclusionArray
    decided_by: str = ""

    @property
    def feasible(self) -> BoolArray:
        """Which the camera may go to, shape (V,)."""
        return np.asarray(self.excluded == 0)


@dataclass(frozen=True, eq=False)
class Situation:
    """What a planner chooses from.

    Attributes:
        belief: what is believed about the surface.
        scores: value of the objective at each candidate less the cost of travel, shape (V,).
        costs: cost of travel to each, shape (V,).
        feasible: which may be chosen, shape (V,), at least one.
        visited: angles of the views taken so far, radians.
    """

    belief: SurfaceBelief
    scores: FloatArray
    costs: FloatArray
    feasible: BoolArray
    visited: Sequence[float]


class Planner(ABC):
    """Rank the candidate views and choose the first of the best feasible ones.

    Attributes:
        settings: what counts besides the objective.
        views: candidate views.
        account: what the planner knows of earlier rounds, None if it decides without looking back at them.
    """

    refinable: ClassVar[bool] = True
    """Whether a view between two candidates can be better than both: where scores are maximised."""

    heeds_objective: ClassVar[bool] = True
    """Whether the objective has a say in the choice."""

    def __init__(self, objective: Objective, scene: Scene, views: ViewSpace, settings: PlannerSettings) -> None:
        """Put the parts together.

        Raises:
            SettingError: `first_candidate` is not among the candidates.
        """
        if settings.first_candidate >= len(views.angles):
            raise SettingError(f"first_candidate: {settings.first_candidate} must be < {len(views.angles)} (num_views)")
        self._objective = objective
        self._scene = scene
        self.settings = settings
        self.views = views
        self.account: Account | None = None

    def snapshot(self) -> Planner:
        """Return a planner that decides as this one does now, whatever is set on this one later."""
        twin = copy.copy(self)
        twin.views = copy.copy(self.views)
        return twin

    @abstractmethod
    def _rank(self, situation: Situation) -> FloatArray:
        """Return what is maximised over the feasible candidates, shape (V,); -inf leaves a candidate out."""

    def decide(
        self, belief: SurfaceBelief, *, current_view: float | None = None, visited: Sequence[float] = (),
        now: float = 0.0,
    ) -> Decision | None:
        """Choose the next best view. Asking changes nothing: the same question has the same answer.

        Args:
            belief: what is believed about the surface.
            current_view: where the camera stands, radians, for the cost of travel; None if not known.
            visited: angles of the views taken so far, radians.
            now: time, seconds, for views that are unreachable for a while.

        Returns:
            The decision, or None if no candidate is feasible.
        """
        s, candidates = self.settings, self.views.angles
        excluded = self.views.excluded(now, visited, s.revisit_radius)
        feasible = excluded == 0
        if not feasible.any():
            return None
        objective = after_views(self._objective, visited)
        utilities = objective.evaluate(belief, self._scene, candidates)
        costs = self._costs(candidates, current_view)
        scores = utilities - costs
        ranks, decided_by = self._rank(Situation(belief, scores, costs, feasible, visited)), s.label
        if self._promises_nothing(utilities[feasible]):
            ranks, decided_by = Uncertainty().evaluate(belief, self._scene, candidates) - costs, Uncertainty.info.id
        ranks = np.where(feasible, ranks, -np.inf)
        best = self._first_best(ranks)
        if not visited and s.first_candidate >= 0 and feasible[s.first_candidate]:
            best, decided_by = s.first_candidate, "first_candidate"
        runner_up, margin = _runner_up(ranks, scores, best, candidates)
        view, utility, score = float(candidates[best]), float(utilities[best]), float(scores[best])
        if s.refine and self.refinable:
            views = self._between_neighbours(best)
            views = views[self.views.permitted(views, visited, s.revisit_radius)]
            view, utility, score = self._refined(objective, belief, views, current_view, (view, utility, score))
        return Decision(view, utility, score, runner_up, margin, candidates, utilities, costs, excluded, decided_by)

    def _promises_nothing(self, utilities: FloatArray) -> bool:
        """Whether the planner goes by EMC and that is next to nothing everywhere; then U decides."""
        expected = isinstance(self._objective, ExpectedMarginalCoverage)
        return self.heeds_objective and expected and bool(utilities.max() < _LEAST_PROMISE)

    def _costs(self, views: FloatArray, current_view: float | None) -> FloatArray:
        """Price of travel λ·|Δθ|·d_cam to each view."""
        if current_view is None or self.settings.travel_weight == 0.0:
            return np.zeros(len(views))
        travel = np.abs(angle_difference(views, current_view)) * self._scene.view_distance
        return self.settings.travel_weight * travel

    def _first_best(self, ranks: FloatArray) -> int:
        """First candidate whose rank is the largest up to the tie tolerance."""
        best = ranks.max()
        return int(np.argmax(ranks >= best - self.settings.tie_tolerance * abs(best)))

    def _between_neighbours(self, best: int) -> FloatArray:
        """Views around the best candidate, ten to either side, up to halfway to its neighbours."""
        spacing = 2.0 * math.pi / len(self.views.angles)
        return wrap_angle(self.views.angles[best] + np.linspace(-0.5, 0.5, 21) * spacing)

    def _refined(
        self, objective: Objective, belief: SurfaceBelief, views: FloatArray, current_view: float | None,
        coarse: tuple[float, float, float],
    ) -> tuple[float, float, float]:
        """View, utility and score of the best of `views`, if better than those of the best candidate, `coarse`."""
        if len(views) == 0:
            return coarse
        utilities = objective.evaluate(belief, self._scene, views)
        scores = utilities - self._costs(views, current_view)
        top = self._first_best(scores)
        fine = float(views[top]), float(utilities[top]), float(scores[top])
        return fine if fine[2] > coarse[2] else coarse


def _runner_up(ranks: FloatArray, scores: FloatArray, best: int, candidates: FloatArray) -> tuple[float, float]:
    """Angle of the candidate ranked next to the best and how far the best's score is above its score."""
    others = ranks.copy()
    others[best] = -np.inf
    second = int(np.argmax(others))
    if not np.isfinite(others[second]):
        return math.nan, math.nan
    return float(candidates[second]), float(scores[best] - scores[second])
