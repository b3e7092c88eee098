"""Objectives that count what would be seen of the band's edges (OCL, OCU), or of the true object (OS, OSM)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from nbv_planner.geometry import BoolArray, FloatArray, polar_to_cartesian
from nbv_planner.planning.objectives.objective import ObjectiveInfo
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import discretise, observe


class ObservedConfidenceLower:
    """OCL: number of points of the lower bound, one per world pixel, that are observed from θ."""

    info = ObjectiveInfo("OCL", "observed_confidence_lower", "nnynyy", "not attempted", needs_circle=False)

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Value per candidate view, in points."""
        return _observed_points(belief.angle, belief.lower, scene, views)


class ObservedConfidenceUpper:
    """OCU: number of points of the upper bound, one per world pixel, that are observed from θ.

    Meant by the thesis as a lower bound of what a view reveals; neither it nor OCL is a bound in every case.
    """

    info = ObjectiveInfo("OCU", "observed_confidence_upper", "nnynyy", "not attempted", needs_circle=False)

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Value per candidate view, in points."""
        return _observed_points(belief.angle, belief.upper, scene, views)


def _observed_points(angle: FloatArray, radius: FloatArray, scene: Scene, views: Poses | FloatArray) -> FloatArray:
    """Count the points of a contour on the grid, one per world pixel, that each view observes, shape (V,)."""
    points = discretise(angle, radius, scene.pixel_size)
    return np.asarray(observe(angle[points], radius[points], views, scene).sum(axis=1), dtype=float)


@dataclass(eq=False)
class TrueSurface:
    """The true surface points by rising angle, radians, with their radii, metres, shape (P,) each.

    Only a simulation has them, and keeps up to date which have been `seen` so far, shape (P,).
    """

    angle: FloatArray
    radius: FloatArray
    seen: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.angle), dtype=bool)

    def observed(self, views: Poses | FloatArray, scene: Scene) -> BoolArray:
        """Which points each view sees, shape (V, P)."""
        return observe(self.angle, self.radius, views, scene)


class TrueOutline(TrueSurface):
    """Points at equal distances along the true outline; a view covers those within `tau`, metres, of one it sees."""

    def __init__(self, angle: FloatArray, radius: FloatArray, tau: float) -> None:
        super().__init__(angle, radius)
        self._tau = tau

    @cached_property
    def _near(self) -> csr_matrix:
        """1 where two points are within `tau`, shape (P, P); most planners never ask."""
        points = np.stack(polar_to_cartesian(self.angle, self.radius), axis=1)
        pairs = cKDTree(points).query_pairs(self._tau, output_type="ndarray")
        itself = np.arange(len(points))
        rows, columns = (np.concatenate([itself, *pair]) for pair in (pairs.T, pairs.T[::-1]))
        return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=2 * (len(points),))

    def observed(self, views: Poses | FloatArray, scene: Scene) -> BoolArray:
        """Which points each view covers, shape (V, P)."""
        return np.asarray((self._near @ super().observed(views, scene).T.astype(np.float32)).T > 0.0)


class ObservedSurface:
    r"""OS: :math:`|o(θ)|`, surface points that a view sees, known ones included."""

    info = ObjectiveInfo("OS", "observed_surface", "ynynyy", "not attempted", needs_truth=True,
                         needs_circle=False)

    def __init__(self, truth: TrueSurface) -> None:
        self._truth = truth

    def evaluate(self, belief: SurfaceBelief | None, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Count surface points per candidate view."""
        return np.asarray(self._truth.observed(views, scene).sum(axis=1), dtype=float)


class ObservedSurfaceMarginal(ObservedSurface):
    r"""OSM: :math:`|o(θ) \setminus o(θ_{1:t-1})|`, surface points not seen before."""

    info = ObjectiveInfo("OSM", "observed_surface_marginal", "ynyyyy", "greedy with full knowledge", needs_truth=True,
                         needs_circle=False)

    def evaluate(self, belief: SurfaceBelief | None, scene: Scene, views: Poses | FloatArray) -> FloatArray:
        """Count unseen surface points per candidate view."""
        new = self._truth.observed(views, scene) & ~self._truth.seen
        return np.asarray(new.sum(axis=1), dtype=float)
