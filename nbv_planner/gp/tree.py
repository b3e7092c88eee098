"""Posterior on the nodes of a circular grid, in linear time: pairs of cells up to a ring, and down again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.arcs import Arcs, Bridges, Meeting
from nbv_planner.gp.pairing import Pairing
from nbv_planner.gp.ring import Ring
from nbv_planner.gp.stacks import product, root_of, transposed


@dataclass(frozen=True, eq=False)
class Tree:
    """The cells of a grid combined in pairs, level by level, until few stretches are left, which close to a ring.

    Each pair keeps the law of the state in its middle given those at its ends; at the leaves, where no pair is
    inside, that of the radius alone. The states of the ring are known jointly; from there each level adds the middles.
    Means, variances and samples come down the same way.

    Attributes:
        pairing: plan of the tree.
        nodes: stretches of all levels above the leaves, one level behind the other; those of the ring come last.
        leaf: laws of the middles of the pairs of leaves.
        inner: laws of the middles of all other pairs, one level behind the other.
        ring: the last stretches.
    """

    pairing: Pairing
    nodes: Arcs
    leaf: Bridges
    inner: Bridges
    ring: Ring

    @classmethod
    def over(cls, cells: Arcs, pairing: Pairing) -> Tree:
        """Combine `cells`, one for each node, in the order of the nodes."""
        d, pairs = cells.size, [size // 2 for size in pairing.sizes[:-1]] or [0]
        nodes = Arcs(np.empty((d, 3 * d + 2, sum(pairing.sizes[1:]))))
        leaf, inner = (Bridges(np.empty((e, 2 * d + 1 + e, n))) for e, n in ((1, pairs[0]), (d, sum(pairs[1:]))))
        return cls(pairing, nodes, leaf, inner, Ring(cells)).updated(cells, np.arange(len(pairing)))

    def updated(self, cells: Arcs, changed: IntArray) -> Tree:
        """Combine `cells` that differ from those of this tree at the nodes `changed` only.

        Only the pairs above these are combined anew. What comes out is the same bit for bit as from :meth:`over`.
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
