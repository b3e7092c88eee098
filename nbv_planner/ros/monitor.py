"""Follows an episode over topics: puts decisions, surfaces and scans together into steps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.camera import MeasurementSettings
from nbv_planner.errors import InputRejectedError
from nbv_planner.evaluation.assembly import EpisodeAssembly
from nbv_planner.evaluation.recorded_decision import (
    decision_from_values,
    estimate_from_values,
    termination_from_values,
)
from nbv_planner.evaluation.records import Step
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.planning.termination import Termination
from nbv_planner.ros import conversions, qos
from nbv_planner.scene import Scene


class EpisodeMonitor(Node):
    """Listens to the nodes of one episode, and starts it once it hears all of them.

    Nodes find each other one by one, now and then over seconds. With the planner's `wait_for_start` switched on and
    :meth:`start_when_ready` called in turn with spinning, no message of the episode is missed.

    Attributes:
        steps: the steps that are complete so far, in order.
        state: the planner's state and message, as last heard.
        views: number of views that the planner has said something about.
        estimates: what it said of the coverage, by number of views; None if it does not estimate it by shapes.
        termination: why the episode ended, once it has.
    """

    def __init__(self, scene: Scene, measurement: MeasurementSettings) -> None:
        """Open the topics."""
        super().__init__("episode_monitor")
        self._scene, self._measurement = scene, measurement
        self.steps: list[Step] = []
        self.state: tuple[str, str] = ("", "")
        self.termination: Termination | None = None
        self.views = 0
        self.estimates: dict[int, CoverageEstimate | None] = {}
        self._assembly = EpisodeAssembly()
        self._heard: set[str] = set()
        for kind, topic, callback, profile in (
            (DiagnosticStatus, "nbv_planner/status", self._on_status, qos.latched(10)),
            (DiagnosticStatus, "nbv_planner/iteration", self._on_iteration, qos.latched(100)),
            (PointCloud2, "nbv_planner/candidates", self._on_candidates, qos.latched(100)),
            (PointCloud2, "surface", self._on_surface, qos.latched(100)),
            (LaserScan, "scan", self._on_scan, qos.reliable(100)),
            (PoseStamped, "camera_pose", self._on_pose, qos.reliable(100)),
        ):
            self.create_subscription(kind, topic, self._usable(callback), profile)
        # Last of all: a planner that has found this client has found the subscriptions above.
        self._start = self.create_client(Trigger, "nbv_planner/start")
        self._asked_to_start = False

    def start_when_ready(self) -> None:
        """Start the episode, once, as soon as every node has been heard."""
        heard = {"scan", "camera_pose", "surface"} <= self._heard and self.state != ("", "")
        if heard and not self._asked_to_start and self._start.service_is_ready():
            self._asked_to_start = True
            self._start.call_async(Trigger.Request())

    def _usable(self, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        """Wrap a callback: what the nodes drop and count is left out here too."""

        def handle(msg: Any) -> None:
            with contextlib.suppress(InputRejectedError):
                callback(msg)

        return handle

    @property
    def complete(self) -> bool:
        """Whether the episode has ended and every view of it has been put together."""
        return self.termination is not None and len(self.steps) >= self.views

    def _on_status(self, msg: DiagnosticStatus) -> None:
        values = conversions.status_values(msg)
        self.state = (values["state"], msg.message)
        self.views = int(values["views"])
        self.termination = termination_from_values(values) or self.termination
        self.estimates[self.views] = estimate_from_values(values)

    def _on_iteration(self, msg: DiagnosticStatus) -> None:
        self._assembly.add_decision(decision_from_values(conversions.status_values(msg)))
        self._put_together()

    def _on_candidates(self, msg: PointCloud2) -> None:
        self._assembly.add_candidates(_stamp(msg), partial(conversions.candidates_from_msg, msg))
        self._put_together()

    def _on_surface(self, msg: PointCloud2) -> None:
        belief = conversions.belief_from_msg(msg)
        self._heard.add("surface")
        self._assembly.add_surface(_stamp(msg), lambda: belief)
        self._put_together()

    def _on_scan(self, msg: LaserScan) -> None:
        scan = conversions.scan_from_msg(msg)
        self._heard.add("scan")
        self._assembly.add_scan(_stamp(msg), lambda: scan)
        self._put_together()

    def _on_pose(self, msg: PoseStamped) -> None:
        pose = conversions.pose_from_msg(msg)
        self._heard.add("camera_pose")
        self._assembly.add_pose(_stamp(msg), lambda: pose)
        self._put_together()

    def _put_together(self) -> None:
        """Build the next step once its decision, candidates, surface, scan and pose are all there."""
        while len(self.steps) < len(self._assembly.views):
            step = self._assembly.views[len(self.steps)].step(self._scene, self._measurement)
            if step is None:
                return
            self.steps.append(step)


def _stamp(msg: LaserScan | PoseStamped | PointCloud2) -> int:
    return conversions.to_nanoseconds(msg.header.stamp)
