"""Node surface_mapper with robust mapping: outliers, misfit and refusal on /diagnostics, poses with
covariance.
"""

from __future__ import annotations

import math

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from ros_world import World, header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2

from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.surface.checks import failed_checks
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

MS = 1_000_000
SHAPE = parse_object("polygon:star", Scene())


def send_views(
    world, number: int, sensor: SensorSettings, kind: type = PoseStamped, variance: float = 0.0
) -> list:
    """Send goal, pose and scan of views around the object, each once the surface of the last is
    there.
    """
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    scan, pose, goal = (
        world.speaker(t, n)
        for t, n in ((LaserScan, "scan"), (kind, "camera_pose"), (PoseStamped, "goal_pose"))
    )
    camera = SimulatedCamera(SHAPE, Scene(), sensor)
    for view in range(number):
        at, stamp = view_pose(2.0 * math.pi * view / number), (10 * view + 10) * MS
        goal(pose_msg(at, stamp))
        pose(told(at, stamp, kind, variance))
        scan(conversions.scan_to_msg(camera.scan(at, view), header("camera", stamp)))
        world.spin_until(
            lambda stamp=stamp: any(to_nanoseconds(m.header.stamp) == stamp for m in surfaces),
            "a surface",
        )
    return surfaces


def told(pose: CameraPose, stamp: int, kind: type, variance: float):
    msg = pose_msg(pose, stamp)
    if kind is PoseStamped:
        return msg
    sure = PoseWithCovarianceStamped(header=msg.header)
    sure.pose.pose = msg.pose
    sure.pose.covariance = np.diag([variance, variance, 0.0, 0.0, 0.0, 0.0]).ravel()
    return sure


def test_outliers_and_a_biased_pose_are_told_on_diagnostics(world):
    mapper = world.start(SurfaceMapperNode, robust=True, grid_size=300, surface_model="radius")
    send_views(world, 10, SensorSettings(outlier_probability=0.1, pose_bias_yaw=0.05))
    told = world.diagnosis(mapper)
    assert float(told.values["check.outliers"]) > 0.025
    assert float(told.values["check.bias"]) > 4.0
    assert told.level == DiagnosticStatus.WARN
    assert "all views are displaced in the same way" in told.message


def test_an_object_with_two_surfaces_is_doubted_and_mapped_all_the_same(world):
    """Cameras that are far from where they say: at most angles there are two surfaces."""
    mapper = world.start(SurfaceMapperNode, robust=True, grid_size=300, surface_model="radius")
    surfaces, newest = world.listen(PointCloud2, "surface", qos.latched(100)), world.surfaces()
    scan, pose, goal = (
        world.speaker(t, n)
        for t, n in ((LaserScan, "scan"), (PoseStamped, "camera_pose"), (PoseStamped, "goal_pose"))
    )
    sizes = [
        SimulatedCamera(parse_object(f"ellipse:a={r},b={r}", Scene()), Scene(), SensorSettings())
        for r in (3, 6)
    ]
    for number in range(6):
        stamp, at = (10 * number + 10) * MS, view_pose(0.02 * number)
        goal(pose_msg(at, stamp))
        pose(pose_msg(at, stamp))
        scan(conversions.scan_to_msg(sizes[number % 2].scan(at, number), header("camera", stamp)))
        world.spin_until(
            lambda n=number: int(world.diagnosis(mapper).values["views"]) == n + 1, "a mapped view"
        )
    assert world.diagnosis(mapper).level == DiagnosticStatus.WARN
    world.spin_until(
        lambda: to_nanoseconds(surfaces[-1].header.stamp) == stamp, "the newest surface"
    )
    assert failed_checks(newest().checks)


def test_the_covariance_of_the_pose_widens_the_band(world):
    world.start(SurfaceMapperNode, pose_type="pose_with_covariance", grid_size=100)
    surfaces = send_views(world, 1, SensorSettings(), PoseWithCovarianceStamped, variance=0.25)
    unsure = belief_from_msg(surfaces[-1]).width.min()
    with World() as other:
        other.start(SurfaceMapperNode, pose_type="pose_with_covariance", grid_size=100)
        surfaces = send_views(other, 1, SensorSettings(), PoseWithCovarianceStamped, variance=0.0)
        sure = belief_from_msg(surfaces[-1]).width.min()
    assert unsure > 1.5 * sure
