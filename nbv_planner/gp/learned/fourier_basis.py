r"""Real Fourier basis on the circle, in which every stationary periodic kernel is diagonal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray


@dataclass(frozen=True)
class FourierBasis:
    r"""Functions :math:`ψ = (1, \sqrt2\cos φ, …, \sqrt2\cos Kφ, \sqrt2\sin φ, …, \sqrt2\sin Kφ)`.

    A kernel :math:`k(r) = \sum_{m\in\mathbb Z} s_m e^{imr}` makes the coefficients of these functions independent with
    the variances :math:`s_m`. What lies beyond K is left out: the variance :math:`2\sum_{m>K} s_m`.

    Attributes:
        order: highest frequency K.
    """

    order: int

    @property
    def size(self) -> int:
        """Number of functions 2K + 1."""
        return 2 * self.order + 1

    @property
    def frequency(self) -> IntArray:
        """Frequency m of each function, shape (2K + 1,)."""
        positive = np.arange(1, self.order + 1)
        return np.concatenate([[0], positive, positive])

    def at(self, angle: FloatArray) -> FloatArray:
        """Values at each angle, shape (n, 2K + 1).

        Args:
            angle: shape (n,), radians.
        """
        # Powers of one complex exponential: far cheaper than a sine and a cosine for each frequency.
        powers = np.cumprod(np.repeat(np.exp(1j * np.asarray(angle))[:, None], self.order, axis=1), axis=1)
        values = np.empty((len(powers), self.size))
        values[:, 0] = 1.0
        values[:, 1 : self.order + 1] = np.sqrt(2.0) * powers.real
        values[:, self.order + 1 :] = np.sqrt(2.0) * powers.imag
        return values
