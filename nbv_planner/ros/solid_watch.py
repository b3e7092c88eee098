"""One episode in space with the three nodes as separate processes, watched to its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import String
from std_srvs.srv import Trigger

from nbv_planner.clouds.cloud_fields import CANDIDATES_LAYOUT, columns_of, structured_points
from nbv_planner.clouds.sensor_messages import space_pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import surface_from_msg
from nbv_planner.episode import messages
from nbv_planner.episode.solid.solid_episode import SolidJudge, SolidView
from nbv_planner.errors import InputRejectedError, NbvPlannerError
from nbv_planner.mapping.surface_info import SurfaceInfo, info_from_text
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.running import ros_of_its_own
from nbv_planner.ros.node_processes import NodeProcesses, isolated_environment
from nbv_planner.session.questions import State
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import CameraPose

# Seconds without a change of the planner's status after which the run is aborted.
_GIVE_UP_AFTER = 180.0
# Messages that are latched, or may come faster than they are read.
_MANY = 100


class SolidMonitor(Node):
    """Hears the nodes of one episode, and starts it once all of them are connected."""

    def __init__(self, judge: SolidJudge, took: Callable[[SolidView], None]) -> None:
        """Take the judge of the views, and who is told of each."""
        super().__init__("episode_monitor")
        self._judge, self._took = judge, took
        self.status: messages.PlannerStatus | None = None  #: the newest of the planner.
        self._surfaces: dict[int, VolumeSurface] = {}
        self._waiting: dict[int, Any] = {}  # of a surface, its cloud or its info
        self._goals: dict[int, CameraPose] = {}
        self._decisions: list[tuple[int, float, float]] = []  # stamp, utility, milliseconds
        self._heard = set[str]()
        self._asked = False
        listened = (
            (PointCloud2, messages.SURFACE, self._on_surface, qos.latched(_MANY)),
            (String, messages.SURFACE_INFO, self._on_info, qos.latched(_MANY)),
            (PoseStamped, messages.GOAL_POSE, self._on_goal, qos.reliable(_MANY)),
            (PoseStamped, messages.CAMERA_POSE, self._on_pose, qos.reliable()),
            (DiagnosticStatus, messages.STATUS, self._on_status, qos.latched()),
            (DiagnosticStatus, messages.ITERATION, self._on_iteration, qos.latched(_MANY)),
            (PointCloud2, messages.CANDIDATES, self._on_candidates, qos.latched(10)),
        )
        for kind, topic, callback, profile in listened:
            self.create_subscription(kind, topic, callback, profile)
        self._start = self.create_client(Trigger, "nbv_planner/start")

    def start_when_ready(self) -> None:
        """Start the episode once, as soon as every node is connected."""
        connected = {messages.SURFACE, messages.CAMERA_POSE, messages.STATUS} <= self._heard
        if connected and not self._asked and self._start.service_is_ready():
            self._asked = True
            self._start.call_async(Trigger.Request())

    @property
    def complete(self) -> bool:
        """Whether the episode has ended and all its views are judged."""
        ended = self.status is not None and self.status.termination is not None
        return ended and len(self._judge.views) >= self.status.views

    def _on_pose(self, msg: PoseStamped) -> None:
        self._heard.add(messages.CAMERA_POSE)

    def _on_surface(self, msg: PointCloud2) -> None:
        self._heard.add(messages.SURFACE)
        self._pair(to_nanoseconds(msg.header.stamp), surface_from_msg(msg))

    def _on_info(self, msg: String) -> None:
        info = info_from_text(msg.data)
        self._pair(info.stamp, info)

    def _pair(self, stamp: int, part: Any) -> None:
        other = self._waiting.pop(stamp, None)
        if other is None or isinstance(other, SurfaceInfo) == isinstance(part, SurfaceInfo):
            self._waiting[stamp] = part
            return
        info, hits = (part, other) if isinstance(part, SurfaceInfo) else (other, part)
        self._surfaces[stamp] = info.applied(hits)
        self._judge_views()

    def _on_goal(self, msg: PoseStamped) -> None:
        self._goals[to_nanoseconds(msg.header.stamp)] = space_pose_from_msg(msg)

    def _on_iteration(self, msg: DiagnosticStatus) -> None:
        values = {pair.key: pair.value for pair in msg.values}
        numbers = float(values["utility"]), float(values["planning_milliseconds"])
        self._decisions.append((int(values["goal_stamp"]), *numbers))

    def _on_candidates(self, msg: PointCloud2) -> None:
        try:
            table = structured_points(msg, CANDIDATES_LAYOUT)
        except InputRejectedError as error:
            self.get_logger().warning(f"{messages.CANDIDATES}: {error}")
            return
        *place, utility = columns_of(table, "x", "y", "z", "utility")
        self._judge.gains = np.stack(place, axis=1), utility

    def _on_status(self, msg: DiagnosticStatus) -> None:
        self._heard.add(messages.STATUS)
        self.status = messages.status_from_msg(msg)
        self._judge_views()

    def _judge_views(self) -> None:
        """Judge the views that the planner has counted, once their surfaces are here."""
        while self.status is not None and len(self._judge.views) < self.status.views:
            number = len(self._judge.views)
            if number >= len(self._decisions):
                return
            newest = self.status.views == number + 1
            if newest and self.status.state == State.PLANNING.value:
                return  # what is estimated after it is not known yet
            stamp, utility, milliseconds = self._decisions[number]
            after = sorted(one for one in self._surfaces if one >= stamp)
            if not after or stamp not in self._goals:
                return
            estimate = self.status.estimate if newest else None
            view = self._judge.add(
                self._goals[stamp], self._surfaces[after[0]], estimate, utility, milliseconds
            )
            self._took(view)


def watch_solid(
    judge: SolidJudge,
    parameter_file: Path,
    log_folder: Path,
    took: Callable[[SolidView], None],
    started: Callable[[int, dict[str, int]], None],
    *,
    domain: int,
    ended: Callable[[], bool],
) -> Termination | None:
    """Start the nodes on a ROS `domain`, monitor the episode, and end them.

    The parameter file has `wait_for_start` set.

    Returns:
        Why the planner ended; FAILED if a node ended before it or messages stopped; None if
        `ended`.
    """
    environment = isolated_environment(domain)
    os.environ.update(environment)
    with (
        ros_of_its_own(domain) as executor,
        NodeProcesses(parameter_file, log_folder, environment) as nodes,
    ):
        started(domain, nodes.pids)
        monitor = SolidMonitor(judge, took)
        executor.add_node(monitor)
        status, changed_at = None, time.monotonic()
        while not monitor.complete:
            if ended():
                return None
            executor.spin_once(timeout_sec=0.2)
            monitor.start_when_ready()
            if monitor.status != status:
                status, changed_at = monitor.status, time.monotonic()
            if time.monotonic() - changed_at > _GIVE_UP_AFTER:
                words = f"no sign of progress for {_GIVE_UP_AFTER:.0f} s"
                return Termination(TerminationReason.FAILED, {}, words)
            try:
                nodes.check()
            except NbvPlannerError as error:
                return Termination(TerminationReason.FAILED, {}, str(error))
        return monitor.status.termination
