"""Ways to make any kernel on the line periodic that need no closed form (thesis ch. 5.1.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.kernels.base import Kernel, KernelClaims


@dataclass(frozen=True)
class Warped:
    r"""Periodised by warping the circle into the plane: :math:`k(2|\sin(r/2)|)` (def. periodization-warping).

    Positive definite if `base` is in two dimensions, as RBF and Matérn are.

    Attributes:
        base: kernel on the line.
    """

    base: Kernel

    claims: ClassVar[KernelClaims] = KernelClaims(periodic=True)

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.base.variance

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        return self.base(2.0 * np.abs(np.sin(0.5 * np.asarray(difference, dtype=float))))


@dataclass(frozen=True)
class FiniteSum:
    r"""κ-approximate periodic summation :math:`\sum_{|i|\le κ} k(r + 2πi)` (def. periodization-finite-sum).

    Normalised to k(0) = σ_f². Near periodic for |r| <= 2π only, if `base` falls off fast enough.

    Attributes:
        base: kernel on the line.
        kappa: number κ of images to each side.

    Raises:
        SettingError: κ is negative.
    """

    base: Kernel
    kappa: int = 1

    claims: ClassVar[KernelClaims] = KernelClaims(
        periodic=False,
        positive_definite=False,
        exception="Length scales at which the images that are left out matter: the Fourier transform of the sum is "
        "that of the base times a Dirichlet kernel, which is negative at some frequencies.",
    )

    def __post_init__(self) -> None:
        """Check the values."""
        if self.kappa < 0:
            raise SettingError(f"kappa: {self.kappa} must be >= 0")

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.base.variance

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        scale = self.variance / float(_sum_of_images(self.base, self.kappa, np.zeros(())))
        return np.asarray(scale * _sum_of_images(self.base, self.kappa, np.asarray(difference, dtype=float)))


@dataclass(frozen=True)
class Truncated:
    r"""Periodised by truncation: :math:`\sum_{|i|\le κ} t(r + 2πi)\,k(r + 2πi)` (def. periodization-truncation).

    :math:`t_{c_1\to c_2}` falls smoothly from 1 to 0 between :math:`c_1` and :math:`c_2` (:func:`cut_off`), and
    :math:`κ = \lceil c_2/2π \rceil` images to each side are all that there are. Normalised to k(0) = σ_f².

    Attributes:
        base: kernel on the line.
        cut_start: c₁, radians.
        cut_end: c₂, radians, greater than c₁.

    Raises:
        SettingError: not 0 <= c₁ < c₂.
    """

    base: Kernel
    cut_start: float = math.pi
    cut_end: float = TWO_PI

    claims: ClassVar[KernelClaims] = KernelClaims(
        periodic=True,
        positive_definite=False,
        exception="Cut-offs inside the range where the base is not small: the product with the cut-off has negative "
        "Fourier coefficients.",
    )

    def __post_init__(self) -> None:
        """Check the values."""
        if not 0.0 <= self.cut_start < self.cut_end:
            raise SettingError(f"cut_start: {self.cut_start} must be >= 0 and below cut_end ({self.cut_end})")

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.base.variance

    @property
    def kappa(self) -> int:
        """Number κ of images to each side."""
        return math.ceil(self.cut_end / TWO_PI)

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        scale = self.variance / float(_sum_of_images(self._cut, self.kappa, np.zeros(())))
        # Inside one turn κ images suffice.
        r = np.mod(np.abs(np.asarray(difference, dtype=float)), TWO_PI)
        return np.asarray(scale * _sum_of_images(self._cut, self.kappa, r))

    def _cut(self, difference: FloatArray) -> FloatArray:
        return cut_off(difference, self.cut_start, self.cut_end) * self.base(difference)


def cut_off(difference: ArrayLike, start: float, end: float) -> FloatArray:
    r"""Smooth cut-off (thesis ch. 5.1.2; Bachmayr, Cohen & Migliorati 2018, sec. 5.1).

    .. math::
        t_{c_1\to c_2}(r) = \frac{ω\bigl(\frac{c_2-|r|}{Δc}\bigr)}
            {ω\bigl(\frac{c_2-|r|}{Δc}\bigr) + ω\bigl(\frac{|r|-c_1}{Δc}\bigr)}, \qquad
        ω(x) = e^{-1/x} \text{ for } x > 0, \text{ else } 0, \qquad Δc = c_2 - c_1

    Args:
        difference: r, radians.
        start: c₁, radians: 1 up to there.
        end: c₂, radians: 0 from there on.
    """
    r = np.abs(np.asarray(difference, dtype=float))
    inner, outer = _omega((end - r) / (end - start)), _omega((r - start) / (end - start))
    return np.asarray(inner / (inner + outer))


def _omega(x: FloatArray) -> FloatArray:
    positive = x > 0.0
    return np.where(positive, np.exp(-1.0 / np.where(positive, x, 1.0)), 0.0)


def _sum_of_images(base: Callable[[FloatArray], FloatArray], kappa: int, difference: FloatArray) -> FloatArray:
    """Sum of `base` at all turns |i| <= κ; in pairs, so that r and −r give the same number."""
    r = np.abs(difference)
    total = base(r)
    for i in range(1, kappa + 1):
        total = total + (base(r - TWO_PI * i) + base(r + TWO_PI * i))
    return np.asarray(total)
