"""Stacks of n small matrices, shape (i, j, n): numpy runs over the matrices innermost."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of n small matrices, shapes (i, j, n) and (j, k, n) to (i, k, n)."""
    return np.asarray(np.einsum("ijn,jkn->ikn", left, right))


def transposed(matrix: FloatArray) -> FloatArray:
    """Transposes of n matrices, shape (i, j, n) to (j, i, n), as a view."""
    return matrix.swapaxes(0, 1)


def diagonal_of(matrix: FloatArray) -> FloatArray:
    """View of the diagonals of n matrices, shape (d, n), also if more columns follow behind them."""
    return np.asarray(np.einsum("iin->in", matrix[:, : len(matrix)]))


def solved(system: FloatArray) -> FloatArray:
    r"""Solve n small systems M X = B in place, [M | B] of shape (d, d + k, n); X is a view, shape (d, k, n).

    Rows are not exchanged. That needs no care where M is a covariance. For :math:`I + C J` with covariances C and
    inverse covariances J of the surface's state there is no proof, but its pivots are tested: none was below 1.
    """
    d = len(system)
    for k in range(d):
        row = system[k, k + 1 :]
        row /= system[k, k]
        for others in (slice(0, k), slice(k + 1, d)):
            if others.stop > others.start:
                system[others, k + 1 :] -= system[others, k, None] * row
    return system[:, d:]


def inverse_of(matrix: FloatArray) -> FloatArray:
    """Inverses of n matrices that :func:`solved` takes, shape (d, d, n)."""
    unit = np.broadcast_to(np.eye(len(matrix))[..., None], matrix.shape)
    return solved(np.concatenate([matrix, unit], axis=1))


def root_of(covariance: FloatArray) -> FloatArray:
    """Lower triangular roots L of n covariances, L Lᵀ each, shape (d, d, n).

    A pivot that rounds to zero or below stands for a direction without spread; its column is zero.
    """
    d = len(covariance)
    root = np.zeros_like(covariance)
    for j in range(d):
        rest = covariance[j:, j] - np.einsum("ikn,kn->in", root[j:, :j], root[j, :j])
        pivot = np.sqrt(np.maximum(rest[0], 0.0))
        root[j:, j] = np.divide(rest, pivot, out=np.zeros_like(rest), where=pivot > 0.0)
    return root
