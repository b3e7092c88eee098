"""Listens to the nodes of an episode and tells a live view; publishes nothing."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import String

from nbv_planner.camera_poses import PoseSettings
from nbv_planner.errors import InputRejectedError
from nbv_planner.live import LiveEpisode
from nbv_planner.ros import conversions, live_messages, qos

# As many decisions as the planner keeps for late subscribers.
_DECISIONS = 100


class LiveListener(Node):
    """Turns messages into values of a live episode.

    Latched topics are asked for as latched, so that a listener started late still gets them; all others as best
    effort, so that it never slows a publisher down. What cannot be used is left out, and said once for each reason.
    """

    def __init__(self, live: LiveEpisode, **kwargs: Any) -> None:
        """Open the topics, below the namespace of this node."""
        super().__init__(f"nbv_view_{os.getpid()}", **kwargs)
        self._live = live
        self._rejected: set[str] = set()
        self._poses = PoseSettings()
        for kind, topic, callback, profile in (
            (DiagnosticStatus, "nbv_planner/status", self._on_status, qos.latched()),
            (DiagnosticStatus, "nbv_planner/iteration", self._on_iteration, qos.latched(_DECISIONS)),
            (PointCloud2, "nbv_planner/candidates", self._on_candidates, qos.latched()),
            (PointCloud2, "surface", self._on_surface, qos.latched()),
            (PointCloud2, "ground_truth/surface", self._on_truth, qos.latched()),
            (String, "run_info", self._on_run_info, qos.latched()),
            (LaserScan, "scan", self._on_scan, qos.sensor_data(100)),
            (PoseStamped, "camera_pose", self._on_pose, qos.sensor_data(100)),
            (PoseStamped, "goal_pose", self._on_goal, qos.sensor_data(10)),
        ):
            self.create_subscription(kind, topic, self._usable(topic, callback), profile)

    def _usable(self, topic: str, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        def handle(msg: Any) -> None:
            try:
                callback(msg)
            except InputRejectedError as error:
                if f"{topic} {error.reason}" not in self._rejected:
                    self._rejected.add(f"{topic} {error.reason}")
                    self.get_logger().warning(f"{topic}: not shown ({error.reason}): {error}")

        return handle

    def _on_status(self, msg: DiagnosticStatus) -> None:
        self._live.on_status(live_messages.status_from_msg(msg))

    def _on_iteration(self, msg: DiagnosticStatus) -> None:
        self._live.on_decision(live_messages.decision_from_msg(msg))

    def _on_candidates(self, msg: PointCloud2) -> None:
        self._live.on_candidates(_stamp(msg), live_messages.candidates_from_msg(msg))

    def _on_surface(self, msg: PointCloud2) -> None:
        self._live.on_belief(_stamp(msg), conversions.belief_from_msg(msg))

    def _on_truth(self, msg: PointCloud2) -> None:
        self._live.on_truth(live_messages.truth_from_msg(msg))

    def _on_run_info(self, msg: String) -> None:
        settings = live_messages.settings_from_msg(msg)
        self._poses = live_messages.poses_from_msg(msg)
        self._live.on_settings(*settings)

    def _on_scan(self, msg: LaserScan) -> None:
        self._live.on_scan(_stamp(msg), conversions.scan_from_msg(msg))

    def _on_pose(self, msg: PoseStamped) -> None:
        self._live.on_pose(_stamp(msg), self._poses.camera(conversions.pose_from_msg(msg)))

    def _on_goal(self, msg: PoseStamped) -> None:
        self._live.on_goal(self._poses.camera(conversions.pose_from_msg(msg)))


@contextlib.contextmanager
def listening(live: LiveEpisode, namespace: str, domain: int | None) -> Iterator[None]:
    """Listen in a thread of its own, leaving Ctrl-C to the caller.

    Args:
        live: is told what comes.
        namespace: of the nodes to listen to.
        domain: ROS domain id, None for that of the environment.
    """
    context = Context()
    rclpy.init(args=[], context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    node = LiveListener(live, context=context, namespace=namespace, use_global_arguments=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    thread = threading.Thread(target=_spin, args=(executor,), name="listener", daemon=True)
    thread.start()
    try:
        yield
    finally:
        executor.shutdown()
        thread.join()
        node.destroy_node()
        context.try_shutdown()


def _spin(executor: SingleThreadedExecutor) -> None:
    with contextlib.suppress(ExternalShutdownException):
        executor.spin()


def _stamp(msg: Any) -> int:
    return conversions.to_nanoseconds(msg.header.stamp)
