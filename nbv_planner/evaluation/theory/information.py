"""Information gain of a set of measurements, and its greatest value over T of them (thesis ch. 6.1.2)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.kernels import Kernel


def information_gain(kernel: Kernel, angle: FloatArray, noise_std: float) -> float:
    r"""Mutual information of the measurements and the surface, nats (lemma 2-5).

    .. math:: I = \tfrac12 \log\det\bigl(\mathbb{1} + σ_ε^{-2} K\bigr)

    The thesis prints a sum over t in front of the determinant (def. information-capacity); it is in the determinant.

    Args:
        kernel: covariance function.
        angle: measured angles, shape (n,), radians; repeats count.
        noise_std: standard deviation σ_ε of each measurement, metres.
    """
    gram = kernel(angle[:, None] - angle) / noise_std**2
    return 0.5 * float(np.linalg.slogdet(np.eye(len(angle)) + gram)[1])


@lru_cache(maxsize=32)
def greedy_capacity(kernel: Kernel, rounds: int, noise_std: float, grid_size: int = 500) -> tuple[float, ...]:
    r"""Information gains of T = 1 … `rounds` measurements chosen greedily on a uniform grid, nats.

    Each is taken where the variance is largest. The gain is submodular, so this is between
    :math:`(1-1/e)\,γ_T` and :math:`γ_T` of the grid (Nemhauser, Wolsey & Fisher 1978; Krause & Guestrin 2005).

    Args:
        kernel: covariance function.
        rounds: greatest T.
        noise_std: standard deviation σ_ε of each measurement, metres.
        grid_size: number of angles to choose from.
    """
    grid = np.arange(grid_size) * (TWO_PI / grid_size)
    variance, rows = np.full(grid_size, kernel.variance), np.empty((rounds, grid_size))
    gain, gains = 0.0, []
    for t in range(rounds):
        best = int(np.argmax(variance))
        gain += 0.5 * math.log1p(variance[best] / noise_std**2)
        gains.append(gain)
        covariance = kernel(grid - grid[best]) - rows[:t, best] @ rows[:t]
        rows[t] = covariance / math.sqrt(variance[best] + noise_std**2)
        variance = np.maximum(variance - rows[t] ** 2, 0.0)
    return tuple(gains)
