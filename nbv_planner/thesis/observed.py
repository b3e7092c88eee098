"""Objectives that count what would be seen of the band's edges (OCL, OCU), or of the true object
(OS, OSM).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from nbv_planner.geometry import BoolArray, FloatArray, polar_points
from nbv_planner.planning.objectives import OBJECTIVE_INFO, Situation
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.seam import covered, neighbours
from nbv_planner.thesis.area import BandObjective
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import discretise, observe


class ObservedConfidenceLower(BandObjective):
    """OCL: number of points of the lower bound, one per world pixel, that are observed from θ."""

    info = OBJECTIVE_INFO["OCL"]
    anywhere = True
    weighs = False

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Value per candidate view, in points."""
        return _observed_points(belief.angle, belief.lower, scene, views)


class ObservedConfidenceUpper(BandObjective):
    """OCU: number of points of the upper bound, one per world pixel, that are observed from θ.

    Meant by the thesis as a lower bound of what a view reveals; neither it nor OCL is a bound in
    every case.
    """

    info = OBJECTIVE_INFO["OCU"]
    anywhere = True
    weighs = False

    @staticmethod
    def values(belief: SurfaceBelief, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Value per candidate view, in points."""
        return _observed_points(belief.angle, belief.upper, scene, views)


def _observed_points(
    angle: FloatArray, radius: FloatArray, scene: Scene, views: Poses | FloatArray
) -> FloatArray:
    """Count the points of a contour on the grid, one per world pixel, that each view observes,
    shape (V,).
    """
    points = discretise(angle, radius, scene.pixel_size)
    return np.asarray(observe(angle[points], radius[points], views, scene).sum(axis=1), dtype=float)


@dataclass(eq=False)
class TrueSurface:
    """The true surface points by angle, radians, with their radii, metres, shape (P,) each; or
    points at equal distances along the outline, of which a view covers those within `tau`, metres,
    of one it sees. Each counts for its `weight`, shape (P,), if they have one. Of an object that is
    not star-shaped `sight` says which points, shape (P, 2), metres, each view sees, shape (V, P).

    Only a simulation has them, and keeps up to date which have been `seen` so far, shape (P,).
    """

    angle: FloatArray
    radius: FloatArray
    tau: float = 0.0
    weight: FloatArray | None = None
    sight: Callable[[FloatArray, Poses, Scene], BoolArray] | None = None
    seen: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.angle), dtype=bool)

    @cached_property
    def _points(self) -> FloatArray:
        return polar_points(self.angle, self.radius)

    @cached_property
    def _near(self) -> csr_matrix:
        """1 where two points are within `tau`, shape (P, P); most planners never ask."""
        return neighbours(self._points, self.tau)

    def observed(self, views: Poses | FloatArray, scene: Scene) -> BoolArray:
        """Which points each view sees or covers, shape (V, P)."""
        if self.sight is None:
            seen = observe(self.angle, self.radius, views, scene)
        else:
            seen = self.sight(self._points, Poses.given(views, scene.view_distance), scene)
        return covered(self._near, seen) if self.tau else seen


class ObservedSurface:
    r"""OS: :math:`|o(θ)|`, surface points that a view sees, known ones included."""

    info = OBJECTIVE_INFO["OS"]

    def __init__(self, truth: TrueSurface) -> None:
        self._truth = truth

    def evaluate(self, situation: Situation) -> FloatArray:
        """Count surface points per candidate view."""
        counted, weight = self._counted(situation), self._truth.weight
        counts = counted if weight is None else counted * weight
        return np.asarray(counts.sum(axis=1), dtype=float)

    def _counted(self, situation: Situation) -> BoolArray:
        return self._truth.observed(situation.views, situation.scene)


class ObservedSurfaceMarginal(ObservedSurface):
    r"""OSM: :math:`|o(θ) \setminus o(θ_{1:t-1})|`, surface points not seen before."""

    info = OBJECTIVE_INFO["OSM"]

    def _counted(self, situation: Situation) -> BoolArray:
        return super()._counted(situation) & ~self._truth.seen
