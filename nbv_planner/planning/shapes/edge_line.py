"""The straight edge with which a measured stretch of the surface ends, if it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray, angle_difference, polar_to_cartesian

# Lengths that are tried, in units of the least one; the longest straight stretch tells most.
_LENGTHS = (8.0, 4.0, 2.0, 1.0)
# Part of a length over which there must be measurements.
_FILLED = 0.8
# Fewest measurements that show whether a stretch is straight.
_FEWEST = 5
# Farthest from its end that a stretch is looked at, radians: an edge that the camera meets spans less.
_FARTHEST = 1.5
# Root mean square of the residuals, in standard deviations, beyond which no line fits.
_WORST_FIT = 1.5
# Standard deviations by which a curve must beat the line.
_SIGNIFICANT = 2.0


@dataclass(frozen=True, eq=False)
class EdgeLine:
    r"""A straight line :math:`1/r = a\cos φ + b\sin φ`, as well as measurements tell it.

    Attributes:
        coefficients: (a, b), shape (2,), 1/m.
        factor: a square root F of their covariance F Fᵀ, shape (2, 2), 1/m.
    """

    coefficients: FloatArray
    factor: FloatArray

    def inverse_radius(self, angle: FloatArray, normal: FloatArray) -> FloatArray:
        """Return 1/r of draws of the line, shape (n, G), 1/m.

        Args:
            angle: where, shape (G,), radians.
            normal: standard normals, shape (n, 2).
        """
        drawn = self.coefficients + normal @ self.factor.T
        return np.asarray(drawn @ np.stack([np.cos(angle), np.sin(angle)]))


def edge_line(
    angle: FloatArray, radius: FloatArray, std: FloatArray, end: float, turn: int, least_length: float
) -> EdgeLine | None:
    r"""Fit the line that a measured stretch ends with; None if the stretch is not straight over `least_length`.

    The longest of 8, 4, 2 and 1 times `least_length` over which the measurements are straight is taken. They are if

    .. math:: 1/r = a\cos φ + b\sin φ + c

    (a conic about the centre; a straight line for c = 0) leaves no more than the noise, and c is no more than two
    standard deviations.

    Args:
        angle: measured angles, shape (n,), radians.
        radius: measured radii, shape (n,), metres, positive.
        std: their standard deviations, shape (n,), metres, positive.
        end: angle at which the stretch ends, radians.
        turn: 1 if the stretch ends with rising angle, -1 if with falling.
        least_length: metres.
    """
    before = -turn * angle_difference(angle, np.asarray(end))
    near = np.flatnonzero((before >= -1e-6) & (before < _FARTHEST))
    if len(near) < _FEWEST:
        return None
    near = near[np.argsort(before[near], kind="stable")]
    x, y = polar_to_cartesian(angle[near], radius[near])
    away = np.hypot(x - x[0], y - y[0])
    for length in least_length * np.array(_LENGTHS):
        within = away <= length
        if within.sum() >= _FEWEST and away[within].max() >= _FILLED * length:
            part = near[within]
            try:
                line = _straight(angle[part], radius[part], std[part])
            except np.linalg.LinAlgError:  # all at one angle
                continue
            if line is not None:
                return line
    return None


def _straight(angle: FloatArray, radius: FloatArray, std: FloatArray) -> EdgeLine | None:
    """Fit a line, None if the measurements are not straight."""
    scale = radius**2 / std  # 1/σ of the inverse radius, to first order
    curve = np.column_stack([np.cos(angle), np.sin(angle), np.full(len(angle), 1.0 / radius.mean())])
    conic = _LeastSquares.of(curve * scale[:, None], scale / radius)
    if conic.residual > _WORST_FIT or abs(conic.solution[2]) > _SIGNIFICANT * np.hypot.reduce(conic.factor[2]):
        return None
    line = _LeastSquares.of(curve[:, :2] * scale[:, None], scale / radius)
    return EdgeLine(line.solution, line.factor)


@dataclass(frozen=True, eq=False)
class _LeastSquares:
    """Solution x of least squares Ax = b with errors of standard deviation 1.

    Attributes:
        solution: x, shape (k,).
        factor: a square root R⁻¹ of its covariance, shape (k, k).
        residual: root mean square of Ax - b.
    """

    solution: FloatArray
    factor: FloatArray
    residual: float

    @classmethod
    def of(cls, matrix: FloatArray, right: FloatArray) -> _LeastSquares:
        q, r = np.linalg.qr(matrix)
        factor = np.linalg.inv(r)
        solution = factor @ (q.T @ right)
        return cls(solution, factor, float(np.sqrt(np.mean((matrix @ solution - right) ** 2))))
