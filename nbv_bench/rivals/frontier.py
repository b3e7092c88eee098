"""Views at the edges of what is densely measured (Border, Gammell, Newman 2018, Surface Edge
Explorer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.spatial import cKDTree

from nbv_bench.rivals import farthest_ranks
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.planners.plugged import Memory
from nbv_planner.settings import Settings, setting
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan


def measured_points(
    scans: Sequence[Scan], poses: Sequence[CameraPose], reach: float
) -> tuple[FloatArray, FloatArray]:
    """Points within `reach` of the centre that were hit, and where the camera of each stood, shape
    (n, 2), metres.
    """
    points = [np.empty((0, 2))]
    cameras = [np.empty((0, 2))]
    for scan, pose in zip(scans, poses, strict=True):
        ranges = np.asarray(scan.ranges, dtype=float)
        hit = (ranges >= scan.range_min) & (ranges <= scan.range_max) & np.isfinite(ranges)
        found = np.stack(pose.to_world(scan.bearings[hit], ranges[hit]), axis=1)
        points.append(found[np.hypot(*found.T) <= reach])
        cameras.append(np.full(points[-1].shape, (pose.x, pose.y)))
    return np.concatenate(points), np.concatenate(cameras)


def frontier_points(
    points: FloatArray, cameras: FloatArray, radius: float, dense: int
) -> tuple[FloatArray, FloatArray]:
    """Points at the edge of what is dense, shape (F, 2), metres, and there the normal of the
    surface towards a camera.

    A point is dense if the disc of this `radius` around it holds at least `dense` points. It is at
    the edge if one half of the disc, along the tangent, holds less than a quarter of them: half of
    what it would in the middle of a surface that is just dense. Tangent and normal are the
    principal axes of the points in the disc.
    """
    if not len(points):
        return points, points
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    one, other = np.concatenate([pairs, pairs[:, ::-1]]).T
    apart = points[other] - points[one]
    size = len(points)

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(one, values, size), dtype=float)

    number = total(np.ones(len(one))) + 1.0
    x, y = (total(apart[:, axis]) / number for axis in (0, 1))
    xx, yy, xy = (total(apart[:, i] * apart[:, j]) / number for i, j in ((0, 0), (1, 1), (0, 1)))
    slope = 0.5 * np.arctan2(2.0 * (xy - x * y), xx - x * x - yy + y * y)
    tangent = np.stack([np.cos(slope), np.sin(slope)], axis=1)
    ahead = (apart * tangent[one]).sum(axis=1)
    sparse = np.minimum(total(ahead > 0.0), total(ahead < 0.0)) < 0.25 * dense
    edge = (number >= dense) & sparse
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    normal[((cameras - points) * normal).sum(axis=1) < 0.0] *= -1.0
    return points[edge], normal[edge]


def proposals(points: FloatArray, normals: FloatArray, view_distance: float) -> FloatArray:
    """Where the normals from points inside of the view circle of this radius meet it, shape (F, 2),
    metres.
    """
    along = (points * normals).sum(axis=1)
    length = -along + np.sqrt(along**2 + view_distance**2 - (points**2).sum(axis=1))
    return np.asarray(points + length[:, None] * normals)


@dataclass(frozen=True)
class Frontier(Settings):
    """Look at the nearest edge of the measured surface, head-on.

    Each edge point proposes the view orthogonal to the surface; the nearest candidate that may be
    chosen stands for it, and the one with the shortest path is taken. A proposal near a view that
    was taken did not move the edge and is dropped as an outlier. If none is left, take the view
    farthest from all views so far.
    """

    takes_scans: ClassVar[bool] = True

    radius: float = setting(
        0.5,
        "frontier: radius of the disc in which points are counted.",
        unit="m",
        gt=0.0,
        scale="radius_max",
        read_only=False,
    )
    dense: int = setting(
        6, "frontier: points in the disc of a dense surface.", ge=1, read_only=False
    )
    tried: float = setting(
        2.0,
        "frontier: distance from a view taken at which a proposal is dropped.",
        unit="m",
        ge=0.0,
        scale="view_distance",
        read_only=False,
    )

    def decide(self, memory: Memory) -> FloatArray:
        """Ranks of the views, shape (V,): for proposed ones the negative path length to them."""
        views = memory.views
        poses = memory.poses
        points, cameras = measured_points(memory.scans, poses, memory.scene.view_distance)
        wanted = proposals(
            *frontier_points(points, cameras, self.radius, self.dense), memory.scene.view_distance
        )
        taken = np.array([(pose.x, pose.y) for pose in poses]).reshape(-1, 2)
        if len(wanted):
            wanted = wanted[cKDTree(taken).query(wanted)[0] > self.tried]
        if not len(wanted):
            return farthest_ranks(views, memory.visited)
        near = np.unique(cKDTree(views.position).query(wanted)[1])
        ranks = np.full(len(views), -np.inf)
        ranks[near] = -np.minimum(memory.travel[near], 1e9)
        return ranks
