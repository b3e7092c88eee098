r"""Objectives that sum an area over an interval around each view: I, C, CS, CSP and CSW.

They share the geometry of all (view, grid angle) pairs, which depends on the camera and the grid only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, angle_difference
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


class Confidence:
    r"""C: :math:`h^{-2}\sum_{φ\inΦ_I(θ)} \tfrac12(u^2 - l^2)\,Δφ` (eq. sum-interval-intersection).

    On each side :math:`Φ_I` ends where the lower bound first meets the boundary of the field of view, seen from the
    camera, or at the end of that boundary.
    """

    info = ObjectiveInfo("C", "confidence", "ynyyny", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        window = _window(scene, belief.angle.tobytes(), views.tobytes())
        return _before_crossing(window, belief.lower) @ _area(belief, scene)


class ConfidenceSimple:
    r"""CS: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \tfrac12(u^2 - l^2)\,Δφ` (thesis sec. CS)."""

    info = ObjectiveInfo("CS", "confidence_simple", "yyyynn", "sublinear regret proved")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        return _window(scene, belief.angle.tobytes(), views.tobytes()).inside @ _area(belief, scene)


class ConfidenceSimplePolar:
    r"""CSP: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} (u - l)\,Δφ` (thesis sec. CSP)."""

    info = ObjectiveInfo("CSP", "confidence_simple_polar", "nynynn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels per metre of radius."""
        window = _window(scene, belief.angle.tobytes(), views.tobytes())
        return window.inside @ (belief.width * belief.step / scene.pixel_size**2)


class ConfidenceSimpleWeighted:
    r"""CSW: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \frac{fov_θ(φ)}{d_{cam}}\,\tfrac12(u^2 - l^2)\,Δφ` (eq. objective-csw)."""

    info = ObjectiveInfo("CSW", "confidence_simple_weighted", "ooyyyn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in (weighted) pixels."""
        return _window(scene, belief.angle.tobytes(), views.tobytes()).weight @ _area(belief, scene)


class Intersection:
    r"""I: :math:`h^{-2}\sum_{φ\inΦ_S(θ)} \tfrac12\max(\min(u, fov_θ(φ))^2 - l^2, 0)\,Δφ` (eq. objective-i)."""

    info = ObjectiveInfo("I", "intersection", "yoyyyn", "not attempted")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        window = _window(scene, belief.angle.tobytes(), views.tobytes())
        outer = np.minimum(belief.upper, window.boundary)
        area = 0.5 * np.maximum(outer**2 - belief.lower**2, 0.0) * window.inside
        return np.asarray(area.sum(axis=1) * belief.step / scene.pixel_size**2)


def _area(belief: SurfaceBelief, scene: Scene) -> FloatArray:
    """Area of the band in each grid step, shape (M,), in pixels."""
    return 0.5 * (belief.upper**2 - belief.lower**2) * belief.step / scene.pixel_size**2


@dataclass(frozen=True, eq=False)
class _Window:
    """Geometry of (view, grid angle) pairs, each array of shape (V, M).

    Attributes:
        inside: 1 on the simple interval, else 0.
        boundary: boundary of the field of view on the simple interval, else 0, metres.
        weight: the boundary divided by the distance of the view circle.
        offset: grid angle less view, radians, in [-π, π).
    """

    inside: FloatArray
    boundary: FloatArray
    weight: FloatArray
    offset: FloatArray


@lru_cache(maxsize=4)
def _window(scene: Scene, grid: bytes, views: bytes) -> _Window:
    """Geometry for grid angles and views given as the bytes of their arrays (so that they can be a cache key)."""
    angle, view = np.frombuffer(grid), np.frombuffer(views)[:, None]
    inside = scene.in_simple_interval(angle, view)
    boundary = np.where(inside, scene.fov_boundary(angle, view), 0.0)
    return _Window(
        inside=inside.astype(float), boundary=boundary, weight=boundary / scene.view_distance,
        offset=angle_difference(angle, view),
    )


def _before_crossing(window: _Window, lower: FloatArray) -> BoolArray:
    """Grid angles of the intersection interval of each view, shape (V, M).

    The polar angle along a boundary ray departs steadily from the view, so the crossing nearest to the camera is the
    one nearest in angle.
    """
    beyond = (window.inside > 0.0) & (lower >= window.boundary)
    right = np.where(beyond & (window.offset >= 0.0), window.offset, np.inf).min(axis=1, keepdims=True)
    left = np.where(beyond & (window.offset <= 0.0), window.offset, -np.inf).max(axis=1, keepdims=True)
    return np.asarray((window.inside > 0.0) & (left < window.offset) & (window.offset < right))
