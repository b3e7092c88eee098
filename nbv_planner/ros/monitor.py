"""Follows an episode over topics: puts decisions, surfaces and scans together into steps."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.camera import CameraPose, MeasurementSettings, Scan, scan_to_measurements
from nbv_planner.errors import InputRejectedError
from nbv_planner.evaluation.records import Step
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.ros import conversions, qos
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceBelief

# Scans and poses are kept until the surface that holds them has come.
_KEPT = 400


@dataclass(frozen=True)
class _Decision:
    """What `iteration` says of a decision."""

    round: int
    goal_stamp: int
    view_angle: float
    utility: float
    milliseconds: float


class EpisodeMonitor(Node):
    """Listens to the nodes of one episode, and starts it once it hears all of them.

    Nodes find each other one by one, now and then over seconds. With the planner's `autostart` switched off and
    :meth:`start_when_ready` called in turn with spinning, no message of the episode is missed.

    Attributes:
        steps: the steps that are complete so far, in order.
        state: the planner's state and message, as last heard.
        termination: why the episode ended, once it has.
    """

    def __init__(self, scene: Scene, measurement: MeasurementSettings) -> None:
        """Open the topics."""
        super().__init__("episode_monitor")
        self._scene, self._measurement = scene, measurement
        self.steps: list[Step] = []
        self.state: tuple[str, str] = ("", "")
        self.termination: Termination | None = None
        self._views = 0
        self._decisions: list[_Decision] = []
        self._candidates: dict[int, conversions.Candidates] = {}
        self._surfaces: list[tuple[int, SurfaceBelief]] = []
        self._scans: OrderedDict[int, Scan] = OrderedDict()
        self._poses: OrderedDict[int, CameraPose] = OrderedDict()
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
        heard = self._scans and self._poses and self._surfaces and self.state != ("", "")
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
        return self.termination is not None and len(self.steps) >= self._views

    def _on_status(self, msg: DiagnosticStatus) -> None:
        values = conversions.status_values(msg)
        self.state = (values["state"], msg.message)
        self._views = int(values["views"])
        if "reason" in values:
            known = ("state", "views", "coverage_estimate", "elapsed", "reason", "detail")
            figures = {key: float(value) for key, value in values.items() if key not in known}
            reason = TerminationReason(values["reason"])
            if reason in (TerminationReason.MAX_VIEWS, TerminationReason.STOPPED):
                figures["views"] = float(self._views)  # in every status, but a figure of these two only
            self.termination = Termination(reason, figures, values["detail"])

    def _on_iteration(self, msg: DiagnosticStatus) -> None:
        values = conversions.status_values(msg)
        decision = _Decision(
            int(values["round"]), int(values["goal_stamp"]), float(values["view_angle"]), float(values["utility"]),
            float(values["planning_milliseconds"]),
        )
        # A goal that is sent again, or given up for another one, belongs to the same round.
        if self._decisions and self._decisions[-1].round == decision.round:
            self._decisions.pop()
        self._decisions.append(decision)
        self._put_together()

    def _on_candidates(self, msg: PointCloud2) -> None:
        self._candidates[conversions.to_nanoseconds(msg.header.stamp)] = conversions.candidates_from_msg(msg)
        self._put_together()

    def _on_surface(self, msg: PointCloud2) -> None:
        stamp = conversions.to_nanoseconds(msg.header.stamp)
        self._surfaces.append((stamp, conversions.belief_from_msg(msg)))
        self._put_together()

    def _on_scan(self, msg: LaserScan) -> None:
        self._keep(self._scans, msg, conversions.scan_from_msg(msg))

    def _on_pose(self, msg: PoseStamped) -> None:
        self._keep(self._poses, msg, conversions.pose_from_msg(msg))

    def _keep(self, store: OrderedDict, msg: LaserScan | PoseStamped, value: Scan | CameraPose) -> None:
        store[conversions.to_nanoseconds(msg.header.stamp)] = value
        while len(store) > _KEPT:
            store.popitem(last=False)
        self._put_together()

    def _put_together(self) -> None:
        """Build the next step once its decision, candidates, surface, scan and pose are all there."""
        while len(self.steps) < len(self._decisions):
            decision = self._decisions[len(self.steps)]
            surface = next((entry for entry in self._surfaces if entry[0] >= decision.goal_stamp), None)
            candidates = self._candidates.get(decision.goal_stamp)
            if surface is None or candidates is None or not self._has_measurements(surface[0]):
                return
            self.steps.append(
                Step(
                    view_angle=decision.view_angle,
                    objective_value=decision.utility,
                    candidates=candidates.angle,
                    utilities=candidates.utility,
                    belief=surface[1],
                    measurements=self._measured(surface[0]),
                    milliseconds=decision.milliseconds,
                )
            )

    def _has_measurements(self, stamp: int) -> bool:
        return stamp in self._scans and stamp in self._poses

    def _measured(self, stamp: int) -> Measurements:
        found = scan_to_measurements(self._scans[stamp], self._poses[stamp], self._scene, self._measurement)
        return found.measurements
