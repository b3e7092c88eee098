"""Stacks of n small matrices, shape (i, j, n): numpy runs over the matrices innermost."""

from __future__ import annotations

import numpy as np

from nbv_planner.geometry import FloatArray

_SIGNS = np.array([[[1.0], [-1.0]], [[-1.0], [1.0]]])


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of n small matrices, shapes (i, j, n) and (j, k, n) to (i, k, n)."""
    return np.asarray(np.einsum("ijn,jkn->ikn", left, right))


def transposed(matrix: FloatArray) -> FloatArray:
    """Transposes of n matrices, shape (i, j, n) to (j, i, n), as a view."""
    return matrix.swapaxes(0, 1)


def diagonal_of(matrix: FloatArray) -> FloatArray:
    """View of the diagonals of n matrices, shape (d, n), also if more columns follow behind them."""
    return np.asarray(np.einsum("iin->in", matrix[:, : len(matrix)]))


def inverse_of(matrix: FloatArray) -> FloatArray:
    """Inverses of n matrices of size 1, 2 or 3, shape (d, d, n).

    Cramer's rule loses the square of the condition number at size 3 (1e-7 m with two measurements of 1 mm noise side
    by side), so there the largest entry of the first column is eliminated first.
    """
    if len(matrix) == 1:
        return np.asarray(1.0 / matrix)
    inverse = np.empty(matrix.shape)
    if len(matrix) == 2:
        # [d, -b; -c, a] over the determinant, with the signs moved below the line: fewer passes.
        determinant = matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]
        return np.asarray(np.divide(matrix[::-1, ::-1].swapaxes(0, 1), _SIGNS * determinant, out=inverse))
    size = np.abs(matrix[:, 0])
    second, third = (size[1] > size[0]) & (size[1] >= size[2]), size[2] > np.maximum(size[0], size[1])
    # The rows are turned until the pivot comes first; the columns of the inverse are turned back.
    turned = np.where(second, matrix[[1, 2, 0]], np.where(third, matrix[[2, 0, 1]], matrix))
    row, column = turned[:1, 1:] / turned[0, 0], turned[1:, :1]
    rest = inverse_of(turned[1:, 1:] - column * row)
    inverse[1:, 1:] = rest
    inverse[:1, 1:] = -product(row, rest)
    inverse[1:, :1] = -product(rest, column) / turned[0, 0]
    inverse[:1, :1] = 1.0 / turned[0, 0] - product(row, inverse[1:, :1])
    return np.where(second, inverse[:, [2, 0, 1]], np.where(third, inverse[:, [1, 2, 0]], inverse))


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
