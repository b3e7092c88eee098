r"""Scans from depth images and point clouds: the nearest surface at each bearing, within a band of
heights.

The nearest of many noisy depths is too short, the more so the more there are. So the range is the
median of those that lie close behind the nearest.

The axes are those of a camera that looks ahead along x, with y to the left and z up (REP 103);
heights count from its origin. A pixel in the column u of a pinhole camera has the bearing
:math:`β = \arctan((c_x - u) / f_x)` and, at the depth Z, the range :math:`Z / \cosβ` in the plane
and the height :math:`Z (c_y - v) / f_y`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray
from nbv_planner.settings import Settings, setting
from nbv_planner.world.scan import Pinhole, Scan

# Depths of a column up to this part behind the nearest are of one surface: some standard deviations
# of a depth camera.
_ONE_SURFACE = 0.03
# Step from column to column beyond which, as a part of the depth, it is one of a slanting surface
# only if a step beside it is half as high: else it leads from one surface to another.
_EDGE = 0.01
SCAN_SOURCES = ("laser_scan", "multi_echo", "depth_image", "point_cloud")


@dataclass(frozen=True)
class ScanMakerSettings(Settings):
    """What scans are made of, and how."""

    scan_source: str = setting(
        "laser_scan",
        "What scan_maker makes scans of; with laser_scan, it does not run: as your sensor sends.",
        choices=SCAN_SOURCES,
    )
    scan_frame: str = setting(
        "", "Frame of the scans, x ahead and z up; empty: that of the source, without _optical."
    )
    band_above: float = setting(
        0.05,
        "Height above the camera up to which surfaces count: as high as the object keeps its"
        " outline.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    band_below: float = setting(
        0.05,
        "Depth below the camera down to which surfaces count.",
        unit="m",
        ge=0.0,
        scale="view_distance",
    )
    empty_is_free: bool = setting(
        True,
        "depth_image: a bearing without any return is free space, as of a lidar; false if"
        " your camera often sees nothing.",
    )
    scan_field: float = setting(
        TWO_PI, "point_cloud: opening angle of the scans.", unit="rad", gt=0.0, le=TWO_PI
    )
    scan_step: float = setting(
        0.01,
        "point_cloud: angle from beam to beam, no less than between the points.",
        unit="rad",
        ge=1e-4,
        le=1.0,
    )
    cloud_axes: str = setting(
        "auto",
        "point_cloud: optical (z ahead, x right), body (x ahead, z up), auto: optical in the"
        " frame's name.",
        choices=("auto", "optical", "body"),
    )

    def frame(self, source: str) -> str:
        """Frame of the scans made of messages in the frame `source`."""
        return self.scan_frame or source.replace("_optical", "")

    def optical(self, frame: str) -> bool:
        """Whether the axes of a cloud in `frame` are optical."""
        return "optical" in frame if self.cloud_axes == "auto" else self.cloud_axes == "optical"

    def in_band(self, height: FloatArray) -> BoolArray:
        """Whether each height, metres, lies within the band; NaN does not."""
        return (height >= -self.band_below) & (height <= self.band_above)


def scan_of_depth(depth: FloatArray, camera: Pinhole, settings: ScanMakerSettings) -> Scan:
    """Scan of a depth image, one beam for each pixel at its centre; limits of the range are not
    known from it.

    Each beam has the nearest surface in the band, between the two columns beside its bearing: of a
    plane that is exact, and an edge is off by half a pixel at most. A column without any is `+inf`
    or NaN (`empty_is_free`), also NaN if the image does not show what is straight ahead, and `-inf`
    if a pixel of it is closer than the camera measures (`-inf`, REP 117).

    The `depth` is the distance along the optical axis, shape (H, W), metres; 0, NaN and `+inf` are
    no return.

    Raises:
        InputRejectedError: reason `empty`: there are no pixels.
    """
    rows, columns = depth.shape
    if rows == 0 or columns == 0:
        raise InputRejectedError("empty", "the image has no pixels")
    rise = (camera.cy - np.arange(rows)) / camera.fy
    with np.errstate(invalid="ignore"):
        counts = (depth > 0.0) & np.isfinite(depth) & settings.in_band(rise[:, None] * depth)
    nearest = _nearest_surface(np.where(counts, depth, np.inf))
    shows_ahead = abs(rise).min() <= 1.0 / camera.fy
    empty = np.inf if settings.empty_is_free and shows_ahead else np.nan
    nearest[np.isinf(nearest)] = empty
    nearest[~counts.any(axis=0) & np.isneginf(depth).any(axis=0)] = -np.inf
    # Columns lie densest at the edges: with the step at the centre, no beam lies between two
    # columns it cannot reach.
    step = 1.0 / camera.fx
    low, high = np.arctan((camera.cx - np.array([columns - 1.0, 0.0])) / camera.fx)
    bearing = low + step * np.arange(int((high - low) / step + 1e-9) + 1)
    place = np.clip(camera.cx - camera.fx * np.tan(bearing), 0.0, columns - 1.0)
    return Scan(float(low), step, _between_columns(nearest, place, camera), 0.0, math.inf)


def _between_columns(depth: FloatArray, place: FloatArray, camera: Pinhole) -> FloatArray:
    """Range at places between columns, shape (n,), pixels, from the depth of each column, shape
    (W,), metres.

    Of a plane the inverse depth is linear in the column. Columns of different surfaces are not
    mixed: there the range is that in the nearest column.
    """
    column = np.rint(place).astype(int)
    left = np.minimum(place.astype(int), max(len(depth) - 2, 0))
    one = depth[left]
    other = depth[np.minimum(left + 1, len(depth) - 1)]
    with np.errstate(invalid="ignore", divide="ignore"):
        mixed = 1.0 / ((1.0 - (place - left)) / one + (place - left) / other)
        step = np.abs(np.diff(depth, append=np.nan))
        step[np.isinf(step)] = np.nan
        beside = np.fmax(np.roll(step, 1), np.roll(step, -1))
        alike = (step <= _ONE_SURFACE * depth) & (step <= np.fmax(_EDGE * depth, 2.0 * beside))
    alike = alike[left] & np.isfinite(mixed)
    along = np.hypot(1.0, (camera.cx - np.where(alike, place, column)) / camera.fx)
    return np.asarray(np.where(alike, mixed, depth[column]) * along)


def _nearest_surface(depth: FloatArray) -> FloatArray:
    """Depth of the nearest surface in each column of an image, shape (H, W): shape (W,), metres;
    inf where none is.
    """
    one = np.where(depth <= (1.0 + _ONE_SURFACE) * depth.min(axis=0), depth, np.nan)
    middle = np.full(depth.shape[1], np.inf)
    there = np.isfinite(one).any(axis=0)
    middle[there] = np.nanmedian(one[:, there], axis=0)
    return middle


def scan_of_points(points: FloatArray, settings: ScanMakerSettings, *, optical: bool) -> Scan:
    """Scan of a point cloud: the nearest surface in the band at each bearing; NaN where there is
    none.

    The positions, shape (N, 3), are in metres; those that are not finite are left out. `optical`
    axes are z ahead, x right, y down, others x ahead, y left, z up.
    """
    x, y, z = points.T
    ahead, left, up = (z, -x, -y) if optical else (x, y, z)
    kept = np.isfinite(points).all(axis=1) & settings.in_band(up)
    ahead, left = ahead[kept], left[kept]
    beams = max(round(settings.scan_field / settings.scan_step), 1)
    step = settings.scan_field / beams
    beam = np.floor((np.arctan2(left, ahead) + 0.5 * settings.scan_field) / step).astype(int)
    if settings.scan_field == TWO_PI:
        beam %= beams  # straight behind, on either side
    distance = np.hypot(ahead, left)
    seen = (beam >= 0) & (beam < beams) & (distance > 0.0)
    beam, distance = beam[seen], distance[seen]
    nearest = np.full(beams, np.inf)
    np.minimum.at(nearest, beam, distance)
    one = distance <= (1.0 + _ONE_SURFACE) * nearest[beam]
    distance = distance[one][np.lexsort((distance[one], beam[one]))]
    number = np.bincount(beam[one], minlength=beams)
    first = np.cumsum(number) - number
    there = number > 0
    ranges = np.full(beams, np.nan)
    middle = [(first + half)[there] for half in ((number - 1) // 2, number // 2)]
    ranges[there] = 0.5 * (distance[middle[0]] + distance[middle[1]])
    return Scan(0.5 * (step - settings.scan_field), step, ranges, 0.0, math.inf)
