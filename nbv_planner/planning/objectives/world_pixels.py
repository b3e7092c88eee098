"""The world as a list of pixel centres: which of them lie in the confidence band."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbv_planner.circle import CircleInterpolation
from nbv_planner.geometry import BoolArray, FloatArray, IntArray, cartesian_to_polar
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

# Metres: far more than an interpolated bound is off by rounding, far less than a pixel.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class WorldPixels:
    """Centres of world pixels by rising polar angle.

    Attributes:
        angle: polar angles in [0, 2π), rising, shape (N,), radians.
        radius: radii, shape (N,), metres.
    """

    angle: FloatArray
    radius: FloatArray

    def chosen(self, index: IntArray) -> WorldPixels:
        """Those pixels with an `index`, shape (n,)."""
        return WorldPixels(self.angle[index], self.radius[index])


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


def pixels_in_band(belief: SurfaceBelief, reach: float, pixel_size: float) -> IntArray:
    """Indices of the pixels for which :func:`in_band` holds, rising; only those near the band are looked at."""
    grid = belief.angle.tobytes()
    near = _by_radius(reach, pixel_size, grid).between(belief.lower, belief.upper)
    pixels, at_pixels = world_pixels(reach, pixel_size), _interpolation(reach, pixel_size, grid).chosen(near)
    radius = pixels.radius.take(near)
    inside = (at_pixels(belief.lower) <= radius) & (radius <= at_pixels(belief.upper))
    return np.asarray(np.sort(near[inside]))


@lru_cache(maxsize=2)
def _interpolation(reach: float, pixel_size: float, grid: bytes) -> CircleInterpolation:
    """Interpolation on the grid at all pixels; the bytes of the grid are part of the cache key."""
    return CircleInterpolation.at(np.frombuffer(grid), world_pixels(reach, pixel_size).angle)


@dataclass(frozen=True, eq=False)
class _ByRadius:
    """World pixels by the stretch between two grid angles that they lie in, and there by rising radius.

    Attributes:
        before: index of the grid angle at which each of the K stretches with pixels begins, shape (K,).
        after: index of that at which it ends, shape (K,).
        key: radius plus `span` times the number of the stretch, rising, shape (N,), metres.
        pixel: index of each pixel, shape (N,).
        span: more than any radius, metres.
    """

    before: IntArray
    after: IntArray
    key: FloatArray
    pixel: IntArray
    span: float

    def between(self, lower: FloatArray, upper: FloatArray) -> IntArray:
        """Pixels of each stretch from the least of `lower` to the greatest of `upper` at its ends, (M,) each, metres.

        All that lie between the two interpolated are among them, whatever rounding does.
        """
        begin = np.minimum(lower.take(self.before), lower.take(self.after)) - _ROUNDING
        end = np.maximum(upper.take(self.before), upper.take(self.after)) + _ROUNDING
        stretch = self.span * np.arange(len(self.before))
        first, behind = (
            np.searchsorted(self.key, stretch + np.clip(radius, -1.0, self.span - 2.0)) for radius in (begin, end)
        )
        return self.pixel.take(ranges(first, np.maximum(behind - first, 0)))


@lru_cache(maxsize=2)
def _by_radius(reach: float, pixel_size: float, grid: bytes) -> _ByRadius:
    """Order the pixels; the bytes of the grid are part of the cache key."""
    at_pixels, radius = _interpolation(reach, pixel_size, grid), world_pixels(reach, pixel_size).radius
    begins = np.diff(at_pixels.before, prepend=-1) != 0
    stretch, span = np.cumsum(begins) - 1, reach + 3.0
    key = radius + span * stretch
    order = np.argsort(key, kind="stable")
    return _ByRadius(at_pixels.before[begins], at_pixels.after[begins], key[order], order, span)


def ranges(first: IntArray, number: IntArray) -> IntArray:
    """Indices `first`, `first` + 1, ... of each of some ranges, `number` of each, one range behind the other."""
    start = np.cumsum(number) - number
    return np.asarray(np.arange(number.sum()) + np.repeat(first - start, number))


def cone_reach(scene: Scene) -> float:
    r"""Greatest distance from the origin within the cone of any view, metres.

    That of the camera or of the far corners, :math:`\sqrt{d_{cam}^2 + d_{DOF}^2 - 2 d_{cam} d_{DOF}\cos(α_{FOV}/2)}`.
    """
    d, far = scene.view_distance, scene.range_max
    corner = math.sqrt(d * d + far * far - 2.0 * d * far * math.cos(0.5 * scene.field_of_view))
    return max(d, corner)
