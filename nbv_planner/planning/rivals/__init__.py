"""Rivals: planners of the literature, written from their papers for a 2D world. None sees the true object."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.world.pose import Poses

RIVALS = {
    "volumetric": "nbv_planner.planning.rivals.volumetric:Volumetric",
    "frontier": "nbv_planner.planning.rivals.frontier:Frontier",
    "projection": "nbv_planner.planning.rivals.projection:Projection",
    "design": "nbv_planner.planning.rivals.design:Design",
    "set_cover": "nbv_planner.planning.rivals.set_cover:SetCover",
}
"""Where the planner of each name is: a class with one of the contracts of planners of other packages."""


def farthest_ranks(views: Poses, visited: Poses) -> FloatArray:
    """Distance of each of the views, shape (V,), from the nearest of those `visited`, metres: 0 if there is none.

    The rule with which rivals continue where their papers end: look where nobody has been.
    """
    if not len(visited):
        return np.zeros(len(views))
    (x, y), (at_x, at_y) = views.position.T, visited.position.T
    return np.asarray(np.hypot(x[:, None] - at_x, y[:, None] - at_y).min(axis=1))
