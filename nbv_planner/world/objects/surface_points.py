"""The surface points `S` of an object: one point per world pixel that the surface crosses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import ContourError
from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, pixel_index, polar_to_cartesian
from nbv_planner.world.objects.true_shapes import PolarObject

# Fine enough that a step is far below a pixel on the steepest edges inside the usual bounds.
_STEPS = 1 << 16


@dataclass(frozen=True, eq=False)
class SurfacePoints:
    """Surface points in rising polar `angle` in [0, 2π), radians, with their `radius`, metres,
    shape (P,) each.

    Those of outlines that are not star-shaped, or of several, go along one after the other.
    """

    angle: FloatArray
    radius: FloatArray
    outline: IntArray | None = None  #: number of the outline of each; None of a single star.

    def __len__(self) -> int:
        return len(self.angle)


def surface_points(shape: Any, pixel_size: float) -> SurfacePoints:
    """Walk the surface by rising φ and take one point per visit of a pixel; objects that have no
    radius are `walked` otherwise.

    φ = 0 is the first point; after it each stretch between two pixel crossings gives the point at
    its middle angle.
    """
    if hasattr(shape, "walked"):
        return shape.walked(pixel_size)  # type: ignore[no-any-return]
    crossing = pixel_crossings(shape, pixel_size)
    middle = 0.5 * (crossing[1:] + crossing[:-1])
    angle = np.concatenate([[0.0], middle])
    return SurfacePoints(angle=angle, radius=shape.radius(angle))


def pixel_crossings(shape: PolarObject, pixel_size: float) -> FloatArray:
    """Angles at which the surface goes from one world pixel into the next, rising in (0, 2π).

    Each crossing of a pixel border in x and in y counts by itself, so that a clipped corner is not
    missed.
    """
    angle = np.linspace(0.0, TWO_PI, _STEPS + 1)
    x, y = polar_to_cartesian(angle, shape.radius(angle))
    column, row = pixel_index(x, y, pixel_size)
    crossings = [
        _border_angles(angle, value, index, pixel_size) for value, index in ((x, column), (y, row))
    ]
    return np.unique(np.concatenate(crossings))


def _border_angles(
    angle: FloatArray, value: FloatArray, index: NDArray[np.int64], pixel_size: float
) -> FloatArray:
    """Angles at which the coordinate `value` crosses a pixel border, by linear interpolation
    between samples.
    """
    jump = np.diff(index)
    at = np.repeat(np.flatnonzero(jump), np.abs(jump[jump != 0]))
    nth = np.arange(len(at)) - np.searchsorted(at, at)
    step = np.sign(jump[at])
    border = (index[at] + step * (nth + 0.5)) * pixel_size
    fraction = np.clip((border - value[at]) / (value[at + 1] - value[at]), 0.0, 1.0)
    return np.asarray(angle[at] + fraction * (angle[at + 1] - angle[at]))


_MOST_HALVINGS = 25
_CHORD_IN_PIXELS = 0.1
Pixel = tuple[int, int]


@lru_cache(maxsize=64)
def bisected_surface_points(shape: PolarObject, pixel_size: float) -> SurfacePoints:
    """Walk the surface by rising φ, from each point to the next, as the published runs did.

    The next point is at the middle between where the surface enters the next pixel and where it
    leaves that one, each found by a bisection that stops at a tenth of a pixel. So the points lie
    up to 1.5e-3 rad beside the exact middles of
    :func:`nbv_planner.world.objects.surface_points.surface_points`, a pixel that is visited twice
    in a row may count once (three points at a tip of the star), and on objects that are symmetric
    about φ = 0 the stretch across it may count as another point a little below 2π. A surface that
    runs through the corners of pixels can have no next pixel that shares a side; such an object
    gets the exact points.

    Raises:
        ContourError: the whole surface lies in one pixel.
    """
    walk = _Walk(shape, pixel_size)
    angles = []
    at = 0.0
    while at < TWO_PI:
        angles.append(at)
        entry = walk.search(at, 1)
        leave = None if entry is None else walk.search(entry, 0)
        if entry is None or leave is None:
            return surface_points(shape, pixel_size)
        at = 0.5 * (entry + leave)
    angle = np.array(angles)
    return SurfacePoints(angle, shape.radius(angle))


class _Walk:
    """The surface of an object on a grid of pixels."""

    def __init__(self, shape: PolarObject, pixel_size: float) -> None:
        self._shape, self._pixel_size = shape, pixel_size

    def search(self, start: float, apart: int) -> float | None:
        """Bisect for the angle behind `start` at which the surface leaves its pixel.

        Return the last midpoint tried whose pixel is `apart` steps from that of `start`: 0 is the
        same pixel, 1 shares a side; None if there is no such point.
        """
        home, begin = self._at(start)
        left = start
        right = self._outside(start, home)
        end = self._at(right)[1]
        found = None
        for _ in range(_MOST_HALVINGS):
            middle = 0.5 * (left + right)
            pixel, point = self._at(middle)
            steps = abs(pixel[0] - home[0]) + abs(pixel[1] - home[1])
            found = middle if steps == apart else found
            if pixel == home:
                left, begin = middle, point
            else:
                right, end = middle, point
            if found is not None and math.dist(begin, end) <= _CHORD_IN_PIXELS * self._pixel_size:
                return found
        return found

    def _outside(self, start: float, home: Pixel) -> float:
        """First of start + h, start + 2h, ... (h taken in radians) at which the surface is in
        another pixel.
        """
        steps = range(1, math.ceil(TWO_PI / self._pixel_size) + 1)
        for right in (start + step * self._pixel_size for step in steps):
            if self._at(right)[0] != home:
                return right
        raise ContourError(
            f"the whole surface lies in one pixel; pixel_size {self._pixel_size:g} m is too large"
        )

    def _at(self, angle: float) -> tuple[Pixel, tuple[float, float]]:
        """Pixel and world coordinates of the surface at an angle."""
        radius = float(self._shape.radius(angle))
        x, y = radius * math.cos(angle), radius * math.sin(angle)
        return (round(x / self._pixel_size), round(y / self._pixel_size)), (x, y)
