"""The world as a list of pixel centres: which of them lie in the confidence band."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.geometry import BoolArray, FloatArray, cartesian_to_polar
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief


@dataclass(frozen=True, eq=False)
class WorldPixels:
    """Centres of world pixels by rising polar angle.

    Attributes:
        angle: polar angles in [0, 2π), rising, shape (N,), radians.
        radius: radii, shape (N,), metres.
    """

    angle: FloatArray
    radius: FloatArray

    def where(self, mask: BoolArray) -> WorldPixels:
        """Those pixels for which `mask`, shape (N,), holds."""
        return WorldPixels(self.angle[mask], self.radius[mask])


@lru_cache(maxsize=2)
def world_pixels(reach: float, pixel_size: float) -> WorldPixels:
    """All pixel centres within `reach` (metres) of the origin."""
    index = np.arange(-np.floor(reach / pixel_size), np.floor(reach / pixel_size) + 1)
    x, y = np.meshgrid(index * pixel_size, index * pixel_size)
    angle, radius = cartesian_to_polar(x.ravel(), y.ravel())
    order = np.argsort(angle, kind="stable")
    order = order[radius[order] <= reach]
    return WorldPixels(angle[order], radius[order])


def in_band(belief: SurfaceBelief, reach: float, pixel_size: float) -> BoolArray:
    r"""Whether :math:`l(φ) \le r \le u(φ)` for each of :func:`world_pixels`, the bounds interpolated linearly."""
    radius = world_pixels(reach, pixel_size).radius
    at_pixels = _interpolation(reach, pixel_size, belief.angle.tobytes())
    return np.asarray((at_pixels(belief.lower) <= radius) & (radius <= at_pixels(belief.upper)))


@lru_cache(maxsize=2)
def _interpolation(reach: float, pixel_size: float, grid: bytes) -> CircleInterpolation:
    """Interpolation on the grid at all pixels; the bytes of the grid are part of the cache key."""
    return CircleInterpolation.at(np.frombuffer(grid), world_pixels(reach, pixel_size).angle)


def cone_reach(scene: Scene) -> float:
    r"""Greatest distance from the origin within the cone of any view, metres.

    That of the camera or of the far corners, :math:`\sqrt{d_{cam}^2 + d_{DOF}^2 - 2 d_{cam} d_{DOF}\cos(α_{FOV}/2)}`.
    """
    d, far = scene.view_distance, scene.range_max
    corner = math.sqrt(d * d + far * far - 2.0 * d * far * math.cos(0.5 * scene.field_of_view))
    return max(d, corner)
