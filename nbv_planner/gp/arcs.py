r"""Stretches of the circle as associative elements: what a stretch tells about the states at its two ends.

Särkkä & García-Fernández 2021 combine such elements for parallel Kalman smoothing; here the chain is closed to a
circle. All of it works on covariances of the forward steps, never on their inverses, so that gaps of 1e-15 rad or 0
do no harm.
"""

from __future__ import annotations

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
        forward: the blocks [A | b | C], shape (d, 2d + 1, n).
        likelihood: the blocks [J | η], shape (d, d + 1, n).
    """

    forward: FloatArray
    likelihood: FloatArray

    @classmethod
    def steps(cls, chain: MaternChain, gap: FloatArray, likelihood: FloatArray | None = None) -> Arcs:
        """Stretches of length `gap` (n,), radians, with measurements at the start of each at most.

        Args:
            chain: law of the state.
            gap: lengths, shape (n,), radians.
            likelihood: what the measurements say about the state at the start, [J | η], shape (d, d + 1, n); None
                if there are none.
        """
        d, n = chain.size, len(gap)
        blank = np.zeros((d, d + 1, n)) if likelihood is None else likelihood
        return cls(np.concatenate([chain.transition(gap), np.zeros((d, 1, n)), chain.noise(gap)], axis=1), blank)

    @classmethod
    def blank(cls, d: int, n: int) -> Arcs:
        """Room for n stretches whose state has d components."""
        return cls(np.empty((d, 2 * d + 1, n)), np.empty((d, d + 1, n)))

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

    def replaced(self, index: IntArray, other: Arcs) -> Arcs:
        """Copy with some of the stretches replaced by `other`."""
        copy = Arcs(self.forward.copy(), self.likelihood.copy())
        copy.put(index, other)
        return copy

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
        return self._joined(after, self.met(after))[0]

    def bridged(self, after: Arcs, rows: int) -> tuple[Arcs, Bridges]:
        r"""Combine as :meth:`then` does, and keep the law of the state m in between given those at both ends.

        With :math:`D = W C_i` the covariance of m given the start and :math:`K = D A_j^T C^{-1}`, where A, b, C are
        the blocks of the combined stretch,

        .. math::
            m \mid x, z \sim N\bigl((W A_i - K A)\,x + K z + W(b_i + C_i η_j) - K b,\; D - K A_j D\bigr).

        Args:
            after: stretches that begin where these end.
            rows: number of components of m whose law is kept, the first ones.
        """
        d = len(self.forward)
        met = self.met(after)
        both, reached = self._joined(after, met)
        kept = slice(d + 1, d + 1 + rows)
        gain = transposed(solved(np.concatenate([both.forward[:, d + 1 :], reached[:, kept]], axis=1)))
        middle = met[:rows] - product(gain, reached)
        return both, Bridges(np.concatenate([middle[:, :d], gain], axis=1), middle[:, d], middle[:, kept])

    def met(self, after: Arcs) -> FloatArray:
        """Law of the state where each stretch meets the next, given its start: [W A | W(b + Cη) | W C]."""
        d = len(self.forward)
        gained = product(self.forward[:, d + 1 :], after.likelihood)  # C_i [J_j | η_j]
        diagonal_of(gained)[:] += 1.0
        system = np.concatenate([gained[:, :d], self.forward], axis=1)
        system[:, 2 * d] += gained[:, d]
        return solved(system)

    def _joined(self, after: Arcs, met: FloatArray) -> tuple[Arcs, FloatArray]:
        """Combine with `after`, given :meth:`met`; also the blocks [A | b | A_j W C_i] of what was reached."""
        d = len(self.forward)
        seen = product(after.likelihood[:, :d], self.forward[:, : d + 1])  # J_j [A_i | b_i]
        seen[:, d] = after.likelihood[:, d] - seen[:, d]
        likelihood = product(transposed(met[:, :d]), seen)
        likelihood += self.likelihood
        transition = after.forward[:, :d]
        reached = product(transition, met)
        reached[:, d] += after.forward[:, d]
        forward = reached.copy()
        forward[:, d + 1 :] = product(reached[:, d + 1 :], transposed(transition))
        forward[:, d + 1 :] += after.forward[:, d + 1 :]
        return Arcs(forward, likelihood), reached


@dataclass(frozen=True, eq=False)
class Bridges:
    r"""States m inside n stretches given the states x, z at their ends: :math:`m \mid x, z \sim N(G [x; z] + g, P)`.

    Attributes:
        weight: G, shape (e, 2d, n), for the first e components of m.
        offset: g, shape (e, n).
        covariance: P, shape (e, e, n).
    """

    weight: FloatArray
    offset: FloatArray
    covariance: FloatArray

    def __len__(self) -> int:
        """Return the number of stretches."""
        return int(self.weight.shape[-1])

    @property
    def rows(self) -> int:
        """Number e of components of m."""
        return len(self.weight)

    @classmethod
    def blank(cls, rows: int, d: int, n: int) -> Bridges:
        """Room for n of them, each of the first `rows` components of a state of d."""
        return cls(np.empty((rows, 2 * d, n)), np.empty((rows, n)), np.empty((rows, rows, n)))

    def replaced(self, index: IntArray, other: Bridges) -> Bridges:
        """Copy with some of the stretches replaced by `other`."""
        copy = Bridges(self.weight.copy(), self.offset.copy(), self.covariance.copy())
        copy.weight[..., index], copy.offset[:, index] = other.weight, other.offset
        copy.covariance[..., index] = other.covariance
        return copy
