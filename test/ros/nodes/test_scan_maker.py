"""Node scan_maker: depth images, clouds or several echoes in, scans with the same stamp out; the
rest is counted.
"""

from __future__ import annotations

import array
import math
import threading

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from rclpy.lifecycle import TransitionCallbackReturn
from ros_world import bent, header
from sensor_msgs.msg import (
    CameraInfo,
    Image,
    LaserEcho,
    LaserScan,
    MultiEchoLaserScan,
    PointCloud2,
    PointField,
)

from nbv_planner.clouds.sensor_messages import scan_from_msg, to_nanoseconds
from nbv_planner.errors import SettingError
from nbv_planner.ros.nodes import scan_maker
from nbv_planner.ros.nodes.scan_maker import ScanMakerNode

INFO = CameraInfo(width=8, height=4, k=[10.0, 0.0, 3.5, 0.0, 10.0, 1.5, 0.0, 0.0, 1.0])
IMAGE = Image(
    header=header("eye_optical_frame", 123),
    width=8,
    height=4,
    encoding="32FC1",
    step=32,
    data=array.array("B", np.full((4, 8), 2.0, dtype="<f4").tobytes()),
)


@pytest.fixture
def maker(world):
    """Return a function that starts the node, and gives it with the scans it makes."""

    def start(source: str, **parameters):
        node = world.start(ScanMakerNode, scan_source=source, **parameters)
        return node, world.listen(LaserScan, "scan")

    return start


def test_a_depth_image_becomes_a_scan_in_the_frame_that_looks_ahead(world, maker):
    node, scans = maker("depth_image", band_above=0.5, band_below=0.5)
    send, info = world.speaker(Image, "image"), world.speaker(CameraInfo, "camera_info")
    assert "waiting for /camera_info" in world.diagnosis(node).message
    send(IMAGE)
    world.spin_until(
        lambda: world.drops(node) == {"image.no_camera_info": 1}, "the first image to be dropped"
    )
    info(INFO)
    world.spin_until(
        lambda: float(world.diagnosis(node).values["input.camera_info.age"]) < 60.0, "the camera"
    )
    send(IMAGE)
    world.spin_until(lambda: scans, "the scan")
    assert scans[0].header.frame_id == "eye_frame"
    assert to_nanoseconds(scans[0].header.stamp) == 123
    scan = scan_from_msg(scans[0])
    assert scan.ranges * np.cos(scan.bearings) == pytest.approx(
        np.full(len(scan.ranges), 2.0), rel=0.01
    )
    assert scan.range_max == math.inf
    assert scan.field_ahead == pytest.approx(2 * math.atan(0.35), abs=0.2)
    assert world.diagnosis(node).message == "running"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (bent(IMAGE, encoding="rgb8"), "image.encoding"),
        (bent(IMAGE, width=7), "image.camera_info"),
        (bent(IMAGE, step=16), "image.layout"),
    ],
)
def test_images_that_cannot_be_used_are_counted(world, maker, message, reason):
    node, scans = maker("depth_image")
    info, send = world.speaker(CameraInfo, "camera_info"), world.speaker(Image, "image")
    info(INFO)
    world.spin_until(
        lambda: float(world.diagnosis(node).values["input.camera_info.age"]) < 60.0, "the camera"
    )
    send(message)
    world.spin_until(lambda: world.drops(node) == {reason: 1}, "the drop")
    send(bent(IMAGE, header=header("eye", 7)))
    world.spin_until(lambda: scans, "the scan")
    assert [scan.header.frame_id for scan in scans] == ["eye"]


def test_a_cloud_becomes_a_scan(world, maker):
    node, scans = maker("point_cloud", scan_field=1.0, scan_step=0.1, scan_frame="level")
    send = world.speaker(PointCloud2, "points")
    points = np.array([[2.0, 0.1, 0.0], [2.0, 0.1, 1.0], [3.0, -0.6, 0.04]], dtype="<f4")
    fields = [
        PointField(name=name, offset=4 * at, datatype=7, count=1) for at, name in enumerate("xyz")
    ]
    cloud = PointCloud2(
        header=header("velodyne", 5),
        height=1,
        width=3,
        fields=fields,
        point_step=12,
        row_step=36,
        data=array.array("B", points.tobytes()),
    )
    send(bent(cloud, fields=[]))
    send(cloud)
    world.spin_until(lambda: scans, "the scan")
    assert world.drops(node) == {"points.layout": 1}
    assert scans[0].header.frame_id == "level"
    ranges = np.asarray(scans[0].ranges)
    assert np.flatnonzero(np.isfinite(ranges)).tolist() == [3, 5]
    assert ranges[[3, 5]] == pytest.approx([math.hypot(3.0, 0.6), math.hypot(2.0, 0.1)])


def test_of_several_echoes_the_first_is_passed_on(world, maker):
    _, scans = maker("multi_echo")
    send = world.speaker(MultiEchoLaserScan, "echoes")
    send(
        MultiEchoLaserScan(
            header=header("laser", 9),
            angle_min=0.1,
            angle_max=-0.1,
            angle_increment=-0.1,
            range_min=0.1,
            range_max=30.0,
            ranges=[LaserEcho(echoes=beam) for beam in ([1.0, 2.0], [3.0], [4.0, 5.0])],
        )
    )
    world.spin_until(lambda: scans, "the scan")
    assert list(scans[0].ranges) == [4.0, 3.0, 1.0]
    assert (scans[0].header.frame_id, scans[0].range_max) == ("laser", 30.0)


def test_it_refuses_to_run_where_scans_are_received_as_they_are(world):
    with pytest.raises(SettingError, match="laser_scan needs no scan_maker"):
        world.start(ScanMakerNode)


def test_an_inactive_node_makes_no_scans(world, maker):
    node, scans = maker("multi_echo")
    send = world.speaker(MultiEchoLaserScan, "echoes")
    echoes = MultiEchoLaserScan(
        angle_max=0.1,
        angle_increment=0.1,
        range_max=9.0,
        ranges=[LaserEcho(echoes=[1.0]), LaserEcho(echoes=[2.0])],
    )
    assert node.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
    send(echoes)
    world.spin_some()
    assert scans == []
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    send(echoes)
    world.spin_until(lambda: scans, "the scan")


def test_a_conversion_that_takes_long_keeps_no_callback_and_what_comes_meanwhile_is_counted(
    world, maker, monkeypatch
):
    node, scans = maker("depth_image", band_above=0.5, band_below=0.5)
    begun, go, convert = threading.Event(), threading.Event(), scan_maker.scan_of_depth

    def slow(*arguments):
        begun.set()
        assert go.wait(60.0)
        return convert(*arguments)

    monkeypatch.setattr(scan_maker, "scan_of_depth", slow)
    send, info = world.speaker(Image, "image"), world.speaker(CameraInfo, "camera_info")
    info(INFO)
    world.spin_until(lambda: node._camera is not None, "the camera")
    node.on_image(IMAGE)  # returns at once
    assert begun.wait(60.0)
    node.on_image(IMAGE)
    assert not scans
    send(IMAGE)
    world.spin_until(
        lambda: world.drops(node) == {"image.busy": 1}, "the third image to be left out"
    )
    go.set()
    world.spin_until(lambda: len(scans) == 2, "the scans of the others")
