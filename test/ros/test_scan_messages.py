"""Scans of sensors as they are: lidars all around, reversed, with several echoes; depth images;
clouds.
"""

from __future__ import annotations

import array
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from ros_world import INF, NAN, bent, header, over_the_wire
from sensor_msgs.msg import (
    CameraInfo,
    Image,
    LaserEcho,
    LaserScan,
    MultiEchoLaserScan,
    PointCloud2,
    PointField,
)

from nbv_planner.clouds.sensor_messages import (
    depth_from_msg,
    pinhole_from_msg,
    points_from_msg,
    scan_from_msg,
)
from nbv_planner.errors import InputRejectedError
from nbv_planner.mapping.scan_making import Pinhole
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.ray_casting import Contour, cast_beams

SQUARE = Contour(np.array([3.0, 3.0, -2.0, -2.0]), np.array([-1.0, 4.0, 4.0, -1.0]))
HERE = CameraPose(0.0, 0.0, 0.0)


def laser(angles: np.ndarray, **fields) -> LaserScan:
    """What a lidar within the square says whose beams go to these angles."""
    order = np.argsort(np.mod(angles, 2 * math.pi))
    ranges = np.empty(len(angles))
    ranges[order] = cast_beams(SQUARE, HERE, np.mod(angles, 2 * math.pi)[order])
    step = float(angles[1] - angles[0])
    msg = LaserScan(
        angle_min=float(angles[0]),
        angle_max=float(angles[-1]),
        angle_increment=step,
        range_min=0.1,
        range_max=12.0,
        ranges=array.array("f", ranges.astype(np.float32).tobytes()),
    )
    return over_the_wire(bent(msg, **fields))


TURN = 2 * math.pi
LIDARS = {
    "a turn from -pi, last beam the first": np.linspace(-math.pi, math.pi, 361),
    "a turn from 0, last beam the first": np.linspace(0.0, TURN, 361),
    "a turn from 0, without the first again": np.arange(360) * TURN / 360,
    "a turn clockwise from pi": np.linspace(math.pi, -math.pi, 361),
    "a turn clockwise from 0": -np.arange(360) * TURN / 360,
    "a turn clockwise from 2 pi": np.linspace(TURN, 0.0, 500),
    "270 degrees": np.linspace(-0.75 * math.pi, 0.75 * math.pi, 811),
    "270 degrees clockwise": np.linspace(0.75 * math.pi, -0.75 * math.pi, 811),
}


@pytest.mark.parametrize("name", LIDARS)
def test_each_beam_of_a_lidar_is_where_it_says(name):
    msg = laser(LIDARS[name])
    scan = scan_from_msg(msg)
    assert scan.angle_increment > 0.0
    assert scan.ranges == pytest.approx(np.asarray(scan_directions(scan)), abs=2e-3)
    assert scan.field_ahead == pytest.approx(TURN if "turn" in name else 1.5 * math.pi)


def scan_directions(scan) -> np.ndarray:
    """What stands in the directions of the beams."""
    turned = np.mod(scan.bearings, TURN)
    order, ranges = np.argsort(turned), np.empty(len(turned))
    ranges[order] = cast_beams(SQUARE, HERE, turned[order])
    return ranges


@pytest.mark.parametrize("end", [-1, 1])
def test_the_angles_may_be_counted_on_from_the_other_side_of_the_back(end):
    """A sector across the back, or a turn from pi to -pi: angle_min is greater than angle_max, the
    step positive.
    """
    for angles in (
        np.linspace(0.75 * math.pi, 1.25 * math.pi, 181),
        np.linspace(-math.pi, math.pi, 361),
    ):
        msg = laser(angles)
        scan = scan_from_msg(bent(msg, angle_max=msg.angle_max + end * TURN))
        assert scan.ranges == pytest.approx(scan_directions(scan), abs=2e-3)


@pytest.mark.parametrize("resolution", [0.007, 0.0034, 0.01, 0.0125])
def test_a_driver_that_cuts_the_number_of_ranges_and_counts_angle_max_in_is_read_by_its_increments(
    resolution,
):
    """velodyne_laserscan: int(2 pi / resolution) ranges from -pi, angle_max = pi."""
    angles = -math.pi + resolution * np.arange(int(TURN / resolution))
    scan = scan_from_msg(laser(angles, angle_max=math.pi))
    assert scan.angle_increment == pytest.approx(resolution)
    assert scan.ranges == pytest.approx(scan_directions(scan), abs=2e-3)


@pytest.mark.parametrize(
    ("beams", "more", "taken"),
    [
        (31, 2, True),
        (31, -2, True),
        (31, 3, False),
        (31, -3, False),
        (1000, 9, True),
        (1000, -9, True),
        (1000, 12, False),
        (1000, -12, False),
    ],
)
def test_the_number_of_ranges_may_be_off_by_two_or_one_percent(beams, more, taken):
    msg = bent(laser(np.linspace(-0.5, 0.5, beams)), ranges=[2.0] * (beams + more))
    if taken:
        assert len(scan_from_msg(msg).ranges) == beams + more
        return
    with pytest.raises(
        InputRejectedError, match=f"{beams + more} ranges, but the angles, .* make {beams}"
    ):
        scan_from_msg(msg)


def test_angles_that_contradict_the_increment_are_named():
    msg = bent(laser(np.linspace(-0.9, 0.9, 1441)), angle_min=0.9, angle_max=-0.9)
    with pytest.raises(InputRejectedError) as caught:
        scan_from_msg(msg)
    assert (
        str(caught.value)
        == "1441 ranges, but the angles, angle_min 0.9 to angle_max -0.9 by 0.00125, lead away from"
        " angle_max"
    )


def test_intensities_make_no_difference():
    plain = laser(LIDARS["270 degrees"])
    lit = over_the_wire(bent(plain, intensities=[3.0] * 811))
    np.testing.assert_array_equal(scan_from_msg(lit).ranges, scan_from_msg(plain).ranges)


@pytest.mark.parametrize("said", [0.0, INF])
def test_a_greatest_range_that_is_not_stated_is_none(said):
    assert scan_from_msg(laser(LIDARS["270 degrees"], range_max=said)).range_max == math.inf


def test_the_first_return_of_several_echoes_counts():
    echoes = [[4.0, 5.0], [0.05, 2.5], [], [NAN, 3.0], [INF], [7.5]]
    msg = MultiEchoLaserScan(
        angle_min=-0.25,
        angle_max=0.25,
        angle_increment=0.1,
        range_min=0.1,
        range_max=12.0,
        ranges=[LaserEcho(echoes=beam) for beam in echoes],
    )
    scan = scan_from_msg(over_the_wire(msg))
    np.testing.assert_array_equal(scan.ranges, [4.0, 2.5, NAN, 3.0, INF, 7.5])
    with pytest.raises(InputRejectedError, match="no ranges"):
        scan_from_msg(over_the_wire(bent(msg, ranges=[])))


def image(depth: np.ndarray, encoding: str, *, big: bool = False, padding: int = 0) -> Image:
    """Metres as a driver sends them; the bytes that fill a row are no pixels."""
    kind = np.dtype({"16UC1": "u2", "mono16": "u2", "32FC1": "f4"}[encoding]).newbyteorder(
        ">" if big else "<"
    )
    pixels = (np.round(depth * 1000.0) if kind.kind == "u" else depth).astype(kind)
    rows = [row.tobytes() + b"\xff" * padding for row in pixels]
    return over_the_wire(
        Image(
            header=header("eye_optical_frame"),
            height=depth.shape[0],
            width=depth.shape[1],
            encoding=encoding,
            is_bigendian=big,
            step=len(rows[0]) if rows else 0,
            data=array.array("B", b"".join(rows)),
        )
    )


@given(
    st.integers(1, 7),
    st.integers(1, 9),
    st.sampled_from(["16UC1", "mono16", "32FC1"]),
    st.booleans(),
    st.integers(0, 9),
    st.integers(0, 2**32),
)
def test_depths_are_read_in_any_order_of_bytes_and_with_any_padding(
    rows, columns, encoding, big, padding, seed
):
    depth = np.random.default_rng(seed).integers(0, 60_000, (rows, columns)) / 1000.0
    found = depth_from_msg(image(depth, encoding, big=big, padding=padding))
    assert found == pytest.approx(depth, rel=1e-6)


@pytest.mark.parametrize("step", [0, 32])
def test_an_image_whose_rows_have_no_gap_may_say_so_by_another_step_and_may_be_followed_by_bytes(
    step,
):
    depth = np.arange(1.0, 9.0).reshape(2, 4)
    good = image(depth, "32FC1")
    longer = array.array("B", bytes(good.data) + b"\xff" * 5)
    np.testing.assert_array_equal(depth_from_msg(bent(good, step=step, data=longer)), depth)


def test_the_last_row_needs_no_padding():
    depth = np.arange(1.0, 9.0).reshape(2, 4)
    good = image(depth, "32FC1", padding=3)
    np.testing.assert_array_equal(depth_from_msg(bent(good, data=good.data[:-3])), depth)


def test_what_is_no_depth_stays_none():
    found = depth_from_msg(image(np.array([[NAN, INF, -INF, 0.0]]), "32FC1"))
    np.testing.assert_array_equal(found, [[NAN, INF, -INF, 0.0]])
    assert depth_from_msg(image(np.empty((0, 0)), "32FC1")).shape == (0, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"encoding": "rgb8"}, "encoding"),
        ({"encoding": ""}, "encoding"),
        ({"step": 7}, "layout"),
        ({"step": 0, "height": 3}, "layout"),
        ({"step": 2**32 - 1}, "layout"),
        ({"step": 0, "width": 2**32 - 1}, "layout"),
        ({"height": 3}, "layout"),
        ({"width": 5}, "layout"),
        ({"data": array.array("B", bytes(31))}, "layout"),
    ],
)
def test_images_that_cannot_be_used_are_refused(changes, reason):
    good = image(np.ones((2, 4)), "32FC1")
    with pytest.raises(InputRejectedError) as caught:
        depth_from_msg(over_the_wire(bent(good, **changes)))
    assert caught.value.reason == reason


def camera_info(width: int = 4, height: int = 2, *, k: float = 500.0, p: float = 0.0) -> CameraInfo:
    return CameraInfo(
        width=width,
        height=height,
        k=[k, 0.0, 1.5, 0.0, k, 0.5, 0.0, 0.0, 1.0],
        p=[p, 0.0, 1.6, 0.0, 0.0, p, 0.6, 0.0, 0.0, 0.0, 1.0, 0.0],
    )


def test_the_camera_is_that_of_rectified_images_where_it_is_known():
    picture = image(np.ones((2, 4)), "32FC1")
    assert pinhole_from_msg(camera_info(), picture) == Pinhole(500.0, 500.0, 1.5, 0.5)
    assert pinhole_from_msg(camera_info(p=480.0), picture) == Pinhole(480.0, 480.0, 1.6, 0.6)
    for wrong in (camera_info(k=0.0), camera_info(width=5), camera_info(k=NAN)):
        with pytest.raises(InputRejectedError) as caught:
            pinhole_from_msg(wrong, picture)
        assert caught.value.reason == "camera_info"


def cloud(
    points: np.ndarray,
    layout: list[tuple[str, str]],
    *,
    rows: int = 1,
    big: bool = False,
    gap: int = 0,
    padding: int = 0,
) -> PointCloud2:
    """Points with fields in this order, `gap` bytes after each one and `padding` after each row."""
    codes, offset, fields = {"f4": 7, "f8": 8, "u1": 2, "u2": 4}, 0, []
    for name, kind in layout:
        fields.append(PointField(name=name, offset=offset, datatype=codes[kind], count=1))
        offset += int(kind[1])
    order = ">" if big else "<"
    table = np.zeros(
        len(points),
        np.dtype(
            {
                "names": [name for name, _ in layout],
                "formats": [order + kind for _, kind in layout],
                "offsets": [field.offset for field in fields],
                "itemsize": offset + gap,
            }
        ),
    )
    for axis, name in enumerate("xyz"):
        table[name] = points[:, axis]
    width = len(points) // rows
    data = b"".join(
        table[row * width : (row + 1) * width].tobytes() + b"\xff" * padding for row in range(rows)
    )
    step = offset + gap
    return over_the_wire(
        PointCloud2(
            header=header("velodyne"),
            height=rows,
            width=width,
            fields=fields,
            is_bigendian=big,
            point_step=step,
            row_step=width * step + padding,
            data=array.array("B", data),
            is_dense=False,
        )
    )


@settings(max_examples=60)
@given(
    st.permutations(
        [("x", "f4"), ("y", "f8"), ("z", "f4"), ("intensity", "f4"), ("ring", "u2"), ("tag", "u1")]
    ),
    st.sampled_from([1, 2, 3]),
    st.booleans(),
    st.integers(0, 7),
    st.integers(0, 5),
    st.integers(0, 2**32),
)
def test_points_are_read_in_any_layout(layout, rows, big, gap, padding, seed):
    points = np.random.default_rng(seed).normal(size=(12, 3))
    points[3, 1] = NAN
    found = points_from_msg(cloud(points, layout, rows=rows, big=big, gap=gap, padding=padding))
    np.testing.assert_allclose(found, points, rtol=1e-6)


XYZ = [("x", "f4"), ("y", "f4"), ("z", "f4")]


@pytest.mark.parametrize("step", [0, 6 * 12])
def test_a_cloud_whose_rows_have_no_gap_may_say_so_by_another_row_step_and_may_be_followed_by_bytes(
    step,
):
    points = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    good = cloud(points, XYZ, rows=2)
    longer = array.array("B", bytes(good.data) + b"\xff" * 5)
    np.testing.assert_array_equal(points_from_msg(bent(good, row_step=step, data=longer)), points)


def test_a_cloud_may_be_empty():
    empty = cloud(np.empty((0, 3)), XYZ)
    assert points_from_msg(empty).shape == (0, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"row_step": 0, "width": 3},
        {"row_step": 2**32 - 1, "height": 2},
        {"row_step": 0, "height": 2**32 - 1},
        {"point_step": 8},
        {"row_step": 12},
        {"width": 3},
        {"height": 2},
        {"data": array.array("B", bytes(5))},
        {"fields": []},
        {"fields": [PointField(name=name, offset=0, datatype=2, count=1) for name in "xyz"]},
    ],
)
def test_clouds_that_cannot_be_used_are_refused(changes):
    good = cloud(np.ones((2, 3)), XYZ)
    with pytest.raises(InputRejectedError) as caught:
        points_from_msg(over_the_wire(bent(good, **changes)))
    assert caught.value.reason == "layout"
