"""The Matérn kernel on the circle, by its Fourier series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.kernels.line_kernels import (
    Stationary,
    half_integer_order,
    matern_coefficients,
    scale_setting,
    smoothness_value,
    std_setting,
)
from nbv_planner.settings import setting

MATERN_SMOOTHNESS = ("1/2", "3/2", "5/2")
"""Smoothness values whose posterior has a solution in linear time
(:mod:`nbv_planner.gp.circle_solver`).
"""


@dataclass(frozen=True)
class PeriodicMatern(Stationary):
    r"""Matérn kernel periodised by the infinite sum, normalised to :math:`k(0) = σ_f^2`.

    .. math::
        k(r) \propto \sum_{i\in\mathbb{Z}} k_\nu(|r + 2\pi i|), \qquad
        k_{p+1/2}(s) = e^{-λs}\,P_p(λs), \quad λ = \sqrt{2ν}/l,

    with :math:`P_0 = 1`, :math:`P_1 = 1 + u`, :math:`P_2 = 1 + u + u^2/3`, ...
    (:func:`matern_coefficients`). The images on one side sum to series in :math:`ρ = e^{-2πλ}`; all
    terms are positive and none overflows, whatever the length scale. The closed forms printed in
    the thesis (eq. periodic-matern-kernel-infinite-sum-examples) are not
    used: for ν = 3/2 and 5/2 they are misprinted.

    Raises:
        SettingError: a value is out of range, or ν is not half an odd integer.
    """

    smoothness: str = setting("3/2", "Smoothness ν of the Matérn kernel, half an odd integer.")
    length_scale: float = scale_setting()
    kernel_std: float = std_setting(scale="span")

    def __post_init__(self) -> None:
        super().__post_init__()
        if half_integer_order(smoothness_value(self.smoothness)) is None:
            raise SettingError(
                f"smoothness: {self.smoothness!r} has no closed form of the infinite sum; must be"
                " 1/2, 3/2, 5/2, 7/2, ..., or choose another periodisation"
            )

    @property
    def order(self) -> int:
        """Number p = ν − 1/2 of times that the surface can be differentiated."""
        return int(smoothness_value(self.smoothness))

    @property
    def rate(self) -> float:
        """Decay rate `λ = √(2ν)/l` in 1/rad."""
        return math.sqrt(2.0 * smoothness_value(self.smoothness)) / self.length_scale

    @property
    def images_at_zero(self) -> float:
        r"""Sum :math:`\sum_i k_ν(2πi)` of all images at r = 0, by which the kernel is
        normalised.
        """
        period = TWO_PI * self.rate
        return float(_half(self.order, np.array([0.0, period]), period).sum())

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        r = np.mod(np.abs(np.asarray(difference, dtype=float)), TWO_PI)
        period = TWO_PI * self.rate
        u = self.rate * r
        both = _half(self.order, u, period) + _half(self.order, period - u, period)
        return self.variance / self.images_at_zero * both


def _half(order: int, u: FloatArray, period: float) -> FloatArray:
    r"""Sum :math:`\sum_{j\ge 0} k_ν(u + jL)` of the images on one side, up to the normalisation.

    `u` is the distance in units of 1/λ, `period` is L = 2πλ. The polynomial of each image expands
    in powers of j:

    .. math:: e^{-u} \sum_{q=0}^p L^q S_q \sum_{k=q}^p \binom{k}{q} c_k u^{k-q},
        \qquad S_q = \sum_j j^q ρ^j
    """
    total: FloatArray | float = 0.0
    for q, row in enumerate(_expansion(order)):
        polynomial: FloatArray | float = row[-1]
        for coefficient in row[-2::-1]:
            polynomial = coefficient + polynomial * u
        total = total + period**q * polynomial * _power_sum(q, period)
    return np.exp(-u) * total


@lru_cache(maxsize=64)
def _expansion(order: int) -> list[list[float]]:
    """Coefficients binom(k, q) c_k of u^(k-q): one list per q, rising in k."""
    c = matern_coefficients(order)
    return [[float(math.comb(k, q) * c[k]) for k in range(q, order + 1)] for q in range(order + 1)]


def _power_sum(q: int, period: float) -> float:
    r"""Series :math:`S_q = \sum_{j\ge 0} j^q ρ^j = \sum_m A_{qm} ρ^{m+1} / (1-ρ)^{q+1}` with
    :math:`ρ = e^{-L}`.

    :math:`A_{qm}` are the Eulerian numbers: all terms are positive, so that nothing cancels also
    for ρ near 1.
    """
    rho = math.exp(-period)
    rest = -math.expm1(-period)
    if q == 0:
        return 1.0 / rest
    return sum(float(a) * rho ** (m + 1) for m, a in enumerate(_eulerian(q))) / rest ** (q + 1)


@lru_cache(maxsize=64)
def _eulerian(q: int) -> tuple[Fraction, ...]:
    """Eulerian numbers A(q, 0) … A(q, q − 1)."""
    return tuple(
        Fraction(sum((-1) ** i * math.comb(q + 1, i) * (m + 1 - i) ** q for i in range(m + 1)))
        for m in range(q)
    )


def fourier_coefficients(kernel: PeriodicMatern, count: int) -> FloatArray:
    r"""Coefficients of :math:`k(r) = \sum_{m\in\mathbb{Z}} s_m e^{imr}`, exact and positive.

    By Poisson's formula they are values of the spectral density of the kernel on the line
    (Borovitskiy et al. 2020, eq. 48, on a circle of length 2π):

    .. math::
        s_m = C_1\,\Bigl(\frac{2ν}{l^2} + m^2\Bigr)^{-(ν+1/2)}, \qquad \sum_{m\in\mathbb{Z}} s_m =
        k(0) = σ_f^2, \qquad C_1 = \frac{σ_f^2}{\sum_i
        k_ν(2πi)}\,\frac{Γ(ν+1/2)}{\sqrt{π}\,Γ(ν)}\,λ^{2ν}

    The thesis prints m/2π in place of m (lemma 2-6); with its constant that series sums to about 2π
    k(0).

    Returns:
        s_0 … s_{n-1}, shape (n,), m², for n = `count`; s_{-m} = s_m.
    """
    nu = kernel.order + 0.5
    rate = kernel.rate
    # λ² = 2ν/l² is taken out of the bracket, where its power would overflow.
    density = math.exp(math.lgamma(nu + 0.5) - math.lgamma(nu)) / (math.sqrt(math.pi) * rate)
    scale = kernel.variance / kernel.images_at_zero * density
    return scale * (1.0 + (np.arange(float(count)) / rate) ** 2) ** -(nu + 0.5)
