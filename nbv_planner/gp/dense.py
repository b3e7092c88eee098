"""The dense Gaussian process: the oracle of all faster solvers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.kernels import Kernel

# Distinct angles that are kept: 33 MB for the covariances among them, and 16 MB with a grid of 1000
# angles.
_MOST_KEPT = 2048


class CovarianceTable:
    """Evaluates a kernel once per pair of measured angles, and of measured and grid angle.

    The numbers are those of the kernel itself, to the last bit.
    """

    def __init__(self, kernel: Kernel, grid: FloatArray) -> None:
        """Start empty, for grid angles of shape (M,), radians."""
        self._kernel, self._grid = kernel, grid
        self.clear()

    def clear(self) -> None:
        """Forget all angles."""
        self._angle = np.empty(0)
        self._gram, self._cross = np.empty((0, 0)), np.empty((0, len(self._grid)))

    def at(self, angle: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Covariances among the distinct, rising `angle` (n,), and with the grid; shapes (n, n) and
        (n, M), in m².
        """
        new = angle[~np.isin(angle, self._angle)]
        if len(self._angle) + len(new) > _MOST_KEPT:
            return self._kernel(angle[:, None] - angle), self._kernel(angle[:, None] - self._grid)
        if len(new):
            self._add(new)
        order = np.argsort(self._angle)
        row = order[np.searchsorted(self._angle, angle, sorter=order)]
        return self._gram[np.ix_(row, row)], self._cross[row]

    def _add(self, new: FloatArray) -> None:
        between = self._kernel(self._angle[:, None] - new)
        among = self._kernel(new[:, None] - new)
        self._gram = np.block([[self._gram, between], [between.T, among]])
        self._cross = np.concatenate([self._cross, self._kernel(new[:, None] - self._grid)])
        self._angle = np.concatenate([self._angle, new])


# Multiplications of one call that blocks all other threads: 25 to 100 ms.
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
    r"""Posterior mean and standard deviation of the radius (thesis eq. gp-posterior; Rasmussen &
    Williams 2.1).

    .. math::
        μ = m + K_{*n}(K_{nn} + D)^{-1}(y - m), \qquad
        σ^2 = k(0) - \operatorname{diag}\bigl(K_{*n}(K_{nn} + D)^{-1}K_{n*}\bigr), \qquad D =
        \operatorname{diag}(σ_i^2)

    for the constant prior mean m, metres, at the M query angles of `grid`, radians. Measured are
    angles, radians, which may repeat, radii and their positive standard deviations, metres, shape
    (n,) each. The `table` holds covariances of this kernel and grid, to be kept for the next call.

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
    """Solve `factor @ X = cross`, in blocks of columns if it takes long, so that other threads can
    run in between.
    """
    columns = max(1, _UNINTERRUPTED // len(factor) ** 2)
    starts = range(columns, cross.shape[1], columns)
    blocks = [
        solve_triangular(factor, b, lower=True, check_finite=False)
        for b in np.split(cross, starts, axis=1)
    ]
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


def dense_covariance(
    kernel: Kernel, grid: FloatArray, angle: FloatArray, noise_std: FloatArray
) -> FloatArray:
    r"""Posterior covariance :math:`K_{**} - K_{*n}(K_{nn} + D)^{-1}K_{n*}` at `grid`, shape (M, M),
    m².

    Arguments as in :func:`dense_posterior`.
    """
    prior = kernel(grid[:, None] - grid)
    if len(angle) == 0:
        return prior
    angle, _, variance = merge_repeats(angle, np.zeros(len(angle)), noise_std)
    factor = cholesky(
        kernel(angle[:, None] - angle) + np.diag(variance), lower=True, check_finite=False
    )
    whitened = solve_triangular(
        factor, kernel(angle[:, None] - grid), lower=True, check_finite=False
    )
    return np.asarray(prior - whitened.T @ whitened)


# Within them neighbours may be merged.
_CELLS = TWO_PI * np.arange(64) / 64


@dataclass(frozen=True, eq=False)
class DensePosterior:
    """Posterior by dense Cholesky factorisation, for every kernel, at the angles `grid`, shape
    (M,), radians.

    Measured are angles (radians), radii and standard deviations (metres), shape (n,) each. Beyond
    `most` distinct angles neighbours are merged; None keeps all: then time grows with the cube of
    their number. Later posteriors share the `table`.
    """

    kernel: Kernel
    prior_mean: float
    grid: FloatArray
    measured: tuple[FloatArray, FloatArray, FloatArray] = (np.empty(0), np.empty(0), np.empty(0))
    most: int | None = None
    table: CovarianceTable | None = None
    solver = "dense"

    @property
    def normals_per_sample(self) -> int:
        """Number of standard normals that one sample takes: M."""
        return len(self.grid)

    def adding(
        self, angle: FloatArray, radius: FloatArray, noise_std: FloatArray
    ) -> DensePosterior:
        """Add measurements: angle (radians), radius and its standard deviation (metres, positive),
        shape (n,) each.
        """
        columns = (angle, radius, noise_std)
        angle, radius, noise_std = (
            np.concatenate(pair) for pair in zip(self.measured, columns, strict=True)
        )
        if self.most is not None and len(angle) > self.most:
            data = CondensedMeasurements.none(_CELLS, self.most).adding(angle, radius, noise_std)
            angle = data.angle
            radius = data.radius
            noise_std = data.noise_std
        return dataclasses.replace(self, measured=(angle, radius, noise_std))

    preview = adding

    def mean(self) -> FloatArray:
        """Posterior mean at the grid, shape (M,), metres."""
        return self.mean_and_std()[0]

    def mean_and_std(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation at the grid, shape (M,) each, metres."""
        return dense_posterior(
            self.kernel, self.prior_mean, self.grid, *self.measured, table=self.table
        )

    def sample(self, normals: FloatArray) -> FloatArray:
        """Joint samples, shape (count, M), metres, from standard normals (count, M)."""
        return self.mean() + normals @ self._root

    @cached_property
    def _root(self) -> FloatArray:
        """Rows that combine to samples, by eigenvectors: a covariance that is singular up to
        rounding has no factor.
        """
        angle, _, noise_std = self.measured
        value, vector = eigh(dense_covariance(self.kernel, self.grid, angle, noise_std))
        return np.asarray((vector * np.sqrt(np.maximum(value, 0.0))).T)


def merge_repeats(
    angle: FloatArray, radius: FloatArray, noise_std: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Replace measurements at equal angles by their precision-weighted mean; the posterior stays
    the same.

    Returns:
        Distinct angles (rising), their radii, and the *variances* :math:`1/\sum_i σ_i^{-2}`.
    """
    distinct, group = np.unique(angle, return_inverse=True)
    weight = noise_std**-2.0
    precision = np.bincount(group, weight)
    return distinct, np.bincount(group, weight * radius) / precision, 1.0 / precision
