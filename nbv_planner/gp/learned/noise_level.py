"""How much of the declared noise the measurements show."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nbv_planner.geometry import FloatArray

# Widest triple of neighbours, radians: over wider ones the curvature of the surface passes for noise.
_WIDEST = 0.05
# Fewest triples that say anything.
_FEWEST = 20
# Median of the absolute value of a standard normal.
_MEDIAN = 0.6744897501960817


def noise_ratio(angle: FloatArray, radius: FloatArray, std: FloatArray) -> float:
    r"""Estimate the noise of measurements as a part of the declared one, by how far neighbours are off a line.

    Each measurement is compared with the line through its two neighbours (pseudo-residuals; Gasser, Sroka &
    Jennen-Steinmetz 1986), with :math:`a_i = (φ_{i+1} - φ_i)/(φ_{i+1} - φ_{i-1})`:

    .. math::
        ε_i = a_i r_{i-1} + (1 - a_i) r_{i+1} - r_i, \quad
        s_i^2 = a_i^2 σ_{i-1}^2 + (1 - a_i)^2 σ_{i+1}^2 + σ_i^2, \quad
        ρ = \frac{\operatorname{median}_i |ε_i| / s_i}{0.6745}

    The median leaves corners and jumps aside. Curvature of the surface makes the ratio larger; an error that neighbours
    have in common, as of the pose of a whole scan, does not show in it.

    Args:
        angle: shape (n,), radians.
        radius: shape (n,), metres.
        std: declared standard deviation of each radius, shape (n,), metres, positive.

    Returns:
        ρ; 1 where fewer than 20 triples are close enough together to tell.
    """
    order = np.argsort(angle, kind="stable")
    angle, radius, std = angle[order], radius[order], std[order]
    width = angle[2:] - angle[:-2]
    close = (width > 0.0) & (width <= _WIDEST)
    if close.sum() < _FEWEST:
        return 1.0
    before, here, after = (slice(begin, len(angle) - 2 + begin) for begin in range(3))
    a = (angle[after] - angle[here])[close] / width[close]
    residual = a * radius[before][close] + (1.0 - a) * radius[after][close] - radius[here][close]
    spread = np.hypot(np.hypot(a * std[before][close], (1.0 - a) * std[after][close]), std[here][close])
    return float(np.median(np.abs(residual) / spread)) / _MEDIAN


def noise_level(levels: Iterable[float], angle: FloatArray, radius: FloatArray, std: FloatArray) -> float:
    """Find the smallest of `levels` that is not below the :func:`noise_ratio` of measurements; 1 if there is none."""
    ratio = noise_ratio(angle, radius, std)
    return min((level for level in levels if level >= ratio), default=1.0)
