"""Volumetric information gain on an occupancy grid (Delmerico, Isler, Sabzevari, Scaramuzza
2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nbv_bench.rivals.occupancy import OCTOMAP, OccupancyGrid, Odds, Rays
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.settings import Settings, setting

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
