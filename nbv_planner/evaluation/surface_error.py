"""How far a surface belief is from the true surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.evaluation.contour_distance import SampledContour, hausdorff_distance
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.objects import PolarObject
from nbv_planner.surface import SurfaceBelief


@dataclass(frozen=True)
class SurfaceError:
    r"""Errors of the mean contour :math:`μ(φ)` and of the band against the true radius :math:`f(φ)`.

    Attributes:
        rmse: root of the mean of :math:`(μ - f)^2` over the grid angles, metres.
        max_error: greatest :math:`|μ - f|` over the grid angles, metres.
        hausdorff: Hausdorff distance between the two contours, metres.
        iou: area inside both contours over the area inside either.
        band_coverage: fraction of the grid angles with :math:`l \le f \le u`.
    """

    rmse: float
    max_error: float
    hausdorff: float
    iou: float
    band_coverage: float


class TrueSurfaceComparison:
    """Compares beliefs with one true object; what does not change from one belief to the next is kept."""

    def __init__(self, shape: PolarObject) -> None:
        """Take the true object."""
        self._shape = shape
        self._contour = SampledContour.of_shape(shape)
        self._grid: FloatArray = np.empty(0)
        self._radius: FloatArray = np.empty(0)

    def radius_on(self, grid: FloatArray) -> FloatArray:
        """True radius at the angles of a grid, shape (M,), metres."""
        if not np.array_equal(grid, self._grid):
            self._grid, self._radius = grid, self._shape.radius(grid)
        return self._radius

    def error_of(self, belief: SurfaceBelief) -> SurfaceError:
        """Compare a belief with the object."""
        true = self.radius_on(belief.angle)
        error = np.abs(belief.mean - true)
        inside = (belief.lower <= true) & (true <= belief.upper)
        once = once_around(belief)
        mean = np.maximum(belief.mean, 0.0)  # a Gaussian belief may leave the half-line on which radii live
        return SurfaceError(
            rmse=float(np.sqrt(np.mean(error[once] ** 2))),
            max_error=float(error.max()),
            hausdorff=hausdorff_distance(SampledContour.of_polar(belief.angle[once], mean[once]), self._contour),
            iou=intersection_over_union(mean[once], true[once]),
            band_coverage=float(inside[once].mean()),
        )


def once_around(belief: SurfaceBelief) -> slice:
    """The part of the grid that counts each direction once: the thesis's grid holds 0 and 2π."""
    closed = belief.angle[-1] - belief.angle[0] > TWO_PI - 0.5 * belief.step
    return slice(0, -1) if closed else slice(None)


def intersection_over_union(first: FloatArray, second: FloatArray) -> float:
    r"""Intersection over union of two star-shaped areas given by their radii on one uniform grid of angles.

    .. math:: \frac{\frac12\int\min(r_1, r_2)^2\,dφ}{\frac12\int\max(r_1, r_2)^2\,dφ}

    The rectangle rule on the closed circle takes the place of the integrals.
    """
    common, either = np.minimum(first, second), np.maximum(first, second)
    return float(np.sum(common**2) / np.sum(either**2))
