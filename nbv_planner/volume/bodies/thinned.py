"""Depth images and clouds as some thousand beams, and what of these is of the object."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import FloatArray
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.bodies.depth_sensor import DepthScan, DepthSensor, seen_in
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import FreeRays, Pinhole, RangeNoise


def depth_scan(depth: FloatArray, camera: Pinhole, sensor: DepthSensor) -> DepthScan:
    """Every n-th pixel of a depth image (metres along the optical axis, shape (H, W)), so
    that there are about as many as the sensor's `columns` and `rows`.

    0 and NaN, which cameras send for what they do not know, are unknown; `+inf` is no return up to
    `range_max` (REP 117).

    Raises:
        InputRejectedError: reason `layout`: the image has no pixel.
    """
    if not depth.size:
        raise InputRejectedError("layout", "the image has no pixel")
    v, u = (
        np.arange(_first(step), size, step)
        for size, step in (
            (depth.shape[0], _step(depth.shape[0], sensor.rows)),
            (depth.shape[1], _step(depth.shape[1], sensor.columns)),
        )
    )
    right, down = np.meshgrid((u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy)
    beams = np.stack([np.ones_like(right), -right, -down], axis=-1).reshape(-1, 3)
    length = np.linalg.norm(beams, axis=1)
    ahead = depth[np.ix_(v, u)].reshape(-1)
    ranges = np.where(ahead > 0.0, ahead, np.nan) * length
    return DepthScan(sensor, ranges, beams / length[:, None])


def point_scan(points: FloatArray, width: int, sensor: DepthSensor) -> DepthScan:
    """Every n-th point of a cloud in its optical frame, shape (N, 3), metres, in rows of a
    `width`; points that are not finite, or at the origin, are unknown.

    Raises:
        InputRejectedError: reason `layout`: there is no point.
    """
    if not len(points):
        raise InputRejectedError("layout", "the cloud has no point")
    height = len(points) // max(width, 1)
    if height > 1:
        rows, columns = _step(height, sensor.rows), _step(width, sensor.columns)
        grid = points.reshape(height, width, 3)
        points = grid[_first(rows) :: rows, _first(columns) :: columns].reshape(-1, 3)
    else:
        step = _step(len(points), sensor.rows * sensor.columns)
        points = points[_first(step) :: step]
    beams = np.stack([points[:, 2], -points[:, 0], -points[:, 1]], axis=1)
    ranges = np.linalg.norm(beams, axis=1)
    known = np.isfinite(ranges) & (ranges > 0.0)
    # Where an unknown point lies nobody knows: its beam counts as unknown, in any direction.
    ranges = np.where(known, ranges, np.nan)
    directions = np.where(known[:, None], beams / ranges[:, None], (1.0, 0.0, 0.0))
    return DepthScan(sensor, ranges, directions)


def _step(size: int, wanted: int) -> int:
    return max(1, math.ceil(size / wanted))


def _first(step: int) -> int:
    return (step - 1) // 2


def of_object(
    scan: DepthScan,
    pose: Poses,
    noise: RangeNoise,
    view: int,
    bounds: tuple[float, FloatArray],
) -> tuple[Hits, FreeRays]:
    """What a scan shows of an object within the `bounds`: its greatest radius, and the corners
    of a box, shape (2, 3), metres. Beams that end elsewhere are free up to there.
    """
    hits, free = seen_in(scan, pose.position[0], pose.rotation[0], noise, view)
    radius, (low, high) = bounds
    inside = (hits.points > low) & (hits.points < high)
    kept = inside.all(axis=1) & (np.linalg.norm(hits.points, axis=1) <= radius)
    of_hit = free.of_hit.copy()
    of_hit[free.of_hit] = kept
    return hits.chosen(kept), dataclasses.replace(free, of_hit=of_hit)
