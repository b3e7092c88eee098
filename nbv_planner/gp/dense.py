r"""Exact posterior on a grid by one dense Cholesky factorisation."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.covariances import CovarianceTable
from nbv_planner.gp.kernels import Kernel


def dense_posterior(
    kernel: Kernel,
    prior_mean: float,
    grid: FloatArray,
    angle: FloatArray,
    radius: FloatArray,
    noise_std: FloatArray,
    *,
    table: CovarianceTable | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Posterior mean and standard deviation of the radius (thesis eq. gp-posterior; Rasmussen & Williams 2.1).

    .. math::
        μ = m + K_{*n}(K_{nn} + D)^{-1}(y - m), \qquad
        σ^2 = k(0) - \operatorname{diag}\bigl(K_{*n}(K_{nn} + D)^{-1}K_{n*}\bigr), \qquad D = \operatorname{diag}(σ_i^2)

    Args:
        kernel: covariance function.
        prior_mean: constant prior mean m, metres.
        grid: query angles, shape (M,), radians.
        angle: measured angles, shape (n,), radians; repeats are welcome.
        radius: measured radii, shape (n,), metres.
        noise_std: standard deviation of each radius, shape (n,), metres, positive.
        table: covariances of this kernel and grid, to be kept for the next call.

    Returns:
        Mean and standard deviation at `grid`, shape (M,) each, metres.
    """
    if len(angle) == 0:
        return np.full(len(grid), prior_mean), np.full(len(grid), np.sqrt(kernel.variance))
    angle, radius, variance = merge_repeats(angle, radius, noise_std)
    gram, cross = (table or CovarianceTable(kernel, grid)).at(angle)
    gram[np.diag_indices_from(gram)] += variance
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    weights = cho_solve((factor, True), radius - prior_mean, check_finite=False)
    whitened = solve_triangular(factor, cross, lower=True, check_finite=False)
    explained = np.einsum("ij,ij->j", whitened, whitened)
    return prior_mean + weights @ cross, np.sqrt(np.maximum(kernel.variance - explained, 0.0))


def merge_repeats(
    angle: FloatArray, radius: FloatArray, noise_std: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Replace measurements at equal angles by their precision-weighted mean; the posterior stays the same.

    Returns:
        Distinct angles (rising), their radii, and the *variances* :math:`1/\sum_i σ_i^{-2}`.
    """
    distinct, group = np.unique(angle, return_inverse=True)
    weight = noise_std**-2.0
    precision = np.bincount(group, weight)
    return distinct, np.bincount(group, weight * radius) / precision, 1.0 / precision
