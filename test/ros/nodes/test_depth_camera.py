"""Node depth_camera: scan and pose belong together, goals move it, bad goals are counted and change
nothing.
"""

from __future__ import annotations

import math
import sys
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from geometry_msgs.msg import PoseStamped
from ros_world import header, malformed_poses, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import contour_from_msg
from nbv_planner.episode.run_info import ground_truth
from nbv_planner.errors import ConfigFileError, SettingError
from nbv_planner.geometry import angle_difference
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.objects.true_outlines import Outlines, parse_outlines
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SMALL = {"num_beams": 21, "scan_rate": 100.0, "initial_view_angle": 0.0}
SECOND = 1_000_000_000


class Listener:
    """Hears what the camera publishes, and sends it goals."""

    def __init__(self, world):
        self.world = world
        self.scans = world.listen(LaserScan, "scan")
        self.poses = world.listen(PoseStamped, "camera_pose")
        self._send = world.speaker(PoseStamped, "goal_pose")

    def goal(self, angle: float, stamp: int) -> None:
        self._send(pose_msg(view_pose(angle), stamp))

    def send(self, msg: PoseStamped) -> None:
        self._send(msg)

    def angle(self) -> float:
        """Where the newest pose says that the camera stands."""
        return pose_from_msg(self.poses[-1]).view_angle

    def at(self, angle: float):
        """Whether the camera stands at an angle."""
        return lambda: bool(self.poses) and abs(angle_difference(self.angle(), angle)) < 1e-9

    def go(self, angle: float, stamp: int) -> None:
        """Send a goal and wait for a scan taken there."""
        before = len(self.scans)
        self.goal(angle, stamp)
        self.world.spin_until(
            lambda: self.at(angle)() and len(self.scans) > before, f"the camera at {angle}"
        )

    def more(self, number: int) -> None:
        """Wait for some more scans."""
        wanted = len(self.scans) + number
        self.world.spin_until(lambda: len(self.scans) >= wanted, "more scans")


def test_scan_and_pose_come_in_pairs_with_the_same_stamp(world):
    world.start(DepthCamera, **SMALL)
    hears = Listener(world)
    hears.more(5)
    world.spin_until(lambda: len(hears.poses) >= len(hears.scans), "the poses")
    stamps = [msg.header.stamp for msg in hears.poses]
    assert all(scan.header.stamp in stamps for scan in hears.scans[1:])
    numbers = [to_nanoseconds(stamp) for stamp in stamps]
    assert numbers == sorted(set(numbers))
    assert {msg.header.frame_id for msg in hears.scans} == {"camera"}
    assert all(msg.scan_time == pytest.approx(1.0 / SMALL["scan_rate"]) for msg in hears.scans)
    assert {msg.header.frame_id for msg in hears.poses} == {"object"}


def test_it_starts_at_the_initial_view_looking_at_the_centre(world):
    world.start(DepthCamera, **{**SMALL, "initial_view_angle": 2.0}, view_distance=11.0)
    hears = Listener(world)
    hears.more(1)
    world.spin_until(lambda: hears.poses, "a pose")
    pose = pose_from_msg(hears.poses[-1])
    assert pose.view_angle == pytest.approx(2.0)
    assert math.hypot(pose.x, pose.y) == pytest.approx(11.0)
    assert pose.to_camera(0.0, 0.0) == (pytest.approx(11.0), pytest.approx(0.0, abs=1e-9))


def test_ground_truth_reaches_a_late_subscriber_once(world):
    world.start(DepthCamera, object="ellipse:a=6,b=4", **SMALL)
    Listener(world).more(2)
    heard = world.listen(PointCloud2, "ground_truth/surface", qos.latched())
    world.spin_until(lambda: heard, "the ground truth")
    world.spin_some()
    (msg,) = heard
    points = surface_points(parse_object("ellipse:a=6,b=4", Scene()), 0.1)
    expected = conversions.contour_to_msg(points, header("object"))
    assert (msg.header.frame_id, msg.width) == ("object", len(points.angle))
    assert msg.data == expected.data
    assert msg.fields == expected.fields


@pytest.mark.parametrize("text", ["letter:C", "two_boxes:gap=1"])
def test_outlines_that_are_not_star_shaped_are_scanned_and_said(world, text):
    camera = world.start(DepthCamera, object=text, seed=5, **SMALL)
    hears = Listener(world)
    heard = world.listen(PointCloud2, "ground_truth/surface", qos.latched())
    world.spin_until(lambda: heard, "the ground truth")
    shape = parse_outlines(text, Scene())
    points = contour_from_msg(heard[0])
    found = Outlines.through(points, text)
    assert len(found.loops) == len(shape.loops) == (1 if text == "letter:C" else 2)
    for loop, corners in zip(found.loops, shape.loops, strict=True):
        away = np.hypot(*np.moveaxis(corners[:, None] - loop, -1, 0)).min(axis=1)
        np.testing.assert_allclose(away, 0.0, atol=1e-5)  # single precision
    assert isinstance(ground_truth(None, points, Scene())[0].shape, Outlines)
    hears.go(2.5, SECOND)
    expected = SimulatedCamera(shape, Scene(), SensorSettings(num_beams=21, seed=5))
    scan = expected.scan(view_pose(2.5), 1, 0)
    at_goal = [msg for msg in hears.scans if np.array_equal(msg.ranges, scan.ranges)]
    assert at_goal
    assert camera.doing()[1] == "running"


def test_a_drive_keeps_off_all_bodies(world):
    settings = {**SMALL, "robot_radius": 0.4, "clearance": 0.2, "drive_speed": 1e3}
    camera = world.start(DepthCamera, object="two_boxes", **settings)
    hears, shape = Listener(world), parse_outlines("two_boxes", Scene())
    for number, angle in enumerate((3.0, 5.5, 1.5, 4.5), start=1):
        hears.go(angle, number * SECOND)
        path = camera.motion.drive.path
        steps = np.linspace(0.0, 1.0, 50)[:, None]
        places = np.concatenate([one + steps * (other - one) for one, other in pairwise(path)])
        for loop in Outlines.through(surface_points(shape, 0.05), "two_boxes").loops:
            assert np.hypot(*np.moveaxis(places[:, None] - loop, -1, 0)).min() > 0.59
    assert camera.collisions == 0


def test_it_moves_to_a_goal_at_once_and_numbers_scans_from_the_arrival(world):
    world.start(DepthCamera, seed=5, **SMALL)
    hears = Listener(world)
    hears.more(3)
    hears.goal(2.5, SECOND)
    world.spin_until(hears.at(2.5), "the camera at its goal")
    jumps = np.diff([pose_from_msg(msg).view_angle for msg in hears.poses])
    assert np.count_nonzero(jumps) == 1  # nothing in between
    hears.more(3)
    first = next(msg.header.stamp for msg in hears.poses if pose_from_msg(msg).view_angle > 1.0)
    start = next(i for i, msg in enumerate(hears.scans) if msg.header.stamp == first)
    scene = Scene()
    camera = SimulatedCamera(
        parse_object("polygon:star", scene), scene, SensorSettings(num_beams=21, seed=5)
    )
    for number in range(3):
        expected = camera.scan(view_pose(2.5), 1, number)
        np.testing.assert_array_equal(hears.scans[start + number].ranges, expected.ranges)


@pytest.mark.parametrize("target", [2.0, 5.0])
def test_it_moves_at_its_angular_speed_the_shorter_way(world, target):
    speed = 2.0
    world.start(DepthCamera, angular_speed=speed, **SMALL)
    hears = Listener(world)
    hears.more(1)
    hears.go(target, SECOND)
    hears.more(3)
    assert hears.at(target)()
    angles = [pose_from_msg(msg).view_angle for msg in hears.poses]
    stamps = [to_nanoseconds(msg.header.stamp) for msg in hears.poses]
    arrived = next(
        i for i, angle in enumerate(angles) if abs(angle_difference(angle, target)) < 1e-9
    )
    left = max(i for i, angle in enumerate(angles) if abs(angle_difference(angle, 0.0)) < 1e-9)
    assert arrived > left + 2
    sign = math.copysign(1.0, angle_difference(target, 0.0))
    # The first step starts with the goal, the last one ends at it; those between go at the full
    # speed.
    for i in range(left + 2, arrived):
        step = sign * angle_difference(angles[i], angles[i - 1])
        assert step == pytest.approx(speed * (stamps[i] - stamps[i - 1]) * 1e-9, rel=1e-6)
    for i in (left + 1, arrived):
        assert (
            0.0
            <= sign * angle_difference(angles[i], angles[i - 1])
            <= speed * (stamps[i] - stamps[i - 1]) * 1e-9
        )


@pytest.mark.parametrize("speed", [0.0, 6.0])
def test_it_goes_to_a_goal_off_the_view_circle_and_stands_there_again_after_a_restart(
    world, tmp_path, speed
):
    settings = {**SMALL, "angular_speed": speed, "state_file": str(tmp_path / "camera.state")}
    camera = world.start(DepthCamera, **settings)
    hears, goal = Listener(world), CameraPose(-4.0, 8.0, -1.2)
    hears.more(2)
    hears.send(pose_msg(goal, SECOND))
    world.spin_until(
        lambda: camera.view_number == 1 and camera.motion.view == camera.motion.goal,
        "the camera at its goal",
    )
    world.spin_until(hears.at(goal.view_angle), "its pose at the goal")
    pose = pose_from_msg(hears.poses[-1])
    assert (pose.x, pose.y) == pytest.approx((goal.x, goal.y))
    assert angle_difference(pose.yaw, goal.yaw) == pytest.approx(0.0, abs=1e-9)
    world.spin_until(lambda: camera.worker.pending == 0, "the state on the disk")
    world.end(camera)
    assert world.start(DepthCamera, **settings).motion.goal == camera.motion.goal


def test_with_a_drive_speed_it_drives_along_the_path_around_the_object(world, tmp_path):
    speed = 40.0
    settings = {
        **SMALL,
        "object": "ellipse:a=4,b=4",
        "drive_speed": speed,
        "robot_radius": 0.5,
        "clearance": 0.5,
        "state_file": str(tmp_path / "camera.state"),
    }
    camera = world.start(DepthCamera, **settings)
    hears, goal = Listener(world), CameraPose.from_polar(3.0, 12.0, 0.1)
    hears.more(2)
    hears.send(pose_msg(goal, SECOND))
    world.spin_until(
        lambda: camera.view_number == 1 and camera.motion.view == camera.motion.goal,
        "the camera at its goal",
    )
    world.spin_until(hears.at(goal.view_angle), "its pose at the goal")
    places = np.array([[pose_from_msg(msg).x, pose_from_msg(msg).y] for msg in hears.poses])
    stamps = np.array([to_nanoseconds(msg.header.stamp) for msg in hears.poses])
    moving = np.flatnonzero((np.abs(np.diff(places, axis=0)) > 1e-9).any(axis=1))
    assert len(moving) > 4
    between = moving[1:-1]  # the first step starts with the goal, the last one ends at it
    steps = np.hypot(*np.diff(places, axis=0)[between].T)
    driven = speed * np.diff(stamps)[between] * 1e-9
    assert (steps <= driven + 1e-6).all()  # chords of the arc
    assert (steps >= 0.9 * driven).all()
    assert np.hypot(*places.T).min() >= 5.0 - 1e-6
    assert (camera.collisions, world.diagnosis(camera).values["collisions"]) == (0, "0")
    world.spin_until(lambda: camera.worker.pending == 0, "the state on the disk")
    world.end(camera)
    again = world.start(DepthCamera, **settings)
    world.spin_until(
        lambda: again.motion.view == again.motion.goal, "the restarted camera at its goal"
    )
    assert again.motion.goal == camera.motion.goal


def test_a_drive_through_a_wall_is_counted_and_said(world, tmp_path):
    there = tmp_path / "world.yaml"
    there.write_text("room:\n- wall: [[0, 5], [0, 30]]\n", encoding="utf-8")
    camera = world.start(DepthCamera, drive_speed=1e3, world_file=str(there), **SMALL)
    hears = Listener(world)
    hears.go(1.0, SECOND)
    assert camera.collisions == 0
    hears.go(2.5, 2 * SECOND)
    assert camera.collisions == 1
    assert world.diagnosis(camera).values["collisions"] == "1"


def test_the_world_file_places_the_object_and_turns_the_sensor(world, tmp_path):
    there = tmp_path / "world.yaml"
    there.write_text("object: {x: 0.5, y: -0.2}\nbias: {yaw: 0.1}\n", encoding="utf-8")
    world.start(DepthCamera, world_file=str(there), noise_std=0.0, **SMALL)
    hears = Listener(world)
    truth = world.listen(PointCloud2, "ground_truth/surface", qos.latched())
    world.spin_until(lambda: hears.scans and truth, "a scan, and the surface")
    scene, shape = Scene(), parse_object("polygon:star", Scene())
    settings = SensorSettings(num_beams=21, noise_std=0.0, pose_bias_yaw=0.1)
    there_as_told = WorldSettings(object_x=0.5, object_y=-0.2)
    expected = SimulatedCamera(shape, scene, settings, there_as_told)
    ranges = expected.exact_ranges(CameraPose.from_polar(0.0, scene.view_distance))
    told = np.where(np.isfinite(ranges), ranges, np.inf)
    np.testing.assert_allclose(hears.scans[0].ranges, told, rtol=1e-5)
    plain = SimulatedCamera(shape, scene, SensorSettings(num_beams=21, noise_std=0.0))
    elsewhere = plain.exact_ranges(CameraPose.from_polar(0.0, scene.view_distance))
    assert not np.allclose(ranges, elsewhere)
    points = surface_points(shape, 0.1)
    placed = conversions.contour_to_msg(points, header("object"), (0.5, -0.2))
    assert truth[0].data == placed.data


@pytest.mark.parametrize(
    ("text", "words"),
    [("objekt: {}\n", "line 1: unknown section 'objekt'"), (None, "cannot read")],
)
def test_a_world_file_that_is_not_allowed_stops_the_node_with_a_message(
    world, tmp_path, text, words
):
    there = tmp_path / "world.yaml"
    if text is not None:
        there.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigFileError, match=words):
        world.start(DepthCamera, world_file=str(there))


@pytest.mark.parametrize("name", ["object_x", "room_file", "pose_bias_yaw"])
def test_what_the_world_file_has_is_no_parameter(world, name):
    with pytest.raises(
        SettingError, match=rf"{name} is not a parameter any more: .*world_file"
    ) as caught:
        world.start(DepthCamera, **{name: "x"})
    assert "\n" not in str(caught.value)


def test_what_the_world_file_says_is_shown_and_stays(world, tmp_path):
    there = tmp_path / "world.yaml"
    there.write_text("object: {x: 0.5}\n", encoding="utf-8")
    camera = world.start(DepthCamera, world_file=str(there), **SMALL)
    assert camera.get_parameter("object_x").value == 0.5
    assert not camera.has_parameter("object_y")
    (answer,) = world.set_parameters(camera, object_x=1.0)
    assert not answer.successful
    assert camera.get_parameter("object_x").value == 0.5


def test_the_same_goal_again_is_no_new_view(world):
    camera = world.start(DepthCamera, **SMALL)
    hears = Listener(world)
    hears.go(1.0, SECOND)
    assert camera.view_number == 1
    hears.goal(1.0, SECOND)
    hears.goal(3.0, SECOND)  # the stamp names the goal
    hears.go(2.0, 2 * SECOND)
    assert camera.view_number == 2
    assert world.diagnosis(camera).values["views"] == "2"
    assert not any(
        abs(angle_difference(pose_from_msg(msg).view_angle, 3.0)) < 1e-9 for msg in hears.poses
    )


def test_going_to_the_same_place_for_a_new_goal_is_a_new_view_with_other_noise(world):
    camera = world.start(DepthCamera, **SMALL)
    hears = Listener(world)
    hears.go(1.0, SECOND)
    hears.goal(1.0, 2 * SECOND)
    world.spin_until(lambda: camera.view_number == 2, "the second view")


def test_reset_takes_it_back_and_repeats_the_noise(world):
    camera = world.start(DepthCamera, **{**SMALL, "initial_view_angle": 0.5})
    hears = Listener(world)

    def first_scan_at_the_goal(stamp: int):
        hears.scans.clear()
        hears.poses.clear()
        hears.go(2.0, stamp)
        there = [m.header.stamp for m in hears.poses if pose_from_msg(m).view_angle > 1.0]
        return world.spin_until(
            lambda: next((m.ranges for m in hears.scans if m.header.stamp == there[0]), None),
            "the scan at the goal",
        )

    ranges = first_scan_at_the_goal(SECOND)
    answer = world.call(Trigger, "depth_camera/reset")
    assert (answer.success, answer.message) == (True, "camera at 0.5000 rad")
    world.spin_until(hears.at(0.5), "the camera at its initial view")
    assert camera.view_number == 0
    # a goal with an old stamp counts again
    np.testing.assert_array_equal(first_scan_at_the_goal(SECOND), ranges)


def test_malformed_goals_are_counted_by_reason_and_neither_stop_nor_move_it(world):
    camera = world.start(DepthCamera, **SMALL)
    hears = Listener(world)
    hears.go(1.0, SECOND)
    bad = malformed_poses(pose_msg(view_pose(3.0), 2 * SECOND))
    for number, (_, msg) in enumerate(bad.values(), start=1):
        hears.send(msg)
        world.spin_until(lambda n=number: camera.drops.total() == n, "the goal to be dropped")
    hears.go(2.0, 3 * SECOND)
    assert world.drops(camera) == {
        "goal_pose.not_finite": 5,
        "goal_pose.quaternion": 3,
        "goal_pose.tilted": 2,
        "goal_pose.frame": 2,
    }
    assert camera.view_number == 2
    seen = {round(pose_from_msg(msg).view_angle, 6) for msg in hears.poses}
    assert seen <= {0.0, 1.0, 2.0}


def test_diagnostics_say_where_it_stands(world):
    camera = world.start(DepthCamera, **SMALL)
    Listener(world).go(1.0, SECOND)
    found = world.diagnosis(camera)
    assert (found.level, found.message) == (b"\x00", "running")
    assert float(found.values["view_angle"]) == pytest.approx(1.0)
    assert float(found.values["goal_angle"]) == pytest.approx(1.0)


def test_the_pose_is_out_before_the_beams_are_cast(world, monkeypatch):
    node = world.start(DepthCamera, **SMALL)
    done, cast, publish = [], node.camera.scan, node._pose.publish
    monkeypatch.setattr(node.camera, "scan", lambda *args: done.append("beams") or cast(*args))
    monkeypatch.setattr(node._pose, "publish", lambda msg: done.append("pose") or publish(msg))
    node.on_timer()
    assert done == ["pose", "beams"]


def test_where_the_camera_is_goes_out_as_a_transform_with_the_stamp_of_the_scan(world):
    message = pytest.importorskip(
        "tf2_msgs.msg", reason="there is no wheel of tf2_msgs: runs where ROS 2 is installed"
    )
    heard = world.listen(message.TFMessage, "/tf")
    scans = world.listen(LaserScan, "scan")
    world.start(DepthCamera, **SMALL, object_frame="vase", camera_frame="eye")

    def pair():
        stamps = [scan.header.stamp for scan in scans]
        found = [
            transform
            for msg in heard
            for transform in msg.transforms
            if transform.header.stamp in stamps
        ]
        return found[-1] if found else None

    transform = world.spin_until(pair, "a scan and its transform")
    assert (transform.header.frame_id, transform.child_frame_id) == ("vase", "eye")
    expected = conversions.pose_to_msg(view_pose(0.0), header("vase")).pose
    assert transform.transform.translation.x == expected.position.x
    assert transform.transform.rotation == expected.orientation


def test_without_tf2_msgs_the_camera_says_so_and_works(world, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "tf2_msgs.msg", None)
    world.start(DepthCamera, **SMALL)
    assert "nothing is published on /tf: tf2_msgs is not installed" in capfd.readouterr().err
    Listener(world).more(2)
