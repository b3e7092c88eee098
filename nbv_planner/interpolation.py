"""Linear interpolation around the circle, prepared once for places that are asked for again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.geometry import TWO_PI, FloatArray, wrap_angle


@dataclass(frozen=True, eq=False)
class CircleInterpolation:
    r"""Linear interpolation of grid values at fixed places; only the values are new at each call.

    .. math:: f(φ) = \frac{f_{j+1} - f_j}{φ_{j+1} - φ_j}\,(φ - φ_j) + f_j, \qquad φ_j \le φ < φ_{j+1},

    around the circle, in the order of operations of :func:`numpy.interp`. The arrays have the shape of the places.

    Attributes:
        before: index j of the last grid angle at or before each place.
        after: index of the next one.
        gap: angle between the two, radians.
        offset: angle from the first of them to the place, radians.
    """

    before: NDArray[np.intp]
    after: NDArray[np.intp]
    gap: FloatArray
    offset: FloatArray

    @classmethod
    def at(cls, grid: FloatArray, angle: ArrayLike) -> CircleInterpolation:
        """Prepare for places at `angle` (any shape, any turn, radians).

        Args:
            grid: grid angles, shape (M,), radians; 2π may be there beside 0.
            angle: where to interpolate.
        """
        turned = wrap_angle(grid)
        order = np.argsort(turned, kind="stable")
        order = np.concatenate([order[-1:], order, order[:1]])
        axis = turned[order]
        axis[0] -= TWO_PI
        axis[-1] += TWO_PI
        place = wrap_angle(angle)
        left = np.searchsorted(axis, place, side="right") - 1
        return cls(order[left], order[left + 1], axis[left + 1] - axis[left], place - axis[left])

    def __call__(self, values: FloatArray) -> FloatArray:
        """Interpolate grid `values`, shape (M,)."""
        start = values[self.before]
        return np.asarray((values[self.after] - start) / self.gap * self.offset + start)
