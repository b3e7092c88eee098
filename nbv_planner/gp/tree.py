"""Posterior on the nodes of a circular grid, in linear time: pairs of cells up to a ring, and down again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.gp.arcs import Arcs, Bridges
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
        levels: stretches of each level above the leaves; the last are those of the ring.
        bridges: laws of the middles, from the leaves to the ring.
        ring: the last stretches.
    """

    pairing: Pairing
    levels: tuple[Arcs, ...]
    bridges: tuple[Bridges, ...]
    ring: Ring

    @classmethod
    def over(cls, cells: Arcs, pairing: Pairing) -> Tree:
        """Combine `cells`, one for each node, in the order of the nodes."""
        d, sizes = len(cells.forward), pairing.sizes
        levels = tuple(Arcs.blank(d, size) for size in sizes[1:])
        bridges = tuple(Bridges.blank(d if depth else 1, d, size // 2) for depth, size in enumerate(sizes[:-1]))
        blank = cls(pairing, levels, bridges, Ring(cells))
        return blank.updated(cells, np.arange(len(pairing)))

    def updated(self, cells: Arcs, changed: IntArray) -> Tree:
        """Combine `cells` that differ from those of this tree at the nodes `changed` only.

        Only the pairs above these are combined anew. What comes out is the same bit for bit as from :meth:`over`.
        """
        pairing, level, place, levels, bridges = self.pairing, cells, self.pairing.place[changed], [], []
        at = pairing.order
        for depth, (above, bridge) in enumerate(zip(self.levels, self.bridges, strict=True)):
            odd, half = pairing.sizes[depth] % 2, pairing.sizes[depth] // 2
            touched = np.zeros(odd + half, dtype=bool)
            touched[np.where(place < odd + half, place, place - half)] = True
            pair = _never_one(np.flatnonzero(touched[odd:]))
            both, middle = level.take(at[odd + pair]).bridged(level.take(at[odd + half + pair]), bridge.rows)
            place, upper = np.flatnonzero(touched), above.replaced(odd + pair, both)
            if odd:
                upper.put(np.zeros(1, dtype=np.intp), level.take(at[:1]))
            levels.append(upper)
            bridges.append(bridge.replaced(pair, middle))
            level, at = upper, np.arange(len(upper))
        return Tree(pairing, tuple(levels), tuple(bridges), Ring(level if levels else cells.take(pairing.order)))

    @property
    def size(self) -> int:
        """Number N d of components of all states."""
        return len(self.pairing) * len(self.ring.arcs.forward)

    def mean(self) -> FloatArray:
        """Mean of f at each node, shape (N,), metres."""
        state = self.ring.mean
        for bridge, following in zip(reversed(self.bridges), self.pairing.following, strict=True):
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
        for bridge, following in zip(reversed(self.bridges), self.pairing.following, strict=True):
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
        d = len(self.ring.arcs.forward)
        state = self.ring.sample(normals[:, : self.ring.size].T)
        for bridge, following in zip(reversed(self.bridges), self.pairing.following, strict=True):
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
