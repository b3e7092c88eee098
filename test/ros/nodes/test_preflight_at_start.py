"""Node nbv_planner: ~/start looks at the poses first, and refuses what makes an episode
impossible.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from ros_world import pose_msg, view_pose
from std_srvs.srv import Trigger
from test_nbv_planner import PRIOR, SMALL, Robot

from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode

ENDLESS = {**SMALL, "certify": False, "max_views": 0, "stall_views": 0}
IDLE = {**ENDLESS, "wait_for_start": True}
POSE = view_pose(0.3)


def heard(world, planner, poses, age: float = 0.0) -> Robot:
    """A robot that stands, or seems to, and a mapper."""
    robot = Robot(world)
    robot.send(PRIOR, 0)
    for number, pose in enumerate(poses, start=1):
        robot.send_pose(pose_msg(pose, robot.now() - round(age * 1e9)))
        world.spin_until(
            lambda n=number: len(planner.operator.before._poses) == n, f"pose {number}"
        )
    return robot


def shaken(by: float, count: int = 30):
    rng = np.random.default_rng(0)
    return [
        dataclasses.replace(POSE, x=POSE.x + a, y=POSE.y + b)
        for a, b in rng.normal(scale=by, size=(count, 2))
    ]


@pytest.mark.parametrize(
    ("poses", "age", "words"),
    [
        ([view_pose(0.3, 1.0)] * 6, 0.0, "distance of the camera: 1 m, must be 10 m"),
        (shaken(0.1), 0.0, "spread of the poses: 0.1"),
        ([POSE] * 6, 500.0, "age of camera_pose: 500 s"),
    ],
    ids=["inside the object", "inaccurate", "another clock"],
)
def test_start_is_refused_with_the_value_found_and_asked(world, poses, age, words):
    planner = world.start(NbvPlannerNode, **IDLE)
    robot = heard(world, planner, poses, age)
    answer = world.call(Trigger, "nbv_planner/start")
    assert not answer.success
    assert answer.message.startswith("not started: ")
    assert words in answer.message
    assert not planner.core.episode.started
    world.spin_some()
    assert robot.goals == []
    assert world.set_parameters(planner, preflight="warn")[0].successful
    assert world.call(Trigger, "nbv_planner/start").success
    assert planner.core.episode.started


def test_after_a_reset_a_start_is_judged_where_the_robot_is_by_then(world):
    planner = world.start(NbvPlannerNode, **IDLE)
    robot = heard(world, planner, [POSE] * 6)
    elsewhere = [view_pose(0.9)] * 6
    robot.send_pose(pose_msg(elsewhere[0], robot.now()))
    world.spin_until(lambda: len(planner.operator.before._poses) == 7, "the pose elsewhere")
    assert "spread of the poses" in world.call(Trigger, "nbv_planner/start").message
    assert world.call(Trigger, "nbv_planner/reset").success
    for pose in elsewhere[1:]:
        robot.send_pose(pose_msg(pose, robot.now()))
    world.spin_until(lambda: len(planner.operator.before._poses) == 6, "the poses there")
    answer = world.call(Trigger, "nbv_planner/start")
    assert (answer.success, answer.message) == (True, "started")


def test_after_a_reset_one_pose_is_enough_of_a_robot_that_publishes_when_it_moves(world):
    planner = world.start(NbvPlannerNode, **IDLE)
    robot = heard(world, planner, [POSE])
    assert world.call(Trigger, "nbv_planner/reset").success
    assert world.call(Trigger, "nbv_planner/start").message == "started"
    robot.goal(1)


def test_what_is_only_doubtful_is_logged_and_started(world, capfd):
    planner = world.start(NbvPlannerNode, **IDLE, position_tolerance=2.0, heading_tolerance=0.3)
    heard(world, planner, [view_pose(0.3, 14.0)] * 6)
    assert world.call(Trigger, "nbv_planner/start").success
    said = capfd.readouterr().err
    assert "before the start: distance of the camera: 14 m, must be 10 m (view_distance)" in said
    assert "before the start: tolerances: 2 m, 0.3 rad, must be less than" in said


def test_the_checks_can_be_switched_off_and_end_with_the_first_view(world, capfd):
    planner = world.start(NbvPlannerNode, **IDLE, preflight="off")
    robot = heard(world, planner, [view_pose(0.3, 1.0)] * 6)
    assert world.call(Trigger, "nbv_planner/start").success
    robot.goal(2)
    assert "before the start" not in capfd.readouterr().err
    assert world.set_parameters(planner, preflight="refuse")[0].successful
    assert world.call(Trigger, "nbv_planner/start").success  # resumes


def test_without_a_pose_start_waits_as_ever(world):
    world.start(NbvPlannerNode, **IDLE)
    robot = Robot(world)
    assert world.call(Trigger, "nbv_planner/start").success
    world.spin_until(
        lambda: robot.statuses and "camera_pose" in robot.statuses[-1].message, "waiting for a pose"
    )
    assert robot.status("WAITING")["state"] == "WAITING"


def appears(world, robot: Robot, pose, age: float, until) -> None:
    """Poses at 20 Hz or so."""

    def step() -> bool:
        robot.send_pose(pose_msg(pose, robot.now() - round(age * 1e9)))
        return until()

    world.spin_until(step, "what follows the first poses")


@pytest.mark.parametrize(
    ("pose", "age", "words"),
    [
        (POSE, 1000.0, "age of camera_pose: 1e+03 s"),
        (POSE, -1000.0, "age of camera_pose: -1e+03 s"),
        (view_pose(0.3, 1.0), 0.0, "distance of the camera: 1 m"),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_start_before_the_first_pose_is_checked_once_the_robot_appears(
    world, tmp_path, pose, age, words, restarted
):
    given = {**IDLE, "state_file": str(tmp_path / "session.jsonl")}
    planner = world.start(NbvPlannerNode, **given)
    robot = Robot(world, drives=False)
    answer = world.call(Trigger, "nbv_planner/start")
    assert (answer.success, answer.message) == (
        True,
        "started; the first poses are checked before the first goal",
    )
    if restarted:
        world.end(planner)
        planner = world.start(NbvPlannerNode, **given)
        assert planner.core.episode.started
    robot.send(PRIOR, 0)
    appears(world, robot, pose, age, lambda: planner.core.episode.refusal)
    told = f"waiting for the service ~/start; not started: {words}"
    world.spin_until(lambda: robot.statuses[-1].message.startswith(told), "the status")
    assert robot.statuses[-1].level == DiagnosticStatus.WARN
    world.spin_some()
    assert robot.goals == []
    assert not world.call(Trigger, "nbv_planner/start").success  # the same poses
    assert world.set_parameters(planner, preflight="warn")[0].successful
    assert world.call(Trigger, "nbv_planner/start").success
    robot.goal(1)
    assert planner.core.episode.refusal == ""


def test_a_start_before_the_first_pose_goes_on_by_itself_where_the_robot_appears_as_it_should(
    world,
):
    planner = world.start(NbvPlannerNode, **IDLE)
    robot = Robot(world, drives=False)
    assert world.call(Trigger, "nbv_planner/start").success
    robot.send(PRIOR, 0)
    robot.send_pose(pose_msg(POSE, robot.now()))
    world.spin_until(lambda: planner.core.inputs.pose is not None, "the first pose")
    words = "waiting for enough camera poses for the checks before the first goal"
    world.spin_until(lambda: robot.statuses[-1].message == words, "the status")
    robot.goal(1)  # a robot that stands may publish its pose but once
    assert planner.core.state.value == "MOVING"
