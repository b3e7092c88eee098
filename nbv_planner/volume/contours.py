"""The likeliest object, and its closed outlines in the plane, by marching squares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.geometry import BoolArray, FloatArray, IntArray, runs_around
from nbv_planner.volume.grid import Cells, Lattice
from nbv_planner.volume.implicit import Posterior, interpolation
from nbv_planner.volume.sampled_solids import needed, solids_of


@dataclass(frozen=True, eq=False)
class Body:
    """The outline of one body, once around it and counter-clockwise; n corners, the last one joined
    to the first.
    """

    points: FloatArray  #: shape (n, 2), metres, in the object frame.
    std: FloatArray  #: standard deviation of the surface there, shape (n,), metres.
    measured: BoolArray  #: whether a hit is near, shape (n,); else it is the model's guess.

    @property
    def stretches(self) -> list[tuple[bool, IntArray]]:
        """Measured and guessed ones, see :func:`~nbv_planner.geometry.runs_around`."""
        return runs_around(self.measured)


@dataclass(frozen=True, eq=False)
class Likeliest:
    """The object of the mean of φ."""

    cells: Cells
    posterior: Posterior
    aside: FloatArray  #: where the middle of the cells is in the object frame, shape (D,), metres.

    @cached_property
    def _mean(self) -> FloatArray:
        """Of φ at the coarse cells that need it, +inf elsewhere, shape (1, n), in radii."""
        coarse = self.posterior.coarse
        where = needed(self.cells, coarse)
        mean = np.full((1, len(where)), np.inf)
        mean[:, where] = self.posterior.mean(coarse.centres[where])
        return mean

    @cached_property
    def solids(self) -> BoolArray:
        """Which cells belong to it, shape (1, N)."""
        return solids_of(self.cells, self.posterior.coarse, self._mean)

    @property
    def levels(self) -> FloatArray:
        """Mean of φ at each cell, negative in what is solid and positive in what is not: where it
        says otherwise, the surface goes past the middle of the cell; in radii, shape (N,).
        """
        lattice = self.cells.lattice
        mean = interpolation(self.posterior.coarse, lattice.centres) @ np.minimum(
            self._mean[0], 1.0
        )
        least = _BESIDE * lattice.cell / lattice.radius
        level = np.where(self.solids[0], np.minimum(mean, -least), np.maximum(mean, least))
        return np.asarray(level)

    def deviation(self, points: FloatArray, met: BoolArray) -> FloatArray:
        """That of φ at points about the middle of the cells, shape (n, D), that of a range at most
        where they are `met`: shape (n,), metres.
        """
        noise = float(self.cells.hits.sigma.min(initial=np.inf))
        wide = self.posterior.std(points) * self.cells.lattice.radius
        return np.where(met, np.minimum(wide, noise), wide)

    @cached_property
    def bodies(self) -> list[Body]:
        """Its outlines in the plane, the largest body first, measured where a hit lies within two
        of its deviations; holes are left out. None before the first hit, and none in space.
        """
        lattice, hits = self.cells.lattice, self.cells.hits
        if not len(hits.key) or lattice.dimension != 2:
            return []
        noise = 2.0 * hits.noise
        found = []
        for points in outlines_of(lattice, self.levels):
            std = self.deviation(points, self.cells.near(points, 0.0))
            found.append(Body(points + self.aside, std, self.cells.near(points, noise)))
        return found

    def occupied(self, points: FloatArray) -> BoolArray:
        """Which points of the object frame, shape (..., D), lie in it: shape (...)."""
        # beyond the cube it is the last cell, which is outside of the ball
        return np.asarray(self.solids[0][self.cells.lattice.index(points - self.aside)])

    def passed(self, points: FloatArray) -> BoolArray:
        """Which points of the object frame lie in a free cell, see :meth:`.Cells.passed`."""
        return self.cells.passed(points - self.aside)


# How far from the middle of a cell a line passes at least, cells.
_BESIDE = 0.1


def outlines_of(lattice: Lattice, level: FloatArray) -> list[FloatArray]:
    """Outlines, the largest one first, of where the `level` of the cells, shape (N,), is below 0:
    polygons, counter-clockwise, each of shape (n, 2), metres.
    """
    lines = sorted(closed_lines(level.reshape(lattice.shape)), key=area, reverse=True)
    return [(line + 0.5) * lattice.cell - lattice.half for line in lines if area(line) > 0.0]


def area(loop: FloatArray) -> float:
    """Area within a polygon, shape (n, 2); negative if it goes clockwise."""
    x, y = loop.T
    return 0.5 * float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())


def closed_lines(level: FloatArray) -> list[FloatArray]:
    """Where values on a square lattice, shape (n, n), change from below 0 to above: lines with what
    is below on their left, each of shape (k, 2), in steps of the lattice from its first point.

    They are closed if no value at the border is below 0, and do not cross. Parts below 0 that touch
    at a corner are apart.
    """
    count = len(level)
    low = level < 0.0
    number = np.arange(level.size).reshape(level.shape)
    # Corners of each square counter-clockwise, and the edge that follows each: the number of its
    # first point, with that of all points added if it lies along the second axis.
    corner = np.stack([low[:-1, :-1], low[1:, :-1], low[1:, 1:], low[:-1, 1:]])
    edge = np.stack(
        [
            number[:-1, :-1],
            number[1:, :-1] + level.size,
            number[:-1, 1:],
            number[:-1, :-1] + level.size,
        ]
    )
    following: dict[int, int] = {}
    for last in range(4):
        leaves = corner[last] & ~corner[(last + 1) % 4]
        run = 1 + corner[last - 1] * (1 + corner[last - 2])
        for length in (1, 2, 3):
            some = leaves & (run == length)
            before = edge[last - length][some]
            following.update(zip(edge[last][some].tolist(), before.tolist(), strict=True))
    lines = []
    values = level.reshape(-1)
    while following:
        first, at = following.popitem()
        line = [first]
        while at != first:
            line.append(at)
            at = following.pop(at)
        along, start = np.divmod(np.array(line), level.size)
        end = start + np.where(along, 1, count)
        part = values[start] / (values[start] - values[end])
        place = np.stack(np.divmod(start, count), axis=1).astype(float)
        place[np.arange(len(line)), along] += part
        lines.append(place)
    return lines
