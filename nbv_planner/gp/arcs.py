r"""Stretches of the circle as associative elements: what a stretch tells about the states at its two ends.

Särkkä & García-Fernández 2021 combine such elements for parallel Kalman smoothing; here the chain is closed to a
circle. All of it works on covariances of the forward steps, never on their inverses, so that gaps of 1e-15 rad or 0
do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.markov import MaternChain

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Arcs:
    r"""What n stretches of the circle tell about the states at their ends.

    With x the state at the start of a stretch, z the state at its end and y the measurements in between,

    .. math::
        p(z \mid x, y) = N(z;\; A x + b,\; C), \qquad p(y \mid x) \propto \exp(η^T x - \tfrac12 x^T J x).

    A measurement at the start belongs to a stretch, one at the end to the next. The parts lie side by side, so that
    one product serves several of them, and the stretches are last, so that numpy runs over them innermost.

    Attributes:
        forward: the blocks [A | b | C], shape (d, 2d + 1, n).
        likelihood: the blocks [J | η], shape (d, d + 1, n).
    """

    forward: FloatArray
    likelihood: FloatArray

    @classmethod
    def steps(cls, chain: MaternChain, gap: FloatArray, precision: FloatArray, score: FloatArray) -> Arcs:
        """Stretches of length `gap` (n,) with one measurement at the start of each, or none (precision 0).

        Args:
            chain: law of the state.
            gap: lengths, shape (n,), radians.
            precision: 1/σ² of each measurement, shape (n,), 1/m².
            score: y/σ² of each measurement, shape (n,), 1/m.
        """
        d, n = chain.size, len(gap)
        likelihood = np.zeros((d, d + 1, n))
        likelihood[0, 0], likelihood[0, d] = precision, score
        offset = np.zeros((d, 1, n))
        return cls(np.concatenate([chain.transition(gap), offset, chain.noise(gap)], axis=1), likelihood)

    @classmethod
    def nothing(cls, d: int, n: int) -> Arcs:
        """Stretches of no length without a measurement: the neutral element of :meth:`then`."""
        forward, likelihood = np.zeros((d, 2 * d + 1, n)), np.zeros((d, d + 1, n))
        _diagonal(forward)[:] = 1.0
        return cls(forward, likelihood)

    def __len__(self) -> int:
        """Return the number of stretches."""
        return int(self.forward.shape[-1])

    def __getitem__(self, index: slice) -> Arcs:
        """Some of the stretches, as a view."""
        return Arcs(self.forward[..., index], self.likelihood[..., index])

    def take(self, index: IntArray) -> Arcs:
        """Copy some of the stretches (``[..., index]`` would leave n outermost in memory, which is far slower)."""
        return Arcs(self.forward.take(index, axis=-1), self.likelihood.take(index, axis=-1))

    def put(self, index: IntArray, other: Arcs) -> None:
        """Replace some of the stretches by `other`."""
        self.forward[..., index], self.likelihood[..., index] = other.forward, other.likelihood

    def followed_by(self, other: Arcs) -> Arcs:
        """Both lists of stretches, `other` behind this one."""
        return Arcs(
            np.concatenate([self.forward, other.forward], axis=-1),
            np.concatenate([self.likelihood, other.likelihood], axis=-1),
        )

    def then(self, after: Arcs) -> Arcs:
        r"""Combine each stretch (i) with the one that begins where it ends (j).

        .. math::
            W &= (I + C_i J_j)^{-1}, \quad A = A_j W A_i, \quad b = A_j W (b_i + C_i η_j) + b_j, \quad
            C = A_j W C_i A_j^T + C_j, \\
            η &= (W A_i)^T (η_j - J_j b_i) + η_i, \quad J = (W A_i)^T J_j A_i + J_i
        """
        d = self.forward.shape[0]
        gained = _product(self.forward[:, d + 1 :], after.likelihood)  # C_i [J_j | η_j]
        moved = self.forward.copy()
        moved[:, d] += gained[:, d]
        _diagonal(gained)[:] += 1.0
        moved = _product(_inverse(gained[:, :d]), moved)  # W [A_i | b_i + C_i η_j | C_i]
        seen = _product(after.likelihood[:, :d], self.forward[:, : d + 1])  # J_j [A_i | b_i]
        seen[:, d] = after.likelihood[:, d] - seen[:, d]
        likelihood = _product(moved[:, :d].swapaxes(0, 1), seen)
        likelihood += self.likelihood
        transition = after.forward[:, :d]
        forward = _product(transition, moved)
        forward[:, d + 1 :] = _product(forward[:, d + 1 :], transition.swapaxes(0, 1))
        forward[:, d:] += after.forward[:, d:]
        return Arcs(forward, likelihood)


def marginals(cells: Arcs, prior_variance: float) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of f where each cell begins, shape (n,) each; the cells cover the circle."""
    mean, variance = _close(_around(cells))
    # Outside [0, k(0)] by rounding only: at angles without information the variance is k(0) up to the last digits.
    return mean, np.asarray(np.sqrt(np.clip(variance, 0.0, prior_variance)))


def _around(cells: Arcs) -> Arcs:
    """Whole circles: for each cell the stretch from its start once around and back to its start.

    Upwards, neighbours combine in pairs until two halves are left; downwards, each stretch gets its complement,
    the way from its end around the circle to its start. The cells are kept in bit-reversed order: the first and the
    second of each pair then lie in the two halves of the array, at every level of the tree.
    """
    d, n = cells.forward.shape[0], len(cells)
    order: IntArray = np.array([0, 1], dtype=np.intp)
    while len(order) < n:
        order = np.concatenate([2 * order, 2 * order + 1])
    level = leaves = cells.followed_by(Arcs.nothing(d, len(order) - n)).take(order)
    halves = []
    while len(level) > 2:
        middle = len(level) // 2
        halves.append((level[:middle], level[middle:]))
        level = level[:middle].then(level[middle:])
    outside = level[1:].followed_by(level[:1])  # two halves of the circle: each is the complement of the other
    for first, second in reversed(halves):
        outside = second.followed_by(outside).then(outside.followed_by(first))
    return leaves.then(outside).take(np.argsort(order)[:n])


def _close(circle: Arcs) -> tuple[FloatArray, FloatArray]:
    r"""Mean and variance of f where a whole circle begins and ends, shape (n,) each.

    Closed by x = z, the two factors of :class:`Arcs` leave

    .. math::
        Λ = (I-A)^T C^{-1} (I-A) + J, \qquad E[x] = Λ^{-1}\bigl((I-A)^T C^{-1} b + η\bigr).
    """
    d = circle.forward.shape[0]
    rest = -circle.forward[:, : d + 1]  # [I - A | b], once the signs are right
    _diagonal(rest)[:] += 1.0
    rest[:, d] *= -1.0
    weighted = _product(_inverse(circle.forward[:, d + 1 :]), rest)
    joint = _product(rest[:, :d].swapaxes(0, 1), weighted) + circle.likelihood
    covariance = _inverse(joint[:, :d])
    return np.einsum("jn,jn->n", covariance[0], joint[:, d]), covariance[0, 0]


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of n small matrices, shapes (i, j, n) and (j, k, n) to (i, k, n)."""
    return np.asarray(np.einsum("ijn,jkn->ikn", left, right))


def _inverse(matrix: FloatArray) -> FloatArray:
    """Inverses of n matrices of size 1, 2 or 3, shape (d, d, n); numpy runs over the matrices.

    Cramer's rule loses the square of the condition number at size 3 (1e-7 m with two measurements of 1 mm noise side
    by side), so there the largest entry of the first column is eliminated first.
    """
    if len(matrix) == 1:
        return np.asarray(1.0 / matrix)
    inverse = np.empty_like(matrix)
    if len(matrix) == 2:
        (a, b), (c, d) = matrix
        inverse[0, 0], inverse[0, 1], inverse[1, 0], inverse[1, 1] = d, -b, -c, a
        inverse /= a * d - b * c
        return inverse
    size = np.abs(matrix[:, 0])
    second, third = (size[1] > size[0]) & (size[1] >= size[2]), size[2] > np.maximum(size[0], size[1])
    # The rows are turned until the pivot comes first; the columns of the inverse are turned back.
    turned = np.where(second, matrix[[1, 2, 0]], np.where(third, matrix[[2, 0, 1]], matrix))
    row, column = turned[:1, 1:] / turned[0, 0], turned[1:, :1]
    rest = _inverse(turned[1:, 1:] - column * row)
    inverse[1:, 1:] = rest
    inverse[:1, 1:] = -_product(row, rest)
    inverse[1:, :1] = -_product(rest, column) / turned[0, 0]
    inverse[:1, :1] = 1.0 / turned[0, 0] - _product(row, inverse[1:, :1])
    return np.where(second, inverse[:, [2, 0, 1]], np.where(third, inverse[:, [1, 2, 0]], inverse))


def _diagonal(matrix: FloatArray) -> FloatArray:
    """View of the diagonals of n matrices, shape (d, n), also if more columns follow behind them."""
    return np.asarray(np.einsum("iin->in", matrix[:, : len(matrix)]))
