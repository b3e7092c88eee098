"""Cells of a ball, unknown, free or hit, and the table of merged hits: what scans leave behind, in
D = 2 or 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nbv_planner.errors import MeasurementError, SettingError
from nbv_planner.geometry import Arrays, BoolArray, FloatArray, IntArray, Rows
from nbv_planner.gp.posterior import saved_array
from nbv_planner.surface.seam import Hits
from nbv_planner.world.scan import FreeRays

UNKNOWN, FREE, HIT = np.uint8(0), np.uint8(1), np.uint8(2)
# Of the half side of the lattice: what lies beyond is free.
_BALL = 0.94
# Hits are sure of their cell up to this deviation, cells.
_SURE = 0.5
# Columns of the table of merged hits in a saved state.
_OF_HITS = ("hit_cells", "hit_points", "hit_beams", "hit_weight", "hit_number")
# Of a digit by which keys are sorted.
_BITS, _DIGIT = 16, 0xFFFF
# Cells that a march along a beam goes at a time.
STRIDE = 0.5
# Rays of a scan in space that are followed at most: some ten for each cell.
_ENOUGH = 20_000
# Rays that have ended are left out once fewer than this part of them goes on.
_LIVE = 0.8
# Cells that a march from a surface to a camera goes at a time: of these there are many more.
_MARCH = 0.7


@dataclass(frozen=True)
class Lattice:
    r"""Cells of equal side of the cube :math:`[-h, h]^D` about the origin.

    Raises:
        SettingError: the dimension is neither 2 nor 3, or there is no such cube.
    """

    dimension: int  #: D.
    count: int  #: cells along a side.
    half: float  #: h, metres.

    def __post_init__(self) -> None:
        if self.dimension not in (2, 3) or self.count < 4 or not 0.0 < self.half < np.inf:
            raise SettingError(
                f"lattice: {self.count} cells a side, {self.half} m, in {self.dimension}"
                " dimensions: must be >= 4, > 0 m, in 2 or 3"
            )

    @classmethod
    def around(cls, dimension: int, count: int, radius: float) -> Lattice:
        """The lattice whose ball has this `radius`, metres."""
        return cls(dimension, count, radius / _BALL)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an array over the cells."""
        return (self.count,) * self.dimension

    @property
    def cell(self) -> float:
        """Side of a cell, metres."""
        return 2.0 * self.half / self.count

    @property
    def radius(self) -> float:
        """Radius of the ball in which the object lies, metres."""
        return _BALL * self.half

    @cached_property
    def centres(self) -> FloatArray:
        """Middles of the cells, shape (N, D), metres."""
        axis = (np.arange(self.count) + 0.5) * self.cell - self.half
        return np.stack(np.meshgrid(*[axis] * self.dimension, indexing="ij"), axis=-1).reshape(
            -1, self.dimension
        )

    @cached_property
    def outside(self) -> BoolArray:
        """Which cells lie outside of the ball, shape (N,)."""
        return np.asarray(np.linalg.norm(self.centres, axis=1) > self.radius)

    @property
    def strides(self) -> IntArray:
        """By how much the number of a cell grows from cell to cell along each axis, shape (D,)."""
        return self.count ** np.arange(self.dimension - 1, -1, -1)

    def index(self, points: FloatArray) -> IntArray:
        """Number of the cell that holds each point, shape (..., D): shape (...); -1 outside of the
        cube.
        """
        # axis by axis: over a last axis of two or three numpy takes several times as long
        number, inside = np.intp(0), np.True_
        for along in np.moveaxis(points, -1, 0):
            place = np.floor((along + self.half) / self.cell).astype(np.intp)
            inside = inside & (place >= 0) & (place < self.count)
            number = number * self.count + place
        return np.asarray(np.where(inside, number, -1))

    def number(self, places: Iterable[FloatArray]) -> IntArray:
        """Number of the cell of places in the cube, given axis by axis in cells from its corner."""
        number: IntArray = np.zeros(1, dtype=np.int32)
        for along in places:
            number = number * np.int32(self.count) + along.astype(np.int32)
        return number

    def beside(self, cells: IntArray, steps: IntArray) -> IntArray:
        """Numbers of the cells that are `steps`, shape (K, D), from others, (n,): shape (n, K); the
        number of cells beyond the cube.
        """
        place = np.stack(np.unravel_index(cells, self.shape), axis=-1)
        found = cells[:, None] + steps @ self.strides
        far = int(np.abs(steps).max(initial=0))
        if place.min(initial=far) >= far and place.max(initial=0) < self.count - far:
            return np.asarray(found)
        place = place[:, None] + steps
        inside = ((place >= 0) & (place < self.count)).all(axis=-1)
        return np.asarray(np.where(inside, found, self.count**self.dimension))

    def through(self, origin: FloatArray, direction: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far from one origin (D,) rays (B, D) enter the ball and leave it, (B,) each; the
        second one is -1 where the ball is missed.
        """
        along = -(direction @ origin)
        square = along**2 - origin @ origin + self.radius**2
        half = np.sqrt(np.maximum(square, 0.0))
        return np.maximum(along - half, 0.0), np.where(square > 0.0, along + half, -1.0)


@dataclass(frozen=True, eq=False)
class Merged(Rows):
    """Hits of one cell whose beams come from the same side, as one: a bounded number of them,
    whatever was added.
    """

    key: IntArray  #: cell and side of each, rising, shape (n,).
    points: FloatArray  #: weighted sum of the points, shape (n, D).
    beams: FloatArray  #: weighted sum of the directions of the beams, shape (n, D).
    weight: FloatArray  #: sum of 1/σ², shape (n,).
    number: FloatArray  #: of hits in each, shape (n,).

    @classmethod
    def none(cls, dimension: int = 2) -> Merged:
        """No hit."""
        return cls(
            np.empty(0, np.intp),
            np.empty((0, dimension)),
            np.empty((0, dimension)),
            np.empty(0),
            np.empty(0),
        )

    @classmethod
    def of_state(cls, state: Arrays, lattice: Lattice) -> Merged:
        """That of a :attr:`state`.

        Raises:
            MeasurementError: it is no such state.
        """
        key = saved_array(state, "hit_cells", None, dtype=np.intp, least=0)
        dimension = lattice.dimension
        points, beams = (saved_array(state, name, len(key), dimension) for name in _OF_HITS[1:3])
        weight, number = (saved_array(state, name, len(key), least=0.0) for name in _OF_HITS[3:])
        if len(key) and (
            (np.diff(key) <= 0).any() or key[-1] >> dimension >= lattice.count**dimension
        ):
            raise MeasurementError("hit_cells: must rise, and be cells of the lattice")
        if not (weight > 0.0).all():
            raise MeasurementError("hit_weight: must be > 0")
        return cls(key, points, beams, weight, number)

    @property
    def state(self) -> Arrays:
        """All of it, as arrays by name."""
        return dict(zip(_OF_HITS, self._columns(), strict=True))

    def by(self, key: IntArray) -> Merged:
        """The same merged by other keys, shape (n,)."""
        order = _order(key)
        start = np.flatnonzero(np.diff(key[order], prepend=np.intp(-1)))
        if not len(key):
            return self
        summed = (np.add.reduceat(one.take(order, axis=0), start) for one in self._columns()[1:])
        return Merged(key[order][start], *summed)

    def adding(self, hits: Hits, lattice: Lattice) -> Merged:
        """The table with more hits."""
        place, beam = hits.points.copy(), hits.points - hits.origin
        weight = 1.0 / hits.sigma**2
        _each(np.divide, beam, np.maximum(hits.reach, np.finfo(float).tiny))
        cell = lattice.index(hits.points)
        side = (beam > 0.0) @ (1 << np.arange(lattice.dimension))
        _each(np.multiply, beam, weight)
        _each(np.multiply, place, weight)
        new = Merged((cell << lattice.dimension) + side, place, beam, weight, np.ones(len(hits)))
        kept = slice(None) if (cell >= 0).all() else cell >= 0
        both = Merged.together([self, new.chosen(kept)])
        return both.by(both.key)

    @cached_property
    def mean(self) -> FloatArray:
        """Where they are, shape (n, D), metres."""
        return np.asarray(self.points / self.weight[:, None])

    @cached_property
    def direction(self) -> FloatArray:
        """Mean direction of the beams, shape (n, D)."""
        return np.asarray(
            self.beams
            / np.maximum(np.linalg.norm(self.beams, axis=1), np.finfo(float).tiny)[:, None]
        )

    @property
    def sigma(self) -> FloatArray:
        """Standard deviation of each along the beam, shape (n,), metres."""
        return np.asarray(1.0 / np.sqrt(self.weight))

    @property
    def noise(self) -> float:
        """Standard deviation of a single range, the median, metres; 0 without a hit."""
        return float(np.sqrt(np.median(self.number / self.weight))) if len(self.key) else 0.0

    def coarser(self, lattice: Lattice, side: float) -> Merged:
        """Merged in cells of this `side`, metres, by the direction of the beams."""
        place = np.floor((self.mean + lattice.half) / side).astype(np.intp)
        most = int(2.0 * lattice.half / side) + 2
        cell = place @ (most ** np.arange(lattice.dimension))
        return self.by((cell << lattice.dimension) + self.key % (1 << lattice.dimension))


@dataclass(frozen=True, eq=False)
class Cells:
    """What is known of each cell, and the merged hits. Immutable."""

    lattice: Lattice
    state: NDArray[np.uint8]  #: :data:`UNKNOWN`, :data:`FREE` or :data:`HIT`, shape (N,).
    hits: Merged

    @classmethod
    def blank(cls, lattice: Lattice) -> Cells:
        """Nothing is known but that the object lies in the ball."""
        return cls(
            lattice, np.where(lattice.outside, FREE, UNKNOWN), Merged.none(lattice.dimension)
        )

    @cached_property
    def sure(self) -> IntArray:
        """Cells in which something was hit with a deviation of half a cell at most: noise moves
        others aside.
        """
        exact = np.sqrt(self.hits.number / self.hits.weight) <= _SURE * self.lattice.cell
        return np.unique(self.hits.key[exact] >> self.lattice.dimension)

    def adding(self, hits: Hits, free: Iterable[FreeRays] = ()) -> Cells:
        """With more hits, and with rays on which there is no surface, those of the hits among them.

        A cell that was hit remains hit, even if rays pass through it; a ray ends a cell before its
        hit.

        Raises:
            MeasurementError: a hit is of another dimension, not finite, or has no positive
                deviation; or there are rays of other hits.
        """
        if hits.points.shape[1:] != (self.lattice.dimension,):
            raise MeasurementError(
                f"hits are of shape {hits.points.shape}, must be (n, {self.lattice.dimension})"
            )
        finite = np.isfinite(hits.points + hits.origin).all(axis=1)
        if not (good := finite & (hits.sigma > 0.0)).all():
            first = int(np.argmin(good))
            raise MeasurementError(
                f"hit {first}: from {hits.origin[first].tolist()} to {hits.points[first].tolist()},"
                f" deviation {hits.sigma[first]}: must be finite and > 0 m"
            )
        state = self.state.copy()
        for rays in _until_hits(hits, list(free), self.lattice.cell):
            state[crossed(self.lattice, rays)] = FREE  # what was hit, now or before, is HIT again
        merged = self.hits.adding(hits, self.lattice)
        state[merged.key >> self.lattice.dimension] = HIT
        return replace(self, state=state, hits=merged)

    def near(self, points: FloatArray, distance: float) -> BoolArray:
        """Which points, shape (n, D), lie within a `distance` (metres), or a cell if that is more,
        of a hit: shape (n,).
        """
        most = max(distance, self.lattice.cell)
        away, _ = cKDTree(self.hits.mean).query(points, distance_upper_bound=most)
        return np.asarray(np.isfinite(away))

    def passed(self, points: FloatArray) -> BoolArray:
        """Which points, shape (..., D), lie in a cell of the ball that is free: shape (...)."""
        # beyond the cube it is the last cell, which is outside of the ball
        free = (self.state == FREE) & ~self.lattice.outside
        return np.asarray(free[self.lattice.index(points)])


def _each(apply: np.ufunc, rows: FloatArray, by: FloatArray) -> None:
    """Change each of the `rows`, shape (n, D), in place by a number, (n,); over so short a last
    axis numpy takes several times as long.
    """
    for along in rows.T:
        apply(along, by, out=along)


def _order(key: IntArray) -> IntArray:
    """Stable argsort of keys >= 0, by digits of 16 bits: numpy sorts these by their count."""
    order = np.argsort((key & _DIGIT).astype(np.uint16), kind="stable")
    while (key := key >> _BITS).any():
        order = order[np.argsort((key & _DIGIT).astype(np.uint16)[order], kind="stable")]
    return order


def _until_hits(hits: Hits, free: Sequence[FreeRays], margin: float) -> Iterator[FreeRays]:
    """Rays, those of hits up to a `margin` (metres) before their hit at most."""
    number = np.cumsum([int(rays.of_hit.sum()) for rays in free])
    if len(free) and number[-1] != len(hits):
        raise MeasurementError(f"there are rays of {number[-1]} hits, must be of {len(hits)}")
    for rays, before in zip(free, np.split(hits.reach - margin, number), strict=False):
        length = rays.length.copy()
        length[rays.of_hit] = np.minimum(length[rays.of_hit], before)
        yield replace(rays, length=length)


def crossed(lattice: Lattice, rays: FreeRays) -> IntArray:
    """Numbers of the cells that rays go through, each once; in space at most 20 000 rays are
    sampled, since neighbours go through the same cells.
    """
    if lattice.dimension == 3 and len(rays.length) > _ENOUGH:
        drawn = np.random.default_rng(0).choice(len(rays.length), _ENOUGH, replace=False)
        rays = replace(rays, direction=rays.direction[drawn], length=rays.length[drawn])
    start, end = lattice.through(rays.origin, rays.direction)
    end = np.minimum(end, rays.length)
    live = end > start
    found = np.zeros(len(lattice.centres), dtype=bool)
    depth, end = start[live], end[live]
    # in cells from the corner of the lattice, an axis at a time: the march is most of the time
    origin = (rays.origin + lattice.half) / lattice.cell
    direction = rays.direction[live].T / lattice.cell
    while len(depth):
        found[lattice.number(o + depth * d for o, d in zip(origin, direction, strict=True))] = True
        further = depth + STRIDE * lattice.cell
        going = further < end
        depth = np.where(going, further, depth)  # one that has ended stays where it is
        if np.count_nonzero(going) < _LIVE * len(depth):
            depth, end, direction = depth[going], end[going], direction[:, going]
    return np.flatnonzero(found)


def free_line(lattice: Lattice, apart: IntArray, start: FloatArray, end: FloatArray) -> BoolArray:
    """From which of the places, shape (n, D), nothing solid is on the line to another one, (n, D),
    within the ball.

    `apart`, shape (N + 1,), is how many cells each one is from the nearest solid one along the axis
    on which it is the farthest, 0 in it: so far nothing is met, in any direction.
    """
    direction = end - start
    direction *= 1.0 / np.maximum(np.linalg.norm(direction, axis=1), 1e-12)[:, None]
    # in cells from the corner of the lattice, single precision: the march is most of the time
    place = ((start + lattice.half) / lattice.cell).astype(np.float32)
    direction = direction.astype(np.float32)
    middle, most = np.float32(0.5 * lattice.count), np.float32(lattice.radius / lattice.cell) ** 2
    strides = lattice.strides.astype(np.int32)
    step = np.maximum(apart - 1, _MARCH).astype(np.float32)
    free = np.ones(len(start), dtype=bool)
    live = np.arange(len(start))
    while len(live):
        off = place - middle
        kept = np.einsum("nd,nd->n", off, off) < most
        live, place, direction = live[kept], place[kept], direction[kept]
        cell = place.astype(np.int32) @ strides
        met = apart[cell] == 0
        free[live[met]] = False
        live, direction = live[~met], direction[~met]
        place = place[~met] + step[cell[~met], None] * direction
    return free
