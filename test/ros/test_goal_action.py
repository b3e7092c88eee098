"""Goals as an action, over DDS with a real action server: given up, called off, replaced, reached
or not.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from action_server import Robot, action_types, place, somebody_else
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_world import header, pose_msg, view_pose
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.episode.messages import status_values
from nbv_planner.errors import RosUnavailableError
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io import robot as goal_action
from nbv_planner.ros.io.robot import GoalAction
from nbv_planner.ros.nodes import nbv_planner as planner_module
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.world.pose import CameraPose

TYPES = action_types()
SMALL = {
    "objective": "U",
    "certify": False,
    "num_views": 20,
    "max_views": 0,
    "stall_views": 0,
    "goal_backend": "navigate_to_pose",
}
needs_an_action = pytest.mark.skipif(
    not TYPES, reason="neither nav2_msgs nor test_msgs is installed"
)


@pytest.fixture(params=TYPES)
def action_type(request):
    """Each action type that is installed: Nav2's own where that is."""
    return TYPES[request.param]


@pytest.fixture
def robot(world, action_type):
    """Return the robot's action server, on the test's node."""
    server = Robot(world.peer, action_type)
    yield server
    server.close()


class Sender:
    """A client of its own node, and what it was told."""

    def __init__(self, world, action_type):
        self.world = world
        self.told: list[tuple[str, int, str]] = []
        self.action = GoalAction(
            world.start(NbvPlannerNode, wait_for_start=True),
            action_type,
            lambda stamp, words: self.told.append(("failed", stamp, words)),
            lambda stamp, words: self.told.append(("interrupted", stamp, words)),
        )
        world.spin_until(self.action.ready, "the action server")

    def send(self, stamp: int, x: float) -> None:
        self.action.send(stamp, pose_msg(CameraPose(x, 0.0, 0.0)))

    def hears(self) -> tuple[str, int, str]:
        self.world.spin_until(lambda: self.told, "what became of the goal")
        assert len(self.told) == 1
        return self.told[0]


@pytest.fixture
def sender(world, action_type, robot):
    """Return what sends goals to the robot."""
    made = Sender(world, action_type)
    yield made
    made.action.close()


def begun(world, robot, number: int) -> float:
    """Wait until the robot has taken that many goals; gives the place of the last."""
    world.spin_until(lambda: len(robot.goals) == number, f"goal {number}")
    return place(robot.goals[-1])


@needs_an_action
def test_a_goal_that_the_robot_gives_up_has_failed(world, robot, sender):
    sender.send(7, 1.5)
    assert begun(world, robot, 1) == pytest.approx(1.5)
    robot.end("abort")
    assert sender.hears() == ("failed", 7, "navigate_to_pose aborted the goal")


@needs_an_action
def test_a_goal_that_the_robot_refuses_has_failed(world, robot, sender):
    robot.accepts = False
    sender.send(7, 1.5)
    assert sender.hears() == ("failed", 7, "navigate_to_pose rejected the goal")


@needs_an_action
def test_a_goal_that_is_replaced_by_somebody_elses_was_interrupted(
    world, robot, sender, action_type
):
    sender.send(7, 1.5)
    begun(world, robot, 1)
    other = somebody_else(world, action_type)
    other.send_goal_async(action_type.Goal(pose=pose_msg(CameraPose(-3.0, 0.0, 0.0))))
    assert begun(world, robot, 2) == pytest.approx(-3.0)
    what, stamp, words = sender.hears()
    assert (what, stamp) == ("interrupted", 7)
    assert "another client" in words
    other.destroy()


@needs_an_action
def test_a_goal_that_somebody_else_calls_off_was_interrupted(world, robot, sender, action_type):
    sender.send(7, 1.5)
    begun(world, robot, 1)
    # No id and no stamp: all goals.
    world.call(action_type.Impl.CancelGoalService, "navigate_to_pose/_action/cancel_goal")
    world.spin_until(robot.asked_to_cancel, "the robot to be asked")
    robot.end("canceled")
    assert sender.hears()[:2] == ("interrupted", 7)


@needs_an_action
def test_what_becomes_of_a_goal_after_a_newer_one_is_not_told(world, robot, sender):
    sender.send(7, 1.5)
    begun(world, robot, 1)
    sender.send(8, 2.5)
    assert begun(world, robot, 2) == pytest.approx(2.5)  # which aborts the first
    world.spin_some(40)
    assert sender.told == []
    robot.end("abort")
    assert sender.hears()[:2] == ("failed", 8)


@needs_an_action
@pytest.mark.parametrize(
    "taken", [True, False], ids=["under way", "before the server has said yes"]
)
def test_a_goal_that_is_called_off_stops_the_robot_and_is_not_told(world, robot, sender, taken):
    sender.send(7, 1.5)
    if taken:
        begun(world, robot, 1)
        world.spin_some(10)
    sender.action.cancel()
    begun(world, robot, 1)
    world.spin_until(robot.asked_to_cancel, "the robot to be asked")
    robot.end("canceled")
    world.spin_some(40)
    assert sender.told == []


@needs_an_action
def test_a_robot_that_says_it_has_arrived_is_believed_only_for_a_moment(world, robot, sender):
    sender.send(7, 1.5)
    begun(world, robot, 1)
    robot.end("succeed")
    what, stamp, words = sender.hears()
    assert (what, stamp) == ("failed", 7)
    assert "position_tolerance" in words


# --- in the planner


class Partners:
    """Mapper's and localisation's side of the planner's conversation."""

    def __init__(self, world):
        self.world = world
        self.goals = world.listen(PoseStamped, "goal_pose")
        self.statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        self.pose = world.speaker(PoseStamped, "camera_pose")
        self.surface = world.mapper()
        self.stand(view_pose(0.0))
        self.surface(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))

    def stand(self, pose: CameraPose) -> None:
        self.pose(pose_msg(pose, self.world.peer.get_clock().now().nanoseconds))

    def status(self, state: str) -> DiagnosticStatus:
        def last() -> DiagnosticStatus | None:
            found = self.statuses[-1] if self.statuses else None
            return found if found and status_values(found)["state"] == state else None

        return self.world.spin_until(last, f"the state {state}")


@pytest.fixture
def planning(world, action_type, monkeypatch):
    """Return the planner with that action, and its partners."""
    monkeypatch.setattr(
        planner_module, "nav2_actions", lambda *_: SimpleNamespace(NavigateToPose=action_type)
    )
    node = world.start(NbvPlannerNode, **SMALL)
    yield node, Partners(world)
    node.forget()


@needs_an_action
def test_the_planner_waits_for_the_server_sends_goals_both_ways_and_goes_elsewhere_when_they_fail(
    world, planning, action_type
):
    _, partners = planning
    waits = "1 of 2 subscribers (mapper and the action navigate_to_pose)"
    world.spin_until(
        lambda: partners.statuses and waits in partners.statuses[-1].message, "what it waits for"
    )
    robot = Robot(world.peer, action_type)
    first = begun(world, robot, 1)
    world.spin_until(lambda: partners.goals, "the goal on its topic")
    assert partners.goals[0].pose.position.x == pytest.approx(first, abs=1e-3)
    robot.end("abort")
    assert begun(world, robot, 2) == first  # goal_retries: 1
    robot.end("abort")
    third = begun(world, robot, 3)
    assert third != pytest.approx(first, abs=0.1)
    world.spin_until(
        lambda: abs(partners.goals[-1].pose.position.x - third) < 1e-3, "the goal on its topic"
    )
    partners.stand(pose_from_msg(partners.goals[-1]))
    partners.status("MEASURING")
    robot.close()


@needs_an_action
def test_the_planner_pauses_when_somebody_else_takes_the_robot_and_goes_on_when_told(
    world, planning, action_type
):
    _, partners = planning
    robot, other = Robot(world.peer, action_type), somebody_else(world, action_type)
    first = begun(world, robot, 1)
    other.send_goal_async(action_type.Goal(pose=pose_msg(CameraPose(-3.0, 0.0, 0.0))))
    begun(world, robot, 2)
    assert partners.status("PAUSED").message.endswith(
        "goal of another client; ~/start sends it again"
    )
    robot.end("succeed")
    assert world.call(Trigger, "nbv_planner/start").success
    assert begun(world, robot, 3) == first
    partners.status("MOVING")
    other.destroy()
    robot.close()


@needs_an_action
def test_stop_calls_the_goal_off(world, planning, action_type):
    _, partners = planning
    robot = Robot(world.peer, action_type)
    begun(world, robot, 1)
    world.spin_some(10)
    assert world.call(Trigger, "nbv_planner/stop").success
    world.spin_until(robot.asked_to_cancel, "the robot to be asked")
    robot.end("canceled")
    partners.status("DONE")
    robot.close()


def test_without_nav2_the_action_is_refused_with_what_to_do(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "nav2_msgs", None)
    monkeypatch.setitem(sys.modules, "nav2_msgs.action", None)
    with pytest.raises(RosUnavailableError, match=r"needs nav2_msgs.*take goal_backend: topic"):
        world.start(NbvPlannerNode, goal_backend="navigate_to_pose")
    assert goal_action.ACTION == "navigate_to_pose"
