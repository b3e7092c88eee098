"""A robot's action server, the real thing of rclpy, that goes by Nav2's rules: one goal at a time.

A new goal takes the place of the one under way, which is aborted; a goal may be called off by
anybody.
"""

from __future__ import annotations

from typing import Any

import rclpy.action
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future

from nbv_planner.ros.io.robot import ACTION


def action_types() -> dict[str, Any]:
    """Actions that can be had here: Nav2's own, and one of another shape whose goals are made from
    a pose.
    """
    found: dict[str, Any] = {}
    try:
        from nav2_msgs.action import NavigateToPose

        found["nav2_msgs"] = NavigateToPose
    except ImportError:
        pass
    try:
        from test_msgs.action import Fibonacci

        class FromPose(type):
            """Makes goals that carry the place, in millimetres, where those of a NavigateToPose
            carry the pose.
            """

            def __call__(cls, pose: PoseStamped) -> Any:
                return Fibonacci.Goal(order=round(1000 * pose.pose.position.x))

            def __instancecheck__(cls, goal: Any) -> bool:
                return isinstance(goal, Fibonacci.Goal)

        class FibonacciToPose(Fibonacci):
            class Goal(metaclass=FromPose):
                pass

        found["test_msgs"] = FibonacciToPose
    except ImportError:
        pass
    return found


class Robot:
    """Serves the action; goals stay under way until the test says how they end.

    Attributes:
        goals: requests that were accepted, in order.
        accepts: whether the next goal is accepted.
    """

    def __init__(self, node: Any, action_type: Any) -> None:
        self.accepts = True
        self.goals: list[Any] = []
        self._type, self._node = action_type, node
        self._handles: list[Any] = []
        self._ends: list[Future] = []
        self._server = ActionServer(
            node,
            action_type,
            ACTION,
            self._execute,
            goal_callback=lambda _: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    async def _execute(self, handle: Any) -> Any:
        if self._ends:
            self.end("abort", number=-1)
        self.goals.append(handle.request)
        self._handles.append(handle)
        self._ends.append(Future())
        await self._ends[-1]
        return self._type.Result()

    def end(self, how: str, number: int = -1) -> None:
        """Let a goal end: `succeed`, `abort`, or `canceled` once that was asked for."""
        if not self._ends[number].done():
            getattr(self._handles[number], how)()
            self._ends[number].set_result(None)

    def asked_to_cancel(self, number: int = -1) -> bool:
        return bool(self._handles[number].is_cancel_requested)

    def close(self) -> None:
        self._server.destroy()


def place(request: Any) -> float:
    """x of a goal, metres."""
    return request.pose.pose.position.x if hasattr(request, "pose") else request.order / 1000


def somebody_else(world: Any, action_type: Any) -> ActionClient:
    """Another client of the same action, on the test's node, that has found the server."""
    client = rclpy.action.ActionClient(world.peer, action_type, ACTION)
    world.spin_until(client.server_is_ready, "the action server")
    return client
