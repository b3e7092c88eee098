"""Stationary kernels on a line, and ways to make them periodic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, kve

from nbv_planner.errors import SettingError, shown
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.settings import Settings, setting


class Kernel(Protocol):
    """Covariance `k(r)` of two radii whose polar angles differ by `r` (thesis ch. 5.1)."""

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians (any real number)."""

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""


@dataclass(frozen=True)
class _Periodised:
    base: Kernel

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.base.variance


@dataclass(frozen=True)
class Warped(_Periodised):
    r"""A kernel `base` on the line warped around the circle: :math:`k(2|\sin(r/2)|)` (def.
    periodization-warping).

    Positive definite if `base` is in two dimensions, as RBF and Matérn are.
    """

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        return self.base(2.0 * np.abs(np.sin(0.5 * np.asarray(difference, dtype=float))))


@dataclass(frozen=True)
class FiniteSum(_Periodised):
    r"""κ-approximate periodic summation :math:`\sum_{|i|\le κ} k(r + 2πi)` of `base` (def.
    periodization-finite-sum).

    Normalised to k(0) = σ_f². Near periodic for |r| <= 2π only, if `base` falls off fast enough.
    Not positive definite at length scales at which the images that are left out matter: the Fourier
    transform of the sum is that of the base times a Dirichlet kernel, which is negative at some
    frequencies.

    Raises:
        SettingError: κ is negative.
    """

    kappa: int = 1

    def __post_init__(self) -> None:
        if self.kappa < 0:
            raise SettingError(f"kappa: {self.kappa} must be >= 0")

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        return _sum_of_images(
            self.base, self.kappa, self.variance, np.asarray(difference, dtype=float)
        )


@dataclass(frozen=True)
class Truncated(_Periodised):
    r"""Periodised by truncation: :math:`\sum_{|i|\le κ} t(r + 2πi)\,k(r + 2πi)` (def.
    periodization-truncation).

    :math:`t_{c_1\to c_2}` falls smoothly from 1 to 0 between :math:`c_1` (`cut_start`) and
    :math:`c_2` (`cut_end`, radians; :func:`cut_off`), and :math:`κ = \lceil c_2/2π \rceil` images
    to each side are all that there are. Normalised to k(0) = σ_f². Not positive definite for
    cut-offs inside the range where `base` is not small: the product has negative Fourier
    coefficients.

    Raises:
        SettingError: not 0 <= c₁ < c₂.
    """

    cut_start: float = math.pi
    cut_end: float = TWO_PI

    def __post_init__(self) -> None:
        if not 0.0 <= self.cut_start < self.cut_end:
            raise SettingError(
                f"cut_start: {self.cut_start} must be >= 0 and below cut_end ({self.cut_end})"
            )

    @property
    def kappa(self) -> int:
        """Number κ of images to each side."""
        return math.ceil(self.cut_end / TWO_PI)

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        # Inside one turn κ images suffice.
        r = np.mod(np.abs(np.asarray(difference, dtype=float)), TWO_PI)
        return _sum_of_images(self._cut, self.kappa, self.variance, r)

    def _cut(self, difference: FloatArray) -> FloatArray:
        return cut_off(difference, self.cut_start, self.cut_end) * self.base(difference)


def cut_off(difference: ArrayLike, start: float, end: float) -> FloatArray:
    r"""Smooth cut-off (thesis ch. 5.1.2; Bachmayr, Cohen & Migliorati 2018, sec. 5.1).

    .. math::
        t_{c_1\to c_2}(r) = \frac{ω\bigl(\frac{c_2-|r|}{Δc}\bigr)}
            {ω\bigl(\frac{c_2-|r|}{Δc}\bigr) + ω\bigl(\frac{|r|-c_1}{Δc}\bigr)}, \qquad
        ω(x) = e^{-1/x} \text{ for } x > 0, \text{ else } 0, \qquad Δc = c_2 - c_1

    It is 1 up to c₁ (`start`) and 0 from c₂ (`end`) on; all in radians.
    """
    r = np.abs(np.asarray(difference, dtype=float))
    inner = _omega((end - r) / (end - start))
    outer = _omega((r - start) / (end - start))
    return inner / (inner + outer)


def _omega(x: FloatArray) -> FloatArray:
    positive = x > 0.0
    return np.where(positive, np.exp(-1.0 / np.where(positive, x, 1.0)), 0.0)


def _sum_of_images(
    base: Callable[[FloatArray], FloatArray], kappa: int, variance: float, difference: FloatArray
) -> FloatArray:
    """Sum of `base` at all turns |i| <= κ, scaled to `variance` at 0; in pairs: r and −r give the
    same number.
    """

    def total(r: FloatArray) -> FloatArray:
        images = ((base(r - TWO_PI * i) + base(r + TWO_PI * i)) for i in range(1, kappa + 1))
        return sum(images, start=base(r))

    return variance / float(total(np.zeros(()))) * total(np.abs(difference))


GREATEST_SMOOTHNESS = 50.0
"""Beyond it u^ν and K_ν(u) leave the range of double precision; the RBF kernel is the limit."""


def smoothness_value(text: str) -> float:
    """Return ν of a fraction or a decimal number.

    Raises:
        SettingError: `text` is no number, or not in (0, 50].
    """
    try:
        # a Fraction would write out 1e999999999
        value = float(Fraction(text) if "/" in text else text)
    except (ValueError, ArithmeticError) as error:
        raise SettingError(
            f"smoothness: {shown(text)} is not a number; must be a fraction such as 1/2, 3/2, 5/2"
            " or a decimal number"
        ) from error
    if not 0.0 < value <= GREATEST_SMOOTHNESS:
        raise SettingError(
            f"smoothness: {shown(text)} is out of range; must be > 0 and <= {GREATEST_SMOOTHNESS:g}"
        )
    return value


def half_integer_order(value: float) -> int | None:
    """Return p if ν = p + 1/2 with an integer p >= 0, else None."""
    order = value - 0.5
    return int(order) if order >= 0.0 and order.is_integer() else None


def matern_coefficients(order: int) -> list[Fraction]:
    r"""Coefficients of the polynomial factor of the Matérn correlation (Rasmussen & Williams 2006,
    eq. 4.16).

    .. math::
        k_{p+1/2} = e^{-u} \sum_{k=0}^p c_k u^k, \qquad u = \sqrt{2ν}\,r/l, \qquad
        c_k = \frac{p!}{(2p)!}\,\frac{(2p-k)!}{k!\,(p-k)!}\,2^k

    c_0 … c_p for p = ν − 1/2 (`order`), all positive; c_0 = 1.
    """
    scale = Fraction(math.factorial(order), math.factorial(2 * order))
    return [
        scale
        * math.factorial(2 * order - k)
        * 2**k
        / (math.factorial(k) * math.factorial(order - k))
        for k in range(order + 1)
    ]


scale_setting = partial(
    setting,
    0.2,
    "Length scale l of the kernel: lower it for fine features.",
    unit="rad",
    ge=1e-3,
    le=100.0,
)
std_setting = partial(
    setting,
    1.5,
    "Prior standard deviation σ_f of the radius: lower it if the radius hardly varies.",
    unit="m",
    gt=0.0,
)


class Stationary(Settings):
    """What kernels with a standard deviation have in common."""

    kernel_std: float

    @property
    def variance(self) -> float:
        """Prior variance `k(0)` in m²."""
        return self.kernel_std**2


@dataclass(frozen=True)
class Rbf(Stationary):
    r"""Squared exponential :math:`σ_f^2 \exp(-r^2/2l^2)` (thesis eq. rbf-kernel), not periodic."""

    length_scale: float = scale_setting()
    kernel_std: float = std_setting()

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        scaled = np.asarray(difference, dtype=float) / self.length_scale
        return self.variance * np.exp(-0.5 * scaled**2)


@dataclass(frozen=True)
class Matern(Stationary):
    r"""Matérn kernel (thesis eq. matern-kernel; Rasmussen & Williams 2006, eq. 4.14), not periodic.

    .. math:: σ_f^2\,\frac{2^{1-ν}}{Γ(ν)}\,u^ν K_ν(u), \qquad u = \sqrt{2ν}\,|r|/l

    For ν = p + 1/2 the Bessel function is a polynomial times :math:`e^{-u}`
    (:func:`matern_coefficients`).
    """

    smoothness: float = setting(1.5, "Smoothness ν of the kernel.", gt=0.0, le=GREATEST_SMOOTHNESS)
    length_scale: float = scale_setting()
    kernel_std: float = std_setting()

    def __call__(self, difference: ArrayLike) -> FloatArray:
        """Covariance in m² at angle `difference` in radians."""
        u = (
            math.sqrt(2.0 * self.smoothness)
            / self.length_scale
            * np.abs(np.asarray(difference, dtype=float))
        )
        order = half_integer_order(self.smoothness)
        correlation = _bessel(self.smoothness, u) if order is None else _polynomial(order, u)
        return self.variance * correlation


def _polynomial(order: int, u: FloatArray) -> FloatArray:
    """Correlation for ν = p + 1/2."""
    total: FloatArray | float = 0.0
    for coefficient in reversed(matern_coefficients(order)):
        total = float(coefficient) + total * u
    return np.exp(-u) * total


def _bessel(nu: float, u: FloatArray) -> FloatArray:
    """Correlation for any ν, from the Bessel function scaled by e^u, in logarithms: u^ν and K_ν
    alone overflow.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = (
            nu * np.log(u) + np.log(kve(nu, u)) - u + (1.0 - nu) * math.log(2.0) - gammaln(nu)
        )
        # At 0, and where K_ν overflows (only for ν > 1, there u² is below rounding), the limit is
        # 1; beyond the range of K_ν it is 0. Rounding must not lift a correlation above 1.
        return np.where(np.isfinite(kve(nu, u)), np.minimum(np.exp(logarithm), 1.0), u < 1.0)
