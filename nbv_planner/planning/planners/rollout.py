"""The rollout planner: choose the view after which the fewest further views are expected, over posterior shapes."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.mapping.belief import uniform_grid
from nbv_planner.planning.integer_programme import cover_programme, milp_solver
from nbv_planner.planning.objectives.expected_coverage import ExpectedMarginalCoverage
from nbv_planner.planning.planners.planner import Planner, PlannerSettings, Situation
from nbv_planner.planning.shapes.completeness import CoverageTarget
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.planning.shapes.shape_coverage import ShapeCoverage
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.world.pose import View, Views
from nbv_planner.world.scene import Scene

# Points below this count as none: they are rounding errors.
_ROUNDING = 1e-6


def views_to_go(coverage: ShapeCoverage, first: IntArray, allowed: BoolArray, target_coverage: float) -> FloatArray:
    r"""Count the views until `target_coverage`, in (0, 1], of each shape has been seen, shape (S, K).

    The indices of K views to compare are in `first`. After that the greedy planner that knows the shape continues, with
    views that are `allowed`, shape (V,). Of the last view only the needed part of what it adds counts. A remainder that
    no view would see counts as one view.
    """
    visible, gain = coverage.visible[:, allowed], coverage.gains()[:, first].astype(float)
    unseen = coverage.unseen[:, None, :] * (1.0 - coverage.visible[:, first])
    needed = coverage.unseen.sum(axis=1, dtype=float) - (1.0 - target_coverage) * coverage.points
    needed = np.broadcast_to(needed[:, None], gain.shape)
    views = np.zeros(gain.shape)
    while True:
        views, needed = views + _part_of_view(needed, gain), needed - gain
        if not (needed > _ROUNDING).any():
            return views
        gains = np.matmul(unseen, visible.swapaxes(1, 2))
        best = gains.argmax(axis=2)[..., None]
        gain = np.take_along_axis(gains, best, axis=2)[..., 0].astype(float)
        gain[gain == 0.0] = np.inf  # no view adds to what is left
        unseen = unseen * (1.0 - np.take_along_axis(visible, best, axis=1))


def _part_of_view(needed: FloatArray, gain: FloatArray) -> FloatArray:
    """Part of a view that is needed: none where nothing is, all of it where it does not add enough, or without end."""
    short = needed > _ROUNDING
    part = np.divide(needed, gain, out=short.astype(float), where=short & (gain > needed) & (gain < np.inf))
    return np.asarray(part)


# Shapes that are processed between two checks of the clock.
_SHAPES_AT_A_TIME = 4
# Of the views around the best candidate every so manieth is compared with it.
_OF_VIEWS_AROUND = 2
# Means that differ by rounding alone are equal.
_DECIMALS = 9


class RolloutPlanner(Planner):
    r"""Minimise the mean number of views to go (rollout; Bertsekas 2013) over posterior shapes.

    For each of the `first_views` feasible candidates of largest score and each shape the cover is completed greedily
    on that shape until `target_coverage`. The candidate with the smallest mean number of views wins, the one of larger
    score among equals. At the `deadline` the mean is taken over the shapes done so far (those of a first block at
    least); only then does a decision depend on the speed of the machine. With `refine` the views around the winner are
    compared with it in the same way, if there is time.
    """

    _objective: ExpectedMarginalCoverage

    def _rank(self, situation: Situation) -> FloatArray:
        candidates = np.flatnonzero(situation.feasible)
        order = candidates[np.argsort(-situation.scores[candidates], kind="stable")]
        first = order[: self.settings.first_views]
        to_go = self._mean_views(self._coverage(situation), first, situation.feasible)
        ranks = np.full(len(situation.scores), -np.inf)
        # A stable sort: `first` already falls by score.
        ranks[first[np.argsort(np.round(to_go, _DECIMALS), kind="stable")]] = -np.arange(len(first))
        return ranks

    def _coverage(self, situation: Situation, others: Views | None = None) -> ShapeCoverage:
        """What is to be seen from the candidates, and after them from `others`."""
        views = self.views.candidates if others is None else self.views.candidates.joined(others)
        expected = self._objective.after(situation.visited, self.views.ground)
        return expected.coverage(situation.belief, situation.scene, views)

    def _mean_views(self, coverage: ShapeCoverage, first: IntArray, allowed: BoolArray) -> FloatArray:
        """Mean over the shapes of :func:`views_to_go`, shape (K,)."""
        target = self.settings.target_coverage
        return self._mean_in_time(
            views_to_go(part, first, allowed, target) for part in coverage.blocks(_SHAPES_AT_A_TIME)
        )

    def _mean_in_time(self, parts: Iterable[FloatArray]) -> FloatArray:
        """Mean over the shapes, of which `parts` (s, K) come in turn, or over those done in time, shape (K,)."""
        total, done = np.zeros(1), 0
        for part in parts:
            total, done = total + part.sum(axis=0), done + len(part)
            if time.perf_counter() > self._until:
                break
        return total / done

    def _refined(
        self, situation: Situation, views: Views, coarse: tuple[View, float, float]
    ) -> tuple[View, float, float]:
        """View, utility and score of the first of the best candidate, `coarse`, and `views` with the fewest to go."""
        if time.perf_counter() > self._until:
            return coarse
        fine = Views.of([coarse[0]]).joined(views.chosen(slice(None, None, _OF_VIEWS_AROUND)))
        coverage = self._coverage(situation, fine)
        first = len(situation.scores) + np.arange(len(fine))
        allowed = np.append(situation.feasible, np.zeros(len(fine), dtype=bool))  # candidates alone follow
        best = int(np.argmin(np.round(self._mean_views(coverage, first, allowed), _DECIMALS)))
        utility = float(coverage.gains()[:, first[best]].mean(dtype=float))
        cost = float(self._costs(fine, situation.current_view)[best])
        return coarse if best == 0 else (fine[best], utility, utility - cost)


# Weight of the part that is seen beside the number of views: below 1, so that it only chooses among equal numbers.
_PART_SEEN = 0.5


def fewest_views(
    visible: BoolArray, weight: FloatArray, needed: float, time_limit: float = np.inf
) -> tuple[int, ...] | None:
    r"""Find the fewest views that see `needed` points, of equal numbers those that see most (:func:`cover_programme`).

    .. math:: \min \sum_θ x_θ - \tfrac12 \frac{\sum_c w_c z_c}{\sum_c w_c}, \quad \sum_c w_c z_c \ge n

    for cells of `weight` w points, shape (M,), not negative, that views see as in `visible`, shape (V, M). What no view
    sees is not required. After `time_limit` (seconds) the best found so far is taken; None if nothing was found.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    seen, weight = _classes(visible, weight)
    needed = min(needed, float(weight.sum())) - _ROUNDING
    if needed <= 0.0:
        return ()
    views = len(seen)
    cost = np.concatenate([np.ones(views), -_PART_SEEN * weight / weight.sum()])
    enough = np.concatenate([np.zeros(views), weight])
    return cover_programme("the planner horizon", seen, cost, (enough, needed, np.inf), time_limit=time_limit)[0]


def _classes(visible: BoolArray, weight: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Merge cells that the same views see and leave out those that none does or that weigh nothing."""
    kept = visible.any(axis=0) & (weight > 0.0)
    classes, member = np.unique(visible[:, kept], axis=1, return_inverse=True)
    return classes, np.bincount(member.ravel(), weight[kept], minlength=classes.shape[1]).astype(float)


class HorizonPlanner(Planner):
    r"""Receding horizon: the fewest views that complete `target_coverage` of the mean shape; go to the best of them.

    The mean of the belief is taken for the object (certainty equivalence), so uncertainty has no effect: a
    heuristic to compare others with. The view of the plan that sees most unseen points of the mean shape comes first.
    If the mean shape is covered, or no plan was found before the `deadline`, the largest score decides.
    """

    refinable = False

    def __init__(
        self, objective: ExpectedMarginalCoverage, scene: Scene, views: ViewSpace, settings: PlannerSettings
    ) -> None:
        super().__init__(objective, scene, views, settings)
        milp_solver("the planner horizon")  # refuses an old SciPy now, not at the first decision

    def _rank(self, situation: Situation) -> FloatArray:
        feasible = np.flatnonzero(situation.feasible)
        shape = self._mean_coverage(situation)
        unseen, gains = shape.unseen[0].astype(float), shape.gains()[0].astype(float)
        needed = unseen.sum() - (1.0 - self.settings.target_coverage) * shape.points[0]
        plan = fewest_views(shape.visible[0][feasible] > 0.0, unseen, needed, self.settings.deadline)
        if not plan:
            return situation.scores
        ranks = np.full(len(situation.scores), -np.inf)
        chosen = feasible[list(plan)]
        ranks[chosen] = gains[chosen] - situation.costs[chosen]
        return ranks

    def _mean_coverage(self, situation: Situation) -> ShapeCoverage:
        """What is to be seen of the mean shape, as the one shape, once the views so far have been taken."""
        belief, scene, grid = situation.belief, situation.scene, uniform_grid(self.settings.shape_grid)
        mean = np.clip(belief.interpolate(belief.mean, grid), scene.radius_min, scene.radius_max)
        return CoverageTarget.of(self.settings).coverage(
            Shapes(grid, mean[None]), Views.of(situation.visited), self.views.candidates, scene, belief,
            self.views.ground,
        )
