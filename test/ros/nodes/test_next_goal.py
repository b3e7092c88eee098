"""The next goal is given as soon as the last scan that a view needs is mapped, however slow the
robot is.
"""

from __future__ import annotations

import time

import pytest
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from geometry_msgs.msg import PoseStamped
from ros_world import header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan

from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.world.objects import parse_object
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

CAMERA = SimulatedCamera(
    parse_object("ellipse:a=6,b=4", Scene()), Scene(), SensorSettings(num_beams=61)
)
MS = 1_000_000


def test_the_next_goal_needs_nothing_but_the_last_scan_of_the_view(world):
    world.start(SurfaceMapperNode, grid_size=200, scans_per_view=3)
    world.start(NbvPlannerNode, objective="U", certify=False, num_views=12, goal_timeout=600.0)
    goals = world.listen(PoseStamped, "goal_pose")
    pose, scan = world.speaker(PoseStamped, "camera_pose"), world.speaker(LaserScan, "scan")

    def see(camera, stamp: int, number: int) -> None:
        """A scan, and the pose of its time."""
        scan(conversions.scan_to_msg(CAMERA.scan(camera, number), header("camera", stamp)))
        pose(pose_msg(camera, stamp))

    see(view_pose(0.3), world.peer.get_clock().now().nanoseconds, 0)
    world.spin_until(lambda: goals, "the first goal")
    world.spin_some()  # the robot takes its time to set out
    there, arrived = pose_from_msg(goals[0]), to_nanoseconds(goals[0].header.stamp) + 2000 * MS
    for number in (1, 2):
        see(there, arrived + number * MS, number)
    world.spin_some()
    assert {to_nanoseconds(goal.header.stamp) for goal in goals} == {
        to_nanoseconds(goals[0].header.stamp)
    }
    see(there, arrived + 3 * MS, 3)
    # From here on the robot says nothing more.
    world.spin_until(lambda: goals[-1].header.stamp != goals[0].header.stamp, "the second goal")
    assert pose_from_msg(goals[-1]).view_angle != pytest.approx(there.view_angle)


@pytest.mark.parametrize("lost", [False, True])
def test_a_planner_that_takes_scans_waits_a_moment_for_the_newest_one_in_the_surface(world, lost):
    """The scan is a topic of its own: it may come after the surface that was made of it, or
    never.
    """
    node = world.start(NbvPlannerNode, planner="volumetric", certify=False, num_views=12)
    goals = world.listen(PoseStamped, "goal_pose")
    pose, scan = world.speaker(PoseStamped, "camera_pose"), world.speaker(LaserScan, "scan")
    surface = world.mapper()
    world.peer.create_subscription(PoseStamped, "goal_pose", lambda msg: None, qos.reliable())
    start = world.peer.get_clock().now().nanoseconds
    pose(pose_msg(view_pose(0.3), start))
    surface(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))
    world.spin_until(lambda: goals, "the first goal")
    there, taken = pose_from_msg(goals[0]), to_nanoseconds(goals[0].header.stamp) + 1000 * MS
    for stamp in (taken - MS, taken, taken + MS):
        pose(pose_msg(there, stamp))
    came = time.monotonic()
    surface(conversions.belief_to_msg(wavy_belief(1, size=200), header("object", taken)))
    world.spin_until(lambda: len(node.core.episode.visited) == 1, "the view that counts")
    if not lost:
        scan(conversions.scan_to_msg(CAMERA.scan(there, 1), header("camera", taken)))
    world.spin_until(lambda: goals[-1].header.stamp != goals[0].header.stamp, "the second goal")
    assert len(node.core.episode.scan_history) == (not lost)
    assert time.monotonic() - came >= lost  # a second, at least
