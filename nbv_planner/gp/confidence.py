"""The schedule of confidence bounds under which the thesis proves its regret bounds (lemma 2-4)."""

from __future__ import annotations

import math

from nbv_planner.errors import SettingError
from nbv_planner.geometry import FloatArray


def scheduled_beta(t: int, delta: float, a: float, b: float) -> float:
    r"""Confidence parameter of round `t` (thesis lemma 2-4, after Srinivas et al. 2012, theorem 2).

    .. math:: β_t = 2\log\Bigl(\frac{2π^3 b}{3}\sqrt{\log\frac{2a}{δ}}\,\frac{t^4}{δ}\Bigr)

    for the round t, one more than the views conditioned on, the probability δ in (0, 1) with which
    the band may fail at any angle in any round, and :math:`P(\sup|f'| > L) \le a e^{-L^2/b^2}`;
    :func:`benchmarks.slope_tail.slope_tail` gives `a` and `b` (m/rad).

    Raises:
        SettingError: δ outside (0, 1), `a` or `b` not positive, a round before the first, or no
            positive β.
    """
    _check(t, delta, a, b)
    beta = 2.0 * math.log(
        2.0 * math.pi**3 * b / 3.0 * math.sqrt(math.log(2.0 * a / delta)) * t**4 / delta
    )
    if beta <= 0.0:
        raise SettingError(
            f"schedule_b: {b} with schedule_a {a} and delta {delta} gives β = {beta:.3g} in round"
            f" {t}; must be > 0"
        )
    return beta


def scheduled_half_width(std: FloatArray, t: int, delta: float, a: float, b: float) -> FloatArray:
    r"""Half-width :math:`β_t^{1/2}σ + 1/t^2` of the band of round `t`, metres (eq.
    confidence-bounds-actual).

    :math:`1/t^2` covers what lies between the :math:`\lceil 2πb\sqrt{\log(2a/δ)}\,t^2\rceil`
    equally spaced angles of the proof. The thesis prints :math:`\log(2a/b)`, but its :math:`β_t`
    and its proof need δ. σ are posterior standard deviations, metres; the other arguments, and what
    is refused, are those of :func:`scheduled_beta`.
    """
    return math.sqrt(scheduled_beta(t, delta, a, b)) * std + 1.0 / t**2


def _check(t: int, delta: float, a: float, b: float) -> None:
    if t < 1:
        raise SettingError(f"round: {t} must be >= 1")
    if not 0.0 < delta < 1.0:
        raise SettingError(f"delta: {delta} must be > 0 and < 1")
    for name, value in (("schedule_a", a), ("schedule_b", b)):
        if not value > 0.0:
            raise SettingError(f"{name}: {value} must be > 0")
    if not 2.0 * a > delta:
        raise SettingError(f"schedule_a: {a} must be above delta/2 ({delta / 2.0:g})")
