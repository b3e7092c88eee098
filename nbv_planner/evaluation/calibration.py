"""Whether the confidence band promises what it keeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from nbv_planner.evaluation.surface_error import once_around
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.surface import SurfaceBelief

NOMINAL_LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.99)
"""Two-sided levels at which the belief is checked."""

ANGLE_BINS = 36


@dataclass(frozen=True)
class Calibration:
    r"""Nominal and observed frequencies with which the true radius lies inside central intervals of the belief.

    Attributes:
        levels: nominal two-sided levels p.
        inside: fraction of the grid angles with :math:`|f - μ| \le z_p σ`, :math:`z_p = Φ^{-1}((1 + p)/2)`.
        angle_bins: centres of equal bins of polar angles, radians.
        inside_by_angle: fraction of the grid angles in the bin with :math:`l \le f \le u`, None in a bin that holds
            no grid angle.
    """

    levels: tuple[float, ...]
    inside: tuple[float, ...]
    angle_bins: tuple[float, ...]
    inside_by_angle: tuple[float | None, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary of lists."""
        return {name: list(values) for name, values in asdict(self).items()}


def calibration(belief: SurfaceBelief, true_radius: FloatArray) -> Calibration:
    """Check a belief against the true radius at its grid angles, shape (M,), metres.

    Neighbouring angles are far from independent: one episode says little, and many have to be averaged.
    """
    once = once_around(belief)
    error, std = np.abs(true_radius - belief.mean)[once], belief.std[once]
    factors = norm.ppf(0.5 * (1.0 + np.array(NOMINAL_LEVELS)))
    in_band = ((belief.lower <= true_radius) & (true_radius <= belief.upper))[once]
    return Calibration(
        levels=NOMINAL_LEVELS,
        inside=tuple(float(np.mean(error <= factor * std)) for factor in factors),
        angle_bins=tuple(((np.arange(ANGLE_BINS) + 0.5) * (TWO_PI / ANGLE_BINS)).tolist()),
        inside_by_angle=_mean_by_bin(belief.angle[once], in_band.astype(float)),
    )


def _mean_by_bin(angle: FloatArray, values: FloatArray) -> tuple[float | None, ...]:
    """Mean of `values` at the angles that fall into each bin."""
    at = np.minimum((angle * (ANGLE_BINS / TWO_PI)).astype(int), ANGLE_BINS - 1)
    count = np.bincount(at, minlength=ANGLE_BINS)
    total = np.bincount(at, weights=values, minlength=ANGLE_BINS)
    return tuple(float(t / n) if n else None for t, n in zip(total, count, strict=True))
