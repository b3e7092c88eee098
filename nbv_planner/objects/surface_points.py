"""The surface points `S` of an object: one point per world pixel that the surface crosses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import TWO_PI, FloatArray, pixel_index, polar_to_cartesian
from nbv_planner.objects.shapes import PolarObject

# Fine enough that a step is far below a pixel on the steepest edges inside the usual bounds.
_STEPS = 1 << 16


@dataclass(frozen=True, eq=False)
class SurfacePoints:
    """Surface points in rising polar angle.

    Attributes:
        angle: polar angles in [0, 2π), shape (P,), radians.
        radius: radii, shape (P,), metres.
    """

    angle: FloatArray
    radius: FloatArray

    def __len__(self) -> int:
        """Return the number `|S|` of surface points."""
        return len(self.angle)


def surface_points(shape: PolarObject, pixel_size: float) -> SurfacePoints:
    """Walk the surface by rising φ and take one point per visit of a pixel.

    φ = 0 is the first point; after it each stretch between two pixel crossings gives the point at its middle angle.
    """
    crossing = pixel_crossings(shape, pixel_size)
    middle = 0.5 * (crossing[1:] + crossing[:-1])
    angle = np.concatenate([[0.0], middle])
    return SurfacePoints(angle=angle, radius=shape.radius(angle))


def pixel_crossings(shape: PolarObject, pixel_size: float) -> FloatArray:
    """Angles at which the surface goes from one world pixel into the next, rising in (0, 2π).

    Each crossing of a pixel border in x and in y counts by itself, so that a clipped corner is not missed.
    """
    angle = np.linspace(0.0, TWO_PI, _STEPS + 1)
    x, y = polar_to_cartesian(angle, shape.radius(angle))
    column, row = pixel_index(x, y, pixel_size)
    crossings = [_border_angles(angle, value, index, pixel_size) for value, index in ((x, column), (y, row))]
    return np.asarray(np.unique(np.concatenate(crossings)))


def _border_angles(angle: FloatArray, value: FloatArray, index: NDArray[np.int64], pixel_size: float) -> FloatArray:
    """Angles at which the coordinate `value` crosses a pixel border, by linear interpolation between samples."""
    jump = np.diff(index)
    at = np.repeat(np.flatnonzero(jump), np.abs(jump[jump != 0]))
    nth = np.arange(len(at)) - np.searchsorted(at, at)
    step = np.sign(jump[at])
    border = (index[at] + step * (nth + 0.5)) * pixel_size
    fraction = np.clip((border - value[at]) / (value[at + 1] - value[at]), 0.0, 1.0)
    return np.asarray(angle[at] + fraction * (angle[at + 1] - angle[at]))
