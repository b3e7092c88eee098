"""Kernels on the line, kept for comparison and as parts of the periodised ones: RBF and Matérn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, kve

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.kernels.base import KernelClaims
from nbv_planner.gp.kernels.smoothness import (
    GREATEST_SMOOTHNESS,
    half_integer_order,
    matern_coefficients,
)
from nbv_planner.settings import check_settings, setting


@dataclass(frozen=True)
class Rbf:
    r"""Squared exponential :math:`σ_f^2 \exp(-r^2/2l^2)` (thesis eq. rbf-kernel), not periodic.

    Raises:
        SettingError: a value is out of range.
    """

    length_scale: float = setting(0.2, "Length scale l of the kernel.", unit="rad", ge=1e-3, le=100.0)
    kernel_std: float = setting(1.5, "Prior standard deviation σ_f of the radius.", unit="m", gt=0.0)

    claims: ClassVar[KernelClaims] = KernelClaims(periodic=False)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.kernel_std**2

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        scaled = np.asarray(difference, dtype=float) / self.length_scale
        return np.asarray(self.variance * np.exp(-0.5 * scaled**2))


@dataclass(frozen=True)
class Matern:
    r"""Matérn kernel (thesis eq. matern-kernel; Rasmussen & Williams 2006, eq. 4.14), not periodic.

    .. math:: σ_f^2\,\frac{2^{1-ν}}{Γ(ν)}\,u^ν K_ν(u), \qquad u = \sqrt{2ν}\,|r|/l

    For ν = p + 1/2 the Bessel function is a polynomial times :math:`e^{-u}` (:func:`matern_coefficients`).

    Raises:
        SettingError: a value is out of range.
    """

    smoothness: float = setting(1.5, "Smoothness ν of the kernel.", gt=0.0, le=GREATEST_SMOOTHNESS)
    length_scale: float = setting(0.2, "Length scale l of the kernel.", unit="rad", ge=1e-3, le=100.0)
    kernel_std: float = setting(1.5, "Prior standard deviation σ_f of the radius.", unit="m", gt=0.0)

    claims: ClassVar[KernelClaims] = KernelClaims(periodic=False)

    def __post_init__(self) -> None:
        """Check the values."""
        check_settings(self)

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.kernel_std**2

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        u = math.sqrt(2.0 * self.smoothness) / self.length_scale * np.abs(np.asarray(difference, dtype=float))
        order = half_integer_order(self.smoothness)
        correlation = _bessel(self.smoothness, u) if order is None else _polynomial(order, u)
        return np.asarray(self.variance * correlation)


def _polynomial(order: int, u: FloatArray) -> FloatArray:
    """Correlation for ν = p + 1/2."""
    total: FloatArray | float = 0.0
    for coefficient in reversed(matern_coefficients(order)):
        total = float(coefficient) + total * u
    return np.asarray(np.exp(-u) * total)


def _bessel(nu: float, u: FloatArray) -> FloatArray:
    """Correlation for any ν, from the Bessel function scaled by e^u, in logarithms: u^ν and K_ν alone overflow."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = nu * np.log(u) + np.log(kve(nu, u)) - u + (1.0 - nu) * math.log(2.0) - gammaln(nu)
        # At 0, and where K_ν overflows (only for ν > 1, there u² is below rounding), the limit is 1; beyond the
        # range of K_ν it is 0. Rounding must not lift a correlation above 1.
        return np.asarray(np.where(np.isfinite(kve(nu, u)), np.minimum(np.exp(logarithm), 1.0), u < 1.0))
