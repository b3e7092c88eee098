"""The rollout planner: choose the view after which the fewest further views are expected, over
posterior shapes.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.planners.planner import Options, Planner, ValuedView
from nbv_planner.surface.coverage import ShapeCoverage
from nbv_planner.world.pose import Poses

# Points below this count as none: they are rounding errors.
_ROUNDING = 1e-6


def views_to_go(
    coverage: ShapeCoverage, first: IntArray, allowed: BoolArray, target_coverage: float
) -> FloatArray:
    r"""Count the views until `target_coverage`, in (0, 1], of each shape has been seen, shape (S,
    K).

    The indices of K views to compare are in `first`. After that the greedy planner that knows the
    shape continues, with views that are `allowed`, shape (V,). Of the last view only the needed
    part of what it adds counts. A remainder that no view would see counts as one view.
    """
    visible = coverage.visible[:, allowed]
    gain = coverage.gains()[:, first].astype(float)
    unseen = coverage.unseen[:, None, :] * (1.0 - coverage.visible[:, first])
    needed = coverage.unseen.sum(axis=1, dtype=float) - (1.0 - target_coverage) * coverage.points
    needed = np.broadcast_to(needed[:, None], gain.shape)
    views = np.zeros(gain.shape)
    while True:
        views = views + _part_of_view(needed, gain)
        needed = needed - gain
        if not (needed > _ROUNDING).any():
            return views
        gains = np.matmul(unseen, visible.swapaxes(1, 2))
        best = gains.argmax(axis=2)[..., None]
        gain = np.take_along_axis(gains, best, axis=2)[..., 0].astype(float)
        gain[gain == 0.0] = np.inf  # no view adds to what is left
        unseen = unseen * (1.0 - np.take_along_axis(visible, best, axis=1))


def _part_of_view(needed: FloatArray, gain: FloatArray) -> FloatArray:
    """Part of a view that is needed: none where nothing is, all of it where it does not add enough,
    or without end.
    """
    short = needed > _ROUNDING
    part = np.divide(
        needed, gain, out=short.astype(float), where=short & (gain > needed) & (gain < np.inf)
    )
    return np.asarray(part)


# Shapes that are processed between two checks of the clock.
_SHAPES_AT_A_TIME = 4
# Of the views around the best candidate every so manieth is compared with it.
_OF_VIEWS_AROUND = 2
# Means that differ by rounding alone are equal.
_DECIMALS = 9


def mean_in_time(parts: Iterable[FloatArray], until: float) -> FloatArray:
    """Mean over the shapes, of which `parts` (s, K) come in turn, or over those done in time, shape
    (K,).
    """
    total = np.zeros(1)
    done = 0
    for part in parts:
        total = total + part.sum(axis=0)
        done = done + len(part)
        if time.perf_counter() > until:
            break
    return total / done


class RolloutPlanner(Planner):
    r"""Minimise the mean number of views to go (rollout; Bertsekas 2013) over posterior shapes.

    For each of the `first_views` feasible candidates of largest score and each shape the cover is
    completed greedily on that shape until `target_coverage`. The candidate with the smallest mean
    number of views wins, the one of larger score among equals. At the `deadline` the mean is taken
    over the shapes done so far (those of a first block at least); only then does a decision depend
    on the speed of the machine. With `refine` the views around the winner are compared with it in
    the same way, if there is time.
    """

    _objective: ExpectedMarginalCoverage

    def _rank(self, options: Options) -> FloatArray:
        candidates = np.flatnonzero(options.feasible)
        order = candidates[np.argsort(-options.scores[candidates], kind="stable")]
        first = order[: self.settings.first_views]
        to_go = self._mean_views(
            self._objective.coverage(options.situation), first, options.feasible, options.until
        )
        ranks = np.full(len(options.scores), -np.inf)
        # A stable sort: `first` already falls by score.
        ranks[first[np.argsort(np.round(to_go, _DECIMALS), kind="stable")]] = -np.arange(len(first))
        return ranks

    def _mean_views(
        self, coverage: ShapeCoverage, first: IntArray, allowed: BoolArray, until: float
    ) -> FloatArray:
        """Mean over the shapes of :func:`views_to_go`, shape (K,)."""
        target = self.settings.target_coverage
        parts = (
            views_to_go(part, first, allowed, target) for part in coverage.blocks(_SHAPES_AT_A_TIME)
        )
        return mean_in_time(parts, until)

    def _refined(self, options: Options, views: Poses, coarse: ValuedView) -> ValuedView:
        """View, utility and score of the first of the best candidate, `coarse`, and `views` with
        the fewest to go.
        """
        if time.perf_counter() > options.until:
            return coarse
        fine = Poses.of([coarse[0]]).joined(views.chosen(slice(None, None, _OF_VIEWS_AROUND)))
        situation = options.situation
        views = situation.views.joined(fine)
        coverage = self._objective.coverage(dataclasses.replace(situation, views=views))
        first = len(options.scores) + np.arange(len(fine))
        # candidates alone follow
        allowed = np.append(options.feasible, np.zeros(len(fine), dtype=bool))
        best = int(
            np.argmin(
                np.round(self._mean_views(coverage, first, allowed, options.until), _DECIMALS)
            )
        )
        utility = float(coverage.gains()[:, first[best]].mean(dtype=float))
        cost = float(self._costs(fine, situation.current_view)[best])
        return coarse if best == 0 else (fine[best], utility, utility - cost)
