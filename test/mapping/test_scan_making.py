"""Scans of depth images and clouds, against beams cast one by one on an object extruded from its
contour.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.mapping.scan_making import (
    Pinhole,
    ScanMakerSettings,
    scan_of_depth,
    scan_of_points,
)
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import cast_beams
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import sampled_contour

SCENE = Scene()
CONTOURS = {
    text: sampled_contour(parse_object(text, SCENE))
    for text in ("ellipse:a=6,b=4", "polygon:star", "flower:frequency=5,amplitude=2")
}
CAMERA = Pinhole(160.0, 150.0, 79.3, 24.6)
ROWS, COLUMNS = 50, 160
BAND = ScanMakerSettings(band_above=0.4, band_below=0.2)


def bearing_of(column, camera=CAMERA):
    return np.arctan((camera.cx - column) / camera.fx)


def rendered(contour, pose: CameraPose, low: float, high: float, camera=CAMERA) -> np.ndarray:
    """Depth image of the contour extruded between two heights over the camera: each pixel's ray,
    cut one by one.
    """
    ranges = cast_beams(contour, pose, bearing_of(np.arange(COLUMNS - 1, -1, -1), camera))[::-1]
    depth = np.full((ROWS, COLUMNS), np.inf)
    for column in range(COLUMNS):
        ahead = ranges[column] * math.cos(bearing_of(column, camera))
        for row in range(ROWS):
            height = ahead * (camera.cy - row) / camera.fy
            if math.isfinite(ahead) and low <= height <= high:
                depth[row, column] = ahead
    return depth


def assert_nearest(scan, contour, pose, blur: float) -> None:
    """Each beam has the range of the contour at its bearing or within `blur` of it."""
    for bearing, found in zip(scan.bearings, scan.ranges, strict=True):
        # at an edge the range rises steeply
        near = cast_beams(contour, pose, bearing + np.linspace(-blur, blur, 2001))
        if math.isfinite(found):
            assert near.min() - 0.01 <= found <= near[np.isfinite(near)].max() + 0.01
        else:
            assert np.isinf(near).any()


@pytest.mark.parametrize("text", CONTOURS)
@pytest.mark.parametrize("angle", [0.3, 2.0, 4.4])
def test_the_scan_of_a_depth_image_is_that_of_beams_in_the_plane(text, angle):
    pose = CameraPose.from_polar(angle, 20.0)
    scan = scan_of_depth(rendered(CONTOURS[text], pose, -2.0, 2.0), CAMERA, BAND)
    assert np.isfinite(scan.ranges).sum() > 40
    assert np.isinf(scan.ranges).any()
    assert_nearest(scan, CONTOURS[text], pose, 0.5 / CAMERA.fx + 1e-9)
    assert scan.bearings[0] == pytest.approx(bearing_of(COLUMNS - 1))
    assert bearing_of(0) - scan.angle_increment < scan.bearings[-1] <= bearing_of(0)
    assert (scan.range_min, scan.range_max) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("low", "high", "seen"),
    [
        (-3.0, 3.0, True),
        (0.41, 3.0, False),
        (-3.0, -0.21, False),
        (0.2, 3.0, True),
        (-3.0, -0.1, True),
    ],
)
def test_only_what_lies_in_the_band_of_heights_counts(low, high, seen):
    pose = CameraPose.from_polar(1.0, 12.0)
    scan = scan_of_depth(rendered(CONTOURS["ellipse:a=6,b=4"], pose, low, high), CAMERA, BAND)
    assert np.isfinite(scan.ranges).any() == seen


def test_the_nearest_surface_of_a_column_counts():
    depth = np.full((ROWS, COLUMNS), 5.0)
    depth[25, :] = 3.0
    assert scan_of_depth(depth, CAMERA, BAND).ranges.max() < 3.0 / math.cos(scan_edge()) + 1e-9


def test_each_beam_has_the_range_of_a_slanting_wall_at_its_own_bearing():
    """Not that of the nearest column: errors of half a pixel would be the same in all views."""
    slope = 0.8 * np.tan(bearing_of(np.arange(COLUMNS)))
    depth = np.broadcast_to(4.0 / (1.0 - slope), (ROWS, COLUMNS))
    scan = scan_of_depth(depth, CAMERA, BAND)
    x, y = scan.ranges * np.cos(scan.bearings), scan.ranges * np.sin(scan.bearings)
    assert x - 0.8 * y == pytest.approx(np.full(len(x), 4.0), abs=1e-9)


@pytest.mark.parametrize("step", [0.05, 0.1, 0.5])
def test_between_a_wall_and_one_behind_it_there_is_nothing(step):
    """However little farther that is, beyond the noise of a depth: each beam has the range of one
    of them.
    """
    depth = np.full((ROWS, COLUMNS), 4.0)
    depth[:, COLUMNS // 2 :] += step
    scan = scan_of_depth(depth, CAMERA, BAND)
    wall = 4.0 + step * (scan.bearings < bearing_of(COLUMNS // 2 - 0.5))
    # within half a pixel, as at any edge
    aside = np.abs(scan.bearings) + 0.5 / CAMERA.fx * np.array([[-1.0], [1.0]])
    low, high = wall / np.cos(np.maximum(aside, 0.0))
    assert ((scan.ranges >= low - 1e-9) & (scan.ranges <= high + 1e-9)).all()


def test_many_noisy_pixels_of_a_column_do_not_shorten_its_range():
    rng = np.random.default_rng(0)
    depth = 3.0 + 0.01 * rng.standard_normal((ROWS, COLUMNS))
    depth[:20] += 2.0  # a wall behind
    scan = scan_of_depth(depth, CAMERA, BAND)
    error = scan.ranges * np.cos(scan.bearings) - 3.0
    assert abs(error.mean()) < 0.002
    assert np.abs(error).max() < 0.02


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.9, 1.4)), min_size=1, max_size=60))
def test_a_beam_of_a_cloud_has_the_median_of_what_lies_close_behind_its_nearest_point(points):
    beam, distance = (np.array(column) for column in zip(*points, strict=True))
    bearing = (beam - 4.5) * 0.1
    cloud = np.column_stack(
        [distance * np.cos(bearing), distance * np.sin(bearing), np.zeros(len(beam))]
    )
    scan = scan_of_points(cloud, ScanMakerSettings(scan_field=1.0, scan_step=0.1), optical=False)
    for number, found in enumerate(scan.ranges):
        there = distance[beam == number]
        expected = np.median(there[there <= 1.03 * there.min()]) if len(there) else np.nan
        assert found == pytest.approx(expected, nan_ok=True)


def scan_edge() -> float:
    return float(np.abs(bearing_of(np.array([0, COLUMNS - 1]))).max())


@pytest.mark.parametrize(
    ("pixel", "free", "expected"),
    [
        (0.0, True, math.inf),
        (math.nan, True, math.inf),
        (math.inf, True, math.inf),
        (0.0, False, math.nan),
        (math.nan, False, math.nan),
        (-math.inf, True, -math.inf),
        (-math.inf, False, -math.inf),
        (-1.0, True, math.inf),
    ],
)
def test_pixels_without_a_return_are_free_or_tell_nothing(pixel, free, expected):
    settings = ScanMakerSettings(band_above=0.4, band_below=0.2, empty_is_free=free)
    scan = scan_of_depth(np.full((ROWS, COLUMNS), pixel), CAMERA, settings)
    np.testing.assert_array_equal(scan.ranges, np.full(len(scan.ranges), expected))


def test_an_image_that_does_not_show_what_is_straight_ahead_tells_nothing_of_free_space():
    above = Pinhole(160.0, 150.0, 79.3, 60.0)
    scan = scan_of_depth(np.full((ROWS, COLUMNS), np.nan), above, BAND)
    assert np.isnan(scan.ranges).all()


@given(
    st.integers(1, 12),
    st.integers(1, 40),
    st.floats(5.0, 400.0),
    st.floats(-30.0, 60.0),
    st.floats(-10.0, 20.0),
    st.integers(0, 2**32),
)
def test_any_image_gives_a_scan_of_depths_that_it_holds(rows, columns, focal, cx, cy, seed):
    rng = np.random.default_rng(seed)
    depth = rng.uniform(0.1, 9.0, (rows, columns))
    depth[rng.random((rows, columns)) < 0.3] = rng.choice([0.0, np.nan, np.inf, -np.inf, -1.0])
    camera = Pinhole(focal, focal, cx, cy)
    scan = scan_of_depth(depth, camera, ScanMakerSettings(band_above=20.0, band_below=20.0))
    ends = np.sort(np.arctan((cx - np.array([0.0, columns - 1.0])) / focal))
    assert ends[0] - 1e-9 <= scan.bearings[0]
    assert scan.bearings[-1] <= ends[1] + 1e-9
    for bearing, found in zip(scan.bearings, scan.ranges, strict=True):
        if np.isfinite(found):
            column = np.abs(np.arctan((cx - np.arange(columns)) / focal) - bearing).argmin()
            nearby = depth[:, max(column - 1, 0) : column + 2] / np.cos(bearing)
            assert np.nanmin(np.abs(nearby / found - 1.0)) < 0.5  # a neighbouring column at most


def extruded(contour, pose: CameraPose, bearings, heights) -> np.ndarray:
    """Points on the walls, in the axes of the camera: x ahead, y left, z up."""
    order = np.argsort(bearings)
    ranges = np.empty(len(bearings))
    ranges[order] = cast_beams(contour, pose, bearings[order])
    met = np.isfinite(ranges)
    x, y = ranges[met] * np.cos(bearings[met]), ranges[met] * np.sin(bearings[met])
    return np.concatenate([np.column_stack([x, y, np.full(len(x), height)]) for height in heights])


def as_optical(points) -> np.ndarray:
    return np.column_stack([-points[:, 1], -points[:, 2], points[:, 0]])


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(CONTOURS)), st.floats(0.0, 6.28), st.integers(0, 2**32), st.booleans()
)
@example("flower:frequency=5,amplitude=2", 1.1547235715866129, 36088972, False)
def test_the_scan_of_a_cloud_is_that_of_beams_in_the_plane_in_any_order_of_points(
    text, angle, seed, optical
):
    rng = np.random.default_rng(seed)
    pose, contour = CameraPose.from_polar(angle, 12.0), CONTOURS[text]
    points = extruded(contour, pose, rng.uniform(-0.8, 0.8, 4000), (-0.15, 0.0, 0.35))
    above = extruded(contour, pose, np.linspace(-0.7, 0.7, 50), (0.41, -0.21)) * [0.5, 0.5, 1.0]
    points = rng.permutation(
        np.concatenate([points, above, [[np.nan, 1.0, 0.0], [1.0, np.inf, 0.0], [0.0, 0.0, 0.0]]])
    )
    settings = ScanMakerSettings(band_above=0.4, band_below=0.2, scan_field=1.6, scan_step=0.02)
    scan = scan_of_points(as_optical(points) if optical else points, settings, optical=optical)
    assert len(scan.ranges) == 80
    assert scan.bearings[[0, -1]] == pytest.approx([-0.79, 0.79])
    assert not np.isposinf(scan.ranges).any()
    assert np.isfinite(scan.ranges).sum() > 20
    assert_nearest(scan, contour, pose, 0.01 + 1e-9)


def test_a_cloud_all_around_fills_a_turn_and_points_straight_behind_count_once():
    bearings = np.linspace(-math.pi, math.pi, 2001)
    points = np.column_stack([2.0 * np.cos(bearings), 2.0 * np.sin(bearings), np.zeros(2001)])
    scan = scan_of_points(points, ScanMakerSettings(), optical=False)
    assert scan.ranges == pytest.approx(np.full(628, 2.0))
    assert scan.field_ahead == 2 * math.pi
    assert len(scan.ranges) * scan.angle_increment == pytest.approx(2 * math.pi)


def test_a_cloud_without_points_is_a_scan_that_tells_nothing():
    scan = scan_of_points(np.empty((0, 3)), ScanMakerSettings(scan_field=1.0), optical=True)
    assert np.isnan(scan.ranges).all()


@pytest.mark.parametrize(
    "numbers", [(0.0, 1.0, 0.0, 0.0), (1.0, -1.0, 0.0, 0.0), (1.0, 1.0, math.nan, 0.0)]
)
def test_a_camera_that_is_not_calibrated_is_refused(numbers):
    with pytest.raises(InputRejectedError, match="not calibrated") as caught:
        Pinhole(*numbers)
    assert caught.value.reason == "camera_info"


def test_an_image_without_pixels_is_refused():
    with pytest.raises(InputRejectedError, match="no pixels"):
        scan_of_depth(np.empty((0, 5)), CAMERA, BAND)


def test_frames_and_axes_follow_from_the_name_of_the_sources_frame():
    plain = ScanMakerSettings()
    assert plain.frame("camera_depth_optical_frame") == "camera_depth_frame"
    assert plain.frame("velodyne") == "velodyne"
    assert ScanMakerSettings(scan_frame="eye").frame("camera_depth_optical_frame") == "eye"
    assert plain.optical("camera_depth_optical_frame")
    assert not plain.optical("velodyne")
    assert ScanMakerSettings(cloud_axes="optical").optical("velodyne")
    with pytest.raises(SettingError, match="scan_source"):
        ScanMakerSettings(scan_source="sonar")
