"""Node nbv_planner: a robot that does not move, or whose clock has stepped back, is named until the
episode ends.
"""

from __future__ import annotations

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from ros_world import pose_msg, view_pose
from test_nbv_planner import ENDLESS, Robot

from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode

SECOND = 1_000_000_000
IMPATIENT = {**ENDLESS, "goal_timeout": 0.5, "goal_retries": 0}


def until_done(world, robot: Robot, *, off: float = 0.0, stands=None) -> list[DiagnosticStatus]:
    """Send poses, 50 a second, by a clock that is off by seconds until the episode has ended;
    returns each status, once.
    """
    sent = 0

    def done() -> bool:
        nonlocal sent
        if robot.now() - sent > SECOND // 50:
            sent = robot.now()
            robot.send_pose(pose_msg(stands or view_pose(0.07), sent + round(off * SECOND)))
        return bool(robot.statuses) and "FAILED" in robot.statuses[-1].message

    world.spin_until(done, "the end")
    return list(robot.statuses)


def test_a_robot_that_does_not_move_stays_at_warn_and_ends_the_episode_by_its_reason(world, capfd):
    world.start(NbvPlannerNode, **IMPATIENT)
    robot = Robot(world, drives=False)
    robot.send(robot.belief(0), 0)
    statuses = until_done(world, robot)
    words = "the pose has not changed since goal 1"
    first = next(number for number, status in enumerate(statuses) if words in status.message)
    assert len(statuses) > first + 2
    for status in statuses[first:-1]:
        assert (status.level, words in status.message) == (DiagnosticStatus.WARN, True)
    assert statuses[-1].level == DiagnosticStatus.ERROR
    assert statuses[-1].message.startswith(
        f"FAILED: {words}: 5 goals in a row were not reached, the last one: "
    )
    assert len(robot.goals) == 5


def test_a_clock_that_steps_back_is_named_at_once_and_no_view_is_given_up(world):
    planner = world.start(NbvPlannerNode, **IMPATIENT)
    robot = Robot(world, drives=False)
    robot.send(robot.belief(0), 0)
    stands = view_pose(0.07)
    robot.send_pose(pose_msg(stands, robot.now()))
    robot.goal(1)
    statuses = until_done(world, robot, off=-1000.0, stands=planner.core.episode.goal.pose)
    words = "s before the goal: their clock has stepped back, or is not that of the planner"
    assert all(
        words in status.message for status in statuses if status.level != DiagnosticStatus.OK
    )
    assert any(
        words in status.message and "not reached" not in status.message for status in statuses
    )
    assert (planner.core.episode.unreached_views, planner.core.planner.views.unreachable) == (0, {})
    assert {message.header.stamp.nanosec for message in robot.goals} == {
        robot.goals[0].header.stamp.nanosec
    }
