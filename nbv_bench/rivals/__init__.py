"""Rivals: planners of the literature, written from their papers. None sees the true
object.
"""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.world.pose import Poses


def farthest_ranks(views: Poses, visited: Poses) -> FloatArray:
    """Distance of each of the views, shape (V,), from the nearest of those `visited`, metres: 0 if
    there is none.

    With it rivals continue where their papers define no choice: they take the view farthest from
    all.
    """
    if not len(visited):
        return np.zeros(len(views))
    apart = np.linalg.norm(views.position[:, None] - visited.position, axis=2)
    return np.asarray(apart.min(axis=1))
