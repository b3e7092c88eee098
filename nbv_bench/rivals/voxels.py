"""Rivals in space, on the cells of the surface: volumetric gains (Delmerico et al. 2018), frontier
cells in view, and projection in place of ray casting (Jia et al. 2025).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import ndimage
from scipy.special import logit

from nbv_bench.rivals import farthest_ranks
from nbv_bench.rivals.projection import Ellipses, around_both
from nbv_bench.rivals.volumetric import GAINS, OccupancyGrid, Rays, volumetric_gain
from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.settings import Settings, setting
from nbv_planner.volume.bodies.depth_sensor import DepthSensor
from nbv_planner.volume.grid import FREE, HIT, STRIDE, UNKNOWN, Cells, Lattice, free_line
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import Poses

# How far before a frontier cell its march to the camera begins, cells.
_BEFORE = 1.2


@dataclass(frozen=True, eq=False)
class SpaceGrid(OccupancyGrid):
    """Cells of a surface in space as an occupancy grid: a cell is occupied if it was hit."""

    lattice: Lattice

    @classmethod
    def of_cells(cls, cells: Cells, depth: float, free: float) -> SpaceGrid:
        """The grid in which a cell that was looked through is occupied with the probability `free`,
        one that was hit with its complement, and cells up to `depth` (metres) behind a hit, along
        the mean beam of the hits of a cell, are hidden by it.
        """
        lattice, hits = cells.lattice, cells.hits
        hidden = np.full(len(cells.state) + 1, np.inf)
        for distance in np.arange(STRIDE, depth / lattice.cell, STRIDE) * lattice.cell:
            np.minimum.at(hidden, lattice.index(hits.mean + distance * hits.direction), distance)
        hidden[-1] = np.inf  # outside
        odds = np.choose(cells.state, [0.0, logit(free), -logit(free)])
        observed = np.append(cells.state != UNKNOWN, True)
        odds = np.append(odds, -np.inf)
        return cls(lattice.half, lattice.count, odds, observed, hidden, lattice)

    def beside(self, cells: BoolArray) -> BoolArray:
        """Which cells have one of these among their 26 neighbours, shape (N + 1,)."""
        near = np.ones((3, 3, 3), dtype=bool)
        near[1, 1, 1] = False
        cube = ndimage.binary_dilation(cells[:-1].reshape(self.lattice.shape), near)
        return np.append(cube.reshape(-1), False)

    def centres(self, cells: BoolArray) -> FloatArray:
        """Middles of these cells, shape (n, 3), metres."""
        return self.lattice.centres[cells[:-1]]


@lru_cache(maxsize=2)
def rays_through(lattice: Lattice, poses: Poses, sensor: DepthSensor, columns: int) -> Rays:
    """Cells along `columns` times as many rows of rays as the image of the `sensor` has, over its
    field, from where they enter the ball to where they leave it or the range ends.
    """
    beams = _image(sensor, columns)
    nowhere, every = len(lattice.centres), []
    for position, rotation in zip(poses.position, poses.rotation, strict=True):
        direction = beams @ rotation.T
        start, end = lattice.through(position, direction)
        end = np.minimum(end, sensor.range_max)
        steps = np.arange(math.ceil(2.0 * lattice.radius / (STRIDE * lattice.cell)))
        distance = start[:, None] + (steps + 0.5) * (STRIDE * lattice.cell)
        cell = lattice.index(position + distance[..., None] * direction[:, None])
        every.append(
            np.where((distance < end[:, None]) & (cell >= 0), cell, nowhere).astype(np.int32)
        )
    cell = np.stack(every)
    new = np.ones(cell.shape, dtype=bool)
    new[..., 1:] = cell[..., 1:] != cell[..., :-1]
    return Rays(cell, new)


def _image(sensor: DepthSensor, columns: int) -> FloatArray:
    """Directions of `columns` times as many rows of rays as the image of the sensor has."""
    return sensor.beams(2.0 * float(sensor.half_tangents[0]) / (columns - 1.001))


def border_of(cells: Cells) -> BoolArray:
    """Which cells are unknown with a free one and one that was hit across a side, shape (N,)."""
    cube = cells.state.reshape(cells.lattice.shape)
    beside = [ndimage.binary_dilation(cube == kind) for kind in (FREE, HIT)]
    return np.asarray(((cube == UNKNOWN) & beside[0] & beside[1]).reshape(-1))


def frontier_in_view(cells: Cells, poses: Poses, sensor: DepthSensor) -> FloatArray:
    """Number of cells of the :func:`border_of` what is known in the field of each pose, with no hit
    cell on the way to the camera, shape (V,).
    """
    lattice = cells.lattice
    points = lattice.centres[border_of(cells)]
    empty = (cells.state != HIT).reshape(lattice.shape)
    apart = np.append(ndimage.distance_transform_cdt(empty, "chessboard").reshape(-1), 1)
    found = np.zeros(len(poses))
    for number, (position, rotation) in enumerate(zip(poses.position, poses.rotation, strict=True)):
        inside = points[sensor.sees((points - position) @ rotation)]
        ahead = position - inside
        ahead = ahead / np.linalg.norm(ahead, axis=1)[:, None]
        start = inside + _BEFORE * lattice.cell * ahead
        found[number] = free_line(lattice, apart, start, np.tile(position, (len(start), 1))).sum()
    return found


def projected_frontier(
    ellipsoids: Ellipses, frontier: BoolArray, poses: Poses, beams: FloatArray
) -> FloatArray:
    r"""Number of `beams`, shape (B, 3) in the frame of the camera, on which the ellipsoid of the
    nearest middle is one of the `frontier`, (K,), for each pose, (V,).

    A beam d from c meets :math:`m + L u, \|u\| \le 1`, if with :math:`o = L^{-1}(m - c)` and
    :math:`e = L^{-1} d` :math:`o·e > 0` and :math:`(o·e)^2 \ge \|e\|^2 (\|o\|^2 - 1)`.
    """
    found = np.zeros(len(poses))
    if not frontier.any():
        return found
    inverse = np.linalg.inv(ellipsoids.shape)
    for number, (position, rotation) in enumerate(zip(poses.position, poses.rotation, strict=True)):
        apart = ellipsoids.middle - position
        to = (inverse @ apart[:, :, None])[..., 0]
        along = np.einsum("kij,bj->bki", inverse, beams @ rotation.T)
        ahead = (along * to).sum(axis=2)
        met = ahead**2 >= (along**2).sum(axis=2) * ((to**2).sum(axis=1) - 1.0)
        depth = np.where(met & (ahead > 0.0), np.linalg.norm(apart, axis=1), np.inf)
        found[number] = (frontier[depth.argmin(axis=1)] & np.isfinite(depth.min(axis=1))).sum()
    return found


@dataclass(frozen=True)
class Voxels(Settings):
    """Take the view of the greatest gain on the cells of the surface: one of
    :func:`.volumetric_gain`, :func:`frontier_in_view`, or :func:`projected_frontier`; where none
    has any, the view farthest from all so far.
    """

    gain: str = setting(
        "frontier",
        "voxels: gain of a view.",
        choices=("frontier", "projection", *GAINS),
        read_only=False,
    )
    columns: int = setting(
        24, "voxels: rays of a row of a view; of the frontier none.", ge=2, le=1000, read_only=False
    )
    free: float = setting(
        0.03,
        "voxels: probability that a cell that was looked through is occupied.",
        gt=0.0,
        lt=0.5,
        read_only=False,
    )
    depth: int = setting(
        5,
        "voxels: cells behind a hit that proximity_count values.",
        ge=1,
        le=1000,
        read_only=False,
    )
    cluster: float = setting(
        3.0, "voxels: radius of a cluster of projection, in cells.", gt=0.0, read_only=False
    )

    def decide(self, memory: Memory) -> FloatArray:
        """Gain of each of the views, shape (V,).

        Raises:
            SettingError: the surface is not one of cells in space.
        """
        surface, sensor = memory.surface, memory.scene.sensor
        if not isinstance(surface, VolumeSurface) or not isinstance(sensor, DepthSensor):
            raise SettingError("planner voxels: needs a surface of cells in space")
        score = self._score(surface.cells, memory, sensor)
        return score if score.any() else farthest_ranks(memory.views, memory.visited)

    def _score(self, cells: Cells, memory: Memory, sensor: DepthSensor) -> FloatArray:
        if self.gain == "frontier":
            return frontier_in_view(cells, memory.views, sensor)
        if self.gain == "projection":
            places = [cells.lattice.centres[one] for one in (cells.state == HIT, border_of(cells))]
            around = around_both(places, self.cluster, cells.lattice.cell)
            return projected_frontier(*around, memory.views, _image(sensor, self.columns))
        depth = self.depth * cells.lattice.cell
        grid = SpaceGrid.of_cells(cells, depth, self.free)
        rays = rays_through(cells.lattice, memory.candidates, sensor, self.columns)
        kept = memory.candidates.repeat(memory.views)
        return volumetric_gain(grid, Rays(rays.cell[kept], rays.new[kept]), self.gain, depth)
