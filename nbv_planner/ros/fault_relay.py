"""Stands between camera, mapper and planner of a run, passes messages on with faults, and watches."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.errors import DomainTakenError
from nbv_planner.faults.campaign import Run
from nbv_planner.faults.kinds import NODES, ClockJump, StreamFault, Unreachable
from nbv_planner.faults.streams import Delivery, FaultyStream
from nbv_planner.ros import conversions, qos
from nbv_planner.ros.fault_messages import MessageBreaker
from nbv_planner.surface import SurfaceBelief

BEFORE = "before_faults/"
"""What the names of topics get at their sender if messages are tampered with on their way."""

_SENDER = {"scan": "depth_camera", "camera_pose": "depth_camera", "goal_pose": "nbv_planner"}
_KINDS = {"scan": LaserScan, "camera_pose": PoseStamped, "goal_pose": PoseStamped}
# Whose goals are tampered with: the camera's, so that it alone does not hear them.
_GOAL_OF_CAMERA = "goal_pose_of_camera"


def tampered_topics(run: Run) -> list[str]:
    """Topics of which some messages do not arrive as they were sent."""
    topics = {fault.topic for fault in run.case.faults if isinstance(fault, StreamFault)}
    if any(isinstance(fault, Unreachable) for fault in run.case.faults):
        topics.add("goal_pose")
    return sorted(topics)


def remappings_of(run: Run) -> dict[str, dict[str, str]]:
    """Names of topics that nodes use in a run instead of their own, by node."""
    found: dict[str, dict[str, str]] = {}
    for topic in tampered_topics(run):
        if topic == "goal_pose":
            found.setdefault("depth_camera", {})[topic] = _GOAL_OF_CAMERA
        else:
            found.setdefault(_SENDER[topic], {})[topic] = BEFORE + topic
    return found


class FaultRelay(Node):
    """Passes messages on with the faults of a run, and keeps account.

    Attributes:
        state: what the planner does, as last heard.
        views: number of views that the planner says it has taken.
        words: the planner's last status in words.
        goals: distinct goals so far, by stamp.
        belief: newest surface.
        digest: digest of the newest surface, for comparison bit for bit.
        happened: how often each kind of fault has happened.
    """

    def __init__(self, run: Run) -> None:
        """Open the topics."""
        super().__init__("fault_relay")
        self.state, self.words, self.views = "", "", 0
        self.goals: dict[int, float] = {}
        self.belief: SurfaceBelief | None = None
        self.digest = ""
        self.happened: Counter[str] = Counter()
        self.began: float | None = None
        self.ended = 0.0
        self._run, self._steady = run, Clock(clock_type=ClockType.STEADY_TIME)
        self._due: list[tuple[float, int, Any, Any]] = []
        self._number = itertools.count()
        self._drops: dict[str, dict[str, int]] = {}
        self._drops_before: Counter[str] = Counter()
        self._unreachable: dict[int, bool] = {}
        self._rng = run.rng(1)
        self._last_goal: PoseStamped | None = None
        self._listeners = 0
        self._listen()
        self._relay()
        self._offset = 0.0
        if any(isinstance(fault, ClockJump) for fault in run.case.faults):
            self._clock = self.create_publisher(ClockMessage, "/clock", qos.reliable())
            self.create_timer(0.01, self._tick, clock=self._steady)
        self.create_timer(0.005, self._deliver, clock=self._steady)
        # Last of all: a planner that has found this client has found the subscriptions above.
        self._start = self.create_client(Trigger, "nbv_planner/start")
        self.starts = 0
        self._asked_at = float("-inf")

    def _listen(self) -> None:
        self.create_subscription(DiagnosticStatus, "nbv_planner/status", self._on_status, qos.latched(10))
        self.create_subscription(PointCloud2, "surface", self._on_surface, qos.latched(10))
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 100)
        self.create_subscription(PoseStamped, "goal_pose", self._on_goal, qos.reliable(100))

    def _relay(self) -> None:
        faults = [fault for fault in self._run.case.faults if isinstance(fault, StreamFault)]
        self._goal_out = None
        for part, topic in enumerate(tampered_topics(self._run), start=2):
            stream = FaultyStream[Any](
                [fault for fault in faults if fault.topic == topic], self._run.rng(part), MessageBreaker().broken
            )
            stream.happened = self.happened
            if topic == "goal_pose":
                self._goal_stream = stream
                self._goal_out = self.create_publisher(PoseStamped, _GOAL_OF_CAMERA, qos.reliable())
                continue
            publisher = self.create_publisher(_KINDS[topic], topic, qos.reliable())
            self.create_subscription(
                _KINDS[topic], BEFORE + topic, partial(self._pass_on, stream, publisher), qos.reliable(100)
            )

    @property
    def elapsed(self) -> float | None:
        """Seconds since the start of the episode, None before it."""
        return None if self.began is None else time.monotonic() - self.began

    def start_when_ready(self) -> None:
        """Start the episode as soon as planner and mapper are heard; again if the planner waits for it again."""
        waits = self.state == "WAITING" and "~/start" in self.words and self.belief is not None
        if waits and self._start.service_is_ready() and time.monotonic() - self._asked_at > 1.0:
            self._asked_at, self.starts = time.monotonic(), self.starts + 1
            self._start.call_async(Trigger.Request())

    def check_alone(self, killed: Mapping[str, int]) -> None:
        """Look whether somebody else's nodes are on the same domain: what they say would be taken for a fault.

        Args:
            killed: how often each node was killed; what is left of it stays known for a while.

        Raises:
            DomainTakenError: there are; names them.
        """
        names = Counter(name for name in self.get_node_names() if not name.startswith("_"))
        own = {self.get_name(): 1, **{node: 1 + killed.get(node, 0) for node in NODES}}
        strangers = sorted(name for name, number in names.items() if number > own.get(name, 0))
        if strangers:
            raise DomainTakenError(f"other nodes are on the same ROS domain: {', '.join(strangers)}")

    def jump(self, seconds: float) -> None:
        """Let the clock jump."""
        self.happened["clock"] += 1
        self._offset += seconds

    def restarted(self, node: str) -> None:
        """Keep what a node that is gone had counted; the next one counts from 0."""
        self._drops_before.update(self._drops.pop(node, {}))

    @property
    def drops(self) -> dict[str, int]:
        """What the nodes say that they left out, by reason, over all their lives."""
        total = Counter(self._drops_before)
        for drops in self._drops.values():
            total.update(drops)
        return dict(sorted(total.items()))

    def _pass_on(self, stream: FaultyStream[Any], publisher: Any, message: Any) -> None:
        for delivery in stream.passed(message, time.monotonic(), self.elapsed):
            self._post(delivery, publisher)

    def _post(self, delivery: Delivery[Any], publisher: Any) -> None:
        if delivery.due <= time.monotonic():
            publisher.publish(delivery.message)
        else:
            heapq.heappush(self._due, (delivery.due, next(self._number), delivery.message, publisher))

    def _deliver(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic():
            _, _, message, publisher = heapq.heappop(self._due)
            publisher.publish(message)
        self._remind_camera()

    def _remind_camera(self) -> None:
        """Repeat the goal to a camera that was started again: the planner sees this relay, which has always been."""
        if self._goal_out is not None:
            listeners = self._goal_out.get_subscription_count()
            if listeners > self._listeners and self._last_goal is not None:
                self._send_goal(self._last_goal)
            self._listeners = listeners

    def _on_goal(self, message: PoseStamped) -> None:
        stamp = conversions.to_nanoseconds(message.header.stamp)
        self.goals.setdefault(stamp, conversions.pose_from_msg(message).view_angle)
        if self._goal_out is not None:
            self._last_goal = message
            self._send_goal(message)

    def _send_goal(self, message: PoseStamped) -> None:
        stamp = conversions.to_nanoseconds(message.header.stamp)
        if stamp not in self._unreachable:
            chances = [fault.probability for fault in self._run.case.faults if isinstance(fault, Unreachable)]
            self._unreachable[stamp] = any(self._rng.random() < chance for chance in chances)
            self.happened["unreachable"] += self._unreachable[stamp]
        if not self._unreachable[stamp]:
            self._pass_on(self._goal_stream, self._goal_out, message)

    def _on_status(self, message: DiagnosticStatus) -> None:
        values = conversions.status_values(message)
        self.state, self.words, self.views = values["state"], message.message, int(values["views"])
        if self.began is None and self.state not in ("WAITING", ""):
            self.began = time.monotonic()

    def _on_surface(self, message: PointCloud2) -> None:
        self.belief = conversions.belief_from_msg(message)
        self.digest = hashlib.sha256(np.array(message.data).tobytes()).hexdigest()

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values: Mapping[str, str] = conversions.status_values(status)
            self._drops[status.name.rpartition("/")[2]] = {
                key.removeprefix("dropped."): int(number) for key, number in values.items()
                if key.startswith("dropped.")
            }

    def _tick(self) -> None:
        now = time.time_ns() + round(self._offset * 1e9)
        self._clock.publish(ClockMessage(clock=conversions.to_stamp(now)))
