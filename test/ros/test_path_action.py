"""Goals are only sent where an action server has a path, over DDS with a real action server in
Nav2's place.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("test_msgs", reason="needs test_msgs")

from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionServer, GoalResponse
from ros_world import header, pose_msg, view_pose
from test_msgs.action import Fibonacci

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.errors import RosUnavailableError
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.robot import PATH_ACTION
from nbv_planner.ros.nodes import nbv_planner as planner_module
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode

SMALL = {
    "objective": "U",
    "certify": False,
    "num_views": 20,
    "max_views": 0,
    "stall_views": 0,
    "goal_check": "compute_path_to_pose",
}


class FromGoal(type):
    """Makes goals that carry the place, in millimetres, where those of a ComputePathToPose carry
    the pose.
    """

    def __call__(cls, goal: PoseStamped, use_start: bool) -> Any:
        assert not use_start
        return Fibonacci.Goal(order=round(1000 * goal.pose.position.x))

    def __instancecheck__(cls, goal: Any) -> bool:
        return isinstance(goal, Fibonacci.Goal)


class FibonacciPath(Fibonacci):
    class Goal(metaclass=FromGoal):
        pass


class Planning:
    """The planner with mapper and localisation, and a server that has no path to the first so many
    places.
    """

    def __init__(self, world, without: int, *, accepts: bool = True, serves: bool = True) -> None:
        self.asked: list[float] = []

        def execute(handle: Any) -> Any:
            self.asked.append(handle.request.order / 1000)
            getattr(handle, "abort" if len(self.asked) <= without else "succeed")()
            return Fibonacci.Result()

        response = GoalResponse.ACCEPT if accepts else GoalResponse.REJECT
        self.server = serves and ActionServer(
            world.peer, FibonacciPath, PATH_ACTION, execute, goal_callback=lambda _: response
        )
        self.node = world.start(NbvPlannerNode, **SMALL)
        if serves:
            world.spin_until(lambda: self.node._paths._client.server_is_ready(), "the server")
        self.goals = world.listen(PoseStamped, "goal_pose")
        world.listen(PoseStamped, "goal_pose")
        now = world.peer.get_clock().now().nanoseconds
        world.speaker(PoseStamped, "camera_pose")(pose_msg(view_pose(0.0), now))
        surface = conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0))
        world.mapper()(surface)
        world.spin_until(lambda: self.goals, "a goal")
        self.first = pose_from_msg(self.goals[0])

    def close(self) -> None:
        self.node.forget()
        if self.server:
            self.server.destroy()


@pytest.fixture(autouse=True)
def path_action(monkeypatch):
    monkeypatch.setattr(
        planner_module, "nav2_actions", lambda *_: SimpleNamespace(ComputePathToPose=FibonacciPath)
    )


def test_a_view_with_a_path_is_the_goal(world):
    planning = Planning(world, without=0)
    assert planning.asked == [pytest.approx(planning.first.x, abs=1e-3)]
    assert world.drops(planning.node) == {}
    planning.close()


def test_views_without_a_path_are_left_out_with_their_number_and_the_next_best_is_asked_for(world):
    planning = Planning(world, without=2)
    assert len(planning.asked) == 3
    assert planning.asked[2] == pytest.approx(planning.first.x, abs=1e-3)
    assert len(set(planning.asked)) == 3
    assert world.drops(planning.node) == {"goal.no_path": 2}
    assert len(planning.goals) == 1
    assert planning.node.core.episode.unreached_views == 0
    planning.close()


@pytest.mark.parametrize("given", [{"serves": False}, {"accepts": False}])
def test_where_nobody_plans_the_goal_is_sent_with_a_warning(world, capfd, given):
    planning = Planning(world, without=0, **given)
    assert planning.asked == []
    assert "the goal is sent without a path" in capfd.readouterr().err
    planning.close()


def test_without_nav2_it_is_refused_with_what_to_do(world, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "nav2_msgs", None)
    monkeypatch.setitem(sys.modules, "nav2_msgs.action", None)
    with pytest.raises(RosUnavailableError, match=r"needs nav2_msgs.*take goal_check: off"):
        world.start(NbvPlannerNode, goal_check="compute_path_to_pose")
