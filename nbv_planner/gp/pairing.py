"""In which order the cells of a grid on the circle are combined in pairs, and the way back."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, wrap_angle

# Grid angles nearer than this are one node (radians): no radius differs noticeably between them.
_SAME_ANGLE = 1e-12

# Most stretches that the dense solution takes over from the pairs; more and fewer were slower at M = 1000.
_MOST_IN_RING = 16


@dataclass(frozen=True, eq=False)
class Pairing:
    """Plan of a binary tree over the cells between neighbouring grid angles.

    Where the number of stretches of a level is odd, the first one is left over. Behind it lie the first ones of all
    pairs and then the second ones, at every level, so that no level has to be copied to be combined.

    Attributes:
        node: distinct grid angles, rising, shape (N,), radians in [0, 2π).
        back: which node each grid angle is, shape (M,).
        order: the cells in the order in which they lie at the leaves, shape (N,).
        place: where each cell lies, shape (N,).
        sizes: number of stretches at each level, from the leaves to the ring.
        following: where the next stretch around the circle lies, at each level from the ring to the one above the
            leaves.
    """

    node: FloatArray
    back: IntArray
    order: IntArray
    place: IntArray
    sizes: tuple[int, ...]
    following: tuple[IntArray, ...]

    @classmethod
    def of(cls, grid: FloatArray, shortest: float) -> Pairing:
        """Plan for a grid of at least one angle.

        Args:
            grid: query angles, shape (M,), radians, in any order; repeats are welcome.
            shortest: length that a stretch in the ring must have unless it is the only one, radians.
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
        """Return the number N of nodes."""
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
