"""Posterior on the nodes of a circular grid, in linear time: pairs of cells up to a ring, and down again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import FloatArray
from nbv_planner.gp.arcs import Arcs, Bridges
from nbv_planner.gp.pairing import Pairing
from nbv_planner.gp.ring import Ring
from nbv_planner.gp.stacks import product, root_of, transposed


@dataclass(frozen=True, eq=False)
class Tree:
    """The cells of a grid combined in pairs, level by level, until few stretches are left, which close to a ring.

    Each pair keeps the law of the state in its middle given those at its ends. The states of the ring are known
    jointly; from there each level adds the middles. Means, variances and samples come down the same way.

    Attributes:
        pairing: plan of the tree.
        bridges: laws of the middles, from the leaves to the ring.
        ring: the last stretches.
    """

    pairing: Pairing
    bridges: tuple[Bridges, ...]
    ring: Ring

    @classmethod
    def over(cls, cells: Arcs, pairing: Pairing) -> Tree:
        """Combine `cells`, one for each node, in the order of the nodes."""
        level, bridges = cells.take(pairing.order), []
        for size in pairing.sizes[:-1]:
            odd, half = size % 2, size // 2
            pairs, bridge = level[odd : odd + half].bridged(level[odd + half :])
            level = level[:1].followed_by(pairs) if odd else pairs
            bridges.append(bridge)
        return cls(pairing, tuple(bridges), Ring(level))

    @property
    def size(self) -> int:
        """Number N d of components of all states."""
        return len(self.pairing) * len(self.ring.arcs.forward)

    def mean(self) -> FloatArray:
        """Mean of f at each node, shape (N,), metres."""
        state = self.ring.mean
        for bridge, following in zip(reversed(self.bridges), self.pairing.following, strict=True):
            ends = np.concatenate([state, state.take(following, axis=-1)])[:, -len(bridge) :]
            state = np.concatenate([state, np.einsum("ijn,jn->in", bridge.weight, ends) + bridge.offset], axis=-1)
        return np.asarray(state[0].take(self.pairing.place))

    def variance(self) -> FloatArray:
        r"""Variance of f at each node, shape (N,), m².

        With S the covariance of the states at both ends of a pair, that of its middle is :math:`G S G^T + P`: a sum
        of covariances, nothing cancels.
        """
        own, across = self.ring.covariances
        for bridge, following in zip(reversed(self.bridges), self.pairing.following, strict=True):
            d, kept = len(own), own.shape[-1] - len(bridge)
            ends = np.concatenate([
                np.concatenate([own, across], axis=1),
                np.concatenate([transposed(across), own.take(following, axis=-1)], axis=1),
            ])[..., kept:]  # fmt: skip
            shared = product(ends, transposed(bridge.weight))  # covariance of both ends with the middle
            middle = product(bridge.weight, shared) + bridge.covariance
            own = np.concatenate([own, middle], axis=-1)
            across = np.concatenate([across[..., :kept], shared[:d], transposed(shared[d:])], axis=-1)
        return np.asarray(own[0, 0].take(self.pairing.place))

    def sample(self, normals: FloatArray) -> FloatArray:
        """Joint samples of f at the nodes from standard `normals`, shape (count, N d) to (count, N), metres."""
        d = len(self.ring.arcs.forward)
        state = self.ring.sample(normals[:, : self.ring.size].T)
        for bridge, following in zip(reversed(self.bridges), self.pairing.following, strict=True):
            used = state.shape[1] * d
            own = normals[:, used : used + len(bridge) * d].T.reshape(d, len(bridge), -1)
            ends = np.concatenate([state, state.take(following, axis=1)])[:, -len(bridge) :]
            middle = np.einsum("ijn,jns->ins", bridge.weight, ends)
            middle += np.einsum("ijn,jns->ins", root_of(bridge.covariance), own)
            state = np.concatenate([state, middle + bridge.offset[..., None]], axis=1)
        return np.asarray(state[0].take(self.pairing.place, axis=0).T)
