"""Volumetric information gain (Delmerico, Isler, Sabzevari, Scaramuzza 2018) on an occupancy grid
of log-odds in the plane (Hornung et al. 2013, OctoMap), and rays through it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import entr, expit

from nbv_planner.geometry import BoolArray, FloatArray, IntArray
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.settings import Settings, setting
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene


class Odds(NamedTuple):
    """Probabilities of a cell that was unknown after a hit and after a miss, and the bounds between
    which any stays.
    """

    hit: float = 0.7
    miss: float = 0.4
    least: float = 0.12
    most: float = 0.97


OCTOMAP = Odds()
"""The defaults of OctoMap."""
# Samples per cell side along a ray; a cell that a ray cuts for less than one step may be missed.
_STEPS = 2
_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


@dataclass(frozen=True, eq=False)
class Rays:
    """What rays pass, shape (V, R, S): S samples of R rays of V views."""

    cell: IntArray  #: index of the cell at each sample.
    new: BoolArray  #: whether it is another one than at the sample before.


@dataclass(frozen=True, eq=False)
class OccupancyGrid:
    r"""Square cells over the square that holds every object of the scene; N cells, and one for all
    that is outside.

    Cell i is occupied with the probability :math:`1 / (1 + e^{-l_i})`. Each scan adds
    :math:`\ln(p/(1-p))` to the log-odds l of a cell: with the p of a hit if there is one, else with
    that of a miss if a beam passes it, within bounds (:class:`Odds`). Cells start at 0; what is
    outside is known to be free.
    """

    half: float  #: half a side of the square, metres.
    side: int  #: cells per side.
    log_odds: FloatArray  #: shape (N + 1,).
    observed: BoolArray  #: which cells had a hit or a miss, or are outside, shape (N + 1,).
    #: distance from the nearest hit on the same beam to a cell that it hides, shape (N + 1,),
    #: metres; else +inf.
    hidden: FloatArray

    @classmethod
    def of(
        cls,
        scans: Sequence[Scan],
        poses: Sequence[CameraPose],
        scene: Scene,
        side: int,
        reach: float = 0.0,
        odds: Odds = OCTOMAP,
    ) -> OccupancyGrid:
        """Insert scans; cells up to `reach`, metres, behind a hit count as hidden by it."""
        number = side * side + 1
        grid = cls(
            scene.radius_max,
            side,
            np.zeros(number),
            np.zeros(number, dtype=bool),
            np.full(number, np.inf),
        )
        for scan, pose in zip(scans, poses, strict=True):
            grid._insert(scan, pose, scene, reach, odds)
        grid.log_odds[-1] = -np.inf
        grid.observed[-1] = True
        grid.hidden[-1] = np.inf
        return grid

    @property
    def cell(self) -> float:
        """Side of a cell, metres."""
        return 2.0 * self.half / self.side

    @property
    def probability(self) -> FloatArray:
        """With which each cell is occupied, shape (N + 1,)."""
        return np.asarray(expit(self.log_odds))

    @property
    def entropy(self) -> FloatArray:
        r"""Of each cell, :math:`-p \ln p - (1-p) \ln(1-p)`, shape (N + 1,), nats; ln 2 where
        nothing is known.
        """
        return np.asarray(entr(self.probability) + entr(1.0 - self.probability))

    @property
    def unknown(self) -> BoolArray:
        """Which cells were never observed, shape (N + 1,)."""
        return ~self.observed

    @property
    def occupied(self) -> BoolArray:
        """Which cells are rather occupied than free, shape (N + 1,)."""
        return np.asarray(self.log_odds > 0.0)

    def beside(self, cells: BoolArray) -> BoolArray:
        """Which cells have one of these among their eight neighbours, shape (N + 1,)."""
        square = np.pad(cells[:-1].reshape(self.side, self.side), 1)
        near = np.any([np.roll(square, shift, axis=(0, 1)) for shift in _NEIGHBOURS], axis=0)[
            1:-1, 1:-1
        ]
        return np.append(near.ravel(), False)

    def centres(self, cells: BoolArray) -> FloatArray:
        """Middles of these cells, shape (n, 2), metres."""
        places = np.stack(np.divmod(np.flatnonzero(cells[:-1]), self.side), axis=1)
        return np.asarray((places + 0.5) * self.cell - self.half)

    def index(self, x: FloatArray, y: FloatArray) -> IntArray:
        """Of the cell that holds each place, metres; the last one outside of the square."""
        column, row = (
            np.floor((place + self.half) / self.cell).astype(np.intp) for place in (x, y)
        )
        inside = (column >= 0) & (column < self.side) & (row >= 0) & (row < self.side)
        return np.where(inside, column * self.side + row, self.side * self.side)

    def trace(self, views: Poses, scene: Scene, rays: int) -> Rays:
        """Cells along rays at equal bearings over the sensor's field, from its least to its
        greatest range.
        """
        sensor = scene.sensor
        (x, y) = views.position.T
        bearing = np.linspace(sensor.bearing_min, sensor.bearing_max, rays)
        nearest = max(sensor.range_min, float(views.distance.min()) - math.sqrt(2.0) * self.half)
        furthest = min(sensor.range_max, float(views.distance.max()) + math.sqrt(2.0) * self.half)
        along = np.arange(nearest, max(furthest, nearest + self.cell), self.cell / _STEPS)
        heading = views.heading[:, None, None] + bearing[:, None]
        cell = self.index(
            x[:, None, None] + np.cos(heading) * along, y[:, None, None] + np.sin(heading) * along
        )
        return Rays(cell, np.diff(cell, axis=2, prepend=-1) != 0)

    def _insert(self, scan: Scan, pose: CameraPose, scene: Scene, reach: float, odds: Odds) -> None:
        """Add what a scan says; a cell changes once, and a hit counts more than beams that pass."""
        sensor = scene.sensor
        ranges = np.asarray(scan.ranges, dtype=float)
        low = max(scan.range_min, sensor.range_min)
        high = min(scan.range_max, sensor.range_max)
        hit = (ranges >= low) & (ranges <= high)
        used = hit | (np.isposinf(ranges) & sensor.misses_are_free)
        bearing = scan.bearings[used]
        length = np.where(hit, ranges, high)[used]
        hit = hit[used]
        along = np.arange(
            low, float(length.max(initial=low)) + reach + self.cell, self.cell / _STEPS
        )
        passed = self.index(*pose.to_world(bearing[:, None], along))
        free = np.zeros(len(self.log_odds), dtype=bool)
        free[passed[along <= length[:, None]]] = True
        met = np.zeros_like(free)
        met[self.index(*pose.to_world(bearing[hit], length[hit]))] = True
        hits, misses, least, most = (math.log(p / (1.0 - p)) for p in odds)
        self.log_odds[:] = np.clip(
            self.log_odds + np.where(met, hits, np.where(free, misses, 0.0)), least, most
        )
        self.observed[:] |= met | free
        behind = along - length[:, None]
        shadow = hit[:, None] & (behind > 0.0) & (behind <= reach)
        np.minimum.at(self.hidden, passed[shadow], behind[shadow])


GAINS = ("average_entropy", "occlusion_aware", "unobserved", "rear_side", "proximity_count")
"""Names of the gains."""


def volumetric_gain(grid: OccupancyGrid, rays: Rays, gain: str, depth: float) -> FloatArray:
    r"""Gain of each view, shape (V,): a sum over its rays of a value of each cell up to the first
    occupied one.

    With :math:`H(x)` the entropy of cell x and :math:`P_v(x_n) = \prod_{i<n} (1 - P_o(x_i))` the
    probability that the ray gets to it, the value of a cell is

    * `average_entropy`: :math:`H(x)`, and the sum is divided by the number of cells;
    * `occlusion_aware`: :math:`P_v(x) H(x)`;
    * `unobserved`: :math:`P_v(x) H(x)` if x was never observed, else 0;
    * `rear_side`: 1 if x was never observed, is hidden by a hit, and has an occupied neighbour,
      else 0;
    * `proximity_count`: :math:`d_{max} - d(x)` if x was never observed and is hidden by a hit at
      the distance :math:`d(x) \le d_{max}` before it, else 0. :math:`d_{max}` is the `depth`,
      metres.
    """
    blocked = np.logical_or.accumulate(grid.occupied[rays.cell], axis=2)
    counts = rays.new & (rays.cell < len(grid.log_odds) - 1)
    counts[..., 1:] &= ~blocked[..., :-1]
    unknown = grid.unknown
    if gain == "average_entropy":
        total = np.where(counts, grid.entropy[rays.cell], 0.0).sum(axis=(1, 2))
        return np.asarray(total / np.maximum(counts.sum(axis=(1, 2)), 1))
    if gain in ("occlusion_aware", "unobserved"):
        reached = np.cumprod(np.where(rays.new, 1.0 - grid.probability[rays.cell], 1.0), axis=2)
        value = np.where(unknown, grid.entropy, 0.0) if gain == "unobserved" else grid.entropy
        worth = value[rays.cell]
        worth[..., 1:] *= reached[..., :-1]
        return np.asarray(np.where(counts, worth, 0.0).sum(axis=(1, 2)))
    if gain == "rear_side":
        value = (unknown & np.isfinite(grid.hidden) & grid.beside(grid.occupied)).astype(float)
    else:
        value = np.where(
            unknown & (grid.hidden <= depth), depth - np.minimum(grid.hidden, depth), 0.0
        )
    return np.asarray(np.where(counts, value[rays.cell], 0.0).sum(axis=(1, 2)))


@dataclass(frozen=True)
class Volumetric(Settings):
    """Take the view of the greatest volumetric information gain, see :func:`volumetric_gain`."""

    takes_scans: ClassVar[bool] = True

    gain: str = setting(
        "proximity_count", "volumetric: information gain of a view.", choices=GAINS, read_only=False
    )
    cells: int = setting(
        80, "volumetric: cells across the greatest object.", ge=4, le=1000, read_only=False
    )
    rays: int = setting(61, "volumetric: rays of a view.", ge=2, le=10_000, read_only=False)
    hit: float = setting(
        OCTOMAP.hit,
        "volumetric: probability of an unknown cell after a hit.",
        gt=0.5,
        lt=1.0,
        read_only=False,
    )
    miss: float = setting(
        OCTOMAP.miss,
        "volumetric: probability of an unknown cell after a miss.",
        gt=0.0,
        lt=0.5,
        read_only=False,
    )
    least: float = setting(
        OCTOMAP.least, "volumetric: least probability of a cell.", gt=0.0, lt=0.5, read_only=False
    )
    depth: int = setting(
        5,
        "volumetric: cells behind a hit that proximity_count values.",
        ge=1,
        le=1000,
        read_only=False,
    )

    def decide(self, memory: Memory) -> FloatArray:
        """Gain of each of the views, shape (V,)."""
        depth = self.depth * 2.0 * memory.scene.radius_max / self.cells
        grid = OccupancyGrid.of(
            memory.scans,
            memory.poses,
            memory.scene,
            self.cells,
            depth,
            Odds(self.hit, self.miss, self.least),
        )
        return volumetric_gain(
            grid, grid.trace(memory.views, memory.scene, self.rays), self.gain, depth
        )
