"""Solids on a lattice, S of them as the bits of words: their surface elements, and what of them
poses see.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.sparse import csr_matrix

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.surface.seam import Hypotheses
from nbv_planner.volume.bodies.depth_sensor import DepthSensor
from nbv_planner.volume.grid import STRIDE, Lattice, free_line
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

Words = NDArray[np.uint64]
_WORD = 64
# Beams are so many cells apart at most where they end.
_APART = 0.5
# Least cosine between a beam and the normal at which an element counts as seen; normals of cells
# are rough.
_GRAZING = 0.1
# Width of the smoothing from which normals are taken, and how far it goes, cells.
_SMOOTH, _STENCIL = 1.2, 3
# From how far before an element its march to the camera begins, cells.
_BEFORE = 1.05
# Stands for no resolution.
_APART_KEY = -1.0
# Poses that are looked from at a time, and whose beams are kept.
_AT_A_TIME, _KEPT = 128, 2048


@dataclass(frozen=True, eq=False)
class CellHypotheses(Hypotheses):
    """Surface elements that are cells of solids; those that fill up the table have no size and
    count as seen.
    """

    lattice: Lattice
    cell: IntArray  #: number of the cell of each element, shape (S, M).
    words: Words  #: which cells belong to each solid, as bits; shape (W, N).
    #: what follows from cells and words alone, so that a copy with other parts seen has it, too.
    known: dict[float, Any] = field(default_factory=dict)

    @property
    def apart(self) -> IntArray:
        """How many cells each one is from the nearest of each solid, along the axis on which it is
        the farthest; beyond the lattice 1: shape (S, N + 1).
        """
        if _APART_KEY not in self.known:
            self.known[_APART_KEY] = self._apart()
        found: IntArray = self.known[_APART_KEY]
        return found

    def _apart(self) -> IntArray:
        found = np.ones((len(self.cell), len(self.lattice.centres) + 1), dtype=np.intp)
        for solid, row in enumerate(found):
            bits = self.words[solid // _WORD] >> np.uint64(solid % _WORD)
            empty = ((bits & np.uint64(1)) == 0).reshape(self.lattice.shape)
            row[:-1] = ndimage.distance_transform_cdt(empty, "chessboard").reshape(-1)
        return found

    def near(self, tau: float) -> list[csr_matrix]:
        """See :class:`~nbv_planner.surface.seam.Hypotheses`; neighbours are looked for once."""
        if tau not in self.known:
            self.known[tau] = list(self._neighbours(tau))
        found: list[csr_matrix] = self.known[tau]
        return found

    def _neighbours(self, tau: float) -> Iterator[csr_matrix]:
        """1 where an element lies within `tau` (metres) of another one, by shape (M, M)."""
        lattice = self.lattice
        most = self.cell.shape[1]
        away = stencil(lattice.dimension, int(tau / lattice.cell))
        away = away[np.linalg.norm(away, axis=1) * lattice.cell <= tau]
        number = np.full(len(lattice.centres) + 1, most)
        for cell, size in zip(self.cell, self.size, strict=True):
            real = np.flatnonzero(size)
            number[cell[real]] = real
            near = number[lattice.beside(cell[real], away)]
            number[cell[real]] = most
            there = near < most
            rows = np.zeros(most + 1, dtype=np.intp)
            rows[real + 1] = there.sum(axis=1)
            ones = np.ones(there.sum(), dtype=np.float32)
            yield csr_matrix((ones, near[there], np.cumsum(rows)), shape=(most, most))


def words_of(solids: BoolArray) -> Words:
    """Solids, shape (S, N), as bits of words, shape (W, N)."""
    words = np.zeros((-(-len(solids) // _WORD), solids.shape[1]), dtype=np.uint64)
    for solid, inside in enumerate(solids):
        words[solid // _WORD] |= inside.astype(np.uint64) << np.uint64(solid % _WORD)
    return words


@lru_cache(maxsize=16)
def stencil(dimension: int, radius: int) -> IntArray:
    """Steps from a cell to those up to `radius` cells away along each axis, shape (K, D)."""
    axis = np.arange(-radius, radius + 1)
    grid = np.meshgrid(*[axis] * dimension, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, dimension)


def elements(lattice: Lattice, solids: BoolArray, most: int, seed: int) -> CellHypotheses:
    """Surface elements of solids, shape (S, N): their cells with a neighbour across a side that is
    not solid.

    Of more than `most` some are drawn, which stand for all. Each counts for its part of the area:
    for a plane of unit normal n, a cell does for :math:`a^{D-1} / max_i |n_i|` of its side a.
    """
    words = words_of(solids)
    found = [
        _boundary(lattice, solid, most, np.random.default_rng([seed, 2, n]))
        for n, solid in enumerate(solids)
    ]
    number = max((len(cell) for cell, _, _ in found), default=0)
    cell = np.zeros((len(found), number), dtype=np.intp)
    normals = np.zeros((*cell.shape, lattice.dimension))
    size = np.zeros(cell.shape)
    normals[..., 0] = 1.0
    for row, (one, normal, area) in enumerate(found):
        cell[row, : len(one)], normals[row, : len(one)] = one, normal
        size[row, : len(one)] = area
        cell[row, len(one) :] = one[0] if len(one) else 0
    points = lattice.centres[cell]
    seen = np.zeros(cell.shape)
    return CellHypotheses(points, normals, size, seen, lattice, cell, words)


def _boundary(
    lattice: Lattice, solid: BoolArray, most: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Cells at the boundary, their normals and areas."""
    body = np.append(solid, False)
    dimension = lattice.dimension
    inside = np.flatnonzero(solid)
    across = np.concatenate([np.eye(dimension, dtype=int), -np.eye(dimension, dtype=int)])
    cell = inside[~body[lattice.beside(inside, across)].all(axis=1)]
    whole = len(cell)
    if whole > most:
        cell = np.sort(rng.choice(cell, most, replace=False))
    steps = stencil(dimension, _STENCIL)
    weight = np.exp(-0.5 * (steps**2).sum(axis=1) / _SMOOTH**2)[:, None] * steps
    slope = -(body[lattice.beside(cell, steps)].astype(np.float32) @ weight.astype(np.float32))
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    steep = length > 1e-6
    normal = np.where(steep, slope / np.maximum(length, 1e-6), np.eye(dimension)[0])
    part = np.maximum(np.abs(normal).max(axis=1, initial=0.0), 1e-6)
    return cell, normal, lattice.cell ** (dimension - 1) / part * (whole / max(len(cell), 1))


@dataclass(eq=False)
class Sight:
    """What poses see of solids; the cells on the beams of the newest poses are kept."""

    lattice: Lattice
    _known: dict[object, tuple[NDArray[np.int32], BoolArray]] = field(default_factory=dict)

    def visible(
        self, drawn: CellHypotheses, poses: Poses, scene: Scene, reach: float = math.inf
    ) -> BoolArray:
        """Which elements, or cells beside them, are the first that some beam of each view meets, at
        no grazing angle and within the `reach` (metres), shape (S, V, M).

        A wall at a flat angle is a staircase of cells: those behind a step would be missed by
        themselves. In space beams are too many, and each element looks for the camera.
        """
        if self.lattice.dimension == 3:
            return marched(drawn, poses, scene, reach)
        number, most = drawn.cell.shape
        found = np.zeros((number, len(poses), most), dtype=bool)
        which, place = np.unique(drawn.cell, return_inverse=True)
        place = place.reshape(drawn.cell.shape)
        cross = np.eye(self.lattice.dimension, dtype=int)
        around = self.lattice.beside(which, np.concatenate([cross, -cross]))
        for begin in range(0, len(poses), _AT_A_TIME):
            part = slice(begin, begin + _AT_A_TIME)
            cells, beyond = self._looked(poses.chosen(part), scene)
            beyond = beyond[:, which]
            for index, word in enumerate(drawn.words):
                first = _first_met(cells, np.append(word, np.uint64(0)))
                seen = first[:, which]
                for beside in around.T:
                    seen |= first[:, beside]
                seen[beyond] = 0
                rows = slice(index * _WORD, (index + 1) * _WORD)
                bits = np.arange(len(place[rows]), dtype=np.uint64)[:, None]
                met = (seen[:, place[rows]] >> bits) & np.uint64(1)
                found[rows, part] = met.astype(bool).swapaxes(0, 1)
        return _facing(drawn, poses, found, reach)

    def _looked(self, poses: Poses, scene: Scene) -> tuple[NDArray[np.int32], BoolArray]:
        """The cells that beams go through from the camera on, shape (T, V, B), the number of cells
        for none; and which cells are out of the field or range, shape (V, N).
        """
        each = [
            self._one(position, rotation, scene)
            for position, rotation in zip(poses.position, poses.rotation, strict=True)
        ]
        long, wide = (max(cells.shape[axis] for cells, _ in each) for axis in (0, 1))
        every = np.full((long, len(each), wide), len(self.lattice.centres), dtype=np.int32)
        for view, (cells, _) in enumerate(each):
            every[: cells.shape[0], view, : cells.shape[1]] = cells
        return every, np.stack([beyond for _, beyond in each])

    def _one(
        self, position: FloatArray, rotation: FloatArray, scene: Scene
    ) -> tuple[NDArray[np.int32], BoolArray]:
        """Those of one pose, with beams at most half a cell apart where range or ball ends."""
        key = (scene, position.tobytes(), rotation.tobytes())
        if key not in self._known:
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            beyond = ~_in_field((self.lattice.centres - position) @ rotation, scene)
            self._known[key] = self._through(position, rotation, scene), beyond
        return self._known[key]

    def _through(
        self, position: FloatArray, rotation: FloatArray, scene: Scene
    ) -> NDArray[np.int32]:
        lattice = self.lattice
        nowhere = len(self.lattice.centres)
        reach = min(scene.sensor.range_max, lattice.radius + float(np.linalg.norm(position)))
        local = _directions(lattice.dimension, scene, _APART * lattice.cell / reach)
        direction = local @ rotation.T
        start, end = lattice.through(position, direction)
        end = np.minimum(end, scene.sensor.range_max)
        steps = np.arange(start.min(), max(end.max(), 0.0), STRIDE * lattice.cell)[:, None]
        cell = lattice.index(position + steps[..., None] * direction)
        cell = np.where((steps >= start) & (steps <= end) & (cell >= 0), cell, nowhere)
        new = cell != nowhere
        new[1:] &= cell[1:] != cell[:-1]
        order = np.argsort(~new, axis=0, kind="stable")[: int(new.sum(axis=0).max(initial=0))]
        packed = np.take_along_axis(np.where(new, cell, nowhere), order, axis=0)
        return packed.astype(np.int32)


def marched(
    drawn: CellHypotheses, poses: Poses, scene: Scene, reach: float = math.inf
) -> BoolArray:
    """Which elements that have not been seen each pose sees within the `reach` (metres), by a march
    from a cell before each to the camera, shape (S, V, M).
    """
    lattice = drawn.lattice
    found = np.zeros((len(drawn.cell), len(poses), drawn.cell.shape[1]), dtype=bool)
    if not len(poses):
        return found
    at = (poses.rotation * poses.position[:, :, None]).sum(axis=1)
    for solid, visible in enumerate(found):
        asked = np.flatnonzero((drawn.size[solid] > 0.0) & (drawn.seen[solid] < 1.0))
        points = lattice.centres[drawn.cell[solid, asked]]
        normals = drawn.normals[solid, asked]
        # of every pose and element at once: by itself each pose takes longer than its march
        ahead = poses.position @ normals.T - (points * normals).sum(axis=1)
        square = (points**2).sum(axis=1) - 2.0 * poses.position @ points.T
        away = np.sqrt(square + (poses.position**2).sum(axis=1)[:, None])
        pose, element = np.nonzero((ahead > _GRAZING * away) & (away <= reach))
        local = poses.rotation.swapaxes(1, 2) @ points.T - at[..., None]
        inside = _in_field(local[pose, :, element], scene)
        pose, element = pose[inside], element[inside]
        start = (points + _BEFORE * lattice.cell * normals)[element]
        free = free_line(lattice, drawn.apart[solid], start, poses.position[pose])
        visible[pose[free], asked[element[free]]] = True
    return found


def _first_met(cells: NDArray[np.int32], words: Words) -> Words:
    """Of which solids, `words` of shape (N + 1,), each cell is the first one that a beam of a view
    meets, for cells of shape (T, V, B): shape (V, N + 1).
    """
    _, views, beams = cells.shape
    before = np.zeros((views, beams), dtype=np.uint64)
    row = np.repeat(np.arange(views) * len(words), beams)
    place = [np.empty(0, dtype=np.intp)]
    bits = [np.empty(0, dtype=np.uint64)]
    for step in cells:
        met = words[step]
        new = (met & ~before).reshape(-1)
        before |= met
        some = np.flatnonzero(new)
        place.append(row[some] + step.reshape(-1)[some])
        bits.append(new[some])
    seen = np.zeros(views * len(words), dtype=np.uint64)
    cell = np.concatenate(place)
    if len(cell):
        order = np.argsort(cell, kind="stable")
        start = np.flatnonzero(np.diff(cell[order], prepend=-1))
        seen[cell[order][start]] = np.bitwise_or.reduceat(np.concatenate(bits)[order], start)
    return seen.reshape(views, -1)


def _facing(drawn: CellHypotheses, poses: Poses, found: BoolArray, reach: float) -> BoolArray:
    """Those of the elements `found`, shape (S, V, M), that each pose meets at no grazing angle and
    within the `reach`, metres.
    """
    solid, view, element = np.nonzero(found)
    beam = poses.position[view] - drawn.lattice.centres[drawn.cell[solid, element]]
    ahead = np.einsum("nd,nd->n", beam, drawn.normals[solid, element])
    square = np.einsum("nd,nd->n", beam, beam)
    facing = (ahead > 0.0) & (ahead**2 > _GRAZING**2 * square) & (square <= reach**2)
    found[solid, view, element] = facing
    return found


def _directions(dimension: int, scene: Scene, step: float) -> FloatArray:
    """Directions of beams in the frame of the camera, `step` (radians) apart at most, shape (B, D).

    In space the field is that of a depth camera, or the cone about the line of sight; in the plane
    that between the bearings of the sensor.
    """
    if isinstance(scene.sensor, DepthSensor):
        return scene.sensor.beams(step)
    low, high = scene.sensor.bearing_min, scene.sensor.bearing_max
    if dimension == 2:
        bearing = np.linspace(low, high, max(2, math.ceil((high - low) / step) + 1))
        return np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
    half = scene.half_field
    axis = np.linspace(-half, half, max(2, math.ceil(2.0 * half / step) + 1))
    aside, up = (one.reshape(-1) for one in np.meshgrid(axis, axis, indexing="ij"))
    off = np.hypot(aside, up)
    aside, up, off = (one[off <= half] for one in (aside, up, off))
    return np.stack([np.cos(off), np.sinc(off / np.pi) * aside, np.sinc(off / np.pi) * up], axis=1)


def _in_field(local: FloatArray, scene: Scene) -> BoolArray:
    """Whether points in the frame of the camera, shape (n, D), lie in its field and range."""
    if isinstance(scene.sensor, DepthSensor):
        return scene.sensor.sees(local)
    distance = np.linalg.norm(local, axis=1)
    if local.shape[1] == 2:
        return scene.in_cone(np.arctan2(local[:, 1], local[:, 0]), distance)
    off = np.arctan2(np.linalg.norm(local[:, 1:], axis=1), local[:, 0])
    return np.asarray((off <= scene.half_field) & (distance <= scene.sensor.range_max))
