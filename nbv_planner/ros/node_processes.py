"""The three nodes as separate processes on a separate domain, monitored to the end of an
episode.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from rclpy.executors import SingleThreadedExecutor
from std_srvs.srv import Trigger

from nbv_planner.bags.writer import BagWriter
from nbv_planner.episode.log import EpisodeLog, incomplete
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    GOAL_POSE,
    GROUND_TRUTH,
    RECORDED_TOPICS,
    SCAN,
    STATUS,
    SURFACE,
    SURFACE_INFO,
)
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.records import Step
from nbv_planner.errors import NbvPlannerError
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.running import ros_of_its_own
from nbv_planner.ros.executables import NODES
from nbv_planner.ros.io.listener import EpisodeListener
from nbv_planner.ros.io.recorder import BagRecorder
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.system import python_command
from nbv_planner.world.scene import Scene

# RTPS: port = 7400 + 250 * domain + offset. Up to 101 the ports stay below Linux's ephemeral range.
_DOMAINS = range(1, 102)
# Two for each participant. A process numbers its own through all domains: the first one on a domain
# may be its fifth.
_PARTICIPANT_PORTS = range(10, 100)
_PATIENCE = 5.0
_reserved: deque[socket.socket] = deque()
_MOST_RESERVED = 5
# Exit code of a node whose parameters are not allowed.
_REFUSED = 2


def free_domain_id() -> int:
    """Return a ROS domain id that no participant on this machine uses, as the bound ports show.

    Tried in random order, so that two simultaneous runs rarely choose the same. It stays reserved
    for this process during its next few calls: starting nodes do not hold the ports yet.

    Raises:
        NbvPlannerError: all are taken.
    """
    for domain in random.SystemRandom().sample(_DOMAINS, len(_DOMAINS)):
        # Reserved before its ports are tried: another process that has reserved it may be about to
        # bind them.
        if not _reserve(domain):
            continue
        if all(_is_free(7400 + 250 * domain + offset) for offset in _PARTICIPANT_PORTS):
            if len(_reserved) > _MOST_RESERVED:
                _reserved.popleft().close()
            return domain
        _reserved.pop().close()
    raise NbvPlannerError("no free ROS domain id between 1 and 101 on this machine")


def _reserve(domain: int) -> bool:
    """Reserve the domain among the processes of this machine, until this process ends (Linux
    only).
    """
    holder = socket.socket(
        socket.AF_UNIX if sys.platform == "linux" else socket.AF_INET, socket.SOCK_DGRAM
    )
    try:
        if sys.platform == "linux":
            holder.bind(f"\0nbv_planner/ros_domain/{domain}")
    except OSError:
        holder.close()
        return False
    _reserved.append(holder)
    return True


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, contextlib.suppress(OSError):
        sock.bind(("", port))
        return True
    return False


def isolated_environment(domain: int) -> dict[str, str]:
    """Return the whole environment with this machine's domain `domain` and discovery kept on it.

    All of it is passed on: the wheels mark in it that the library path has been set up.
    """
    return {
        **os.environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        # Several BLAS threads per node compete for the cores and slow small factorisations down.
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }


def foreign_rclpy() -> str | None:
    """A message if a sourced ROS installation takes precedence over the wheels of this environment,
    else None.
    """
    import rclpy

    try:
        metadata.version("ros-rclpy")
    except metadata.PackageNotFoundError:
        return None
    place = Path(rclpy.__file__).resolve()
    if place.is_relative_to(Path(sys.prefix).resolve()):
        return None
    return f"the sourced ROS installation ({place.parent}) is used, not the wheels of {sys.prefix}"


class NodeProcesses:
    """The three nodes as child processes; a context manager that ends them."""

    def __init__(
        self,
        parameter_file: Path,
        log_folder: Path,
        environment: Mapping[str, str],
        *,
        respawn: bool = False,
        remappings: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Store what to start: all nodes have the same parameter file, and each has a file for its
        output in the log folder.

        With `respawn`, :meth:`check` restarts a node that has failed or was killed. The remappings
        are, by node, new names for its topics.
        """
        self._respawn, self._remappings = respawn, remappings or {}
        self._parameter_file = parameter_file
        self._log_folder = log_folder
        self._environment = dict(environment, ROS_LOG_DIR=str(log_folder))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> NodeProcesses:
        self._log_folder.mkdir(parents=True, exist_ok=True)
        for name in NODES:
            self.start(name)
        return self

    def start(self, name: str) -> None:
        """Start one node."""
        command = [
            *python_command("nbv_planner.ros.executables"),
            name,
            "--ros-args",
            "--params-file",
            str(self._parameter_file),
            *(
                word
                for pair in self._remappings.get(name, {}).items()
                for word in ("-r", ":=".join(pair))
            ),
        ]
        with self._log_path(name).open("ab") as log:
            # A separate session: Ctrl-C reaches only the parent, which then ends the nodes in
            # order.
            self._processes[name] = subprocess.Popen(
                command,
                env=self._environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by node name."""
        return {name: process.pid for name, process in self._processes.items()}

    def check(self) -> None:
        """Check that all nodes still run; with `respawn`, restart those that have failed.

        Raises:
            NbvPlannerError: one has ended and is not restarted; with its exit code and last line of
                output.
        """
        for name, process in list(self._processes.items()):
            if process.poll() is None:
                continue
            # Refused parameters (exit code 2) would be refused again.
            if self._respawn and process.returncode not in (0, _REFUSED):
                self.start(name)
            else:
                output = self._log_path(name).read_text(errors="replace").strip().splitlines()
                last = output[-1] if output else "it printed no output"
                raise NbvPlannerError(
                    f"node {name} ended with exit code {process.returncode}: {last}"
                )

    def signal(self, name: str, kind: signal.Signals) -> None:
        """Send a signal to a node, if it runs."""
        process = self._processes[name]
        if process.poll() is None:
            process.send_signal(kind)

    def stop(self) -> None:
        """End the nodes: SIGINT first, then stronger signals."""
        for name in self._processes:
            self.signal(name, signal.SIGCONT)  # a stopped process receives no other signal
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            running = [process for process in self._processes.values() if process.poll() is None]
            for process in running:
                process.send_signal(kind)
            deadline = time.monotonic() + _PATIENCE
            for process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(deadline - time.monotonic(), 0.0))

    def _log_path(self, name: str) -> Path:
        return self._log_folder / f"{name}.log"


def _end_with_parent() -> None:
    """Ask Linux to end this child when its parent dies, so that a killed run leaves no nodes
    behind.
    """
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class ProgressListener(Protocol):
    """Receives the progress of an episode."""

    def started(self, domain: int, pids: dict[str, int]) -> None:
        """The nodes run, on ROS domain `domain`, with these process ids by name."""

    def took(self, step: Step, estimate: CoverageEstimate | None) -> None:
        """A view has been taken; `estimate` is the coverage by the posterior shapes after it, if
        enabled.
        """

    def waits(self, message: str) -> None:
        """Nothing has been received for a while; the `message` says what came last."""


class EpisodeMonitor(EpisodeListener):
    """Subscribes to the nodes of one episode, and starts it once all of them are connected.

    Discovery may take seconds. With the planner's `wait_for_start` set and :meth:`start_when_ready`
    called alternately with spinning, no message of the episode is missed. Goals are not subscribed
    to: a planner that waits for their subscribers waits for the camera.
    """

    def __init__(
        self,
        scene: Scene,
        measurement: MeasurementSettings,
        placed: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__(
            "episode_monitor", EpisodeLog(), qos.reliable, without=(GOAL_POSE, GROUND_TRUTH)
        )
        self._scene, self._measurement, self._placed = scene, measurement, placed
        self._round = 0
        self.steps: list[Step] = []  #: the steps that are complete so far, in order.
        self._done: set[int] = set()
        #: the planner's coverage estimate by number of views; None if it does not use shapes.
        self.estimates: dict[int, CoverageEstimate | None] = {}
        # Last of all: a planner that has found this client has found the subscriptions above.
        self._start = self.create_client(Trigger, "nbv_planner/start")
        self._asked_to_start = False
        self._passed_on = 0

    def start_when_ready(self) -> None:
        """Start the episode once, as soon as every node is connected."""
        connected = {SCAN, CAMERA_POSE, SURFACE, SURFACE_INFO, STATUS} <= self.log.heard
        if connected and not self._asked_to_start and self._start.service_is_ready():
            self._asked_to_start = True
            self._start.call_async(Trigger.Request())

    @property
    def state(self) -> tuple[str, str]:
        """The planner's state and message, as last received."""
        status = self.log.status
        return ("", "") if status is None else (status.state, status.message)

    @property
    def views(self) -> int:
        """Number of views that the planner has reported."""
        return 0 if self.log.status is None else self.log.status.views

    @property
    def termination(self) -> Termination | None:
        """Why the episode ended, once it has."""
        return self.log.termination

    @property
    def complete(self) -> bool:
        """Whether the episode has ended and all its views are complete."""
        return self.termination is not None and len(self.steps) >= self.views

    def pass_on(self, listener: ProgressListener, views: int) -> None:
        """Pass on each of the first `views` views once it is complete, with the estimate after
        it.
        """
        for step in self.steps[self._passed_on : views]:
            self._passed_on += 1
            listener.took(step, self.estimates.get(self._passed_on))

    def _on_message(self, topic: str, msg: Any) -> None:
        super()._on_message(topic, msg)
        if topic == STATUS and self.log.status is not None:
            self.estimates[self.views] = self.log.status.estimate
        # The surface of a restarted mapper may have been replaced by the next one before discovery
        # and is then never received: the next one is used instead.
        views = self.log.views
        for number, view in enumerate(views):
            if view.decision.goal_stamp in self._done:
                continue
            belief = next((each.belief for each in views[number:] if each.belief is not None), None)
            step = dataclasses.replace(view, belief=belief).step(
                self._scene, self._measurement, self._placed
            )
            if step is None:
                return
            self._done.add(view.decision.goal_stamp)
            if view.decision.round == self._round:  # the one before did not count: an approach
                self.steps.pop()
            self._round = view.decision.round
            self.steps.append(step)


# Seconds without a change of the planner's status after which it is shown, and after which the run
# is aborted.
_REPORT_AFTER = 3.0
_GIVE_UP_AFTER = 120.0
# The same once the planner is done: its messages stay available, but discovery may take seconds.
_DONE_AFTER = 10.0
# Seconds after the end during which /diagnostics, published once a second, are still recorded.
_LAST_WORDS = 1.2


def run_episode(
    config: EpisodeConfig,
    parameter_file: Path,
    log_folder: Path,
    listener: ProgressListener,
    bag: BagWriter | None,
    *,
    domain: int,
    respawn: bool,
    ended: Callable[[], bool],
) -> Termination | None:
    """Start the nodes on a ROS `domain`, monitor the episode, and end them.

    The parameter file has `wait_for_start` set: the episode starts when all nodes are connected, so
    that no message is missed. The bag, if any, records all messages of the nodes; with `respawn` a
    node that fails or is killed is restarted; `ended`, called five times a second, says whether to
    end before the planner does.

    Returns:
        Why the planner ended; FAILED if a node ended before it or messages stopped; None if
        `ended`.
    """
    environment = isolated_environment(domain)
    os.environ.update(environment)
    with (
        ros_of_its_own(domain) as executor,
        NodeProcesses(parameter_file, log_folder, environment, respawn=respawn) as nodes,
    ):
        listener.started(domain, nodes.pids)
        # Before the monitor: a planner that has found the monitor has found the recorder.
        if bag is not None:
            executor.add_node(BagRecorder(bag, RECORDED_TOPICS))
        monitor = EpisodeMonitor(config.scene, config.measurement, config.world.placed)
        executor.add_node(monitor)
        termination = _follow(monitor, executor, nodes, listener, ended)
        if bag is not None:
            _spin(executor, _LAST_WORDS)
        return termination


def _spin(executor: SingleThreadedExecutor, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)


def _follow(
    monitor: EpisodeMonitor,
    executor: SingleThreadedExecutor,
    nodes: NodeProcesses,
    listener: ProgressListener,
    ended: Callable[[], bool],
) -> Termination | None:
    """Pass on the views until the planner is done, a node ends, or messages stop."""
    status = ("", "")
    changed_at = time.monotonic()
    reported = False
    try:
        while not monitor.complete:
            if ended():
                return None
            executor.spin_once(timeout_sec=0.2)
            monitor.start_when_ready()
            monitor.pass_on(listener, monitor.views)
            if monitor.state != status:
                status = monitor.state
                changed_at = time.monotonic()
                reported = False
            silence = time.monotonic() - changed_at
            if silence > _REPORT_AFTER and not reported:
                reported = True
                listener.waits(f"planner: {status[1] or 'no status yet'}")
            if silence > (_GIVE_UP_AFTER if monitor.termination is None else _DONE_AFTER):
                for missing in incomplete(monitor.log.views):
                    listener.waits(f"the record ends early: {missing}")
                detail = f"no sign of progress for {silence:.0f} s; last status: {status[1]}"
                return monitor.termination or Termination(TerminationReason.FAILED, {}, detail)
            try:
                nodes.check()
            except NbvPlannerError as error:
                return Termination(TerminationReason.FAILED, {}, str(error))
        return monitor.termination
    finally:
        # including those that the planner has not reported
        monitor.pass_on(listener, len(monitor.steps))
