r"""How steep surfaces of the prior are: the constants a, b of the thesis's lemma 2-4.

The lemma assumes :math:`P(\sup_φ |f'(φ)| > L) \le a\,e^{-L^2/b^2}` and gives no values. For the
summed Matérn kernel they follow from the spectral moments
:math:`λ_{2d} = \operatorname{Var} f^{(d)} = \sum_{m\in\mathbb{Z}} m^{2d} s_m`.
"""

from __future__ import annotations

import math

from nbv_planner.errors import SettingError
from nbv_planner.gp.chain import MaternChain
from nbv_planner.gp.kernels import PeriodicMatern


def spectral_moment(kernel: PeriodicMatern, d: int) -> float:
    r"""Variance :math:`λ_{2d} = (-1)^d k^{(2d)}(0)` of the d-th derivative, (m/rad^d)².

    Summed over all turns it differs from that on the line by terms in :math:`e^{-2πλ}` only, which
    are kept: it is the value of the chain of derivatives, exact.

    Raises:
        SettingError: surfaces of this kernel have no d-th derivative.
    """
    if d > kernel.order:
        raise SettingError(
            f"smoothness: {kernel.smoothness} gives surfaces without derivative of order {d}"
        )
    return float(MaternChain.of(kernel).prior()[d, d] * kernel.rate ** (2 * d))


def slope_tail(kernel: PeriodicMatern, mean_steepest: float | None = None) -> tuple[float, float]:
    r"""Constants (a, b) with :math:`P(\sup|f'| > L) \le a\,e^{-L^2/b^2}` for all L > 0.

    For ν >= 5/2 from Rice's formula: f' has mean 0 around the circle, so it exceeds L only if it
    crosses L upwards, and the expected number of crossings is
    :math:`\sqrt{λ_4/λ_2}\,e^{-L^2/2λ_2}`; with both signs

    .. math:: a = 2\sqrt{λ_4/λ_2}, \qquad b = \sqrt{2λ_2}.

    For ν = 3/2 the slope crosses levels infinitely often. There it is the inequality of Borell and
    Tsirelson-Ibragimov-Sudakov around :math:`μ = E\sup|f'|`, with :math:`(L-μ)^2 \ge L^2/2 - μ^2`:

    .. math:: a = e^{μ^2/2λ_2}, \qquad b = 2\sqrt{λ_2}.

    Args:
        kernel: prior with ν >= 3/2.
        mean_steepest: μ, m/rad, for ν = 3/2, to be estimated by draws.

    Raises:
        SettingError: ν = 1/2 (no derivative), or μ is missing.
    """
    second = spectral_moment(kernel, 1)
    if kernel.order >= 2:
        return 2.0 * math.sqrt(spectral_moment(kernel, 2) / second), math.sqrt(2.0 * second)
    if mean_steepest is None:
        raise SettingError("smoothness: 3/2 needs mean_steepest, which no formula gives")
    return math.exp(mean_steepest**2 / (2.0 * second)), 2.0 * math.sqrt(second)
