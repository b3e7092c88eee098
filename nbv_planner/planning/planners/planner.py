"""What all planners share: feasible views, cost of travel, ties, first view, what was decided."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.planning.objectives import ExpectedMarginalCoverage, Ledger, Objective, Situation
from nbv_planner.planning.planners.decision_settings import DecisionSettings
from nbv_planner.planning.view_space import ExclusionArray, ViewSpace, aside
from nbv_planner.surface.checks import Check, Level
from nbv_planner.surface.seam import Banded, PublishedSurface, Reader
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

LEAST_PROMISE = 1.0
"""Surface points. Where no view is expected to add as many, the posterior shapes hold no more
information: if points are unseen nevertheless, the shapes are smoother than the object, and their
differences between views are chance."""
OVERLAP = "overlap"
"""Rule of a view that is to check what earlier views have seen."""
ValuedView = tuple[CameraPose, float, float]
"""A view, its utility, and its score."""
# Views that are this part as far from those taken as the farthest tell about as much.
_NEXT_TO_FARTHEST = 0.9
# Views that see this part as much of what has been seen as any test it as well.
_MUCH_AGAIN = 0.7
# Stands for the length of a path that does not exist, metres: costs stay finite.
_FARTHEST = 1e9


@dataclass(frozen=True, eq=False)
class Decision:
    """A next best view, and why."""

    view: CameraPose  #: where to go.
    utility: float  #: value of the objective there.
    score: float  #: utility less the cost of travel; what greedy and two_phase maximise.
    #: view angle of the candidate that would have been next, radians; NaN if there is none.
    runner_up: float
    #: score above the runner-up's; NaN if there is none. Negative only if the score did not decide.
    margin: float
    candidates: Poses  #: all V candidate views.
    utilities: FloatArray  #: value of the objective at each, shape (V,).
    costs: FloatArray  #: cost of travel to each, shape (V,).
    #: why the camera may not go there, sums of :class:`~nbv_planner.planning.view_space.Exclusion`,
    #: 0 where it may, shape (V,).
    excluded: ExclusionArray
    #: which rule chose: the planner's label, or `first_candidate`; in hybrid `rollout` or `U`; `U`
    #: also where EMC is next to 0.
    decided_by: str = ""
    #: surface points that each is expected to add, whatever the objective, shape (V,); None where
    #: that was not asked
    #: for: nothing bars any of them, or the view chosen plainly adds some.
    promised: FloatArray | None = None

    @property
    def view_angle(self) -> float:
        """Polar angle of the view, radians."""
        return self.view.view_angle

    @property
    def feasible(self) -> BoolArray:
        """Which the camera may go to, shape (V,)."""
        return np.asarray(self.excluded == 0)


@dataclass(frozen=True, eq=False)
class Options:
    """What a planner chooses from: the situation, whose views are the candidates, and of each what
    follows, (V,).
    """

    situation: Situation
    scores: FloatArray  #: value of the objective less the cost of travel.
    costs: FloatArray  #: cost of travel.
    feasible: BoolArray  #: whether it may be chosen, as one may.
    #: when to be done with what can be cut short, on the clock of :func:`time.perf_counter`,
    #: seconds.
    until: float


def with_checks(scene: Scene, checks: Sequence[Check]) -> Scene:
    """The scene with the sensor that the scans show, where it sees less than declared and that is
    to be adapted to.
    """
    lacking = {check.name: check.score for check in checks if check.level is Level.NOTED}
    field, far = (1.0 - lacking.get(name, 0.0) for name in ("field_of_view", "range"))
    if field == far == 1.0:
        return scene
    try:
        return dataclasses.replace(
            scene, field_of_view=field * scene.field_of_view, range_max=far * scene.range_max
        )
    except SettingError:  # next to nothing is left
        return scene


class Planner(ABC):
    """Rank the candidate views and choose the first of the best feasible ones."""

    refinable: ClassVar[bool] = True
    """Whether a view between two candidates can be better than both, and may be chosen."""

    heeds_objective: ClassVar[bool] = True
    """Whether the choice depends on the objective."""

    def __init__(
        self,
        objective: Objective,
        scene: Scene,
        views: ViewSpace,
        settings: DecisionSettings,
        reader: Reader = lambda surface: surface,
    ) -> None:
        """Put the parts together; the `reader` gives the surface of what is believed, which may be
        one itself.

        Raises:
            SettingError: `first_candidate` is not among the candidates, or the objective takes no
                account of noise.
        """
        number = len(views.candidates)
        if settings.first_candidate >= number:
            raise SettingError(
                f"first_candidate: {settings.first_candidate} must be < {number} (num_views)"
            )
        if settings.seen_std and not objective.info.counts_noise:
            raise SettingError(
                f"seen_std: objective {objective.info.id} takes no account of noise; must be 0"
            )
        self._objective = objective
        self._scene = scene
        self._reader = reader
        self.settings = settings  #: criteria besides the objective.
        self.views = views  #: candidate views.
        #: regret ledger of earlier rounds, None if its decisions do not depend on them.
        self.ledger: Ledger | None = None
        #: EMC, whatever the objective: tells whether any view is worth it where some are barred;
        #: None: not judged.
        self.expected: ExpectedMarginalCoverage | None = None
        #: decides where EMC promises nothing; None: EMC all the same.
        self.fallback: Objective | None = None
        #: whether it has a map of its own and depends on the `scan_history`.
        self.takes_scans = False
        #: scans that counted, and the poses they were taken at.
        self.scan_history: tuple[tuple[Scan, CameraPose], ...] = ()
        self._set_up()

    def _set_up(self) -> None:  # noqa: B027 (a hook)
        """Set up what a kind of planner needs besides.

        Raises:
            SettingError: something does not go with it.
        """

    @property
    def circle(self) -> float:
        """Radius of the view circle, metres."""
        return self._scene.view_distance

    def snapshot(self) -> Planner:
        """Return a planner that decides as this one does now, independent of later settings of this
        one.
        """
        twin = copy.copy(self)
        twin.views = copy.copy(self.views)
        return twin

    def update(self, belief: PublishedSurface, stands: CameraPose | None) -> None:
        """Let the ground hold what the object may occupy, and the camera stand somewhere, None if
        not known.
        """
        self.views.update(belief, stands, self._scene.radius_max)

    @abstractmethod
    def _rank(self, options: Options) -> FloatArray:
        """Return what is maximised over the feasible candidates, shape (V,); -inf leaves a
        candidate out.
        """

    def decide(
        self,
        belief: PublishedSurface,
        *,
        current_view: CameraPose | None = None,
        visited: Sequence[CameraPose] = (),
        now: float = 0.0,
        overlapping: bool = False,
    ) -> Decision | None:
        """Choose the next best view; None if no candidate is feasible.

        One that is to be `overlapping` goes between views taken, where it sees most of what they
        saw at another incidence: as far, by the angle about the centre, from the nearest of them as
        any, and of those the best.

        Deciding changes nothing: the same inputs give the same decision. Errors common to views do
        not count. The cost of travel depends on `current_view`, None if not known; `visited` are
        the views taken so far, `now` is the time, seconds, for views that are unreachable for a
        while.
        """
        s = self.settings
        candidates = self.views.candidates
        until = time.perf_counter() + s.deadline
        excluded = self.views.excluded(now, visited, s.revisit_radius)
        feasible = excluded == 0
        if not feasible.any():
            return None
        situation = self._situation(belief, candidates, current_view, visited)
        utilities, costs = self._valued(situation)
        options = Options(situation, utilities - costs, costs, feasible, until)
        ranks, decided_by = self._ranked(options, utilities, visited if overlapping else ())
        ranks = np.where(feasible, ranks, -np.inf)
        best = self._first_best(ranks)
        if not visited and s.first_candidate >= 0 and feasible[s.first_candidate]:
            best = s.first_candidate
            decided_by = "first_candidate"
        runner_up, margin = _runner_up(ranks, options.scores, best, candidates.view_angle)
        valued = candidates[best], float(utilities[best]), float(options.scores[best])
        if s.refine and self.refinable and decided_by == s.label:
            valued = self._refined(options, self._views_around(best, visited), valued)
        promised: FloatArray | None = utilities
        if not self._objective.info.counts_new:
            promised = self._promised(valued[0], excluded, situation)
        decision = Decision(
            *valued,
            runner_up,
            margin,
            candidates,
            utilities,
            costs,
            excluded,
            decided_by,
            promised,
        )
        return self._entered(visited, decision)

    def _views_around(self, best: int, visited: Sequence[CameraPose]) -> Poses:
        """Views in which a candidate may be refined."""
        views = self.views.around(best)
        apart = self.views.apart(views, visited, self.settings.revisit_radius)
        return views.chosen(self.views.allowed(views) & apart & (self.views.off_ground(views) == 0))

    def _entered(self, visited: Sequence[CameraPose], decision: Decision) -> Decision:
        """The decision, after the views taken, once it is in the ledger of a planner that has
        one.
        """
        return decision

    def _promised(
        self, chosen: CameraPose, excluded: ExclusionArray, situation: Situation
    ) -> FloatArray | None:
        """EMC of all candidates, shape (V,), where some are barred, unless the `chosen` view
        plainly adds points.
        """
        if self.expected is None or not situation.surface.drawable:
            return None
        if not self.views.barred(excluded).any():
            return None
        return self.expected.unless_plain(situation, chosen)

    def evaluate(
        self,
        belief: PublishedSurface,
        views: Poses,
        *,
        current_view: CameraPose | None = None,
        visited: Sequence[CameraPose] = (),
    ) -> tuple[FloatArray, FloatArray]:
        """Value of the objective at any `views`, and the cost of travel to each, shape (V,);
        changes nothing.
        """
        return self._valued(self._situation(belief, views, current_view, visited))

    def _ranked(
        self, options: Options, utilities: FloatArray, between: Sequence[CameraPose]
    ) -> tuple[FloatArray, str]:
        """What is maximised, shape (V,), and by which rule: its own, or that of a view `between`
        others, if any.
        """
        ranks = self._rank(options)
        if between:
            far = aside(self.views.candidates, between) * options.feasible
            if self.expected is not None and self.settings.regions:  # most is left unseen
                again = self.expected.seen_again(options.situation) * options.feasible
                far *= again >= _MUCH_AGAIN * again.max()
            return np.where(far >= _NEXT_TO_FARTHEST * far.max(), options.scores, -np.inf), OVERLAP
        promise = utilities[options.feasible].max()
        other = self.fallback if self.heeds_objective and promise < LEAST_PROMISE else None
        if other is not None and isinstance(options.situation.surface, Banded):
            return self._by_bounds(other.evaluate(options.situation), options), other.info.id
        return ranks, self.settings.label

    def _valued(self, situation: Situation) -> tuple[FloatArray, FloatArray]:
        costs = self._costs(situation.views, situation.current_view)
        objective = self._objective
        if not (self.heeds_objective or isinstance(situation.surface, Banded)):
            objective = self.expected or objective  # it may need a band
        return objective.evaluate(situation), costs

    def _situation(
        self,
        belief: PublishedSurface,
        views: Poses,
        current_view: CameraPose | None,
        visited: Sequence[CameraPose],
    ) -> Situation:
        surface = self._reader(belief.by_noise)
        centre = self.views.centre
        scene = with_checks(self._scene, surface.checks)
        taken = Poses.of(self._looked(visited)).about(centre)
        stands = current_view and current_view.about(centre)
        return Situation(surface, scene, views, taken, self.views.ground, stands)

    def _looked(self, visited: Sequence[CameraPose]) -> Sequence[CameraPose]:
        """Where the camera has looked when it has taken these views."""
        return visited

    def _by_bounds(self, bounds: FloatArray, options: Options) -> FloatArray:
        """Ranks by the values of the `fallback`, shape (V,), where EMC promises nothing."""
        return bounds - options.costs

    def _costs(self, views: Poses, current_view: CameraPose | None) -> FloatArray:
        """Cost of each view: its own, and λ times the length of the path there, on the view circle
        λ·|Δθ|·d_cam.
        """
        cost = self.views.view_costs(views)[0]
        if current_view is None or self.settings.travel_weight == 0.0:
            return cost
        length = np.minimum(self.views.ground_path_length(current_view, views), _FARTHEST)
        return cost + self.settings.travel_weight * length

    def _first_best(self, ranks: FloatArray) -> int:
        """First candidate whose rank is the largest up to the tie tolerance."""
        best = ranks.max()
        return int(np.argmax(ranks >= best - self.settings.tie_tolerance * abs(best)))

    def _refined(self, options: Options, views: Poses, coarse: ValuedView) -> ValuedView:
        """View, utility and score of the best of `views`, if better than those of the best
        candidate, `coarse`.
        """
        if len(views) == 0:
            return coarse
        utilities, costs = self._valued(dataclasses.replace(options.situation, views=views))
        scores = utilities - costs
        top = self._first_best(scores)
        fine = views[top], float(utilities[top]), float(scores[top])
        return fine if fine[2] > coarse[2] else coarse


def _runner_up(
    ranks: FloatArray, scores: FloatArray, best: int, view_angles: FloatArray
) -> tuple[float, float]:
    """View angle of the candidate ranked next to the best and how far the best's score is above its
    score.
    """
    others = ranks.copy()
    others[best] = -np.inf
    second = int(np.argmax(others))
    if not np.isfinite(others[second]):
        return math.nan, math.nan
    return float(view_angles[second]), float(scores[best] - scores[second])
