"""How many views it takes to see enough of each shape, if the next views are chosen greedily knowing it."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.planning.shapes.coverage import ShapeCoverage

# Points that count as none: they are left over by rounding.
_ROUNDING = 1e-6


def views_to_go(
    coverage: ShapeCoverage, first: IntArray, allowed: BoolArray, target_coverage: float
) -> FloatArray:
    r"""Count the views until `target_coverage` of each shape has been seen, shape (S, K).

    After the first view the greedy planner that knows the shape goes on. Of the last view only that part counts that
    is still needed of what it adds. A rest that no view would see counts as one view.

    Args:
        coverage: S shapes, V views.
        first: indices of the first views to compare, shape (K,).
        allowed: views that may follow, shape (V,).
        target_coverage: in (0, 1].
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
        gain[gain == 0.0] = np.inf  # whatever is left, no view adds to it
        unseen = unseen * (1.0 - np.take_along_axis(visible, best, axis=1))


def _part_of_view(needed: FloatArray, gain: FloatArray) -> FloatArray:
    """Part of a view that is needed: none where nothing is, all of it where it does not add enough, or without end."""
    short = needed > _ROUNDING
    part = np.divide(needed, gain, out=short.astype(float), where=short & (gain > needed) & (gain < np.inf))
    return np.asarray(part)
