"""A binary tree over the arcs of the circle: posterior, samples and updates from the arcs that changed.

Särkkä & García-Fernández 2021 combine such elements for parallel Kalman smoothing; here the chain is closed to a
circle. All of it works on covariances of the forward steps, never on their inverses, so that gaps of 1e-15 rad or 0
are allowed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, wrap_angle
from nbv_planner.gp.chain import MaternChain

# Grid angles nearer than this are one node (radians): no radius differs noticeably between them.
_SAME_ANGLE = 1e-12
# Most stretches that the dense solution takes over from the pairs; more and fewer were slower at M = 1000.
_MOST_IN_RING = 16


@dataclass(frozen=True, eq=False)
class Pairing:
    """Plan of a binary tree over the cells between neighbouring grid angles.

    Where the number of stretches of a level is odd, the first one is left over. Behind it lie the first ones of all
    pairs and then the second ones, at every level, so that no level has to be copied to be combined.
    """

    node: FloatArray  #: distinct grid angles, rising, shape (N,), radians in [0, 2π).
    back: IntArray  #: which node each grid angle is, shape (M,).
    order: IntArray  #: the cells in the order in which they lie at the leaves, shape (N,).
    place: IntArray  #: where each cell lies, shape (N,).
    sizes: tuple[int, ...]  #: number of stretches at each level, from the leaves to the ring.
    #: where the next stretch around the circle lies, at each level from the ring to the one above the leaves.
    following: tuple[IntArray, ...]

    @classmethod
    def of(cls, grid: FloatArray, shortest: float) -> Pairing:
        """Plan for a grid of at least one angle, shape (M,), radians, in any order; repeats are allowed.

        A stretch in the ring must have the length `shortest` (radians) unless it is the only one.
        """
        node, back = _distinct(wrap_angle(grid))
        sizes = _sizes(np.diff(node, append=node[0] + TWO_PI), shortest)
        order, following = np.arange(sizes[-1], dtype=np.intp), []
        for size in sizes[-2::-1]:
            following.append(np.argsort(order)[(order + 1) % len(order)])
            odd = size % 2
            order = np.concatenate([order[:odd], 2 * order[odd:] - odd, 2 * order[odd:] + 1 - odd])
        return cls(node, back, order, np.argsort(order), sizes, tuple(following))

    @cached_property
    def inner(self) -> tuple[tuple[int, int], ...]:
        """Where the pairs of each level above the leaves begin and end, one level behind the other."""
        return tuple(itertools.pairwise([0, *itertools.accumulate(size // 2 for size in self.sizes[1:-1])]))

    @cached_property
    def upward(self) -> tuple[IntArray, ...]:
        """Where the stretch that each stretch becomes part of lies at the level above, from the leaves to the ring."""
        return tuple(
            np.concatenate([np.arange(above), np.arange(size % 2, above)])
            for size, above in itertools.pairwise(self.sizes)
        )

    @property
    def end(self) -> FloatArray:
        """Angle where each cell ends, shape (N,), radians; 2π more than its node for the last one."""
        return np.append(self.node[1:], self.node[0] + TWO_PI)

    def __len__(self) -> int:
        return len(self.node)


def _distinct(angle: FloatArray) -> tuple[FloatArray, IntArray]:
    """Nodes of angles in [0, 2π), and which one each angle is; angles closer than `_SAME_ANGLE` share one."""
    distinct, back = np.unique(angle, return_inverse=True)
    number: IntArray = np.cumsum(np.diff(distinct, prepend=distinct[0]) > _SAME_ANGLE, dtype=np.intp)
    first = np.flatnonzero(np.diff(number, prepend=-1))
    if len(first) > 1 and TWO_PI + distinct[0] - distinct[-1] <= _SAME_ANGLE:
        number, first = number % number[-1], first[:-1]
    return distinct[first], number[back]


def _sizes(length: FloatArray, shortest: float) -> tuple[int, ...]:
    """Number of stretches at each level, from cells of `length` until they are few and long enough for a ring."""
    sizes = [len(length)]
    while len(length) > _MOST_IN_RING or (len(length) > 1 and length.min() < shortest):
        length = np.add.reduceat(length, np.append(0, np.arange(2 - len(length) % 2, len(length), 2)))
        sizes.append(len(length))
    return tuple(sizes)


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

    Rows are not exchanged. That is stable where M is a covariance. For :math:`I + C J` with covariances C and
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

    With x the state at the start of a stretch, z the state at its end and y the measurements in between,

    .. math::
        p(z \mid x, y) = N(z;\; A x + b,\; C), \qquad p(y \mid x) \propto \exp(η^T x - \tfrac12 x^T J x).

    A measurement at the start belongs to a stretch, one at the end to the next. The parts lie side by side, so that
    one product serves several of them, and the stretches are last, so that numpy runs over them innermost.

    Attributes:
        blocks: [A | b | C | J | η], shape (d, 3d + 2, n).
    """

    @classmethod
    def steps(cls, chain: MaternChain, gap: FloatArray, likelihood: FloatArray | None = None) -> Arcs:
        """Stretches of length `gap` (n,), radians, with measurements at the start of each at most.

        The `likelihood` is their information on the state there, [J | η], shape (d, d + 1, n); None if there is none.
        """
        d = chain.size
        blocks = np.zeros((d, 3 * d + 2, len(gap)))
        blocks[:, :d], blocks[:, d + 1 : 2 * d + 1] = chain.transition(gap), chain.noise(gap)
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
        """Copy some of the stretches (``[..., index]`` would leave n outermost in memory, which is far slower)."""
        return Arcs(self.blocks.take(index, axis=-1))

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
        """Combine as :meth:`then` does, and return how the stretches meet."""
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
    """How n pairs of stretches i and j meet, with W as in :meth:`Arcs.then`."""

    met: FloatArray  #: law of the state m in between given the start, [W A | W(b + Cη) | W C], shape (d, 2d + 1, n).
    reached: FloatArray  #: law of the end, and its covariance with m: [A | b | A_j W C], shape (d, 2d + 1, n).
    spread: FloatArray  #: covariance C of the end given the start, shape (d, d, n).

    @classmethod
    def together(cls, parts: Sequence[Meeting]) -> Meeting:
        """All pairs of some lists, one behind the other."""
        names = ("met", "reached", "spread")
        return cls(*(np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names))

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
class Bridges(_Blocks):
    r"""States m inside n stretches given the states x, z at their ends: :math:`m \mid x, z \sim N(G [x; z] + g, P)`.

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


@dataclass(frozen=True, eq=False)
class Ring:
    r"""Law of the K states :math:`x_k` where the stretches `arcs` of a closed circle meet (K is small).

    With R the matrix that takes the states to :math:`x_{k+1} - A_k x_k`, the factors of :class:`Arcs` leave

    .. math::
        Λ = R^T \operatorname{diag}(C_k^{-1}) R + \operatorname{diag}(J_k), \qquad
        E[x] = Λ^{-1}\bigl(R^T \operatorname{diag}(C_k^{-1}) b + η\bigr), \qquad x_K = x_0.

    For K = 1, R is I − A. The stretches must be long enough that :math:`C_k` can be inverted.
    """

    arcs: Arcs

    @property
    def size(self) -> int:
        """Number K d of components of all states."""
        return len(self.arcs) * self.arcs.size

    @cached_property
    def mean(self) -> FloatArray:
        """Means of the states, shape (d, K)."""
        return np.asarray(dpotrs(self._factor, self._system[1], lower=True)[0].reshape(len(self.arcs), -1).T)

    @cached_property
    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of each state, and of each state (rows) with the next one, shape (d, d, K) both."""
        d, n = self.arcs.size, len(self.arcs)
        lower = np.tril(dpotri(self._factor, lower=True)[0])
        joint = (lower + np.tril(lower, -1).T).reshape(n, d, n, d)
        here = np.arange(n)
        own, across = joint[here, :, here], joint[here, :, (here + 1) % n]
        return np.ascontiguousarray(own.transpose(1, 2, 0)), np.ascontiguousarray(across.transpose(1, 2, 0))

    def sample(self, normals: FloatArray) -> FloatArray:
        """States moved from their means by standard `normals` (K d, count), shape (d, K, count)."""
        spread = solve_triangular(self._factor, normals, lower=True, trans="T", check_finite=False)
        return np.asarray(spread.reshape(len(self.arcs), -1, normals.shape[1]).swapaxes(0, 1) + self.mean[..., None])

    @cached_property
    def _system(self) -> tuple[FloatArray, FloatArray]:
        """Λ, shape (K d, K d), and Λ E[x], shape (K d,)."""
        d, n = self.arcs.size, len(self.arcs)
        forward, likelihood = self.arcs.forward, self.arcs.likelihood
        here = np.arange(n)
        difference = np.zeros((n, d, n, d))
        difference[here, :, (here + 1) % n] = np.eye(d)
        difference[here, :, here] -= forward[:, :d].transpose(2, 0, 1)
        precision = inverse_of(forward[:, d + 1 :]).transpose(2, 0, 1)
        weighted = np.matmul(precision, difference.reshape(n, d, n * d)).reshape(n * d, n * d)
        joint = (difference.reshape(n * d, n * d).T @ weighted).reshape(n, d, n, d)
        joint[here, :, here] += likelihood[:, :d].transpose(2, 0, 1)
        score = weighted.T @ forward[:, d].T.ravel() + likelihood[:, d].T.ravel()
        return joint.reshape(n * d, n * d), score

    @cached_property
    def _factor(self) -> FloatArray:
        """Cholesky factor of Λ in the lower triangle; straight from LAPACK, whose wrappers would take longer than it.

        Raises:
            LinAlgError: Λ is not positive definite.
        """
        factor, failed = dpotrf(self._system[0], lower=True, clean=False)
        if failed:
            raise np.linalg.LinAlgError(f"ring of {len(self.arcs)} stretches: pivot {failed} is not positive")
        return np.asarray(factor)


@dataclass(frozen=True, eq=False)
class Tree:
    """The cells of a grid combined in pairs, level by level, until few stretches are left, which close to a ring.

    Each pair keeps the law of the state in its middle given those at its ends; at the leaves, where no pair is
    inside, that of the radius alone. The states of the ring are known jointly; from there each level adds the middles.
    Means, variances and samples are computed downwards likewise.
    """

    pairing: Pairing  #: plan of the tree.
    nodes: Arcs  #: stretches of all levels above the leaves, one level behind the other; those of the ring come last.
    leaf: Bridges  #: laws of the middles of the pairs of leaves.
    inner: Bridges  #: laws of the middles of all other pairs, one level behind the other.
    ring: Ring  #: the last stretches.

    @classmethod
    def over(cls, cells: Arcs, pairing: Pairing) -> Tree:
        """Combine `cells`, one for each node, in the order of the nodes."""
        d, pairs = cells.size, [size // 2 for size in pairing.sizes[:-1]] or [0]
        nodes = Arcs(np.empty((d, 3 * d + 2, sum(pairing.sizes[1:]))))
        leaf, inner = (Bridges(np.empty((e, 2 * d + 1 + e, n))) for e, n in ((1, pairs[0]), (d, sum(pairs[1:]))))
        return cls(pairing, nodes, leaf, inner, Ring(cells)).updated(cells, np.arange(len(pairing)))

    def updated(self, cells: Arcs, changed: IntArray) -> Tree:
        """Combine `cells` that differ from those of this tree at the nodes `changed` only.

        Only the pairs above these are recombined. The result is the same bit for bit as from :meth:`over`.
        """
        pairing, nodes, start = self.pairing, self.nodes.copy(), 0
        below, at, touched = cells, pairing.order, pairing.place[changed]
        meetings, pairs = [], []
        for size, above, upward in zip(pairing.sizes, pairing.sizes[1:], pairing.upward, strict=False):
            odd, half = size % 2, size // 2
            mark = np.zeros(above, dtype=bool)
            mark[upward[touched]] = True
            first = odd + _never_one(mark[odd:].nonzero()[0])
            both, meeting = below.take(at[first]).joined(below.take(at[first + half]))
            nodes.put(start + first, both)
            if odd:
                nodes.put(np.array([start]), below.take(at[:1]))
            meetings.append(meeting)
            pairs.append(first - odd)
            touched, below, at = mark.nonzero()[0], nodes, np.arange(start, start + above)
            start += above
        leaf, inner = self._bridging(meetings, pairs)
        return Tree(pairing, nodes, leaf, inner, Ring(nodes[start - len(at) :] if meetings else cells.take(at)))

    def _bridging(self, meetings: Sequence[Meeting], pairs: Sequence[IntArray]) -> tuple[Bridges, Bridges]:
        """Laws of the middles, those of some `pairs` of each level, from the leaves up, by how they meet now."""
        leaf, inner = self.leaf, self.inner
        if len(meetings) > 0:
            leaf = leaf.replaced(pairs[0], meetings[0].bridges(1))
        if len(meetings) > 1:
            begins = [begin for begin, _ in self.pairing.inner]
            index = np.concatenate([pair + begin for pair, begin in zip(pairs[1:], begins, strict=True)])
            inner = inner.replaced(index, Meeting.together(meetings[1:]).bridges(self.nodes.size))
        return leaf, inner

    @property
    def _downward(self) -> list[tuple[Bridges, IntArray]]:
        """From the ring to the leaves, the laws of the middles, and where the next stretch lies at the level above."""
        inner = [self.inner[begin:end] for begin, end in reversed(self.pairing.inner)]
        return list(zip([*inner, self.leaf], self.pairing.following, strict=False))  # no pair, no leaf

    @property
    def size(self) -> int:
        """Number N d of components of all states."""
        return len(self.pairing) * self.nodes.size

    def mean(self) -> FloatArray:
        """Mean of f at each node, shape (N,), metres."""
        state = self.ring.mean
        for bridge, following in self._downward:
            ends = np.concatenate([state, state.take(following, axis=-1)])[:, -len(bridge) :]
            middle = np.einsum("ijn,jn->in", bridge.weight, ends) + bridge.offset
            state = np.concatenate([state[: len(middle)], middle], axis=-1)
        return np.asarray(state[0].take(self.pairing.place))

    def variance(self) -> FloatArray:
        r"""Variance of f at each node, shape (N,), m².

        With S the covariance of the states at both ends of a pair, that of its middle is :math:`G S G^T + P`: a sum
        of covariances, nothing cancels.
        """
        own, across = self.ring.covariances
        d = len(own)
        for bridge, following in self._downward:
            rows, kept = bridge.rows, own.shape[-1] - len(bridge)
            ends = np.concatenate([
                np.concatenate([own, across], axis=1),
                np.concatenate([transposed(across), own.take(following, axis=-1)], axis=1),
            ])[..., kept:]  # fmt: skip
            shared = product(ends, transposed(bridge.weight))  # covariance of both ends with the middle
            middle = product(bridge.weight, shared) + bridge.covariance
            own = np.concatenate([own[:rows, :rows], middle], axis=-1)
            if rows == d:
                across = np.concatenate([across[..., :kept], shared[:d], transposed(shared[d:])], axis=-1)
        return np.asarray(own[0, 0].take(self.pairing.place))

    def sample(self, normals: FloatArray) -> FloatArray:
        """Joint samples of f at the nodes from standard `normals`, shape (count, N d) to (count, N), metres."""
        d = self.nodes.size
        state = self.ring.sample(normals[:, : self.ring.size].T)
        for bridge, following in self._downward:
            used = state.shape[1] * d
            own = normals[:, used : used + len(bridge) * d].T.reshape(d, len(bridge), -1)
            ends, rows = np.concatenate([state, state.take(following, axis=1)])[:, -len(bridge) :], bridge.rows
            middle = np.einsum("ijn,jns->ins", bridge.weight, ends)
            middle += np.einsum("ijn,jns->ins", root_of(bridge.covariance), own[:rows])
            state = np.concatenate([state[:rows], middle + bridge.offset[..., None]], axis=1)
        return np.asarray(state[0].take(self.pairing.place, axis=0).T)


def _never_one(index: IntArray) -> IntArray:
    """The same, but twice if there is only one: numpy adds up the terms of a single product in another order."""
    return np.repeat(index, 2) if len(index) == 1 else index
