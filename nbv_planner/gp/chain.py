"""The Matérn process as a cyclic Markov chain, and draws from its prior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import gammainc

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.kernels import PeriodicMatern, fourier_coefficients


@dataclass(frozen=True)
class MaternChain:
    r"""Transition and process noise between neighbouring angles of a periodic Matérn process with
    :math:`ν = p + 1/2`.

    The kernel summed over all turns is the covariance of the stationary solution on the circle of

    .. math::
        (\tfrac{d}{dφ} + λ)^{p+1} f = w, \qquad w \text{ white}, \quad λ = \sqrt{2ν}/l

    (Hartikainen & Särkkä 2010 on the line). The state :math:`x = (f, f'/λ, …, f^{(p)}/λ^p)` has d =
    p + 1 components, all in metres. In the dimensionless gap :math:`u = λΔφ` it moves as

    .. math::
        x(u) = A(u)\,x(0) + ε, \quad ε \sim N(0, Q(u)), \qquad
        A(u) = e^{Fu}, \quad Q(u) = q\int_0^u h(s)\,h(s)^T ds, \quad h(s) = A(s)\,e_p,

    closed by :math:`x(2πλ) = x(0)`. There is no prior on x at any node: the circle alone makes the
    law proper, with covariance :math:`(I-A)^{-1} Q\,(I-A)^{-T}` for one whole turn. `q` is chosen
    so that its first entry is the prior variance k(0).
    """

    order: int  #: number p of derivatives of f in the state.
    rate: float  #: decay rate λ, 1/rad.
    variance: float  #: prior variance k(0), m².

    @staticmethod
    @lru_cache(maxsize=16)
    def of(kernel: PeriodicMatern) -> MaternChain:
        """Chain whose law at any angles has covariance `kernel`; cached, since a mapper needs the
        same one again.
        """
        return MaternChain(kernel.order, kernel.rate, kernel.variance)

    @property
    def size(self) -> int:
        """Number d = p + 1 of components of the state."""
        return self.order + 1

    def transition(self, gap: FloatArray) -> FloatArray:
        r"""Transition :math:`A(λ\,gap) = e^{-u}\sum_{k\le p} N^k u^k/k!`, shape (d, d, n), `gap`
        (n,) in radians.

        The drift F is the companion matrix of :math:`(s+1)^{p+1}`, so that N = F + I is nilpotent
        and the series ends.
        """
        u = self.rate * gap
        powers = u ** np.arange(self.size)[:, None]
        return _combined(self._series, np.exp(-u) * powers)

    def noise(self, gap: FloatArray) -> FloatArray:
        """Covariance Q(λ gap) of the process noise, shape (d, d, n), m²; `gap` has shape (n,),
        radians.
        """
        return self._intensity * self._unit_noise(self.rate * gap)

    def prior(self) -> FloatArray:
        """Covariance of the state at any one angle, shape (d, d), m²; the first entry is k(0)."""
        return self._intensity * self._unit_prior()

    @property
    def diffusion(self) -> float:
        r"""Limit of :math:`E[(f(φ+δ) - f(φ))^2]/δ` for small δ, m²/rad: above 0 for ν = 1/2
        only.
        """
        return 0.0 if self.order else self._intensity * self.rate

    @cached_property
    def _series(self) -> FloatArray:
        """Coefficients N^k/k! of the transition, shape (d, d, k)."""
        d = self.size
        nilpotent = np.eye(d) + np.eye(d, k=1)
        nilpotent[-1] -= [math.comb(d, j) for j in range(d)]
        powers = [np.linalg.matrix_power(nilpotent, k) / math.factorial(k) for k in range(d)]
        return np.stack(powers, axis=-1)

    @cached_property
    def _intensity(self) -> float:
        """Intensity q of the driving noise, m², that makes the prior variance of f right."""
        return self.variance / float(self._unit_prior()[0, 0])

    def _unit_prior(self) -> FloatArray:
        """Covariance of the state for q = 1, shape (d, d): one turn that ends where it began."""
        turn = np.array([TWO_PI])
        rest = np.eye(self.size) - self.transition(turn)[..., 0]
        half = np.linalg.solve(rest, self._unit_noise(self.rate * turn)[..., 0])
        return np.linalg.solve(rest, half.T)

    def _unit_noise(self, u: FloatArray) -> FloatArray:
        r"""Evaluate :math:`\int_0^u h h^T ds` for the dimensionless gaps `u`, shape (d, d, n).

        :math:`h(s)` is a polynomial times :math:`e^{-s}`, so each entry is a sum of the integrals
        :math:`I_k = \int_0^u s^k e^{-2s} ds`. :math:`P_\infty - A P_\infty A^T` would be the same
        number, but all its digits cancel for small gaps; here the lowest power of u dominates and
        keeps its relative accuracy.
        """
        return _combined(self._products, _exponential_moments(u, 2 * self.order))

    @cached_property
    def _products(self) -> FloatArray:
        """Coefficients of the polynomials in h h^T, shape (d, d, 2p + 1)."""
        response = self._series[:, -1]
        products = np.zeros((self.size, self.size, 2 * self.order + 1))
        for a, b in np.ndindex(self.size, self.size):
            products[:, :, a + b] += np.outer(response[:, a], response[:, b])
        return products


def _combined(coefficients: FloatArray, terms: FloatArray) -> FloatArray:
    """Sums of `terms` (k, n) with `coefficients` (d, d, k), shape (d, d, n)."""
    d = len(coefficients)
    return (coefficients.reshape(d * d, -1) @ terms).reshape(d, d, -1)


def _exponential_moments(u: FloatArray, highest: int) -> FloatArray:
    r"""Integrals :math:`I_k = \int_0^u s^k e^{-2s} ds` for k = 0 … `highest`, shape (highest + 1,
    n).

    The highest comes from the incomplete gamma function, the others from
    :math:`I_{k-1} = (2I_k + u^k e^{-2u})/k`: downward, since there all terms are positive and
    nothing cancels.
    """
    moments = np.empty((highest + 1, len(u)))
    moments[highest] = gammainc(highest + 1, 2.0 * u) * (
        math.factorial(highest) / 2.0 ** (highest + 1)
    )
    decay = np.exp(-2.0 * u)
    for k in range(highest, 0, -1):
        moments[k - 1] = (2.0 * moments[k] + u**k * decay) / k
    return moments


def draw_prior(
    kernel: PeriodicMatern,
    size: int,
    count: int,
    generator: np.random.Generator,
    *,
    derivative: int = 0,
) -> FloatArray:
    r"""Zero-mean surfaces, or their derivatives, at the angles :math:`2πi/M` (Karhunen-Loève
    series, by FFT).

    .. math::
        f(φ) = \sqrt{s_0}\,g_0 + \sum_{m=1}^{M/2-1} \sqrt{2 s_m}\,\bigl(g_m\cos mφ + h_m\sin
        mφ\bigr), \qquad g_m, h_m \sim N(0, 1)

    The rest of the series has the variance :math:`2\sum_{m\ge M/2} s_m`, for the default kernel and
    M = 4096 less than 1e-6 of k(0); the derivative of order d loses
    :math:`2\sum_{m\ge M/2} m^{2d} s_m`.

    for an even number M = `size` of angles and n = `count` draws, of the order d of the
    `derivative`; draws of equal seeds belong together.

    Returns:
        Draws, shape (n, M), metres per radian to the power d.
    """
    return prior_series(
        kernel, generator.standard_normal((2, count, size // 2)), derivative=derivative
    )


def prior_series(kernel: PeriodicMatern, normal: FloatArray, *, derivative: int = 0) -> FloatArray:
    """Sum the series of :func:`draw_prior` for given `normal` numbers :math:`g_m, h_m`, shape (2,
    n, M/2).
    """
    size = 2 * normal.shape[2]
    m = np.arange(size // 2)
    amplitude = np.sqrt(0.5 * fourier_coefficients(kernel, size // 2)) * m**derivative
    amplitude[0] *= np.sqrt(2.0)
    spectrum = np.zeros((normal.shape[1], size // 2 + 1), dtype=complex)
    # The real transform reads the real part at m = 0 only, and twice the real part of the others.
    spectrum[:, :-1] = amplitude * (normal[0] - 1j * normal[1]) * 1j**derivative
    return np.asarray(np.fft.irfft(spectrum, n=size, axis=1) * size)
