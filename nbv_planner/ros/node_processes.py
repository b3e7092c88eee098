"""The three nodes as separate processes on a ROS domain of their own."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from nbv_planner.errors import NbvPlannerError
from nbv_planner.ros.executables import NODES
from nbv_planner.system import python_command

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
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, suppress(OSError):
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
        instead: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Store what to start: all nodes have the same parameter file, and each has a file for its
        output in the log folder.

        With `respawn`, :meth:`check` restarts a node that has failed or was killed. The remappings
        are, by node, new names for its topics, and `instead` the command of another program.
        """
        self._instead = instead or {}
        self._respawn = respawn
        self._remappings = remappings or {}
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
        own = [*python_command("nbv_planner.ros.executables"), name]
        command = [
            *self._instead.get(name, own),
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
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(deadline - time.monotonic(), 0.0))

    def _log_path(self, name: str) -> Path:
        return self._log_folder / f"{name}.log"


def _end_with_parent() -> None:
    """Ask Linux to end this child when its parent dies, so that a killed run leaves no nodes
    behind.
    """
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
