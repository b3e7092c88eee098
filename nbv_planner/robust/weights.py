r"""Weights of measurements under noise that is not Gaussian: expectation steps of EM.

Both take the squared residual as it is expected under the belief, :math:`q = ((r - μ)^2 + s^2)/σ^2`, with the posterior
variance :math:`s^2` of the surface at the measurement. A measurement of weight w counts with the variance σ²/w.
"""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.geometry import FloatArray


def student_t_weights(residual: FloatArray, degrees_of_freedom: float) -> FloatArray:
    r"""Return :math:`w = (ν + 1)/(ν + q)`, the mean of the noise's gamma-distributed precision.

    Source: Tipping & Lawrence, "Variational inference for Student-t models", Neurocomputing 69 (2005).

    Args:
        residual: expected squared residuals q, shape (n,).
        degrees_of_freedom: ν.
    """
    return np.asarray((degrees_of_freedom + 1.0) / (degrees_of_freedom + residual))


def contaminated_weights(residual: FloatArray, std: FloatArray, fraction: float, span: float) -> FloatArray:
    r"""Probability that a measurement is no outlier, for a fraction ε of outliers spread evenly over a span L.

    .. math:: w = \frac{(1-ε)\,\mathcal N}{(1-ε)\,\mathcal N + ε/L}, \qquad
        \mathcal N = \frac{e^{-q/2}}{\sqrt{2π}\,σ}

    Args:
        residual: expected squared residuals q, shape (n,).
        std: σ of each measurement, shape (n,), metres.
        fraction: ε, inside (0, 1).
        span: L, metres.
    """
    inlier = (1.0 - fraction) * np.exp(-0.5 * residual) / (math.sqrt(2.0 * math.pi) * std)
    return np.asarray(inlier / (inlier + fraction / span))
