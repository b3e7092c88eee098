"""One run of a fault campaign: three real processes over DDS, and a relay between them that injects
the faults.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import heapq
import itertools
import math
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.clock import Clock, ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

from campaigns.faults import (
    NO_END,
    NODE_DIED,
    NODES,
    Bias,
    Campaign,
    ClockJump,
    Corrupt,
    Delivery,
    DomainTakenError,
    FaultyStream,
    Freeze,
    Kill,
    Moment,
    Outcome,
    OutOfRange,
    Recovery,
    Run,
    Stall,
    StreamFault,
    Unreachable,
    moments_of,
)
from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.judge import surface_error
from nbv_planner.episode.messages import status_values
from nbv_planner.episode.parameter_files import Parameters, dump_parameters
from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    STATE_FILES,
    DepthCameraParameters,
    EpisodeConfig,
    config_from_parameters,
)
from nbv_planner.errors import NbvPlannerError, StateFileError
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.running import separate_context
from nbv_planner.ros.io import conversions
from nbv_planner.ros.node_processes import NodeProcesses, free_domain_id, isolated_environment
from nbv_planner.session.journal import Journal, from_records
from nbv_planner.session.state import EpisodeState
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.visibility import observe

_PARTS = ("frame", "number", "bits")


class MessageBreaker:
    """Breaks messages of one topic; stores the ranges of a frozen sensor."""

    def __init__(self) -> None:
        """Nothing is frozen yet."""
        self._frozen: dict[int, Any] = {}

    def broken(self, message: Any, fault: StreamFault, rng: np.random.Generator) -> Any:
        """Another message with `fault` in it."""
        message = copy.deepcopy(message)
        if isinstance(fault, Corrupt):
            _corrupt(message, rng)
        elif isinstance(fault, Bias):
            pose = pose_from_msg(message)
            off = CameraPose(pose.x + fault.x, pose.y + fault.y, pose.yaw + fault.yaw)
            return conversions.pose_to_msg(off, message.header)
        elif isinstance(fault, OutOfRange) and isinstance(message, LaserScan):
            beyond = [math.inf, -math.inf, math.nan, 2.0 * message.range_max, 0.0, -1.0]
            message.ranges = rng.choice(beyond, len(message.ranges)).astype(np.float32).tolist()
        elif isinstance(fault, Freeze) and isinstance(message, LaserScan):
            message.ranges = self._frozen.setdefault(id(fault), message.ranges)
        return message


def _corrupt(message: Any, rng: np.random.Generator) -> None:
    """Break one part of a message: its frame, a number, or bits at random."""
    part = _PARTS[int(rng.integers(len(_PARTS)))]
    if part == "frame":
        message.header.frame_id = "elsewhere"
    elif isinstance(message, LaserScan):
        _corrupt_scan(message, part, rng)
    elif isinstance(message, PoseStamped):
        _corrupt_pose(message, part, rng)


def _corrupt_scan(scan: LaserScan, part: str, rng: np.random.Generator) -> None:
    if part == "number":
        name = ("angle_min", "angle_increment", "range_min", "range_max")[int(rng.integers(4))]
        setattr(scan, name, math.nan)
        return
    ranges = np.array(scan.ranges, dtype=np.float32)
    hit = rng.random(len(ranges)) < 0.1
    ranges[hit] = rng.integers(0, 2**32, int(hit.sum()), dtype=np.uint32).view(np.float32)
    scan.ranges = ranges.tolist()


def _corrupt_pose(pose: PoseStamped, part: str, rng: np.random.Generator) -> None:
    position, orientation = pose.pose.position, pose.pose.orientation
    if part == "number":
        setattr(position, "xyz"[int(rng.integers(3))], math.nan)
    else:
        bits = rng.integers(0, 2**64, 4, dtype=np.uint64).view(np.float64)
        orientation.x, orientation.y, orientation.z, orientation.w = (
            float(value) for value in bits
        )


BEFORE = "before_faults/"
"""Suffix of the sender's topic names if the relay changes the messages."""
_SENDER = {"scan": "depth_camera", "camera_pose": "depth_camera", "goal_pose": "nbv_planner"}
_KINDS = {"scan": LaserScan, "camera_pose": PoseStamped, "goal_pose": PoseStamped}
# Node whose goals are changed: only the camera does not receive the originals.
_GOAL_OF_CAMERA = "goal_pose_of_camera"


def tampered_topics(run: Run) -> list[str]:
    """Topics with faults of messages."""
    topics = {fault.topic for fault in run.case.faults if isinstance(fault, StreamFault)}
    if any(isinstance(fault, Unreachable) for fault in run.case.faults):
        topics.add("goal_pose")
    return sorted(topics)


def remappings_of(run: Run) -> dict[str, dict[str, str]]:
    """New names of topics in a run, by node."""
    found: dict[str, dict[str, str]] = {}
    for topic in tampered_topics(run):
        if topic == "goal_pose":
            found.setdefault("depth_camera", {})[topic] = _GOAL_OF_CAMERA
        else:
            found.setdefault(_SENDER[topic], {})[topic] = BEFORE + topic
    return found


class FaultRelay(Node):
    """Passes messages on with the faults of a run, and counts them."""

    def __init__(self, run: Run) -> None:
        """Open the topics."""
        super().__init__("fault_relay")
        #: state, message and number of views of the newest status.
        self.state, self.message, self.views = "", "", 0
        self.goals: dict[int, float] = {}  #: distinct goals so far, by stamp.
        self.belief: SurfaceBelief | None = None  #: newest surface.
        self.digest = ""  #: of the newest surface, for comparison bit for bit.
        self.happened: Counter[str] = Counter()  #: how often each kind of fault has happened.
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
        self.create_subscription(
            DiagnosticStatus, "nbv_planner/status", self._on_status, qos.latched(10)
        )
        self.create_subscription(PointCloud2, "surface", self._on_surface, qos.latched(10))
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 100)
        self.create_subscription(PoseStamped, "goal_pose", self._on_goal, qos.reliable(100))

    def _relay(self) -> None:
        faults = [fault for fault in self._run.case.faults if isinstance(fault, StreamFault)]
        self._goal_out = None
        for part, topic in enumerate(tampered_topics(self._run), start=2):
            stream = FaultyStream[Any](
                [fault for fault in faults if fault.topic == topic],
                self._run.rng(part),
                MessageBreaker().broken,
            )
            stream.happened = self.happened
            if topic == "goal_pose":
                self._goal_stream = stream
                self._goal_out = self.create_publisher(PoseStamped, _GOAL_OF_CAMERA, qos.reliable())
                continue
            publisher = self.create_publisher(_KINDS[topic], topic, qos.reliable())
            self.create_subscription(
                _KINDS[topic],
                BEFORE + topic,
                partial(self._pass_on, stream, publisher),
                qos.reliable(100),
            )

    @property
    def elapsed(self) -> float | None:
        """Seconds since the start of the episode, None before it."""
        return None if self.began is None else time.monotonic() - self.began

    def start_when_ready(self) -> None:
        """Start the episode once planner and mapper are connected, and again if the planner waits
        for it.
        """
        waits = self.state == "WAITING" and "~/start" in self.message and self.belief is not None
        if waits and self._start.service_is_ready() and time.monotonic() - self._asked_at > 1.0:
            self._asked_at, self.starts = time.monotonic(), self.starts + 1
            self._start.call_async(Trigger.Request())

    def check_alone(self, killed: Mapping[str, int]) -> None:
        """Check for other nodes on the same domain: their messages would look like faults.

        `killed` says how often each node was, since its endpoints stay in the graph for a while.

        Raises:
            DomainTakenError: there are some; names them.
        """
        names = Counter(name for name in self.get_node_names() if not name.startswith("_"))
        own = {self.get_name(): 1, **{node: 1 + killed.get(node, 0) for node in NODES}}
        strangers = sorted(name for name, number in names.items() if number > own.get(name, 0))
        if strangers:
            raise DomainTakenError(
                f"other nodes are on the same ROS domain: {', '.join(strangers)}"
            )

    def jump(self, seconds: float) -> None:
        """Let the clock jump."""
        self.happened["clock"] += 1
        self._offset += seconds

    def restarted(self, node: str) -> None:
        """Keep the counts of an ended node; the next one counts from 0."""
        self._drops_before.update(self._drops.pop(node, {}))

    @property
    def drops(self) -> dict[str, int]:
        """Drops reported by the nodes, by reason, over all restarts."""
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
            heapq.heappush(
                self._due, (delivery.due, next(self._number), delivery.message, publisher)
            )

    def _deliver(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic():
            _, _, message, publisher = heapq.heappop(self._due)
            publisher.publish(message)
        self._remind_camera()

    def _remind_camera(self) -> None:
        """Republish the goal to a restarted camera: the planner only sees this relay, which never
        ended.
        """
        if self._goal_out is not None:
            listeners = self._goal_out.get_subscription_count()
            if listeners > self._listeners and self._last_goal is not None:
                self._send_goal(self._last_goal)
            self._listeners = listeners

    def _on_goal(self, message: PoseStamped) -> None:
        stamp = to_nanoseconds(message.header.stamp)
        self.goals.setdefault(stamp, pose_from_msg(message).view_angle)
        if self._goal_out is not None:
            self._last_goal = message
            self._send_goal(message)

    def _send_goal(self, message: PoseStamped) -> None:
        stamp = to_nanoseconds(message.header.stamp)
        if stamp not in self._unreachable:
            chances = [
                fault.probability
                for fault in self._run.case.faults
                if isinstance(fault, Unreachable)
            ]
            self._unreachable[stamp] = any(self._rng.random() < chance for chance in chances)
            self.happened["unreachable"] += self._unreachable[stamp]
        if not self._unreachable[stamp]:
            self._pass_on(self._goal_stream, self._goal_out, message)

    def _on_status(self, message: DiagnosticStatus) -> None:
        values = status_values(message)
        self.state = values["state"]
        self.message = message.message
        self.views = int(values["views"])
        if self.began is None and self.state not in ("WAITING", ""):
            self.began = time.monotonic()

    def _on_surface(self, message: PointCloud2) -> None:
        self.belief = belief_from_msg(message)
        self.digest = hashlib.sha256(np.array(message.data).tobytes()).hexdigest()

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values: Mapping[str, str] = status_values(status)
            self._drops[status.name.rpartition("/")[2]] = {
                key.removeprefix("dropped."): int(number)
                for key, number in values.items()
                if key.startswith("dropped.")
            }

    def _tick(self) -> None:
        now = time.time_ns() + round(self._offset * 1e9)
        self._clock.publish(ClockMessage(clock=conversions.to_stamp(now)))


_MAP, _SESSION = STATE_FILES["surface_mapper"][1], STATE_FILES["nbv_planner"][1]
# Seconds at the end to receive /diagnostics, published once a second.
_LAST_WORDS = 1.3
# Seconds between two checks for other nodes on the domain.
_LOOK_AROUND = 0.1
# Messages received within this time after a kill were sent before it, seconds.
_UNDER_WAY = 0.3


def run_faults(run: Run, campaign: Campaign, episode_seconds: float, folder: Path) -> Outcome:
    """Run an episode with the faults of `run`, which without any takes `episode_seconds`.

    The empty `folder` is for parameters, logs and the nodes' state files.

    Raises:
        DomainTakenError: other nodes were on the domain.
    """
    parameters = _parameters(run, campaign, folder)
    file = folder / "parameters.yaml"
    file.write_text(dump_parameters(parameters), encoding="utf-8")
    domain = free_domain_id()
    # Killed processes would leave shared memory behind; UDP leaves nothing.
    environment = {**isolated_environment(domain), "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}
    os.environ.update(environment)
    with separate_context(domain):
        executor, relay = SingleThreadedExecutor(), FaultRelay(run)
        executor.add_node(relay)
        moments = moments_of(run, episode_seconds, campaign.time_limit)
        with NodeProcesses(
            file, folder / "logs", environment, remappings=remappings_of(run)
        ) as nodes:
            course = _Course(run, campaign, relay, nodes, executor)
            recoveries = course.follow(moments)
        return _outcome(run, parameters, relay, recoveries, folder, course.died)


def _parameters(run: Run, campaign: Campaign, folder: Path) -> Parameters:
    """Parameters of the nodes, with state files in `folder`."""
    given = campaign.parameters_of(run.case)
    parameters: Parameters = {node: dict(given.get(node, {})) for node in NODE_SETTINGS}
    for node, (name, file) in STATE_FILES.items():
        parameters[node].update({name: str((folder / file).resolve()), "episode": run.slug})
    # The relay also subscribes to the goals; where it replaces the topic, the planner does not see
    # the camera.
    others = {
        "wait_for_start": True,
        "goal_subscribers": 2 if "goal_pose" in tampered_topics(run) else 3,
    }
    parameters["nbv_planner"].update(others)
    if any(isinstance(fault, ClockJump) for fault in run.case.faults):
        for values in parameters.values():
            values["use_sim_time"] = True
    return parameters


class _Course:
    """Monitors a run from the start to the end."""

    def __init__(
        self,
        run: Run,
        campaign: Campaign,
        relay: FaultRelay,
        nodes: NodeProcesses,
        executor: SingleThreadedExecutor,
    ) -> None:
        self._run = run
        self._limit = campaign.time_limit
        self._relay = relay
        self._nodes = nodes
        self._executor = executor
        self._open: list[tuple[Recovery, int]] = []
        self._recoveries: list[Recovery] = []
        self._down: dict[str, float] = {}
        self.died = ""
        self._look_at = 0.0

    def follow(self, moments: list[Moment]) -> list[Recovery]:
        """Trigger all faults at their times, until the episode has ended or takes too long."""
        relay, begun, waiting = self._relay, time.monotonic(), list(moments)
        while relay.state != "DONE" and not self.died and time.monotonic() - begun < self._limit:
            self._executor.spin_once(timeout_sec=0.01)
            relay.start_when_ready()
            self._check_alone()
            elapsed = relay.elapsed
            while waiting and elapsed is not None and waiting[0].at <= elapsed:
                self._happen(waiting.pop(0), elapsed)
            self._revive()
            self._close(elapsed)
        self._wind_up()
        return self._all()

    def _happen(self, moment: Moment, elapsed: float) -> None:
        fault = moment.fault
        if isinstance(fault, Kill):
            self._relay.happened["kill"] += 1
            self._nodes.signal(fault.node, signal.SIGKILL)
            self._down[fault.node] = time.monotonic() + fault.down
            self._open.append(
                (Recovery(fault.node, elapsed, self._relay.state, None), self._relay.views)
            )
        elif isinstance(fault, Stall):
            self._relay.happened["stall"] += not moment.resume
            self._nodes.signal(fault.node, signal.SIGCONT if moment.resume else signal.SIGSTOP)
        elif isinstance(fault, ClockJump):
            self._relay.jump(fault.seconds)

    def _revive(self) -> None:
        """Restart a killed node; one that has ended by itself is an error."""
        for node, due in list(self._down.items()):
            if time.monotonic() >= due:
                del self._down[node]
                self._relay.restarted(node)
                self._nodes.start(node)
        if not self._down:
            try:
                self._nodes.check()
            except NbvPlannerError as error:
                self.died = str(error)

    def _check_alone(self) -> None:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_AROUND
            self._relay.check_alone(Counter(recovery.node for recovery in self._all()))

    def _all(self) -> list[Recovery]:
        return [*self._recoveries, *(recovery for recovery, _ in self._open)]

    def _close(self, elapsed: float | None) -> None:
        """Record recoveries: a view has counted since, or the episode has ended."""
        now, still_open = elapsed or 0.0, []
        for recovery, views in self._open:
            if now - recovery.at < _UNDER_WAY:
                still_open.append((recovery, self._relay.views))
            elif recovery.node not in self._down and (
                self._relay.views > views or self._relay.state == "DONE"
            ):
                self._recoveries.append(dataclasses.replace(recovery, seconds=now - recovery.at))
            else:
                still_open.append((recovery, views))
        self._open = still_open

    def _wind_up(self) -> None:
        """Receive the nodes' last messages."""
        end = time.monotonic() + _LAST_WORDS
        self._relay.ended = self._relay.elapsed or 0.0
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.02)
        self._look_at = 0.0
        self._check_alone()


def _outcome(
    run: Run,
    parameters: Parameters,
    relay: FaultRelay,
    recoveries: list[Recovery],
    folder: Path,
    died: str,
) -> Outcome:
    shape = parameters["depth_camera"].get("object", DepthCameraParameters().object)
    config = config_from_parameters(parameters, object=shape, protocol="sensor")
    episode, surface = _episode(folder / _SESSION), _mapped(folder / _MAP)
    visited = tuple(view.view_angle for view in episode.visited)
    coverage, rmse = _judged(config, visited, relay)
    reason = (
        relay.message.partition(":")[0] if relay.state == "DONE" else NODE_DIED if died else NO_END
    )
    return Outcome(
        case=run.case.name,
        number=run.number,
        seed=run.seed,
        reason=reason,
        detail=died or relay.message,
        seconds=relay.ended,
        visited=visited,
        map_views=int(surface["views"]) if surface else 0,
        goals=len(relay.goals),
        lost_views=episode.lost_views,
        coverage=coverage,
        rmse=rmse,
        digest=relay.digest,
        starts=relay.starts,
        recoveries=tuple(recoveries),
        happened=dict(relay.happened),
        drops=relay.drops,
    )


def _episode(path: Path) -> EpisodeState:
    """The episode in the planner's journal; one that has not begun if there is no file."""
    try:
        return from_records(Journal(path, "planning session").read())[0]
    except StateFileError as error:
        if error.reason != "missing":
            raise NbvPlannerError(str(error)) from error
        return EpisodeState()


def _mapped(path: Path) -> Mapping[str, Any] | None:
    """What the mapper's journal counts at its end; None if there is no file."""
    try:
        *_, last = Journal(path, "surface map").read()
    except StateFileError as error:
        if error.reason != "missing":
            raise NbvPlannerError(str(error)) from error
        return None
    return last["progress"] if "progress" in last else last["batch"]["progress"]


def _judged(
    config: EpisodeConfig, visited: tuple[float, ...], relay: FaultRelay
) -> tuple[float, float | None]:
    """Fraction of the true surface points seen from the views, and the error of the last
    surface.
    """
    shape = parse_object(config.object, config.scene)
    points = surface_points(shape, config.scene.pixel_size)
    seen = observe(points.angle, points.radius, np.array(visited), config.scene)
    error = None if relay.belief is None else surface_error(relay.belief, shape).rmse
    return float(seen.any(axis=0).mean()) if visited else 0.0, error
