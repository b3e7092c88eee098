"""The outline that an object should have, of any form: signed distances from it, and places along
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.geometry import FloatArray, IntArray
from nbv_planner.world.ground.footprint import on_edges

CELLS = 720
"""Cells of equal length into which an outline is cut."""
# At least so many a polygon; points of a cell among which the nearest edge is sought.
_FEWEST, _EACH = 8, 4


@dataclass(frozen=True, eq=False)
class Feet:
    """Where on a nominal outline n points are nearest to it."""

    distance: FloatArray  #: signed, positive outside of the outline, shape (n,), metres.
    cell: IntArray  #: cell of the nearest place, shape (n,).
    outward: FloatArray  #: unit vector along which the distance grows, shape (n, 2).


class Nominal:
    """Closed polygons, cut into P cells of equal length."""

    def __init__(self, loops: Sequence[FloatArray]) -> None:
        """Cut the polygons, corners (n, 2) each without repeats, metres."""
        edges = [np.roll(loop, -1, axis=0) - loop for loop in loops]
        each = [np.hypot(*one.T) for one in edges]
        whole = float(np.concatenate(each).sum())
        counts = [max(round(CELLS * float(one.sum()) / whole), _FEWEST) for one in each]
        ends = np.cumsum(counts)
        #: cells of each polygon, in the order along it.
        self.loops = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        self._begin, self._along = np.concatenate(loops), np.concatenate(edges)
        self._size = np.concatenate(each)
        last = np.cumsum([len(loop) for loop in loops])
        self._after = np.arange(1, len(self._begin) + 1)
        self._after[last - 1] = np.append(0, last[:-1])
        turns = [
            np.full(len(loop), np.sign(np.sum(loop[:, 0] * edge[:, 1] - loop[:, 1] * edge[:, 0])))
            for loop, edge in zip(loops, edges, strict=True)
        ]
        aside = np.stack([self._along[:, 1], -self._along[:, 0]], axis=1)
        self._normal = (np.concatenate(turns) / self._size)[:, None] * aside
        # way in cells from the first one on
        self._at = np.concatenate(
            [
                part.start + (np.cumsum(one) - one) * (count / one.sum())
                for part, one, count in zip(self.loops, each, counts, strict=True)
            ]
        )
        self._step = np.concatenate(
            [np.full(len(one), one.sum() / count) for one, count in zip(each, counts, strict=True)]
        )
        spacing = float(self._step.min()) / _EACH
        found = [on_edges(loop, spacing)[0] for loop in loops]
        self._tree = cKDTree(np.concatenate(found))
        # edge of each of these points
        self._edge = np.repeat(
            np.arange(len(self._begin)),
            np.maximum(np.ceil(self._size / spacing), 1.0).astype(np.intp),
        )

    @cached_property
    def _middle(self) -> tuple[IntArray, FloatArray]:
        """Edge and point of the middle of each cell."""
        at = np.arange(self.loops[-1].stop) + 0.5
        edge = np.searchsorted(self._at, at, side="right") - 1
        part = (at - self._at[edge]) * self._step[edge] / self._size[edge]
        return edge, self._begin[edge] + part[:, None] * self._along[edge]

    @property
    def points(self) -> FloatArray:
        """Middle of each cell, shape (P, 2), metres."""
        return self._middle[1]

    @property
    def normals(self) -> FloatArray:
        """Outward unit normal in the middle of each cell, shape (P, 2)."""
        return np.asarray(self._normal[self._middle[0]])

    @property
    def length(self) -> FloatArray:
        """Length of each cell, shape (P,), metres."""
        return np.asarray(self._step[self._middle[0]])

    def feet(self, points: FloatArray) -> Feet:
        """The places nearest to points, shape (n, 2), metres."""
        near = self._edge[self._tree.query(points)[1]]
        before = np.empty_like(self._after)
        before[self._after] = np.arange(len(before))
        edge = np.stack([before[near], near, self._after[near]])
        away = points - self._begin[edge]
        part = (away * self._along[edge]).sum(axis=-1) / self._size[edge] ** 2
        part = np.clip(part, 0.0, 1.0)
        away = away - part[..., None] * self._along[edge]
        distance = np.hypot(away[..., 0], away[..., 1])
        best = distance.argmin(axis=0), np.arange(len(points))
        edge, part, away, distance = edge[best], part[best], away[best], distance[best]
        # at a corner the normal is that between the edges' (Baerentzen and Aanaes 2005)
        normal = self._normal[edge]
        normal = normal + (part == 0.0)[:, None] * self._normal[before[edge]]
        normal = normal + (part == 1.0)[:, None] * self._normal[self._after[edge]]
        side = np.where((away * normal).sum(axis=1) < 0.0, -1.0, 1.0)
        tiny = distance < 1e-9 * self._size.max()
        outward = side[:, None] * away / np.where(tiny, 1.0, distance)[:, None]
        cell = np.floor(self._at[edge] + part * self._size[edge] / self._step[edge])
        stop = np.array([part.stop for part in self.loops])
        last = stop[np.searchsorted(stop, self._at[edge], side="right")] - 1
        return Feet(
            side * distance,
            np.minimum(cell.astype(np.intp), last),
            np.where(tiny[:, None], self._normal[edge], outward),
        )
