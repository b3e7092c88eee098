"""The robot: goals on a topic or as an action, and whether there is a path to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default
from sensor_msgs.msg import PointCloud2

from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.status_text import iteration_values
from nbv_planner.ros.io.transforms import ros_needed
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.state import Goal, Target

ACTION = "navigate_to_pose"
PATH_ACTION = "compute_path_to_pose"
"""Names of the actions, relative to the namespace of the node."""
# Seconds after which a goal whose path is not known is sent without.
_PATH_AFTER = 10.0
# Seconds from an abort until its cause is judged: the server's list of goals is received by then.
_ABORTED_AFTER = 0.2
# Seconds after the action succeeds, within which the pose must confirm the arrival.
_ARRIVED_AFTER = 1.0
_ACTIVE = {GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING}


def nav2_actions(node: Node, parameter: str, action: str, other: str) -> Any:
    """The actions of Nav2. The `parameter` asks for an `action` of them; its `other` value needs
    none.

    Raises:
        RosUnavailableError: nav2_msgs cannot be imported.
    """
    with ros_needed(
        node, f"{parameter}: {action}", f"ros-$ROS_DISTRO-nav2-msgs, or take {parameter}: {other}"
    ):
        from nav2_msgs import action as types
    return types


class PathAction:
    """Asks an action server for a path to a pose before a goal is sent there."""

    def __init__(self, node: BaseNode, action_type: Any) -> None:
        """Create the client for an action whose goals have a `goal` and `use_start`, and which
        fails if there is no path.
        """
        self._node = node
        self._type = action_type
        self._number = 0
        self._client = ActionClient(node, action_type, PATH_ACTION)

    def close(self) -> None:
        """Destroy the client; earlier requests are not answered."""
        self._number += 1
        self._client.destroy()

    def ask(self, pose: PoseStamped, answered: Callable[[bool], None]) -> None:
        """Ask for a path; `answered` is called once with whether the goal may be sent.

        It may, with a warning, if there is no answer for ten seconds.
        """
        self._number += 1
        number = self._number

        def answer(may: bool, problem: str = "") -> None:
            if number == self._number:
                self._number += 1
                self._node.destroy_timer(timer)
                if problem:
                    self._node.warn_now_and_then(
                        PATH_ACTION, f"{PATH_ACTION} {problem}: the goal is sent without a path"
                    )
                answered(may)

        timer = self._node.create_timer(
            _PATH_AFTER, lambda: answer(True, "does not answer"), clock=self._node.steady_clock
        )
        if not self._client.server_is_ready():
            answer(True, "has no server")
            return

        def accepted(handle: Any) -> None:
            if not handle.accepted:
                answer(True, "refuses to plan")
                return
            handle.get_result_async().add_done_callback(
                lambda result: answer(result.result().status != GoalStatus.STATUS_ABORTED)
            )

        asked = self._client.send_goal_async(self._type.Goal(goal=pose, use_start=False))
        asked.add_done_callback(lambda future: accepted(future.result()))


class GoalAction:
    """Sends goals to an action server, one at a time, and reports their results.

    A server that accepts another client's goal aborts ours as if it had failed (as Nav2's servers
    do); the two are distinguished by the server's list of goals, which then holds another active
    one. The result of a goal that has been replaced or cancelled here is discarded.
    """

    def __init__(
        self,
        node: BaseNode,
        action_type: Any,
        on_failed: Callable[[int, str], None],
        on_interrupted: Callable[[int, str], None],
        settle_time: float = 0.0,
    ) -> None:
        """Create the client for an action whose goals have a `pose`.

        `on_failed` is called with a message and the stamp (nanoseconds) of a goal that the robot
        has aborted, or has reported as reached a moment ago; to be ignored if the pose has arrived.
        `on_interrupted` is called likewise after another client has cancelled or replaced a goal.
        The camera must stand at its goal for `settle_time` seconds.
        """
        self._node, self._type = node, action_type
        self._on_failed, self._on_interrupted = on_failed, on_interrupted
        self._arrived_after = _ARRIVED_AFTER + settle_time
        self._client = ActionClient(node, action_type, ACTION)
        self._active: set[bytes] = set()
        self._handle: Any = None
        self._number = 0
        node.create_subscription(
            GoalStatusArray,
            f"{ACTION}/_action/status",
            self._on_statuses,
            qos_profile_action_status_default,
        )

    def close(self) -> None:
        """Destroy the client; the robot keeps its current goal."""
        self._number += 1
        self._client.destroy()

    def ready(self) -> bool:
        """Whether the server is available."""
        return bool(self._client.server_is_ready())

    def send(self, stamp: int, pose: PoseStamped) -> None:
        """Send a goal identified by `stamp` (nanoseconds); it replaces the previous one."""
        self._number += 1
        number = self._number
        asked = self._client.send_goal_async(self._type.Goal(pose=pose))
        asked.add_done_callback(lambda answer: self._answered(number, stamp, answer.result()))

    def cancel(self) -> None:
        """Cancel the current goal, if any."""
        self._number += 1
        if self._handle is not None:
            self._handle.cancel_goal_async()
            self._handle = None

    def _answered(self, number: int, stamp: int, handle: Any) -> None:
        if number != self._number:
            if handle.accepted and self._handle is None:
                handle.cancel_goal_async()  # cancelled before the server accepted it
        elif not handle.accepted:
            self._on_failed(stamp, f"{ACTION} rejected the goal")
        else:
            self._handle = handle
            handle.get_result_async().add_done_callback(
                lambda result: self._ended(number, stamp, result.result().status)
            )

    def _ended(self, number: int, stamp: int, status: int) -> None:
        if number != self._number:
            return
        mine = bytes(self._handle.goal_id.uuid)
        self._handle = None
        if status == GoalStatus.STATUS_CANCELED:
            self._on_interrupted(stamp, f"the goal was cancelled by another client of {ACTION}")
            return

        def judge() -> None:
            """Report the end, unless the goal has been replaced or cancelled by then."""
            self._node.destroy_timer(timer)
            if number != self._number:
                return
            if status != GoalStatus.STATUS_ABORTED:
                self._on_failed(
                    stamp,
                    f"{ACTION} reports the goal as reached, but the camera is not there"
                    " (position_tolerance, heading_tolerance)",
                )
            elif self._active - {mine}:
                self._on_interrupted(stamp, f"{ACTION} has accepted a goal of another client")
            else:
                self._on_failed(stamp, f"{ACTION} aborted the goal")

        delay = _ABORTED_AFTER if status == GoalStatus.STATUS_ABORTED else self._arrived_after
        timer = self._node.create_timer(delay, judge, clock=self._node.steady_clock)

    def _on_statuses(self, msg: GoalStatusArray) -> None:
        self._active = {
            bytes(goal.goal_info.goal_id.uuid) for goal in msg.status_list if goal.status in _ACTIVE
        }


class GoalOutput:
    """Publishes the targets of the camera, with the reasons for a view, and sends them to the
    robot's action server.
    """

    def __init__(self, node: BaseNode, robot: GoalAction | None) -> None:
        """Open the topics of the planner's node, and take the action, if any."""
        self._node, self._robot = node, robot
        self._frame = node.parameters.object_frame
        self._goal = node.advertise(PoseStamped, "goal_pose", qos.reliable())
        # More than one: views may follow each other faster than a recorder on a busy machine
        # receives them.
        self._candidates = node.advertise(PointCloud2, "~/candidates", qos.latched(10))
        self._iteration = node.advertise(DiagnosticStatus, "~/iteration", qos.latched(100))

    def subscribers(self) -> int:
        """Number of subscribers of the goals; the action server counts as one."""
        return self._goal.get_subscription_count() + (
            self._robot is not None and self._robot.ready()
        )

    def message(self, target: Target) -> PoseStamped:
        """The pose of the camera's carrier at a target, as a message."""
        carrier = self._node.poses.carrier(target.pose)
        return conversions.pose_to_msg(carrier, self._node.header(self._frame, target.stamp))

    def repeat(self, target: Target) -> None:
        """Publish a target again, for subscribers that have not received it."""
        self._goal.publish(self.message(target))

    def send(self, target: Target, core: PlannerCore) -> None:
        """Publish a target, and for a view its reasons; send it to the robot."""
        message = self.message(target)
        self._goal.publish(message)
        if self._robot is not None:
            message.header = self._node.header(self._frame)  # old transforms are discarded
            self._robot.send(target.stamp, message)
        if isinstance(target, Goal):
            self._explain(target, core)

    def _explain(self, goal: Goal, core: PlannerCore) -> None:
        decision = goal.decision
        circle = self._node.scene.view_distance
        header = self._node.header(self._frame, goal.stamp)
        self._candidates.publish(conversions.candidates_to_msg(decision, header))
        place = decision.view.summary(circle)
        message = f"view {goal.round} at {place}, decided by {decision.decided_by}"
        values = iteration_values(core, goal, circle)
        name = f"{self._node.get_name()}: iteration"
        self._iteration.publish(
            conversions.status_message(name, DiagnosticStatus.OK, message, values)
        )

    def cancel(self) -> None:
        """Cancel the robot's goal, where the interface allows it."""
        if self._robot is not None:
            self._robot.cancel()
