"""What has been measured, summed up per grid angle: enough to condition a model of one's own on it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import FloatArray, angle_difference


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""Measurements merged to one per grid angle, and what is known to be free. Immutable.

    The measurements :math:`(φ_i, r_i, σ_i)` nearest to a grid angle become one at their mean, weighted by
    :math:`w_i = σ_i^{-2}`, with the standard deviation :math:`(\sum_i w_i)^{-1/2}`. How a surface runs within the
    cell is lost: half a grid step times its slope at most.

    Attributes:
        angle: mean angle of the measurements, shape (M,), radians, within half a step of the grid angle (so up to
            that below 0 or above 2π); the grid angle itself where nothing was measured.
        radius: mean radius, shape (M,), metres; 0 where nothing was measured.
        std: its standard deviation, shape (M,), metres; +inf where nothing was measured.
        free: radius from which on outwards the object is known not to be, shape (M,), metres; +inf where that is not
            known.
    """

    angle: FloatArray
    radius: FloatArray
    std: FloatArray
    free: FloatArray

    @classmethod
    def none(cls, grid: FloatArray) -> Evidence:
        """Nothing is known yet about the surface at the angles of `grid`, shape (M,), radians."""
        unknown = np.full(len(grid), np.inf)
        return cls(np.asarray(grid, dtype=float), np.zeros(len(grid)), unknown, unknown)

    @property
    def measured(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Angle (radians), radius and standard deviation (metres) where anything was measured, shape (n,) each."""
        there = np.isfinite(self.std)
        return self.angle[there], self.radius[there], self.std[there]

    @property
    def rows(self) -> FloatArray:
        """The attributes one below the other, shape (4, M); :func:`evidence_from_rows` reads them."""
        return np.stack([getattr(self, field.name) for field in dataclasses.fields(self)])

    def adding(self, grid: FloatArray, angle: FloatArray, radius: FloatArray, std: FloatArray) -> Evidence:
        """Add measurements.

        Args:
            grid: the grid angles, shape (M,), radians; uniform.
            angle: measured angles, shape (n,), radians.
            radius: measured radii, shape (n,), metres.
            std: standard deviation of each radius, shape (n,), metres, positive.
        """
        cell = nearest_cell(grid, angle)
        near = grid[cell] + angle_difference(angle, grid[cell])
        weight = std**-2.0
        old, size = self.std**-2.0, len(grid)
        total = old + np.bincount(cell, weight, size)
        divisor = np.where(total > 0.0, total, 1.0)
        # About the grid angle, so that no digits are lost to the turn.
        offset = (old * (self.angle - grid) + np.bincount(cell, weight * (near - grid[cell]), size)) / divisor
        mean = (old * self.radius + np.bincount(cell, weight * radius, size)) / divisor
        with np.errstate(divide="ignore"):
            return dataclasses.replace(self, angle=grid + offset, radius=mean, std=total**-0.5)

    def bounded(self, free: FloatArray) -> Evidence:
        """Add that the object is inside `free`, shape (M,), metres, at the grid angles."""
        return dataclasses.replace(self, free=np.minimum(self.free, free))

    def rounded(self) -> Evidence:
        """The same in single precision, as a message carries it."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Evidence(**{name: value.astype(np.float32).astype(float) for name, value in values.items()})


def evidence_from_rows(grid: FloatArray, rows: NDArray[np.float64]) -> Evidence:
    """Evidence on `grid` (M,) from its attributes one below the other, shape (4, M).

    Raises:
        MeasurementError: another shape, or a value that no evidence has.
    """
    if rows.shape != (4, len(grid)):
        raise MeasurementError(f"evidence: shape {rows.shape}, must be (4, {len(grid)})")
    angle, radius, std, free = rows
    finite = np.isfinite(angle).all() and np.isfinite(radius).all()
    if not finite or np.isnan(std).any() or np.isnan(free).any() or (std <= 0.0).any() or (free < 0.0).any():
        raise MeasurementError("evidence: holds a value that is not allowed")
    return Evidence(angle, radius, std, free)


def nearest_cell(grid: FloatArray, angle: FloatArray) -> NDArray[np.intp]:
    """Index of the angle of a uniform grid (2π may be there beside 0) nearest to each angle in [0, 2π)."""
    step = grid[1] - grid[0]
    return np.asarray(np.rint((angle - grid[0]) / step).astype(np.intp) % len(grid))
