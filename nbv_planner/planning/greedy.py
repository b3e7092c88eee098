"""The greedy planner: go where the objective is largest (spec 04, thesis ch. 5.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray, angle_difference, wrap_angle
from nbv_planner.planning.objectives import OBJECTIVES, OMNISCIENT, Objective
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.scene import Scene
from nbv_planner.settings import check_settings, setting
from nbv_planner.surface import SurfaceBelief

PLANNERS = ("greedy",)


@dataclass(frozen=True)
class PlannerSettings:
    """Which planner, which objective, and what counts besides it.

    Raises:
        SettingError: a value is out of range.
    """

    planner: str = setting("greedy", "Planner.", choices=PLANNERS)
    objective: str = setting("IOA", "Objective that ranks the candidate views.", choices=(*OBJECTIVES, OMNISCIENT))
    travel_weight: float = setting(
        0.0, "Price of travel: utility lost per metre along the view circle.", unit="1/m", ge=0.0, read_only=False
    )
    revisit_radius: float = setting(
        0.1, "Candidates nearer than this to a view already taken are left out.", unit="rad", ge=0.0, le=math.pi,
        read_only=False,
    )
    refine: bool = setting(False, "Refine the best candidate between its neighbours.", read_only=False)
    tie_tolerance: float = setting(
        1e-9, "Relative difference below which two utilities count as equal; the first candidate wins.",
        ge=0.0, lt=1.0, read_only=False,
    )
    first_candidate: int = setting(
        -1, "Index of the candidate to take as first view if it may be chosen; -1 lets the planner choose.", ge=-1
    )

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)


@dataclass(frozen=True, eq=False)
class Decision:
    """A next best view, and why.

    Attributes:
        view_angle: where to go, radians.
        utility: value of the objective there.
        score: utility less the cost of travel; what was maximised.
        runner_up: angle of the second best feasible candidate, radians; NaN if there is none.
        margin: score above the runner-up's; NaN if there is none.
        candidates: all candidate views, shape (V,), radians.
        utilities: value of the objective at each, shape (V,).
        costs: cost of travel to each, shape (V,).
        feasible: which could be chosen, shape (V,).
    """

    view_angle: float
    utility: float
    score: float
    runner_up: float
    margin: float
    candidates: FloatArray
    utilities: FloatArray
    costs: FloatArray
    feasible: BoolArray


class GreedyPlanner:
    """Evaluate the objective at all candidates and choose the best feasible one."""

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

    def decide(
        self, belief: SurfaceBelief, *, current_view: float | None = None, visited: Sequence[float] = (),
        now: float = 0.0,
    ) -> Decision | None:
        """Choose the next best view.

        Args:
            belief: what is believed about the surface.
            current_view: where the camera stands, radians, for the cost of travel; None if not known.
            visited: angles of the views taken so far, radians.
            now: time, seconds, for views that are unreachable for a while.

        Returns:
            The decision, or None if no candidate is feasible.
        """
        s, candidates = self.settings, self.views.angles
        utilities = self._objective.evaluate(belief, self._scene, candidates)
        costs = self._costs(candidates, current_view)
        feasible = self.views.feasible(now, visited, s.revisit_radius)
        if not feasible.any():
            return None
        scores = np.where(feasible, utilities - costs, -np.inf)
        best = self._first_best(scores)
        if not visited and s.first_candidate >= 0 and feasible[s.first_candidate]:
            best = s.first_candidate
        runner_up, margin = _runner_up(scores, best, candidates)
        view, utility, score = float(candidates[best]), float(utilities[best]), float(scores[best])
        if s.refine:
            views = self._between_neighbours(best)
            views = views[self.views.permitted(views, visited, s.revisit_radius)]
            view, utility, score = self._refined(belief, views, current_view, (view, utility, score))
        return Decision(view, utility, score, runner_up, margin, candidates, utilities, costs, feasible)

    def _costs(self, views: FloatArray, current_view: float | None) -> FloatArray:
        """Price of travel λ·|Δθ|·d_cam to each view."""
        if current_view is None or self.settings.travel_weight == 0.0:
            return np.zeros(len(views))
        travel = np.abs(angle_difference(views, current_view)) * self._scene.view_distance
        return self.settings.travel_weight * travel

    def _first_best(self, scores: FloatArray) -> int:
        """First candidate whose score is the largest up to the tie tolerance."""
        best = scores.max()
        return int(np.argmax(scores >= best - self.settings.tie_tolerance * abs(best)))

    def _between_neighbours(self, best: int) -> FloatArray:
        """Views around the best candidate, ten to either side, up to halfway to its neighbours."""
        spacing = 2.0 * math.pi / len(self.views.angles)
        return wrap_angle(self.views.angles[best] + np.linspace(-0.5, 0.5, 21) * spacing)

    def _refined(
        self, belief: SurfaceBelief, views: FloatArray, current_view: float | None,
        coarse: tuple[float, float, float],
    ) -> tuple[float, float, float]:
        """View, utility and score of the best of `views`, if better than those of the best candidate, `coarse`."""
        if len(views) == 0:
            return coarse
        utilities = self._objective.evaluate(belief, self._scene, views)
        scores = utilities - self._costs(views, current_view)
        top = self._first_best(scores)
        fine = float(views[top]), float(utilities[top]), float(scores[top])
        return fine if fine[2] > coarse[2] else coarse


def _runner_up(scores: FloatArray, best: int, candidates: FloatArray) -> tuple[float, float]:
    """Angle of the second best feasible candidate and the margin of the best over it."""
    others = scores.copy()
    others[best] = -np.inf
    second = int(np.argmax(others))
    if not np.isfinite(others[second]):
        return math.nan, math.nan
    return float(candidates[second]), float(scores[best] - scores[second])
