"""Goals as an action: the robot says whether it gives one up, and can be called off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default

from nbv_planner.errors import RosUnavailableError

ACTION = "navigate_to_pose"
"""Name of the action, relative to the namespace of the node."""

# Seconds after a goal was aborted until it is judged why: by then the server's list of goals has come, too.
_ABORTED_AFTER = 0.2
# Seconds after the robot says it has arrived, by which its pose must say so, too.
_ARRIVED_AFTER = 1.0
_ACTIVE = {GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING}


def navigate_to_pose(node: Node) -> Any:
    """Type of Nav2's action, which comes with Nav2 and not from PyPI.

    Raises:
        RosUnavailableError: nav2_msgs cannot be imported.
    """
    try:
        from nav2_msgs.action import NavigateToPose
    except ImportError as error:
        raise RosUnavailableError(
            f"{node.get_name()}: goal_backend: navigate_to_pose needs nav2_msgs, which cannot be imported ({error}); "
            "install ros-$ROS_DISTRO-nav2-msgs, or take goal_backend: topic"
        ) from error
    return NavigateToPose


class GoalAction:
    """Sends goals to an action server, one at a time, and tells what becomes of them.

    A server that turns to somebody else's goal aborts ours, just as if it had failed (so do Nav2's servers); it is told
    from the server's list of goals, which then holds another that is active. What becomes of a goal after a newer one
    has been sent, or after it has been called off, is nobody's concern any more.
    """

    def __init__(
        self, node: Node, action_type: Any, on_failed: Callable[[int, str], None],
        on_interrupted: Callable[[int, str], None],
    ) -> None:
        """Look for the server.

        Args:
            node: who sends.
            action_type: type of the action; its goals have a `pose`.
            on_failed: called with the stamp (nanoseconds) of a goal that the robot has given up, or says to have
                reached a moment ago, and words; whoever has seen it arrive takes no notice.
            on_interrupted: called with the stamp of a goal that somebody else called off or replaced, and words.
        """
        self._node, self._type = node, action_type
        self._on_failed, self._on_interrupted = on_failed, on_interrupted
        self._client = ActionClient(node, action_type, ACTION)
        self._active: set[bytes] = set()
        self._handle: Any = None
        self._number = 0
        node.create_subscription(
            GoalStatusArray, f"{ACTION}/_action/status", self._on_statuses, qos_profile_action_status_default
        )

    def close(self) -> None:
        """Let go of the server; a goal under way stays."""
        self._number += 1
        self._client.destroy()

    def ready(self) -> bool:
        """Whether the server is there."""
        return bool(self._client.server_is_ready())

    def send(self, stamp: int, pose: PoseStamped) -> None:
        """Send a goal that `stamp` (nanoseconds) names; it takes the place of the one before."""
        self._number += 1
        number = self._number
        asked = self._client.send_goal_async(self._type.Goal(pose=pose))
        asked.add_done_callback(lambda answer: self._answered(number, stamp, answer.result()))

    def cancel(self) -> None:
        """Call off the goal under way, if there is one."""
        self._number += 1
        if self._handle is not None:
            self._handle.cancel_goal_async()
            self._handle = None

    def _answered(self, number: int, stamp: int, handle: Any) -> None:
        if number != self._number:
            if handle.accepted and self._handle is None:
                handle.cancel_goal_async()  # called off before the server had said yes
        elif not handle.accepted:
            self._on_failed(stamp, f"{ACTION} has refused the goal")
        else:
            self._handle = handle
            handle.get_result_async().add_done_callback(
                lambda result: self._ended(number, stamp, result.result().status)
            )

    def _ended(self, number: int, stamp: int, status: int) -> None:
        if number != self._number:
            return
        mine, self._handle = bytes(self._handle.goal_id.uuid), None
        if status == GoalStatus.STATUS_CANCELED:
            self._on_interrupted(stamp, f"the goal was called off by somebody else at {ACTION}")
        elif status == GoalStatus.STATUS_ABORTED:
            self._later(_ABORTED_AFTER, number, lambda: self._aborted(stamp, mine))
        else:
            words = f"{ACTION} says it has arrived, the camera's pose does not (position_tolerance, heading_tolerance)"
            self._later(_ARRIVED_AFTER, number, lambda: self._on_failed(stamp, words))

    def _aborted(self, stamp: int, mine: bytes) -> None:
        if self._active - {mine}:
            self._on_interrupted(stamp, f"{ACTION} has turned to a goal of somebody else")
        else:
            self._on_failed(stamp, f"{ACTION} has given up the goal")

    def _later(self, seconds: float, number: int, act: Callable[[], None]) -> None:
        """Act once, unless another goal has been sent by then, or this one been called off."""

        def once() -> None:
            self._node.destroy_timer(timer)
            if number == self._number:
                act()

        timer = self._node.create_timer(seconds, once, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_statuses(self, msg: GoalStatusArray) -> None:
        self._active = {bytes(goal.goal_info.goal_id.uuid) for goal in msg.status_list if goal.status in _ACTIVE}
