r"""Exact posterior on a grid by one dense Cholesky factorisation: the oracle of the fast one."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.covariances import CovarianceTable
from nbv_planner.gp.kernels import Kernel

# Multiplications of one call that keeps all other threads waiting: 25 to 100 ms.
_UNINTERRUPTED = 10**9


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
    factor = _factor(gram)
    weights = cho_solve((factor, True), radius - prior_mean, check_finite=False)
    whitened = _whitened(factor, cross)
    explained = np.einsum("ij,ij->j", whitened, whitened)
    return prior_mean + weights @ cross, np.sqrt(np.maximum(kernel.variance - explained, 0.0))


def _factor(gram: FloatArray) -> FloatArray:
    """Lower Cholesky factor; `gram` may be overwritten."""
    if len(gram) ** 3 > 3 * _UNINTERRUPTED:
        return np.linalg.cholesky(gram)  # unlike SciPy's, it lets other threads run meanwhile
    return np.asarray(cholesky(gram, lower=True, overwrite_a=True, check_finite=False))


def _whitened(factor: FloatArray, cross: FloatArray) -> FloatArray:
    """Solve `factor @ X = cross`, in blocks of columns if it takes long, so that other threads can run in between."""
    columns = max(1, _UNINTERRUPTED // len(factor) ** 2)
    starts = range(columns, cross.shape[1], columns)
    blocks = [solve_triangular(factor, b, lower=True, check_finite=False) for b in np.split(cross, starts, axis=1)]
    return np.asarray(blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1))


def dense_covariance(kernel: Kernel, grid: FloatArray, angle: FloatArray, noise_std: FloatArray) -> FloatArray:
    r"""Posterior covariance :math:`K_{**} - K_{*n}(K_{nn} + D)^{-1}K_{n*}` at `grid`, shape (M, M), m².

    Arguments as in :func:`dense_posterior`.
    """
    prior = kernel(grid[:, None] - grid)
    if len(angle) == 0:
        return prior
    angle, _, variance = merge_repeats(angle, np.zeros(len(angle)), noise_std)
    factor = cholesky(kernel(angle[:, None] - angle) + np.diag(variance), lower=True, check_finite=False)
    whitened = solve_triangular(factor, kernel(angle[:, None] - grid), lower=True, check_finite=False)
    return np.asarray(prior - whitened.T @ whitened)


def dense_log_likelihood(
    kernel: Kernel, prior_mean: float, angle: FloatArray, radius: FloatArray, noise_std: FloatArray
) -> float:
    r"""Log marginal likelihood of all measurements (Rasmussen & Williams eq. 2.30).

    .. math::
        \log p(y) = -\tfrac12 (y-m)^T (K + D)^{-1} (y-m) - \tfrac12 \log|K + D| - \tfrac n2 \log 2π

    Arguments as in :func:`dense_posterior`; repeats are not merged.
    """
    factor = cholesky(kernel(angle[:, None] - angle) + np.diag(noise_std**2), lower=True, check_finite=False)
    whitened = solve_triangular(factor, radius - prior_mean, lower=True, check_finite=False)
    return float(
        -0.5 * whitened @ whitened - np.log(np.diag(factor)).sum() - 0.5 * len(angle) * np.log(2.0 * np.pi)
    )


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
