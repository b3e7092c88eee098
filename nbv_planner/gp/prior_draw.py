r"""Draws from the prior on a uniform grid, from the exact Fourier coefficients of the summed Matérn kernel."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.kernels import PeriodicMatern, fourier_coefficients


def draw_prior(
    kernel: PeriodicMatern, size: int, count: int, generator: np.random.Generator, *, derivative: int = 0
) -> FloatArray:
    r"""Zero-mean surfaces, or their derivatives, at the angles :math:`2πi/M` (Karhunen-Loève series, by FFT).

    .. math::
        f(φ) = \sqrt{s_0}\,g_0 + \sum_{m=1}^{M/2-1} \sqrt{2 s_m}\,\bigl(g_m\cos mφ + h_m\sin mφ\bigr), \qquad
        g_m, h_m \sim N(0, 1)

    What the series leaves out has the variance :math:`2\sum_{m\ge M/2} s_m`, for the default kernel and M = 4096 less
    than 1e-6 of k(0); the derivative of order d loses :math:`2\sum_{m\ge M/2} m^{2d} s_m`.

    Args:
        kernel: prior.
        size: number M of angles, even.
        count: number n of draws.
        generator: source of randomness.
        derivative: order d of the derivative to draw instead; draws of equal seeds belong together.

    Returns:
        Draws, shape (n, M), metres per radian to the power d.
    """
    return prior_series(kernel, generator.standard_normal((2, count, size // 2)), derivative=derivative)


def prior_series(kernel: PeriodicMatern, normal: FloatArray, *, derivative: int = 0) -> FloatArray:
    """Sum the series of :func:`draw_prior` for given normal numbers :math:`g_m, h_m`.

    Args:
        kernel: prior.
        normal: g and h, shape (2, n, M/2).
        derivative: order d of the derivative to draw instead.

    Returns:
        Draws, shape (n, M), metres per radian to the power d.
    """
    size = 2 * normal.shape[2]
    m = np.arange(size // 2)
    amplitude = np.sqrt(0.5 * fourier_coefficients(kernel, size // 2)) * m**derivative
    amplitude[0] *= np.sqrt(2.0)
    spectrum = np.zeros((normal.shape[1], size // 2 + 1), dtype=complex)
    # The real transform reads the real part at m = 0 only, and twice the real part of the others.
    spectrum[:, :-1] = amplitude * (normal[0] - 1j * normal[1]) * 1j**derivative
    return np.asarray(np.fft.irfft(spectrum, n=size, axis=1) * size)
