r"""The regret bound of the thesis (lemma 2-3 with 2-1 and 2-2): what it says about the sum of the objective."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nbv_planner.scene import Scene


@dataclass(frozen=True)
class RegretBound:
    r"""Bound :math:`R(T) < R_{ind}(T) \le \sum_t F_u(θ_t|θ_{1:t-1}) \le C_1'\sqrt{T β_T γ_T} + C_2'`.

    The last step holds for any views if each is measured at its line of sight (lemma 2-5b) and the band is that of the
    schedule; the one before needs :math:`F(θ^*_t|\cdot) \le F_u(θ_t|\cdot)`.

    Attributes:
        c_1: C₁', surface points (for UP per metre of radius).
        c_2: C₂', in the same unit.
    """

    c_1: float
    c_2: float

    def at(self, rounds: int, beta: float, capacity: float) -> float:
        """Evaluate the bound after T = `rounds` views with β_T = `beta` and γ_T = `capacity` (nats)."""
        return self.c_1 * math.sqrt(rounds * beta * capacity) + self.c_2


def regret_bound(scene: Scene, variance: float, noise_std: float, *, polar: bool = False) -> RegretBound:
    r"""Bound for U and CS-U (and for UP with `polar`, where the step to the regret is missing).

    .. math::
        C_1' = \frac{2 d_{max}|Φ_S|}{h^2}\sqrt{\frac{3\,k(0)}{\log(1 + k(0)/σ_ε^2)}}, \qquad
        C_2' = \frac{d_{max}|Φ_S|}{h^2}\,\frac{π^2}{\sqrt3}

    without :math:`d_{max}` if `polar`. The thesis has k(0) = 1. It prints :math:`π/\sqrt3` in C₂', from
    :math:`\sum 1/t^2 = π/6`; the series is :math:`π^2/6`. The mean is taken to be at most :math:`d_{max}`.

    Args:
        scene: bounds, cone and pixel.
        variance: prior variance k(0), m².
        noise_std: standard deviation σ_ε of a measurement, metres.
        polar: whether the objective is UP.
    """
    scale = _scale(scene, polar)
    c_1 = 2.0 * scale * math.sqrt(3.0 * variance / math.log1p(variance / noise_std**2))
    return RegretBound(c_1, scale * math.pi**2 / math.sqrt(3.0))


def printed_regret_bound(scene: Scene, noise_std: float, *, polar: bool = False) -> RegretBound:
    r"""Bound as printed: k(0) = 1 and :math:`C_2' = (d_{max}|Φ_S|/h^2)\,π/\sqrt3`; its C₂' is not what the proof gives.

    Args:
        scene: bounds, cone and pixel.
        noise_std: standard deviation σ_ε of a measurement, metres.
        polar: whether the objective is UP.
    """
    scale = _scale(scene, polar)
    c_1 = 2.0 * scale * math.sqrt(3.0 / math.log1p(noise_std**-2.0))
    return RegretBound(c_1, scale * math.pi / math.sqrt(3.0))


def _scale(scene: Scene, polar: bool) -> float:
    width = 2.0 * scene.simple_half_width
    return (1.0 if polar else scene.radius_max) * width / scene.pixel_size**2
