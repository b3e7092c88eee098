"""Runs the three nodes as separate processes on a domain id of their own, where `ros2 launch` is not at hand."""

from __future__ import annotations

import atexit
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import TracebackType

from nbv_planner.errors import NbvPlannerError
from nbv_planner.ros.executables import NODES

# RTPS: port = 7400 + 250 * domain + offset. Up to 101 the ports stay below Linux's ephemeral range.
_DOMAINS = range(1, 102)
_FIRST_PARTICIPANT_PORTS = (10, 11)
_PATIENCE = 5.0
_reserved: deque[socket.socket] = deque()
_MOST_RESERVED = 5
# Exit code of a node whose parameters are not allowed.
_REFUSED = 2


def free_domain_id() -> int:
    """Return a ROS domain id whose discovery ports are free on this machine.

    Tried in random order, so that two runs that start together rarely want the same. It stays reserved for this process
    until it has asked for some more: nodes that are being started do not hold the ports yet.

    Raises:
        NbvPlannerError: all are taken.
    """
    for domain in random.SystemRandom().sample(_DOMAINS, len(_DOMAINS)):
        free = all(_is_free(7400 + 250 * domain + offset) for offset in _FIRST_PARTICIPANT_PORTS)
        if free and _reserve(domain):
            return domain
    raise NbvPlannerError("no free ROS domain id between 1 and 101 on this machine")


def _reserve(domain: int) -> bool:
    """Hold a name that one process of this machine alone can hold, and that goes with the process (Linux only)."""
    if sys.platform != "linux":
        return True
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0nbv_planner/ros_domain/{domain}")
    except OSError:
        holder.close()
        return False
    _reserved.append(holder)
    if len(_reserved) > _MOST_RESERVED:
        _reserved.popleft().close()
    return True


@atexit.register
def _release() -> None:
    """Let go of what is still reserved."""
    while _reserved:
        _reserved.popleft().close()


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(("", port))
        except OSError:
            return False
    return True


def isolated_environment(domain: int) -> dict[str, str]:
    """Return the whole environment with this machine's domain `domain` and discovery kept on it.

    The wheels mark in the environment that the library path has been set up, so nothing of it may be left out.
    """
    return {
        **os.environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        # Several BLAS threads per node fight for the cores and slow small factorisations down.
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }


def foreign_rclpy() -> str | None:
    """Say so if a sourced ROS installation wins over the wheels of this Python environment; else None."""
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
        self, parameter_file: Path, log_folder: Path, environment: Mapping[str, str], *,
        respawn: bool = False, remappings: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Remember what to start.

        Args:
            parameter_file: YAML file with the parameters of all nodes.
            log_folder: each node's output goes to a file in it.
            environment: see :func:`isolated_environment`.
            respawn: whether :meth:`check` starts a node again that has ended with an error or was killed.
            remappings: topic names that a node uses instead of its own, by node.
        """
        self._respawn, self._remappings = respawn, remappings or {}
        self.restarts: Counter[str] = Counter()
        self._parameter_file = parameter_file
        self._log_folder = log_folder
        self._environment = dict(environment, ROS_LOG_DIR=str(log_folder))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> NodeProcesses:
        """Start the nodes."""
        self._log_folder.mkdir(parents=True, exist_ok=True)
        for name in NODES:
            self.start(name)
        return self

    def start(self, name: str) -> None:
        """Start one node."""
        command = [
            sys.executable, "-m", "nbv_planner.ros.executables", name, "--ros-args", "--params-file",
            str(self._parameter_file),
            *(word for pair in self._remappings.get(name, {}).items() for word in ("-r", ":=".join(pair))),
        ]
        with self._log_path(name).open("ab") as log:
            # A session of its own: Ctrl-C reaches the parent alone, which then ends the nodes in order.
            self._processes[name] = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True, preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the nodes."""
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by node name."""
        return {name: process.pid for name, process in self._processes.items()}

    def check(self) -> None:
        """Look whether all nodes still run; with `respawn`, start those again that have failed.

        Raises:
            NbvPlannerError: one has ended and is not started again; with its exit code and last words.
        """
        for name, process in list(self._processes.items()):
            if process.poll() is None:
                continue
            # What was not allowed (exit code 2) will not be so the next time either.
            if self._respawn and process.returncode not in (0, _REFUSED):
                self.restarts[name] += 1
                self.start(name)
            else:
                words = self._log_path(name).read_text(errors="replace").strip().splitlines()
                last = words[-1] if words else "it said nothing"
                raise NbvPlannerError(f"node {name} ended with exit code {process.returncode}: {last}")

    def signal(self, name: str, kind: signal.Signals) -> None:
        """Send a signal to a node, if it runs."""
        process = self._processes[name]
        if process.poll() is None:
            process.send_signal(kind)

    def stop(self) -> None:
        """End the nodes: SIGINT first, then harder."""
        for name in self._processes:
            self.signal(name, signal.SIGCONT)  # one that stands still hears no other signal
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            running = [process for process in self._processes.values() if process.poll() is None]
            for process in running:
                process.send_signal(kind)
            deadline = time.monotonic() + _PATIENCE
            for process in running:
                try:
                    process.wait(max(deadline - time.monotonic(), 0.0))
                except subprocess.TimeoutExpired:
                    continue

    def _log_path(self, name: str) -> Path:
        return self._log_folder / f"{name}.log"


def _end_with_parent() -> None:
    """Ask Linux to end this child when its parent dies, so that a killed run leaves no nodes behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
