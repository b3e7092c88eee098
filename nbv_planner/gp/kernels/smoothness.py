"""Smoothness ν of a Matérn kernel as text: `3/2`, `7/2`, `1`, `0.8`."""

from __future__ import annotations

import math
from fractions import Fraction

from nbv_planner.errors import SettingError

GREATEST_SMOOTHNESS = 50.0
"""Beyond it u^ν and K_ν(u) leave the range of double precision; the RBF kernel is the limit."""


def smoothness_value(text: str) -> float:
    """Return ν of a fraction or a decimal number.

    Raises:
        SettingError: `text` is no number, or not in (0, 50].
    """
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError) as error:
        raise SettingError(
            f"smoothness: {text!r} is not a number; must be a fraction such as 1/2, 3/2, 5/2 or a decimal number"
        ) from error
    if not 0.0 < value <= GREATEST_SMOOTHNESS:
        raise SettingError(f"smoothness: {text!r} is out of range; must be > 0 and <= {GREATEST_SMOOTHNESS:g}")
    return value


def half_integer_order(value: float) -> int | None:
    """Return p if ν = p + 1/2 with an integer p >= 0, else None."""
    order = value - 0.5
    return int(order) if order >= 0.0 and order.is_integer() else None


def matern_coefficients(order: int) -> list[Fraction]:
    r"""Coefficients of the polynomial factor of the Matérn correlation (Rasmussen & Williams 2006, eq. 4.16).

    .. math::
        k_{p+1/2} = e^{-u} \sum_{k=0}^p c_k u^k, \qquad u = \sqrt{2ν}\,r/l, \qquad
        c_k = \frac{p!}{(2p)!}\,\frac{(2p-k)!}{k!\,(p-k)!}\,2^k

    Args:
        order: p = ν − 1/2.

    Returns:
        c_0 … c_p, all positive; c_0 = 1.
    """
    scale = Fraction(math.factorial(order), math.factorial(2 * order))
    return [
        scale * math.factorial(2 * order - k) * 2**k / (math.factorial(k) * math.factorial(order - k))
        for k in range(order + 1)
    ]
