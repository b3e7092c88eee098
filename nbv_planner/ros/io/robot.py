"""The robot: goals as an action, and camera poses from transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from geometry_msgs.msg import PoseStamped
from rclpy.action import ActionClient
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default
from rclpy.time import Time

from nbv_planner.episode.messages import pose_from_msg
from nbv_planner.errors import InputRejectedError, RosUnavailableError
from nbv_planner.mapping.matching import PoseTrack
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.world.pose import CameraPose, PoseSettings

ACTION = "navigate_to_pose"
"""Name of the action, relative to the namespace of the node."""
# Seconds between an abort and the decision why: the server's list of goals is received by then.
_ABORTED_AFTER = 0.2
# Seconds after the action succeeds, within which the pose must confirm the arrival.
_ARRIVED_AFTER = 1.0
_ACTIVE = {GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING}


@contextmanager
def _needed(node: Node, by: str, remedy: str) -> Iterator[None]:
    """Refuse, with the `remedy`, what is needed `by` a parameter and comes with ROS but not from PyPI."""
    try:
        yield
    except ImportError as error:
        missing = str(error.name).partition(".")[0]
        raise RosUnavailableError(
            f"{node.get_name()}: {by} needs {missing}, which cannot be imported ({error}); install {remedy}"
        ) from error


def navigate_to_pose(node: Node) -> Any:
    """Type of Nav2's action.

    Raises:
        RosUnavailableError: nav2_msgs cannot be imported.
    """
    with _needed(node, "goal_backend: navigate_to_pose", "ros-$ROS_DISTRO-nav2-msgs, or take goal_backend: topic"):
        from nav2_msgs.action import NavigateToPose
    return NavigateToPose


def occupancy_grid(node: Node) -> Any:
    """Type of a map.

    Raises:
        RosUnavailableError: nav_msgs cannot be imported.
    """
    with _needed(node, "use_map", "ros-$ROS_DISTRO-nav-msgs, or give the map as a file: ground_map"):
        from nav_msgs.msg import OccupancyGrid
    return OccupancyGrid


class GoalAction:
    """Sends goals to an action server, one at a time, and reports their results.

    A server that accepts another client's goal aborts ours as if it had failed (as Nav2's servers do); the two are
    distinguished by the server's list of goals, which then holds another active one. The result of a goal that has
    been replaced or cancelled here is discarded.
    """

    def __init__(
        self, node: Node, action_type: Any, on_failed: Callable[[int, str], None],
        on_interrupted: Callable[[int, str], None], settle_time: float = 0.0,
    ) -> None:
        """Create the client for an action whose goals have a `pose`.

        `on_failed` is called with the stamp (nanoseconds) of a goal that the robot has given up, or reported as reached
        a moment ago, and a message; to be ignored if the pose has arrived. `on_interrupted` is called likewise after
        another client has cancelled or replaced a goal. The camera must stand at its goal for `settle_time` seconds.
        """
        self._node, self._type = node, action_type
        self._on_failed, self._on_interrupted = on_failed, on_interrupted
        self._arrived_after = _ARRIVED_AFTER + settle_time
        self._client = ActionClient(node, action_type, ACTION)
        self._active: set[bytes] = set()
        self._handle: Any = None
        self._number = 0
        node.create_subscription(
            GoalStatusArray, f"{ACTION}/_action/status", self._on_statuses, qos_profile_action_status_default
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
            self._on_interrupted(stamp, f"the goal was cancelled by another client of {ACTION}")
            return

        def judge() -> None:
            """Unless the goal has been replaced or cancelled by then."""
            self._node.destroy_timer(timer)
            if number != self._number:
                return
            if status != GoalStatus.STATUS_ABORTED:
                tolerances = "position_tolerance, heading_tolerance"
                self._on_failed(stamp, f"{ACTION} says it has arrived, the camera's pose does not ({tolerances})")
            elif self._active - {mine}:
                self._on_interrupted(stamp, f"{ACTION} has accepted a goal of another client")
            else:
                self._on_failed(stamp, f"{ACTION} has given up the goal")

        delay = _ABORTED_AFTER if status == GoalStatus.STATUS_ABORTED else self._arrived_after
        timer = self._node.create_timer(delay, judge, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_statuses(self, msg: GoalStatusArray) -> None:
        self._active = {bytes(goal.goal_info.goal_id.uuid) for goal in msg.status_list if goal.status in _ACTIVE}


# Times of the newest transforms that are remembered: ten seconds, as many as tf2 keeps, at 100 Hz.
_REMEMBERED = 1000


class TransformPoses:
    """Poses of camera frames in the object frame, looked up in the transforms at the time of each scan.

    tf2 interpolates every link of the chain between the two transforms around the stamp, however far apart they are;
    so the times at which the whole chain was known are remembered, and a scan between two that are too far apart, or
    before all of them, has no pose.
    """

    def __init__(
        self, node: Node, object_frame: str, tolerance: float = 0.0, gap: float = 0.0,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Subscribe to the transforms; `on_change` is called after each new one.

        For :meth:`at`: `tolerance` is the greatest time to a transform that counts without interpolation, `gap` that
        between two transforms that are interpolated, seconds.

        Raises:
            RosUnavailableError: tf2_ros cannot be imported.
        """
        remedy = "ros-$ROS_DISTRO-tf2-ros-py, or publish camera_pose and take pose_source: topic"
        with _needed(node, "pose_source: tf", remedy):
            import tf2_ros
        self._tf2 = tf2_ros
        self._object_frame = object_frame
        self._limits = (round(tolerance * 1e9), round(gap * 1e9))
        self._tracks: dict[str, PoseTrack] = {}
        self._on_change = on_change
        self._mounted = False
        self._buffer = self._tf2.Buffer(node=node)
        changed = self._changed

        class Listener(tf2_ros.TransformListener):  # type: ignore[misc]
            def callback(self, data: Any) -> None:
                super().callback(data)
                changed()

            def static_callback(self, data: Any) -> None:
                super().static_callback(data)
                changed()

        self._listener = Listener(self._buffer, node)

    def at(self, stamp: int, frame: str) -> CameraPose | None:
        """Pose of `frame` at `stamp` (nanoseconds), or None as long as the transforms do not reach that far.

        Raises:
            InputRejectedError: `pose_too_far`, `pose_gap` (:class:`~nbv_planner.mapping.matching.PoseTrack`), `tilted`
                (:func:`~nbv_planner.episode.messages.pose_from_msg`).
        """
        newest = self.latest(frame)
        if newest is None:
            return None
        if newest[0] == 0:
            return newest[1]
        nearest = self._tracks[frame].at(stamp)
        return None if nearest is None else self._looked_up(frame, stamp) or nearest

    def latest(self, frame: str) -> tuple[int, CameraPose] | None:
        """Newest time (nanoseconds; 0 if nothing moves) at which the pose of `frame` is known, and the pose.

        Raises:
            InputRejectedError: `tilted`.
        """
        try:
            stamp = int(self._buffer.get_latest_common_time(self._object_frame, frame).nanoseconds)
        except self._tf2.TransformException:
            return None
        pose = self._looked_up(frame, stamp)
        if pose is None:
            return None
        if stamp:
            self._tracks.setdefault(frame, PoseTrack(_REMEMBERED, *self._limits)).add(stamp, pose)
        return stamp, pose

    def mounted(self, node: BaseNode, poses: PoseSettings, frame: str) -> PoseSettings | None:
        """The settings of `node` with the mount of the camera `frame` on `base_frame`, if any; None until it is known.

        It is looked up once: a camera that moves on its carrier has no mount.

        Raises:
            InputRejectedError: `tilted`.
        """
        if not poses.base_frame or self._mounted:
            return poses
        try:
            stamp = int(self._buffer.get_latest_common_time(poses.base_frame, frame).nanoseconds)
        except self._tf2.TransformException:
            return None
        mount = self._looked_up(frame, stamp, poses.base_frame)
        if mount is None:
            return None
        self._mounted = True
        found = {"mount_x": mount.x, "mount_y": mount.y, "mount_yaw": mount.yaw}
        return node.derive(poses, found, f"looked up, {frame} on {poses.base_frame}")

    def during(self, first: int, last: int, frame: str) -> list[tuple[int, CameraPose]]:
        """Stamps and poses of `frame` as :class:`.PoseTrack` gives them; that of one that never moves."""
        track = self._tracks.get(frame)
        if track is not None:
            return track.during(first, last)
        newest = self.latest(frame)
        return [] if newest is None else [newest]

    def _changed(self) -> None:
        """Store when the chain of each camera frame was last known, then notify."""
        for frame in self._tracks:
            with suppress(InputRejectedError):  # raised when the pose is requested
                self.latest(frame)
        self._on_change()

    def _looked_up(self, frame: str, stamp: int, target: str = "") -> CameraPose | None:
        at, target = Time(nanoseconds=stamp), target or self._object_frame
        try:
            found = self._buffer.lookup_transform_core(target, frame, at).transform
        except self._tf2.TransformException:
            return None
        pose = SimpleNamespace(position=found.translation, orientation=found.rotation)
        return pose_from_msg(SimpleNamespace(pose=pose))
