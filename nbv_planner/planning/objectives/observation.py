"""Objectives that count what would be seen of the band's own edges: OCL and OCU (thesis ch. 5.2)."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief
from nbv_planner.visibility import discretise, observe


class ObservedConfidenceLower:
    """OCL: number of points of the lower bound, one per world pixel, that are observed from θ."""

    info = ObjectiveInfo("OCL", "observed_confidence_lower", "nnynyy", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in points."""
        return _observed_points(belief.angle, belief.lower, scene, views)


class ObservedConfidenceUpper:
    """OCU: number of points of the upper bound, one per world pixel, that are observed from θ.

    Meant by the thesis as a lower bound of what a view reveals; neither it nor OCL is a bound in every case.
    """

    info = ObjectiveInfo("OCU", "observed_confidence_upper", "nnynyy", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in points."""
        return _observed_points(belief.angle, belief.upper, scene, views)


def _observed_points(angle: FloatArray, radius: FloatArray, scene: Scene, views: FloatArray) -> FloatArray:
    """Count the points of a contour on the grid, one per world pixel, that each view observes, shape (V,)."""
    points = discretise(angle, radius, scene.pixel_size)
    return np.asarray(observe(angle[points], radius[points], views, scene).sum(axis=1), dtype=float)
