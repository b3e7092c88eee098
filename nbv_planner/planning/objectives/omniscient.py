r"""Objectives that know the object: OS and OSM, the *omniscient greedy* reference (spec 04)."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief
from nbv_planner.visibility import observe


class ObservedSurfaceMarginal:
    r"""OSM: :math:`|o(θ) \setminus o(θ_{1:t-1})|`, surface points not seen before.

    The true surface points are handed in by the simulation; nothing in planning can reach them otherwise.
    """

    info = ObjectiveInfo("OSM", "observed_surface_marginal", "ynynyy", "greedy with full knowledge", needs_truth=True)

    def __init__(self, angle: FloatArray, radius: FloatArray) -> None:
        """Take the true surface points, shape (P,) each, rising in angle."""
        self._angle, self._radius = angle, radius
        self._seen: BoolArray = np.zeros(len(angle), dtype=bool)

    def mark_seen(self, seen: BoolArray) -> None:
        """Tell which surface points (shape (P,)) have been seen so far."""
        self._seen = seen

    def evaluate(self, belief: SurfaceBelief | None, scene: Scene, views: FloatArray) -> FloatArray:
        """Count unseen surface points per candidate view."""
        new = observe(self._angle, self._radius, views, scene) & ~self._seen
        return np.asarray(new.sum(axis=1), dtype=float)
