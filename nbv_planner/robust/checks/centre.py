"""Whether the object is where it was said to be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.surface import SurfaceMapper

# Samples of the surface from which the uncertainty is taken; the same ones every time.
_SAMPLES = 64


@dataclass(frozen=True)
class CentreOffset:
    """Where the centroid of the believed object lies.

    Attributes:
        x: in the object frame, metres.
        y: in the object frame, metres.
        std: standard deviation of its place, root mean square over directions, metres.
    """

    x: float
    y: float
    std: float

    @property
    def distance(self) -> float:
        """Distance from the stated centre, metres."""
        return math.hypot(self.x, self.y)


def centroid(grid: FloatArray, radius: FloatArray) -> FloatArray:
    r"""Centroid of the area inside contours, :math:`\int \frac{r^3}{3} (\cosφ, \sinφ) dφ \big/ \int \frac{r^2}{2} dφ`.

    Args:
        grid: polar angles, shape (M,), radians; 2π may be there beside 0.
        radius: radii on them, shape (..., M), metres; negative ones count as 0.

    Returns:
        x and y, shape (..., 2), metres.
    """
    width = 0.5 * np.diff(np.concatenate([[grid[-1] - TWO_PI], grid, [grid[0] + TWO_PI]]))
    width = width[1:] + width[:-1]
    radius = np.maximum(radius, 0.0)
    direction = np.stack([np.cos(grid), np.sin(grid)], axis=-1) * width[:, np.newaxis]
    area = np.maximum(0.5 * (radius**2 @ width), 1e-12)
    return np.asarray((radius**3 / 3.0) @ direction / area[..., np.newaxis])


def centre_offset(mapper: SurfaceMapper) -> CentreOffset:
    """Centroid of the mean contour, with the spread of those of posterior samples."""
    belief = mapper.belief()
    x, y = centroid(belief.angle, belief.mean)
    normals = np.random.default_rng(0).standard_normal((_SAMPLES, mapper.normals_per_sample))
    spread = centroid(belief.angle, mapper.sample_from(normals)).std(axis=0)
    return CentreOffset(float(x), float(y), float(np.sqrt(np.mean(spread**2))))
