"""A depth camera on an arm: its pose out of real transforms, with the hand-eye calibration as a
static one; skipped without tf2_ros.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip(
    "tf2_ros", reason="tf2_ros is not on PyPI: these tests run where ROS 2 is installed"
)

from geometry_msgs.msg import PoseStamped, TransformStamped
from ros_world import header
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from tf2_msgs.msg import TFMessage

from nbv_planner.clouds.sensor_messages import space_pose_from_msg, to_nanoseconds
from nbv_planner.geometry import optical
from nbv_planner.planning.view_space.viewpoints import looking
from nbv_planner.ros.core import qos
from nbv_planner.ros.io.conversions import orientation_to_msg
from nbv_planner.ros.nodes.solid_camera import depth_to_msg, info_to_msg
from nbv_planner.ros.nodes.solid_mapper import SolidMapper
from nbv_planner.ros.nodes.solid_planner import SolidPlanner
from nbv_planner.volume.bodies.depth_sensor import DepthSensor, SimulatedDepthCamera
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import RangeNoise

MS = 1_000_000
START = 1_000_000 * MS
SENSOR = DepthSensor(columns=32, rows=24, range_max=2.0)
CAMERA = SimulatedDepthCamera(solid_named("box", 0.25), SENSOR, RangeNoise(0.0, 1e-6))
BY_TF = {"pose_source": "tf", "camera_frame": "camera_optical", "radius_max": 0.25}
BY_TF |= {"columns": 32, "rows": 24, "range_max": 2.0}


def transform(turn, place) -> np.ndarray:
    """Homogeneous matrix, shape (4, 4), of a rotation vector and a translation."""
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), place
    return found


OBJECT = transform((0.0, 0.0, 2.5), (0.5, -0.1, 0.1))  # in the frame of the arm's base
HAND_EYE = transform((0.3, -0.2, 1.1), (0.04, -0.03, 0.08))  # of the camera on the flange
OPTICAL = transform((0.0, 0.0, 0.0), (0.0, 0.015, 0.0))
OPTICAL[:3, :3] = [(0, 0, 1), (-1, 0, 0), (0, -1, 0)]


def link(parent: str, child: str, matrix: np.ndarray, stamp: int = 0) -> TransformStamped:
    found = TransformStamped(header=header(parent, stamp), child_frame_id=child)
    place = found.transform.translation
    place.x, place.y, place.z = matrix[:3, 3].tolist()
    turn = Rotation.from_matrix(matrix[:3, :3]).as_quat()
    found.transform.rotation = orientation_to_msg(turn)
    return found


class Arm:
    """Publishes what never moves once, and the flange whenever the camera is to be somewhere."""

    def __init__(self, world) -> None:
        still = [
            link("base_link", "object", OBJECT),
            link("tool0", "camera_link", HAND_EYE),
            link("camera_link", "camera_optical", OPTICAL),
        ]
        world.speaker(TFMessage, "/tf_static", qos.latched(10))(TFMessage(transforms=still))
        self._send = world.speaker(TFMessage, "/tf")

    def holds(self, stamp: int, pose: Poses) -> None:
        """The camera is at the pose of its optical frame in the frame of the object."""
        eye = np.eye(4)
        eye[:3, :3] = Rotation.from_quat(optical(pose.rotation)[0]).as_matrix()
        eye[:3, 3] = pose.position[0]
        flange = OBJECT @ eye @ np.linalg.inv(OPTICAL) @ np.linalg.inv(HAND_EYE)
        self._send(TFMessage(transforms=[link("base_link", "tool0", flange, stamp)]))


def image_from(pose: Poses, stamp: int, frame: str = "camera_optical") -> Image:
    scan = CAMERA.scan(pose.position[0], pose.rotation[0], np.random.default_rng(0))
    depth = (scan.ranges * scan.directions[:, 0]).reshape(24, 32)
    return depth_to_msg(depth, SENSOR, header(frame, stamp))


def calibrated(world, mapper):
    """What sends images, once the mapper has their calibration."""
    world.speaker(CameraInfo, "camera_info")(info_to_msg(SENSOR, header("camera_optical", 1)))
    world.spin_until(lambda: mapper.incoming._reader._camera is not None, "the calibration")
    return world.speaker(Image, "image")


def test_the_mapper_maps_at_the_pose_of_the_stamp_and_counts_what_has_none(world):
    mapper = world.start(SolidMapper, integrate="always", pose_timeout=1.0, **BY_TF)
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    poses = world.listen(PoseStamped, "camera_pose")
    arm, send = Arm(world), calibrated(world, mapper)
    view = looking(np.array([[0.1, -0.4, 0.15]]), np.zeros(3))
    arm.holds(START, view)
    send(image_from(view, START + 30 * MS))  # waits for the transform behind it
    world.spin_some()
    assert mapper.core.known.mapper.model.count == 0
    arm.holds(START + 60 * MS, view)
    world.spin_until(
        lambda: surfaces and to_nanoseconds(surfaces[-1].header.stamp) == START + 30 * MS, "it"
    )
    world.spin_until(lambda: poses, "the pose")
    assert space_pose_from_msg(poses[0]).offset(view[0]) == pytest.approx((0.0, 0.0), abs=1e-6)
    hits = mapper.core.known.mapper.model.surface.cells.hits.mean
    surface, _ = solid_named("box", 0.25).sample(50_000, seed=1)
    assert len(hits) > 30
    assert cKDTree(surface).query(hits)[0].max() < 0.004  # the points are about 0.002 m apart
    assert np.median(hits[hits[:, 1] < -0.09, 1]) == pytest.approx(-0.1, abs=0.002)
    send(image_from(view, START + 40 * MS, "elsewhere"))
    send(image_from(view, START - 900 * MS))
    expected = {"image.frame", "scan.pose_too_far"}
    world.spin_until(lambda: expected <= set(world.drops(mapper)), "all to be counted")


def test_the_planner_sees_by_the_transforms_that_the_arm_has_arrived(world):
    planner = world.start(SolidPlanner, wait_for_start=False, settle_time=0.0, **BY_TF)
    mapper = world.start(SolidMapper, **BY_TF)
    goals = world.listen(PoseStamped, "goal_pose")
    arm, send = Arm(world), calibrated(world, mapper)
    view = looking(np.array([[0.4, 0.0, 0.1]]), np.zeros(3))
    now = world.peer.get_clock().now().nanoseconds
    arm.holds(now, view)
    send(image_from(view, now))
    world.spin_until(lambda: goals, "the first goal")
    goal = Poses.of([space_pose_from_msg(goals[0])])
    assert planner.core.state.value == "MOVING"
    arm.holds(world.peer.get_clock().now().nanoseconds, goal)
    world.spin_until(lambda: planner.core.state.value == "MEASURING", "the arrival")
