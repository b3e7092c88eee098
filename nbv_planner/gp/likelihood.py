r"""Log marginal likelihood in linear time: the evidence of neighbouring stretches, combined to the whole circle."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.arcs import Arcs
from nbv_planner.gp.cells import likelihood_of
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.gp.markov import MaternChain
from nbv_planner.gp.stacks import diagonal_of, inverse_of, product, transposed

# Step of the central differences in the logarithm of a hyper-parameter; their error is of its fourth power.
_LOG_STEP = 1e-2


@dataclass(frozen=True)
class LikelihoodGradient:
    """Derivatives of the log marginal likelihood.

    Attributes:
        log_length_scale: by the logarithm of the length scale.
        log_kernel_std: by the logarithm of the prior standard deviation.
        prior_mean: by the prior mean, 1/m.
    """

    log_length_scale: float
    log_kernel_std: float
    prior_mean: float


def log_likelihood(
    kernel: PeriodicMatern, prior_mean: float, angle: FloatArray, radius: FloatArray, noise_std: FloatArray
) -> float:
    """Log marginal likelihood of measurements, equal to the dense one (Rasmussen & Williams eq. 2.30), in O(n log n).

    Args:
        kernel: covariance function, with ν = 1/2, 3/2 or 5/2.
        prior_mean: constant prior mean m, metres.
        angle: measured angles, shape (n,), radians; repeats are welcome.
        radius: measured radii, shape (n,), metres.
        noise_std: standard deviation of each radius, shape (n,), metres, positive.
    """
    data = CondensedMeasurements.none(np.zeros(1), len(angle)).adding(angle, radius, noise_std)
    return condensed_log_likelihood(kernel, prior_mean, data)


def condensed_log_likelihood(kernel: PeriodicMatern, prior_mean: float, data: CondensedMeasurements) -> float:
    r"""Log marginal likelihood of condensed measurements; exact if no neighbours have been merged.

    Measured with 8192 angles left of 20 000 (100 000) random ones of 10 cm noise and l from 0.1 to 1, it is off by 0.2
    (2.3) for ν = 3/2 and 0.02 (0.2) for 5/2; for ν = 1/2, by up to thousands, it is of no use.

    The sums kept do not depend on the kernel, so one set serves all hyper-parameters. With the process closed to a
    circle, the integral over the state where it begins is to be divided by that without measurements,
    :math:`|I - A(2π)|^{-1} = (1 - e^{-2πλ})^{-d}`.
    """
    if len(data) == 0:
        return 0.0
    chain = MaternChain.of(kernel)
    likelihood = likelihood_of(chain, data, prior_mean)
    level = Arcs.steps(chain, np.diff(data.angle, append=data.angle[0] + TWO_PI), likelihood)
    evidence = chain.size * math.log(-math.expm1(-TWO_PI * chain.rate))
    while len(level) > 1:
        first, second = level[0 : len(level) - 1 : 2], level[1::2]
        evidence += _meeting_evidence(first, second)
        pairs = first.then(second)
        level = pairs.followed_by(level[-1:]) if len(level) % 2 else pairs
    evidence += _closing_evidence(level)
    misfit = data.scatter + float(data.precision @ (data.radius - prior_mean) ** 2)
    return evidence - 0.5 * (misfit + data.log_variance + data.count * math.log(TWO_PI))


def likelihood_gradient(kernel: PeriodicMatern, prior_mean: float, data: CondensedMeasurements) -> LikelihoodGradient:
    r"""Derivatives of :func:`condensed_log_likelihood` by central differences in the logarithms.

    .. math:: f'(x) \approx \frac{8\,(f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))}{12 h}

    with h = 0.01 and an error of order h⁴. In the prior mean the likelihood is quadratic, where the plain difference
    is exact for any step.
    """

    def at(length: float = 0.0, std: float = 0.0) -> float:
        scaled = dataclasses.replace(
            kernel, length_scale=kernel.length_scale * math.exp(length), kernel_std=kernel.kernel_std * math.exp(std)
        )
        return condensed_log_likelihood(scaled, prior_mean, data)

    def derivative(name: str) -> float:
        near, far = (at(**{name: k * _LOG_STEP}) - at(**{name: -k * _LOG_STEP}) for k in (1, 2))
        return (8.0 * near - far) / (12.0 * _LOG_STEP)

    step = kernel.kernel_std
    above, below = (condensed_log_likelihood(kernel, prior_mean + shift, data) for shift in (step, -step))
    return LikelihoodGradient(derivative("length"), derivative("std"), (above - below) / (2.0 * step))


def _meeting_evidence(first: Arcs, second: Arcs) -> float:
    r"""What the integrals over the states where stretches i and j meet add to the logarithm of the evidence.

    .. math::
        -\tfrac12\log|I + C_i J_j| + \tfrac12 η_j^T m + \tfrac12 (η_j - J_j b_i)^T (m - D η_j), \qquad
        D = (I + C_i J_j)^{-1} C_i, \quad m = (I + C_i J_j)^{-1}(b_i + C_i η_j)
    """
    d = len(first.forward)
    met = first.met(second)
    score, offset = second.likelihood[:, d], first.forward[:, d]
    left = score - np.einsum("ijn,jn->in", second.likelihood[:, :d], offset)
    alone = met[:, d] - np.einsum("ijn,jn->in", met[:, d + 1 :], score)
    spread = product(first.forward[:, d + 1 :], second.likelihood[:, :d])
    diagonal_of(spread)[:] += 1.0
    volume = np.linalg.slogdet(spread.transpose(2, 0, 1))[1]
    return float(0.5 * (np.sum(score * met[:, d]) + np.sum(left * alone) - np.sum(volume)))


def _closing_evidence(arcs: Arcs) -> float:
    r"""Logarithm of the integral of one stretch, closed to a circle, over the state where it begins and ends.

    .. math::
        \log\int N(x;\; Ax + b,\; C)\, e^{η^T x - x^T J x/2}\,dx =
        -\tfrac12\log|C|\,|Λ| + \tfrac12 h^T Λ^{-1} h - \tfrac12 b^T C^{-1} b, \quad
        Λ = R^T C^{-1} R + J, \quad h = R^T C^{-1} b + η, \quad R = I - A
    """
    d = len(arcs.forward)
    rest = np.eye(d)[..., None] - arcs.forward[:, :d]
    offset, spread = arcs.forward[:, d : d + 1], arcs.forward[:, d + 1 :]
    precision = inverse_of(spread)
    joint = product(transposed(rest), product(precision, rest)) + arcs.likelihood[:, :d]
    pull = product(transposed(rest), product(precision, offset)) + arcs.likelihood[:, d:]
    explained = np.sum(pull * product(inverse_of(joint), pull))
    moved = np.sum(offset * product(precision, offset))
    volume = sum(np.linalg.slogdet(matrix[..., 0])[1] for matrix in (spread, joint))
    return float(0.5 * (explained - moved - volume))
