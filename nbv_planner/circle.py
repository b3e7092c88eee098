"""Values on a grid around the circle: read between its angles, and in windows that may cross 0."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, wrap_angle


@dataclass(frozen=True, eq=False)
class CircleInterpolation:
    r"""Linear interpolation of grid values at fixed places, prepared once; only the values are new at each call.

    .. math:: f(φ) = \frac{f_{j+1} - f_j}{φ_{j+1} - φ_j}\,(φ - φ_j) + f_j, \qquad φ_j \le φ < φ_{j+1},

    around the circle, in the order of operations of :func:`numpy.interp`. The arrays have the shape of the places.

    Attributes:
        before: index j of the last grid angle at or before each place.
        after: index of the next one.
        gap: angle between the two, radians.
        offset: angle from the first of them to the place, radians.
    """

    before: IntArray
    after: IntArray
    gap: FloatArray
    offset: FloatArray

    @classmethod
    def at(cls, grid: FloatArray, angle: ArrayLike) -> CircleInterpolation:
        """Prepare for places at `angle` (any shape, any turn, radians).

        Args:
            grid: grid angles, shape (M,), radians; 2π may be there beside 0.
            angle: where to interpolate.
        """
        order, axis = _axis(np.asarray(grid, dtype=float).tobytes())
        place = wrap_angle(angle)
        left = np.searchsorted(axis, place, side="right") - 1
        return cls(order[left], order[left + 1], axis[left + 1] - axis[left], place - axis[left])

    def chosen(self, index: IntArray) -> CircleInterpolation:
        """The same at some of the places, by their indices; the places must be in one dimension."""
        return CircleInterpolation(
            self.before.take(index), self.after.take(index), self.gap.take(index), self.offset.take(index)
        )

    def __call__(self, values: FloatArray) -> FloatArray:
        """Interpolate grid `values`, shape (M,)."""
        start = values[self.before]
        return np.asarray((values[self.after] - start) / self.gap * self.offset + start)


@lru_cache(maxsize=8)
def _axis(grid: bytes) -> tuple[IntArray, FloatArray]:
    """Indices of the grid angles by rising angle and these angles, with a neighbour from the turns before and behind.

    The bytes of the grid are the cache key: a mapper asks for the same one with every scan.
    """
    turned = wrap_angle(np.frombuffer(grid))
    order = np.argsort(turned, kind="stable")
    order = np.concatenate([order[-1:], order, order[:1]])
    axis = turned[order]
    axis[0] -= TWO_PI
    axis[-1] += TWO_PI
    return order, axis


def two_turns(values: FloatArray) -> FloatArray:
    """Grid values, shape (M,), followed by themselves."""
    return np.concatenate([values, values])


def windows_of(turns: FloatArray, first: IntArray, width: int) -> FloatArray:
    """Copy `width` values in a row for each index `first` (v,), shape (v, width).

    Args:
        turns: contiguous values, for example :func:`two_turns`, shape (n,).
        first: where each window begins, at most n − `width`.
        width: number of values of each window.
    """
    step = turns.itemsize
    # A view of all windows at once; numpy's own sliding_window_view takes longer than the copy.
    every = np.ndarray((len(turns) - width + 1, width), turns.dtype, turns, strides=(step, step))
    return np.asarray(every[first])
