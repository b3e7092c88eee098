"""A binary tree over the arcs of the circle: posterior, samples and updates from the arcs that
changed.

Särkkä & García-Fernández 2021 combine such elements for parallel Kalman smoothing; here the chain
is closed to a circle. All of it works on covariances of the forward steps, never on their inverses,
so that gaps of 1e-15 rad or 0 are allowed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, wrap_angle
from nbv_planner.gp.arcs import Arcs, Bridges, Meeting, inverse_of, product, root_of, transposed

# Grid angles nearer than this are one node (radians): no radius differs noticeably between them.
_SAME_ANGLE = 1e-12
# Most stretches that the dense solution takes over from the pairs; more and fewer were slower at M
# = 1000.
_MOST_IN_RING = 16


@dataclass(frozen=True, eq=False)
class Pairing:
    """Plan of a binary tree over the cells between neighbouring grid angles.

    Where the number of stretches of a level is odd, the first one is left over. Behind it lie the
    first ones of all pairs and then the second ones, at every level, so that no level has to be
    copied to be combined.
    """

    node: FloatArray  #: distinct grid angles, rising, shape (N,), radians in [0, 2π).
    back: IntArray  #: which node each grid angle is, shape (M,).
    order: IntArray  #: the cells in the order in which they lie at the leaves, shape (N,).
    place: IntArray  #: where each cell lies, shape (N,).
    sizes: tuple[int, ...]  #: number of stretches at each level, from the leaves to the ring.
    #: where the next stretch around the circle lies, at each level from the ring to the one above
    #: the leaves.
    following: tuple[IntArray, ...]

    @classmethod
    def of(cls, grid: FloatArray, shortest: float) -> Pairing:
        """Plan for a grid of at least one angle, shape (M,), radians, in any order; repeats are
        allowed.

        A stretch in the ring must have the length `shortest` (radians) unless it is the only one.
        """
        node, back = _distinct(wrap_angle(grid))
        sizes = _sizes(np.diff(node, append=node[0] + TWO_PI), shortest)
        order = np.arange(sizes[-1], dtype=np.intp)
        following = []
        for size in sizes[-2::-1]:
            following.append(np.argsort(order)[(order + 1) % len(order)])
            odd = size % 2
            order = np.concatenate([order[:odd], 2 * order[odd:] - odd, 2 * order[odd:] + 1 - odd])
        return cls(node, back, order, np.argsort(order), sizes, tuple(following))

    @cached_property
    def inner(self) -> tuple[tuple[int, int], ...]:
        """Where the pairs of each level above the leaves begin and end, one level behind the
        other.
        """
        return tuple(
            itertools.pairwise([0, *itertools.accumulate(size // 2 for size in self.sizes[1:-1])])
        )

    @cached_property
    def upward(self) -> tuple[IntArray, ...]:
        """Where the stretch that each stretch becomes part of lies at the level above, from the
        leaves to the ring.
        """
        return tuple(
            np.concatenate([np.arange(above), np.arange(size % 2, above)])
            for size, above in itertools.pairwise(self.sizes)
        )

    @property
    def end(self) -> FloatArray:
        """Angle where each cell ends, shape (N,), radians; 2π more than its node for the last
        one.
        """
        return np.append(self.node[1:], self.node[0] + TWO_PI)

    def __len__(self) -> int:
        return len(self.node)


def _distinct(angle: FloatArray) -> tuple[FloatArray, IntArray]:
    """Nodes of angles in [0, 2π), and which one each angle is; angles closer than `_SAME_ANGLE`
    share one.
    """
    distinct, back = np.unique(angle, return_inverse=True)
    number: IntArray = np.cumsum(
        np.diff(distinct, prepend=distinct[0]) > _SAME_ANGLE, dtype=np.intp
    )
    first = np.flatnonzero(np.diff(number, prepend=-1))
    if len(first) > 1 and TWO_PI + distinct[0] - distinct[-1] <= _SAME_ANGLE:
        number = number % number[-1]
        first = first[:-1]
    return distinct[first], number[back]


def _sizes(length: FloatArray, shortest: float) -> tuple[int, ...]:
    """Number of stretches at each level, from cells of `length` until they are few and long enough
    for a ring.
    """
    sizes = [len(length)]
    while len(length) > _MOST_IN_RING or (len(length) > 1 and length.min() < shortest):
        length = np.add.reduceat(
            length, np.append(0, np.arange(2 - len(length) % 2, len(length), 2))
        )
        sizes.append(len(length))
    return tuple(sizes)


@dataclass(frozen=True, eq=False)
class Ring:
    r"""Law of the K states :math:`x_k` where the stretches `arcs` of a closed circle meet (K is
    small).

    With R the matrix that takes the states to :math:`x_{k+1} - A_k x_k`, the factors of
    :class:`Arcs` leave

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
        return np.asarray(
            dpotrs(self._factor, self._system[1], lower=True)[0].reshape(len(self.arcs), -1).T
        )

    @cached_property
    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of each state, and of each state (rows) with the next one, shape (d, d, K)
        both.
        """
        d = self.arcs.size
        n = len(self.arcs)
        lower = np.tril(dpotri(self._factor, lower=True)[0])
        joint = (lower + np.tril(lower, -1).T).reshape(n, d, n, d)
        here = np.arange(n)
        own = joint[here, :, here]
        across = joint[here, :, (here + 1) % n]
        return np.ascontiguousarray(own.transpose(1, 2, 0)), np.ascontiguousarray(
            across.transpose(1, 2, 0)
        )

    def sample(self, normals: FloatArray) -> FloatArray:
        """States moved from their means by standard `normals` (K d, count), shape (d, K, count)."""
        spread = solve_triangular(self._factor, normals, lower=True, trans="T", check_finite=False)
        return np.asarray(
            spread.reshape(len(self.arcs), -1, normals.shape[1]).swapaxes(0, 1)
            + self.mean[..., None]
        )

    @cached_property
    def _system(self) -> tuple[FloatArray, FloatArray]:
        """Λ, shape (K d, K d), and Λ E[x], shape (K d,)."""
        d = self.arcs.size
        n = len(self.arcs)
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
        """Cholesky factor of Λ in the lower triangle; straight from LAPACK, whose wrappers would
        take longer than it.

        Raises:
            LinAlgError: Λ is not positive definite.
        """
        factor, failed = dpotrf(self._system[0], lower=True, clean=False)
        if failed:
            raise np.linalg.LinAlgError(
                f"ring of {len(self.arcs)} stretches: pivot {failed} is not positive"
            )
        return np.asarray(factor)


@dataclass(frozen=True, eq=False)
class Tree:
    """The cells of a grid combined in pairs, level by level, until few stretches are left, which
    close to a ring.

    Each pair keeps the law of the state in its middle given those at its ends; at the leaves, where
    no pair is inside, that of the radius alone. The states of the ring are known jointly; from
    there each level adds the middles. Means, variances and samples are computed downwards likewise.
    """

    pairing: Pairing  #: plan of the tree.
    #: stretches of all levels above the leaves, one level behind the other; those of the ring come
    #: last.
    nodes: Arcs
    leaf: Bridges  #: laws of the middles of the pairs of leaves.
    inner: Bridges  #: laws of the middles of all other pairs, one level behind the other.
    ring: Ring  #: the last stretches.

    @classmethod
    def over(cls, cells: Arcs, pairing: Pairing) -> Tree:
        """Combine `cells`, one for each node, in the order of the nodes."""
        d = cells.size
        pairs = [size // 2 for size in pairing.sizes[:-1]] or [0]
        nodes = Arcs(np.empty((d, 3 * d + 2, sum(pairing.sizes[1:]))))
        leaf, inner = (
            Bridges(np.empty((e, 2 * d + 1 + e, n)))
            for e, n in ((1, pairs[0]), (d, sum(pairs[1:])))
        )
        return cls(pairing, nodes, leaf, inner, Ring(cells)).updated(cells, np.arange(len(pairing)))

    def updated(self, cells: Arcs, changed: IntArray) -> Tree:
        """Combine `cells` that differ from those of this tree at the nodes `changed` only.

        Only the pairs above these are recombined. The result is the same bit for bit as from
        :meth:`over`.
        """
        pairing = self.pairing
        nodes = self.nodes.copy()
        start = 0
        below = cells
        at = pairing.order
        touched = pairing.place[changed]
        meetings, pairs = [], []
        for size, above, upward in zip(
            pairing.sizes, pairing.sizes[1:], pairing.upward, strict=False
        ):
            odd = size % 2
            half = size // 2
            mark = np.zeros(above, dtype=bool)
            mark[upward[touched]] = True
            first = odd + _never_one(mark[odd:].nonzero()[0])
            both, meeting = below.take(at[first]).joined(below.take(at[first + half]))
            nodes.put(start + first, both)
            if odd:
                nodes.put(np.array([start]), below.take(at[:1]))
            meetings.append(meeting)
            pairs.append(first - odd)
            touched = mark.nonzero()[0]
            below = nodes
            at = np.arange(start, start + above)
            start += above
        leaf, inner = self._bridging(meetings, pairs)
        return Tree(
            pairing,
            nodes,
            leaf,
            inner,
            Ring(nodes[start - len(at) :] if meetings else cells.take(at)),
        )

    def _bridging(
        self, meetings: Sequence[Meeting], pairs: Sequence[IntArray]
    ) -> tuple[Bridges, Bridges]:
        """Laws of the middles, those of some `pairs` of each level, from the leaves up, by how they
        meet now.
        """
        leaf, inner = self.leaf, self.inner
        if len(meetings) > 0:
            leaf = leaf.replaced(pairs[0], meetings[0].bridges(1))
        if len(meetings) > 1:
            begins = [begin for begin, _ in self.pairing.inner]
            index = np.concatenate(
                [pair + begin for pair, begin in zip(pairs[1:], begins, strict=True)]
            )
            inner = inner.replaced(index, Meeting.together(meetings[1:]).bridges(self.nodes.size))
        return leaf, inner

    @property
    def _downward(self) -> list[tuple[Bridges, IntArray]]:
        """From the ring to the leaves, the laws of the middles, and where the next stretch lies at
        the level above.
        """
        inner = [self.inner[begin:end] for begin, end in reversed(self.pairing.inner)]
        # no pair, no leaf
        return list(zip([*inner, self.leaf], self.pairing.following, strict=False))

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

        With S the covariance of the states at both ends of a pair, that of its middle is
        :math:`G S G^T + P`: a sum of covariances, nothing cancels.
        """
        own, across = self.ring.covariances
        d = len(own)
        for bridge, following in self._downward:
            rows = bridge.rows
            kept = own.shape[-1] - len(bridge)
            ends = np.concatenate(
                [
                    np.concatenate([own, across], axis=1),
                    np.concatenate([transposed(across), own.take(following, axis=-1)], axis=1),
                ]
            )[..., kept:]
            # covariance of both ends with the middle
            shared = product(ends, transposed(bridge.weight))
            middle = product(bridge.weight, shared) + bridge.covariance
            own = np.concatenate([own[:rows, :rows], middle], axis=-1)
            if rows == d:
                across = np.concatenate(
                    [across[..., :kept], shared[:d], transposed(shared[d:])], axis=-1
                )
        return np.asarray(own[0, 0].take(self.pairing.place))

    def sample(self, normals: FloatArray) -> FloatArray:
        """Joint samples of f at the nodes from standard `normals`, shape (count, N d) to (count,
        N), metres.
        """
        d = self.nodes.size
        state = self.ring.sample(normals[:, : self.ring.size].T)
        for bridge, following in self._downward:
            used = state.shape[1] * d
            own = normals[:, used : used + len(bridge) * d].T.reshape(d, len(bridge), -1)
            ends = np.concatenate([state, state.take(following, axis=1)])[:, -len(bridge) :]
            rows = bridge.rows
            middle = np.einsum("ijn,jns->ins", bridge.weight, ends)
            middle += np.einsum("ijn,jns->ins", root_of(bridge.covariance), own[:rows])
            state = np.concatenate([state[:rows], middle + bridge.offset[..., None]], axis=1)
        return np.asarray(state[0].take(self.pairing.place, axis=0).T)


def _never_one(index: IntArray) -> IntArray:
    """The same, but twice if there is only one: numpy adds up the terms of a single product in
    another order.
    """
    return np.repeat(index, 2) if len(index) == 1 else index
