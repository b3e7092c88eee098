"""Objectives that look at the width of the band at the view's own angle: U and UP."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.objectives.base import ObjectiveInfo
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


class Uncertainty:
    r"""U: :math:`h^{-2}\,\tfrac12 |Φ_S| (u(θ)^2 - l(θ)^2)` (thesis eq. objective-u)."""

    info = ObjectiveInfo("U", "uncertainty", "yyyynn", "sublinear regret proved")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels."""
        lower, upper = _bounds(belief, views)
        return _interval_length(scene, views) * (0.5 * (upper**2 - lower**2)) / scene.pixel_size**2


class UncertaintyPolar:
    r"""UP: :math:`h^{-2}\,|Φ_S| (u(θ) - l(θ))` (thesis eq. objective-up)."""

    info = ObjectiveInfo("UP", "uncertainty_polar", "nynynn", "not proved")

    def evaluate(self, belief: SurfaceBelief, scene: Scene, views: FloatArray) -> FloatArray:
        """Value per candidate view, in pixels per metre of radius."""
        lower, upper = _bounds(belief, views)
        return _interval_length(scene, views) * (upper - lower) / scene.pixel_size**2


def _interval_length(scene: Scene, views: FloatArray) -> FloatArray:
    """Length |Φ_S| of each view's simple interval, shape (V,), radians, as the difference of its ends.

    It is the same for all views but for the last bit. Far from all measurements the band has one width, and there
    that bit decides among equal candidates, as it did in the published runs.
    """
    half = scene.simple_half_width
    return (views + half) - (views - half)


def _bounds(belief: SurfaceBelief, views: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper confidence bound at each view, shape (V,) each, metres."""
    at_views = _interpolation(belief.angle.tobytes(), views.tobytes())
    return at_views(belief.lower), at_views(belief.upper)


@lru_cache(maxsize=8)
def _interpolation(grid: bytes, views: bytes) -> CircleInterpolation:
    """Interpolation on the grid at the views; the bytes of both arrays are the cache key."""
    return CircleInterpolation.at(np.frombuffer(grid), np.frombuffer(views))
