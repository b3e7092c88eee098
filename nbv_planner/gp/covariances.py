"""Covariances of measured angles, kept from one posterior to the next: most angles have been measured before."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.kernels import Kernel

# Distinct angles that are kept: 33 MB for the covariances among them, and 16 MB with a grid of 1000 angles.
_MOST_KEPT = 2048


class CovarianceTable:
    """Evaluates a kernel once per pair of measured angles, and of measured and grid angle.

    The numbers are those of the kernel itself, to the last bit.
    """

    def __init__(self, kernel: Kernel, grid: FloatArray) -> None:
        """Start empty.

        Args:
            kernel: covariance function.
            grid: query angles, shape (M,), radians.
        """
        self._kernel, self._grid = kernel, grid
        self.clear()

    def clear(self) -> None:
        """Forget all angles."""
        self._angle = np.empty(0)
        self._gram, self._cross = np.empty((0, 0)), np.empty((0, len(self._grid)))

    def at(self, angle: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Covariances among the distinct, rising `angle` (n,), and with the grid; shapes (n, n) and (n, M), in m²."""
        new = angle[~np.isin(angle, self._angle)]
        if len(self._angle) + len(new) > _MOST_KEPT:
            return self._kernel(angle[:, None] - angle), self._kernel(angle[:, None] - self._grid)
        if len(new):
            self._add(new)
        order = np.argsort(self._angle)
        row = order[np.searchsorted(self._angle, angle, sorter=order)]
        return self._gram[np.ix_(row, row)], self._cross[row]

    def _add(self, new: FloatArray) -> None:
        between = self._kernel(self._angle[:, None] - new)
        among = self._kernel(new[:, None] - new)
        self._gram = np.block([[self._gram, between], [between.T, among]])
        self._cross = np.concatenate([self._cross, self._kernel(new[:, None] - self._grid)])
        self._angle = np.concatenate([self._angle, new])
