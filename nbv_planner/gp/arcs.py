r"""Stretches of the circle as associative elements: what a stretch tells about the states at its two ends.

Särkkä & García-Fernández 2021 combine such elements for parallel Kalman smoothing; here the chain is closed to a
circle. All of it works on covariances of the forward steps, never on their inverses, so that gaps of 1e-15 rad or 0
do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.markov import MaternChain
from nbv_planner.gp.stacks import diagonal_of, product, solved, transposed


@dataclass(frozen=True, eq=False)
class Arcs:
    r"""What n stretches of the circle tell about the states at their ends.

    With x the state at the start of a stretch, z the state at its end and y the measurements in between,

    .. math::
        p(z \mid x, y) = N(z;\; A x + b,\; C), \qquad p(y \mid x) \propto \exp(η^T x - \tfrac12 x^T J x).

    A measurement at the start belongs to a stretch, one at the end to the next. The parts lie side by side, so that
    one product serves several of them, and the stretches are last, so that numpy runs over them innermost.

    Attributes:
        blocks: [A | b | C | J | η], shape (d, 3d + 2, n).
    """

    blocks: FloatArray

    @classmethod
    def steps(cls, chain: MaternChain, gap: FloatArray, likelihood: FloatArray | None = None) -> Arcs:
        """Stretches of length `gap` (n,), radians, with measurements at the start of each at most.

        Args:
            chain: law of the state.
            gap: lengths, shape (n,), radians.
            likelihood: what the measurements say about the state at the start, [J | η], shape (d, d + 1, n); None
                if there are none.
        """
        d = chain.size
        blocks = np.zeros((d, 3 * d + 2, len(gap)))
        blocks[:, :d], blocks[:, d + 1 : 2 * d + 1] = chain.transition(gap), chain.noise(gap)
        if likelihood is not None:
            blocks[:, 2 * d + 1 :] = likelihood
        return cls(blocks)

    def __len__(self) -> int:
        """Return the number of stretches."""
        return int(self.blocks.shape[-1])

    def __getitem__(self, index: slice) -> Arcs:
        """Some of the stretches, as a view."""
        return Arcs(self.blocks[..., index])

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
        """Copy some of the stretches (``[..., index]`` would leave n outermost in memory, which is far slower)."""
        return Arcs(self.blocks.take(index, axis=-1))

    def put(self, index: IntArray, other: Arcs) -> None:
        """Replace some of the stretches by `other`."""
        self.blocks[..., index] = other.blocks

    def copy(self) -> Arcs:
        """The same stretches, to be changed."""
        return Arcs(self.blocks.copy())

    def replaced(self, index: IntArray, other: Arcs) -> Arcs:
        """Copy with some of the stretches replaced by `other`."""
        copy = self.copy()
        copy.put(index, other)
        return copy

    def followed_by(self, other: Arcs) -> Arcs:
        """Both lists of stretches, `other` behind this one."""
        return Arcs(np.concatenate([self.blocks, other.blocks], axis=-1))

    def then(self, after: Arcs) -> Arcs:
        r"""Combine each stretch (i) with the one that begins where it ends (j).

        .. math::
            W &= (I + C_i J_j)^{-1}, \quad A = A_j W A_i, \quad b = A_j W (b_i + C_i η_j) + b_j, \quad
            C = A_j W C_i A_j^T + C_j, \\
            η &= (W A_i)^T (η_j - J_j b_i) + η_i, \quad J = (W A_i)^T J_j A_i + J_i
        """
        return self.joined(after)[0]

    def met(self, after: Arcs) -> FloatArray:
        """Law of the state where each stretch meets the next, given its start: [W A | W(b + Cη) | W C]."""
        d = self.size
        system = np.empty((d, 3 * d + 2, len(self)))
        np.einsum("ijn,jkn->ikn", self.blocks[:, d + 1 : 2 * d + 1], after.likelihood, out=system[:, : d + 1])
        system[:, d + 1 :] = self.forward
        system[:, 2 * d + 1] += system[:, d]  # b_i + C_i η_j
        diagonal_of(system)[:] += 1.0
        return solved(system)[:, 1:]

    def joined(self, after: Arcs) -> tuple[Arcs, Meeting]:
        """Combine as :meth:`then` does, and say how the stretches meet."""
        d, met = self.size, self.met(after)
        transition, own, both = after.blocks[:, :d], after.blocks, np.empty(self.blocks.shape)
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
    r"""How n pairs of stretches i and j meet, with W as in :meth:`Arcs.then`.

    Attributes:
        met: law of the state m in between given the start, [W A | W(b + Cη) | W C], shape (d, 2d + 1, n).
        reached: law of the end, and its covariance with m: [A | b | A_j W C], shape (d, 2d + 1, n).
        spread: covariance C of the end given the start, shape (d, d, n).
    """

    met: FloatArray
    reached: FloatArray
    spread: FloatArray

    @classmethod
    def together(cls, parts: Sequence[Meeting]) -> Meeting:
        """All pairs of some lists, one behind the other."""
        columns = zip(*((part.met, part.reached, part.spread) for part in parts), strict=True)
        return cls(*(np.concatenate(column, axis=-1) for column in columns))

    def bridges(self, rows: int) -> Bridges:
        r"""Law of the first `rows` components of m given the states x, z at both ends.

        With :math:`D = W C_i` the covariance of m given the start and :math:`K = D A_j^T C^{-1}`, where A, b, C are
        the blocks of the combined stretch,

        .. math::
            m \mid x, z \sim N\bigl((W A_i - K A)\,x + K z + W(b_i + C_i η_j) - K b,\; D - K A_j D\bigr).
        """
        d, kept = len(self.met), slice(len(self.met) + 1, len(self.met) + 1 + rows)
        gain = transposed(solved(np.concatenate([self.spread, self.reached[:, kept]], axis=1)))
        middle = self.met[:rows] - product(gain, self.reached)
        return Bridges(np.concatenate([middle[:, :d], gain, middle[:, d : d + 1 + rows]], axis=1))


@dataclass(frozen=True, eq=False)
class Bridges:
    r"""States m inside n stretches given the states x, z at their ends: :math:`m \mid x, z \sim N(G [x; z] + g, P)`.

    Attributes:
        blocks: [G | g | P] for the first e components of m, shape (e, 2d + 1 + e, n).
    """

    blocks: FloatArray

    def __len__(self) -> int:
        """Return the number of stretches."""
        return int(self.blocks.shape[-1])

    def __getitem__(self, index: slice) -> Bridges:
        """Some of the stretches, as a view."""
        return Bridges(self.blocks[..., index])

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

    def replaced(self, index: IntArray, other: Bridges) -> Bridges:
        """Copy with some of the stretches replaced by `other`."""
        blocks = self.blocks.copy()
        blocks[..., index] = other.blocks
        return Bridges(blocks)
