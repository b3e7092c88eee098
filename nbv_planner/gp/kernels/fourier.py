r"""Fourier coefficients of the summed Matérn kernel: exact, positive, and the law of its samples."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.kernels.periodic_matern import PeriodicMatern


def fourier_coefficients(kernel: PeriodicMatern, count: int) -> FloatArray:
    r"""Coefficients of :math:`k(r) = \sum_{m\in\mathbb{Z}} s_m e^{imr}`, exact and positive.

    By Poisson's formula they are values of the spectral density of the kernel on the line (Borovitskiy et al. 2020,
    eq. 48, on a circle of length 2π):

    .. math::
        s_m = C_1\,\Bigl(\frac{2ν}{l^2} + m^2\Bigr)^{-(ν+1/2)}, \qquad \sum_{m\in\mathbb{Z}} s_m = k(0) = σ_f^2, \qquad
        C_1 = \frac{σ_f^2}{\sum_i k_ν(2πi)}\,\frac{Γ(ν+1/2)}{\sqrt{π}\,Γ(ν)}\,λ^{2ν}

    The thesis prints m/2π in place of m (lemma 2-6); with its constant that series sums to about 2π k(0).

    Args:
        kernel: summed Matérn kernel.
        count: number n of coefficients.

    Returns:
        s_0 … s_{n-1}, shape (n,), m²; s_{-m} = s_m.
    """
    nu, rate = kernel.order + 0.5, kernel.rate
    # λ² = 2ν/l² is taken out of the bracket, where its power would overflow.
    density = math.exp(math.lgamma(nu + 0.5) - math.lgamma(nu)) / (math.sqrt(math.pi) * rate)
    scale = kernel.variance / kernel.images_at_zero * density
    return np.asarray(scale * (1.0 + (np.arange(float(count)) / rate) ** 2) ** -(nu + 0.5))
