"""Stretches of the chain around the circle as conditional distributions, and how two of them
join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.chain import MaternChain


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of n small matrices, shapes (i, j, n) and (j, k, n) to (i, k, n)."""
    return np.asarray(np.einsum("ijn,jkn->ikn", left, right))


def transposed(matrix: FloatArray) -> FloatArray:
    """Transposes of n matrices, shape (i, j, n) to (j, i, n), as a view."""
    return matrix.swapaxes(0, 1)


def diagonal_of(matrix: FloatArray) -> FloatArray:
    """View of the diagonals of n matrices, shape (d, n), also if more columns follow behind
    them.
    """
    return np.asarray(np.einsum("iin->in", matrix[:, : len(matrix)]))


def solved(system: FloatArray) -> FloatArray:
    r"""Solve n small systems M X = B in place, [M | B] of shape (d, d + k, n); X is a view, shape
    (d, k, n).

    Rows are not exchanged. That is stable where M is a covariance. For :math:`I + C J` with
    covariances C and inverse covariances J of the surface's state there is no proof, but its pivots
    are tested: none was below 1.
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


B = TypeVar("B", bound="_Blocks")


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Small matrices of n stretches, side by side in `blocks`, the stretches last."""

    blocks: FloatArray

    def __len__(self) -> int:
        return int(self.blocks.shape[-1])

    def __getitem__(self: B, index: slice) -> B:
        return type(self)(self.blocks[..., index])  # a view

    def copy(self: B) -> B:
        """The same stretches, to be changed."""
        return type(self)(self.blocks.copy())

    def put(self: B, index: IntArray, other: B) -> None:
        """Replace some of the stretches by `other`."""
        self.blocks[..., index] = other.blocks

    def replaced(self: B, index: IntArray, other: B) -> B:
        """Copy with some of the stretches replaced by `other`."""
        copy = self.copy()
        copy.put(index, other)
        return copy


@dataclass(frozen=True, eq=False)
class Arcs(_Blocks):
    r"""Information of n stretches of the circle about the states at their ends.

    With x the state at the start of a stretch, z the state at its end and y the measurements in
    between,

    .. math::
        p(z \mid x, y) = N(z;\; A x + b,\; C), \qquad p(y \mid x) \propto \exp(η^T x - \tfrac12 x^T
        J x).

    A measurement at the start belongs to a stretch, one at the end to the next. The parts lie side
    by side, so that one product serves several of them, and the stretches are last, so that numpy
    runs over them innermost.

    Attributes:
        blocks: [A | b | C | J | η], shape (d, 3d + 2, n).
    """

    @classmethod
    def steps(
        cls, chain: MaternChain, gap: FloatArray, likelihood: FloatArray | None = None
    ) -> Arcs:
        """Stretches of length `gap` (n,), radians, with measurements at the start of each at most.

        The `likelihood` is their information on the state there, [J | η], shape (d, d + 1, n); None
        if there is none.
        """
        d = chain.size
        blocks = np.zeros((d, 3 * d + 2, len(gap)))
        blocks[:, :d] = chain.transition(gap)
        blocks[:, d + 1 : 2 * d + 1] = chain.noise(gap)
        if likelihood is not None:
            blocks[:, 2 * d + 1 :] = likelihood
        return cls(blocks)

    @property
    def size(self) -> int:
        """Number d of components of the state."""
        return len(self.blocks)

    @property
    def forward(self) -> FloatArray:
        """The blocks [A | b | C], shape (d, 2d + 1, n)."""
        return self.blocks[:, : 2 * self.size + 1]

    @property
    def likelihood(self) -> FloatArray:
        """The blocks [J | η], shape (d, d + 1, n)."""
        return self.blocks[:, 2 * self.size + 1 :]

    def take(self, index: IntArray) -> Arcs:
        """Copy some of the stretches (``[..., index]`` would leave n outermost in memory, which is
        far slower).
        """
        return Arcs(self.blocks.take(index, axis=-1))

    def then(self, after: Arcs) -> Arcs:
        r"""Combine each stretch (i) with the one that begins where it ends (j).

        .. math::
            W &= (I + C_i J_j)^{-1}, \quad A = A_j W A_i, \quad b = A_j W (b_i + C_i η_j) + b_j,
            \quad C = A_j W C_i A_j^T + C_j, \\
            η &= (W A_i)^T (η_j - J_j b_i) + η_i, \quad J = (W A_i)^T J_j A_i + J_i
        """
        return self.joined(after)[0]

    def met(self, after: Arcs) -> FloatArray:
        """Law of the state where each stretch meets the next, given its start: [W A | W(b + Cη) | W
        C].
        """
        d = self.size
        system = np.empty((d, 3 * d + 2, len(self)))
        np.einsum(
            "ijn,jkn->ikn",
            self.blocks[:, d + 1 : 2 * d + 1],
            after.likelihood,
            out=system[:, : d + 1],
        )
        system[:, d + 1 :] = self.forward
        system[:, 2 * d + 1] += system[:, d]  # b_i + C_i η_j
        diagonal_of(system)[:] += 1.0
        return solved(system)[:, 1:]

    def joined(self, after: Arcs) -> tuple[Arcs, Meeting]:
        """Combine as :meth:`then` does, and return how the stretches meet."""
        d = self.size
        met = self.met(after)
        transition = after.blocks[:, :d]
        own = after.blocks
        both = np.empty(self.blocks.shape)
        seen = product(own[:, 2 * d + 1 : 3 * d + 1], self.blocks[:, : d + 1])  # J_j [A_i | b_i]
        np.subtract(own[:, 3 * d + 1], seen[:, d], out=seen[:, d])
        np.einsum("jin,jkn->ikn", met[:, :d], seen, out=both[:, 2 * d + 1 :])
        both[:, 2 * d + 1 :] += self.likelihood
        reached = product(transition, met)
        reached[:, d] += own[:, d]
        both[:, : d + 1] = reached[:, : d + 1]
        np.einsum("ijn,kjn->ikn", reached[:, d + 1 :], transition, out=both[:, d + 1 : 2 * d + 1])
        both[:, d + 1 : 2 * d + 1] += own[:, d + 1 : 2 * d + 1]
        return Arcs(both), Meeting(met, reached, both[:, d + 1 : 2 * d + 1])


@dataclass(frozen=True, eq=False)
class Meeting:
    """How n pairs of stretches i and j meet, with W as in :meth:`Arcs.then`."""

    #: law of the state m in between given the start, [W A | W(b + Cη) | W C], shape (d, 2d + 1, n).
    met: FloatArray
    #: law of the end, and its covariance with m: [A | b | A_j W C], shape (d, 2d + 1, n).
    reached: FloatArray
    spread: FloatArray  #: covariance C of the end given the start, shape (d, d, n).

    @classmethod
    def together(cls, parts: Sequence[Meeting]) -> Meeting:
        """All pairs of some lists, one behind the other."""
        names = ("met", "reached", "spread")
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names)
        )

    def bridges(self, rows: int) -> Bridges:
        r"""Law of the first `rows` components of m given the states x, z at both ends.

        With :math:`D = W C_i` the covariance of m given the start and :math:`K = D A_j^T C^{-1}`,
        where A, b, C are the blocks of the combined stretch,

        .. math::
            m \mid x, z \sim N\bigl((W A_i - K A)\,x + K z + W(b_i + C_i η_j) - K b,\; D - K A_j
            D\bigr).
        """
        d = len(self.met)
        kept = slice(len(self.met) + 1, len(self.met) + 1 + rows)
        gain = transposed(solved(np.concatenate([self.spread, self.reached[:, kept]], axis=1)))
        middle = self.met[:rows] - product(gain, self.reached)
        return Bridges(np.concatenate([middle[:, :d], gain, middle[:, d : d + 1 + rows]], axis=1))


@dataclass(frozen=True, eq=False)
class Bridges(_Blocks):
    r"""States m inside n stretches given the states x, z at their ends:
    :math:`m \mid x, z \sim N(G [x; z] + g, P)`.

    Attributes:
        blocks: [G | g | P] for the first e components of m, shape (e, 2d + 1 + e, n).
    """

    @property
    def rows(self) -> int:
        """Number e of components of m."""
        return len(self.blocks)

    @property
    def weight(self) -> FloatArray:
        """G, shape (e, 2d, n)."""
        return self.blocks[:, : -1 - self.rows]

    @property
    def offset(self) -> FloatArray:
        """g, shape (e, n)."""
        return self.blocks[:, -1 - self.rows]

    @property
    def covariance(self) -> FloatArray:
        """P, shape (e, e, n)."""
        return self.blocks[:, -self.rows :]
