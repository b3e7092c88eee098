r"""Upper bounds of the information capacity :math:`γ_T` of the summed Matérn kernel (thesis lemma 2-6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import TWO_PI
from nbv_planner.gp.kernels import PeriodicMatern, fourier_coefficients


@dataclass(frozen=True)
class CapacityConstants:
    r"""Constants of lemma 2-6, for the kernel scaled to k(0) = 1 and the noise scaled with it.

    Attributes:
        c_1: normalises the spectrum, so that it sums to k(0).
        c_2: with the spectrum written in :math:`m^2`.
        c_3: :math:`λ_m \le C_3 m^{-(2ν+1)}`.
        c_4: :math:`(C_3/σ_ε^2)^{1/(2ν+1)}`.
        power: :math:`2ν + 1`.
        noise_var: :math:`σ_ε^2/σ_f^2`.
    """

    c_1: float
    c_2: float
    c_3: float
    c_4: float
    power: float
    noise_var: float

    def bound(self, rounds: float) -> float:
        r"""Bound :math:`C_4 T^{1/(2ν+1)} L^{2ν/(2ν+1)} + L` with :math:`L = \log(1 + T/σ_ε^2)`, nats."""
        logarithm = math.log1p(rounds / self.noise_var)
        return float(self.c_4 * rounds ** (1.0 / self.power) * logarithm ** (1.0 - 1.0 / self.power) + logarithm)


def capacity_constants(kernel: PeriodicMatern, noise_std: float) -> CapacityConstants:
    r"""Constants under which the bound of lemma 2-6 is proved.

    With the spectrum of the kernel, :math:`S(m) = C_1(2ν/l^2 + m^2)^{-(ν+1/2)}` (:func:`fourier_coefficients`). The
    eigenfunctions for the uniform probability on the circle are 1, √2 cos mφ and √2 sin mφ, squares at most 2, so each
    S(m) counts twice; in falling order the j-th eigenvalue is at most :math:`S((j-1)/2)`, hence

    .. math:: C_2 = 2 \cdot 4^{ν+1/2} C_1, \qquad C_3 = C_2 \Bigl(1 + \frac{l^2}{8ν}\Bigr)^{ν+1/2}.

    Args:
        kernel: prior; scaled to k(0) = 1 here, as the lemma asks for.
        noise_std: standard deviation σ_ε of a measurement, metres.
    """
    nu, l_squared = kernel.order + 0.5, kernel.length_scale**2
    c_1 = _normaliser(kernel.smoothness, kernel.length_scale) * (2.0 * nu / l_squared) ** (nu + 0.5)
    return _constants(kernel, noise_std, c_1, 2.0 * 4.0 ** (nu + 0.5) * c_1, 1.0 + l_squared / (8.0 * nu))


def printed_capacity_constants(kernel: PeriodicMatern, noise_std: float) -> CapacityConstants:
    r"""Constants in the thesis's convention.

    .. math::
        S(m) = C_1\Bigl(\frac{2ν}{l^2} + \bigl(\tfrac{m}{2π}\bigr)^2\Bigr)^{-(ν+1/2)}, \qquad
        C_2 = 2 C_1 (4π^2)^{ν+1/2}, \qquad C_3 = C_2\Bigl(1 + \frac{l^2}{8π^2ν}\Bigr)^{ν+1/2}

    with :math:`C_1` such that this series sums to k(0). It is the spectrum of a kernel with length scale l/2π, and the
    sines are not counted, so this is not what the proof gives for `kernel` (for l = 0.2 rad it is the larger bound).

    Args:
        kernel: prior; scaled to k(0) = 1 here, as the lemma asks for; l at least 2π/1000.
        noise_std: standard deviation σ_ε of a measurement, metres.

    Raises:
        SettingError: the length scale is too short.
    """
    nu, l_squared = kernel.order + 0.5, kernel.length_scale**2
    c_1 = _normaliser(kernel.smoothness, kernel.length_scale / TWO_PI) * (2.0 * nu / l_squared) ** (nu + 0.5)
    c_2 = 2.0 * c_1 * (4.0 * math.pi**2) ** (nu + 0.5)
    return _constants(kernel, noise_std, c_1, c_2, 1.0 + l_squared / (8.0 * math.pi**2 * nu))


def spectral_capacity_bound(kernel: PeriodicMatern, rounds: int, noise_std: float) -> float:
    r"""Tightest bound that the argument behind lemma 2-6 gives, from the coefficients themselves, nats.

    .. math::
        γ_T \le \min_M \frac{D}{2}\log\Bigl(1 + \frac{T\,k(0)}{Dσ_ε^2}\Bigr)
            + \frac{T}{2σ_ε^2}\,2\sum_{m>M} s_m, \qquad D = 2M + 1

    (Vakili, Khezeli & Picheny 2021, theorem 3): the first D eigenfunctions are a linear model of D features, the rest
    of the kernel has the constant variance of the tail.

    Args:
        kernel: prior.
        rounds: number T of measurements.
        noise_std: standard deviation σ_ε of a measurement, metres.
    """
    most = 4 * rounds + 64
    s, noise_var = fourier_coefficients(kernel, most), noise_std**2
    kept = s[0] + 2.0 * np.concatenate([[0.0], np.cumsum(s[1:])])
    features = 2.0 * np.arange(most) + 1.0
    linear = 0.5 * features * np.log1p(rounds * kernel.variance / (features * noise_var))
    tail = np.maximum(kernel.variance - kept, 0.0)
    return float(np.min(linear + 0.5 * rounds / noise_var * tail))


def _normaliser(smoothness: str, length_scale: float) -> float:
    """Coefficient s_0 of the kernel with k(0) = 1."""
    return float(fourier_coefficients(PeriodicMatern(smoothness, length_scale, 1.0), 1)[0])


def _constants(kernel: PeriodicMatern, noise_std: float, c_1: float, c_2: float, ratio: float) -> CapacityConstants:
    power, noise_var = 2.0 * kernel.order + 2.0, noise_std**2 / kernel.variance
    c_3 = c_2 * ratio ** (0.5 * power)
    return CapacityConstants(c_1, c_2, c_3, (c_3 / noise_var) ** (1.0 / power), power, noise_var)
