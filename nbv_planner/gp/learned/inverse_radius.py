r"""A linear function of the inverse radius, in which straight edges are smooth.

A straight edge at the distance d from the centre is :math:`1/r = \cos(φ - φ_0)/d`: a single wave, however steep the
radius itself becomes towards its ends. A Gaussian process on the inverse goes on straight where it has seen an edge.
"""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray

# Part of the mean radius below which radii are taken for that: noise may bring them near 0.
_LEAST = 0.1


def to_inverse(radius: FloatArray, std: FloatArray, mean: float) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`v = 2m - m^2/r` and, to first order, its standard deviation :math:`(m/r)^2 σ`; metres.

    At r = m both are those of the radius. The factor of the standard deviation is the derivative of v, so that the
    likelihood of the radii differs from that of v by nothing that depends on the prior.

    Args:
        radius: shape (n,), metres.
        std: its standard deviation, shape (n,), metres.
        mean: m, metres.
    """
    ratio = mean / np.maximum(radius, _LEAST * mean)
    return mean * (2.0 - ratio), ratio**2 * std


def from_inverse(value: FloatArray, mean: float) -> FloatArray:
    """Return the radius m²/(2m - v) at v (any shape), metres; +inf from v = 2m on."""
    rest = 2.0 * mean - value
    return np.asarray(np.divide(mean**2, rest, out=np.full(np.shape(value), np.inf), where=rest > 0.0))
