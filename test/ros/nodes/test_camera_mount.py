"""Mapper and planner with a camera that sits off the frame whose poses and goals are exchanged, or
without tf2.
"""

from __future__ import annotations

import dataclasses
import math
import sys

import pytest
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from geometry_msgs.msg import PoseStamped
from ros_world import header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2

from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.errors import RosUnavailableError
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.surface.checks import Level
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

MOUNT = {"mount_x": 0.4, "mount_y": -0.2, "mount_yaw": 1.2}
POSES = PoseSettings(**MOUNT)
SHAPE = parse_object("ellipse:a=6,b=4", Scene())
CAMERA = SimulatedCamera(SHAPE, Scene(), SensorSettings(num_beams=31, noise_std=0.0))
MS = 1_000_000


def test_the_mapper_maps_from_where_the_camera_is_and_counts_scans_at_the_carriers_goal(world):
    world.start(SurfaceMapperNode, grid_size=360, noise_std=0.01, **MOUNT)
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    scan, pose, goal = (
        world.speaker(kind, topic)
        for kind, topic in (
            (LaserScan, "scan"),
            (PoseStamped, "camera_pose"),
            (PoseStamped, "goal_pose"),
        )
    )
    camera = view_pose(0.7)
    base = POSES.carrier(camera)
    goal(pose_msg(base, 5 * MS))
    pose(pose_msg(base, 10 * MS))
    scan(conversions.scan_to_msg(CAMERA.scan(camera, 1), header("camera", 10 * MS)))
    world.spin_until(
        lambda: surfaces and to_nanoseconds(surfaces[-1].header.stamp) == 10 * MS, "the view"
    )
    belief = belief_from_msg(surfaces[-1])
    seen = belief.hits > 0
    assert seen.sum() > 5
    assert abs(belief.mean - SHAPE.radius(belief.angle))[seen].max() < 0.03


@pytest.mark.parametrize(("second", "level"), [(0.4, Level.GOOD), (2.0, Level.FAILED)])
def test_a_carrier_that_climbs_from_view_to_view_is_doubted(world, second, level):
    """The pose of each scan is interpolated, and that of the camera on its carrier."""
    world.start(SurfaceMapperNode, grid_size=360, noise_std=0.01, integrate="always", **MOUNT)
    newest = world.surfaces()
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    scan, pose = world.speaker(LaserScan, "scan"), world.speaker(PoseStamped, "camera_pose")
    for number, height in enumerate((0.4, second), start=1):
        camera = dataclasses.replace(view_pose(0.7 * number), height=height)
        for stamp in (1000 * number - 10, 1000 * number + 10):
            pose(pose_msg(POSES.carrier(camera), stamp * MS))
        scan(
            conversions.scan_to_msg(
                CAMERA.scan(camera, number), header("camera", 1000 * number * MS)
            )
        )
        world.spin_until(
            lambda stamp=1000 * number: (
                surfaces and surfaces[-1].header.stamp == conversions.to_stamp(stamp * MS)
            ),
            f"view {number}",
        )
    checks = {check.name: check for check in newest().checks}
    assert checks["plane"].level is level
    assert checks["plane"].score == pytest.approx(second / Scene().view_distance, abs=1e-6)


def test_the_planner_sends_the_carrier_and_sees_the_camera_arrive(world):
    planner = world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=20, goal_subscribers=1, **MOUNT
    )
    goals = world.listen(PoseStamped, "goal_pose")
    pose = world.speaker(PoseStamped, "camera_pose")
    surface = world.mapper()

    def now() -> int:
        return world.peer.get_clock().now().nanoseconds

    pose(pose_msg(POSES.carrier(view_pose(0.0)), now()))
    surface(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))
    world.spin_until(lambda: goals, "the first goal")
    base = pose_from_msg(goals[0])
    camera = POSES.camera(base)
    assert math.hypot(camera.x, camera.y) == pytest.approx(10.0)
    looks = math.remainder(camera.yaw - camera.view_angle - math.pi, 2 * math.pi)
    assert looks == pytest.approx(0.0, abs=1e-9)
    assert math.hypot(base.x, base.y) != pytest.approx(10.0, abs=0.01)
    pose(pose_msg(base, now()))
    world.spin_until(lambda: planner.core.state.value == "MEASURING", "the arrival")


@pytest.mark.parametrize("node", [SurfaceMapperNode, NbvPlannerNode])
def test_transforms_without_tf2_are_refused_with_what_to_do(world, monkeypatch, node):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(
        RosUnavailableError, match=r"pose_source: tf needs tf2_ros.*pose_source: topic"
    ):
        world.start(node, pose_source="tf", camera_frame="camera")
