r"""How well each measurement is predicted by all the others: a check of kernel, noise and band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.fast import fast_posterior, is_supported
from nbv_planner.gp.kernels import Kernel

# Least noise in units of the prior deviation for which enough digits are left of 1 - s²/σ², see `leave_one_out`.
_LEAST_NOISE = 1e-5


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Predictions of measurements, each from all the others.

    Attributes:
        mean: predicted radius, shape (n,), metres.
        std: standard deviation of the prediction of the measurement, its own noise included, shape (n,), metres.
        score: how far the measurement lies from the mean in units of std, shape (n,): standard normal numbers if
            kernel and noise are right, though not independent ones.
    """

    mean: FloatArray
    std: FloatArray
    score: FloatArray

    def inside(self, half_width: float) -> float:
        """Fraction of measurements within `half_width` standard deviations."""
        return float(np.mean(np.abs(self.score) <= half_width))


def leave_one_out(
    kernel: Kernel, prior_mean: float, angle: FloatArray, radius: FloatArray, noise_std: FloatArray
) -> LeaveOneOut:
    r"""Predict each measurement from all the others, from one solution with all of them.

    With the posterior mean μ and variance s² at a measured angle given *all* measurements, leaving out the one with
    radius y and noise σ there leaves

    .. math::
        y - μ_{-i} = \frac{y - μ}{1 - s^2/σ^2}, \qquad s_{-i}^2 + σ^2 = \frac{σ^2}{1 - s^2/σ^2}.

    Where the others say little about a measurement :math:`1 - s^2/σ^2` is as small as :math:`σ^2/σ_f^2`, and is known
    to about :math:`10^{-16}`. Where the noise is too small for that, or the kernel has no Markov structure, the dense
    formula serves (Rasmussen & Williams eq. 5.12), which is equal and takes the cube of n.

    Args:
        kernel: covariance function.
        prior_mean: constant prior mean m, metres.
        angle: measured angles, shape (n,), radians; repeats are welcome.
        radius: measured radii, shape (n,), metres.
        noise_std: standard deviation of each radius, shape (n,), metres, positive.
    """
    if len(angle) == 0:
        return LeaveOneOut(np.empty(0), np.empty(0), np.empty(0))
    enough = bool(noise_std.min() >= _LEAST_NOISE * np.sqrt(kernel.variance))
    if enough and is_supported(kernel, float(np.sum(noise_std**-2.0))):
        mean, std = fast_posterior(kernel, prior_mean, angle, angle, radius, noise_std)
        rest = 1.0 - (std / noise_std) ** 2
        return _predictions(radius, (radius - mean) / rest, noise_std / np.sqrt(rest))
    factor = cho_factor(kernel(angle[:, None] - angle) + np.diag(noise_std**2), lower=True)
    precision = np.diag(cho_solve(factor, np.eye(len(angle))))
    return _predictions(radius, cho_solve(factor, radius - prior_mean) / precision, precision**-0.5)


def _predictions(radius: FloatArray, error: FloatArray, std: FloatArray) -> LeaveOneOut:
    return LeaveOneOut(radius - error, std, error / std)
