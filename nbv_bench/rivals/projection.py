"""Projection in place of ray casting: ellipses around clusters of cells (Jia, Li, Hao, Zhang 2025,
PB-NBV).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nbv_bench.rivals import farthest_ranks
from nbv_bench.rivals.volumetric import OccupancyGrid
from nbv_planner.geometry import BoolArray, FloatArray, IntArray, angle_difference
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.settings import Settings, setting
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene


@dataclass(frozen=True, eq=False)
class Ellipses:
    r"""The points :math:`m + L u, \|u\| \le 1`, of K ellipses, in space of ellipsoids."""

    middle: FloatArray  #: m, shape (K, D), metres.
    shape: FloatArray  #: L, lower triangular, shape (K, D, D), metres.

    @classmethod
    def around(cls, points: FloatArray, labels: IntArray, cell: float) -> Ellipses:
        r"""The ellipses whose area has mean and covariance of each cluster of square cells:
        :math:`L L^T = (D + 2) Σ`.
        """
        groups = [points[labels == label] for label in range(labels.max(initial=-1) + 1)]
        wide = points.shape[1]
        middle = np.array([group.mean(axis=0) for group in groups]).reshape(-1, wide)
        spread = [
            (group - at).T @ (group - at) / len(group)
            for group, at in zip(groups, middle, strict=True)
        ]
        covariance = np.array(spread).reshape(-1, wide, wide) + cell**2 / 12.0 * np.eye(wide)
        return cls(middle, np.linalg.cholesky((wide + 2.0) * covariance))

    def seen_from(self, views: Poses) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Bearing of the middles, the extent to the right and left of them, radians, and their
        range, (V, K), metres.

        The tangents from a camera at c touch at the :math:`u` with
        :math:`u \cdot L^{-1}(c - m) = 1`. From inside an ellipse is all around.
        """
        position = views.position
        apart = self.middle - position[:, None]
        distance = np.hypot(apart[..., 0], apart[..., 1])
        at = np.linalg.solve(self.shape[None], -apart[..., None])[..., 0]
        square = np.maximum((at**2).sum(axis=-1, keepdims=True), 1.0)
        aside = np.sqrt(square - 1.0) * np.stack([-at[..., 1], at[..., 0]], axis=-1)
        heading = np.arctan2(apart[..., 1], apart[..., 0])
        sides = []
        for sign in (1.0, -1.0):
            touch = apart + np.einsum("kij,vkj->vki", self.shape, (at + sign * aside) / square)
            sides.append(angle_difference(np.arctan2(touch[..., 1], touch[..., 0]), heading))
        bearing = angle_difference(heading, views.heading[:, None])
        extent = np.where(square[..., 0] > 1.0, np.sort(sides, axis=0), [[[-np.pi]], [[np.pi]]])
        return bearing, extent, distance


def clusters(points: FloatArray, radius: float) -> IntArray:
    """Label of each point, shape (n,): of the nearest of centres, chosen farthest first until all
    are in `radius`.
    """
    labels = np.zeros(len(points), dtype=np.intp)
    nearest = np.full(len(points), np.inf)
    number = 0
    while nearest.max(initial=0.0) > radius:
        distance = np.linalg.norm(points - points[np.argmax(nearest)], axis=1)
        labels[distance < nearest] = number
        nearest = np.minimum(distance, nearest)
        number += 1
    return labels


def around_both(
    kinds: Sequence[FloatArray], radius: float, cell: float
) -> tuple[Ellipses, BoolArray]:
    """Ellipses around the :func:`clusters`, of a `radius` in cells, of two kinds of cells, and
    which of them are of the second kind, shape (K,).
    """
    known, new = (clusters(places, radius * cell) for places in kinds)
    number = known.max(initial=-1) + 1
    ellipses = Ellipses.around(np.concatenate(kinds), np.append(known, new + number), cell)
    return ellipses, np.arange(len(ellipses.middle)) >= number


def visible_frontier(
    ellipses: Ellipses, frontier: BoolArray, views: Poses, scene: Scene, bearings: int
) -> FloatArray:
    """Number of bearings in the field at which the nearest ellipse is one of the `frontier` (K,),
    shape (V,).
    """
    if not frontier.any():
        return np.zeros(len(views))
    sensor = scene.sensor
    ray = np.linspace(sensor.bearing_min, sensor.bearing_max, bearings)
    middle, (right, left), distance = ellipses.seen_from(views)
    offset = angle_difference(ray, middle[..., None])
    covered = (
        (offset >= right[..., None])
        & (offset <= left[..., None])
        & (distance <= sensor.range_max)[..., None]
    )
    depth = np.where(covered, distance[..., None], np.inf)
    return np.asarray(
        (frontier[depth.argmin(axis=1)] & np.isfinite(depth.min(axis=1))).sum(axis=1), dtype=float
    )


@dataclass(frozen=True)
class Projection(Settings):
    """Take the view into which most of the frontier projects that is not behind what is occupied.

    The frontier is the cells never observed that have a free and an occupied neighbour. Where none
    projects, take the view farthest from all views so far.
    """

    takes_scans: ClassVar[bool] = True

    cells: int = setting(
        80, "projection: cells across the greatest object.", ge=4, le=1000, read_only=False
    )
    cluster: float = setting(
        3.0, "projection: radius of a cluster, in cells.", gt=0.0, read_only=False
    )
    bearings: int = setting(
        61, "projection: bearings of a view that are counted.", ge=2, le=10_000, read_only=False
    )

    def decide(self, memory: Memory) -> FloatArray:
        """Bearings of the frontier in each of the views, shape (V,)."""
        grid = OccupancyGrid.of(memory.scans, memory.poses, memory.scene, self.cells)
        occupied = grid.occupied
        free = grid.log_odds < 0.0
        border = grid.unknown & grid.beside(occupied) & grid.beside(free)
        points = [grid.centres(cells) for cells in (occupied, border)]
        ellipses, frontier = around_both(points, self.cluster, grid.cell)
        score = visible_frontier(ellipses, frontier, memory.views, memory.scene, self.bearings)
        return score if score.any() else farthest_ranks(memory.views, memory.visited)
