r"""Stationary, 2π-periodic covariance functions of the polar radius (thesis ch. 5.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.settings import check_settings, setting

MATERN_SMOOTHNESS = ("1/2", "3/2", "5/2")


class Kernel(Protocol):
    """Covariance `k(r)` of two radii whose polar angles differ by `r`."""

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians (any real number)."""
        ...

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        ...


@dataclass(frozen=True)
class PeriodicMatern:
    r"""Matérn kernel periodised by the infinite sum, normalised to :math:`k(0) = σ_f^2`.

    .. math::
        k(r) \propto \sum_{i\in\mathbb{Z}} k_\nu(|r + 2\pi i|), \qquad
        k_{p+1/2}(s) = e^{-λs}\,P_p(λs), \quad λ = \sqrt{2ν}/l,

    with :math:`P_0 = 1`, :math:`P_1 = 1 + u`, :math:`P_2 = 1 + u + u^2/3`. The images on one side sum to
    geometric series in :math:`ρ = e^{-2πλ}`; all terms are positive and none overflows, whatever the length scale.
    """

    smoothness: str = setting("3/2", "Smoothness ν of the Matérn kernel.", choices=MATERN_SMOOTHNESS)
    length_scale: float = setting(0.2, "Length scale l of the kernel.", unit="rad", ge=1e-3, le=100.0)
    kernel_std: float = setting(1.5, "Prior standard deviation σ_f of the radius.", unit="m", gt=0.0)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.kernel_std**2

    @property
    def rate(self) -> float:
        """Decay rate `λ = √(2ν)/l` in 1/rad."""
        numerator, denominator = self.smoothness.split("/")
        return math.sqrt(2.0 * float(numerator) / float(denominator)) / self.length_scale

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        r = np.mod(np.abs(np.asarray(difference, dtype=float)), TWO_PI)
        period = TWO_PI * self.rate
        scale = self.variance / float(self._half(np.zeros(1), period)[0] + self._half(np.full(1, period), period)[0])
        u = self.rate * r
        return np.asarray(scale * (self._half(u, period) + self._half(period - u, period)))

    def _half(self, u: FloatArray, period: float) -> FloatArray:
        r"""Sum :math:`\sum_{j\ge 0} k_ν(u + jL)` of the images on one side, up to the normalisation.

        `u` is the distance in units of 1/λ, `period` is L = 2πλ. With :math:`S_q = \sum_j j^q ρ^j` the polynomial of
        each image expands in powers of j; the sums have closed forms.
        """
        one_minus_rho = -math.expm1(-period)
        rho = math.exp(-period)
        s0, s1, s2 = 1.0 / one_minus_rho, rho / one_minus_rho**2, rho * (1.0 + rho) / one_minus_rho**3
        if self.smoothness == "1/2":
            polynomial: FloatArray | float = s0
        elif self.smoothness == "3/2":
            polynomial = (1.0 + u) * s0 + period * s1
        else:
            polynomial = (
                (1.0 + u + u * u / 3.0) * s0 + period * (1.0 + 2.0 * u / 3.0) * s1 + period * period / 3.0 * s2
            )
        return np.asarray(np.exp(-u) * polynomial)
