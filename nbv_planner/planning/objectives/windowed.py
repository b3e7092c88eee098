r"""Objectives that sum an area over the simple interval of each view: CSW and I.

They share the geometry of all (view, grid angle) pairs, which depends on the camera and the grid only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


class ConfidenceSimpleWeighted:
    r"""CSW: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \frac{fov_θ(φ)}{d_{cam}}\,\tfrac12(u^2 - l^2)\,Δφ` (eq. objective-csw)."""

    info = ObjectiveInfo("CSW", "confidence_simple_weighted", "ooyyyn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in (weighted) pixels."""
        window = _window(scene, belief.angle.tobytes(), views.tobytes())
        area = 0.5 * (belief.upper**2 - belief.lower**2) * belief.step / scene.pixel_size**2
        return window.weight @ area


class Intersection:
    r"""I: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \tfrac12\max(\min(u, fov_θ(φ))^2 - l^2, 0)\,Δφ` (eq. objective-i)."""

    info = ObjectiveInfo("I", "intersection", "yoyyyn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        window = _window(scene, belief.angle.tobytes(), views.tobytes())
        outer = np.minimum(belief.upper, window.boundary)
        area = 0.5 * np.maximum(outer**2 - belief.lower**2, 0.0) * window.inside
        return np.asarray(area.sum(axis=1) * belief.step / scene.pixel_size**2)


@dataclass(frozen=True, eq=False)
class _Window:
    """Geometry of (view, grid angle) pairs, each array of shape (V, M)."""

    inside: FloatArray
    boundary: FloatArray
    weight: FloatArray


@lru_cache(maxsize=4)
def _window(scene: Scene, grid: bytes, views: bytes) -> _Window:
    """Geometry for grid angles and views given as the bytes of their arrays (so that they can be a cache key)."""
    angle, view = np.frombuffer(grid), np.frombuffer(views)[:, None]
    inside = scene.in_simple_interval(angle, view)
    boundary = np.where(inside, scene.fov_boundary(angle, view), 0.0)
    return _Window(inside=inside.astype(float), boundary=boundary, weight=boundary / scene.view_distance)
