"""Latency and memory of the loop scan -> surface -> goal, on three node processes over real DDS.

Run it with `python -m benchmarks run loop --rate 40 --duration 600`.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.srv import GetState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import SetBool, Trigger

from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.episode.messages import status_values
from nbv_planner.episode.parameter_files import dump_parameters
from nbv_planner.errors import NbvPlannerError
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.running import separate_context
from nbv_planner.ros.node_processes import NodeProcesses, free_domain_id, isolated_environment

# Seconds between two calls: enough for a 99th percentile within minutes, without a notable load.
_PERIOD = 0.25


@dataclass(frozen=True, eq=False)
class Call:
    """A call that changes nothing."""

    kind: type  #: type of the service.
    service: str  #: its name.
    request: Any
    milliseconds: list[float] = field(default_factory=list)  #: times of the answers received.


class CallProbe:
    """Makes calls of all kinds in turn, whether or not earlier ones have been answered, and
    measures their times.

    From the call to the answer in the caller, including a part of a millisecond in its own
    executor.
    """

    def __init__(self, node: Node) -> None:
        """Begin calling as soon as the services are available."""
        same = Parameter(
            name="goal_timeout",
            value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=60.0),
        )
        self.calls = {
            "pause": Call(SetBool, "nbv_planner/pause", SetBool.Request(data=False)),
            "set_parameter": Call(
                SetParameters,
                "nbv_planner/set_parameters",
                SetParameters.Request(parameters=[same]),
            ),
            "planner_state": Call(GetState, "nbv_planner/get_state", GetState.Request()),
            "get_parameter": Call(
                GetParameters,
                "surface_mapper/get_parameters",
                GetParameters.Request(names=["grid_size"]),
            ),
            "mapper_state": Call(GetState, "surface_mapper/get_state", GetState.Request()),
        }
        self.sent = 0  #: number of calls made.
        self._clients = {
            name: node.create_client(call.kind, call.service) for name, call in self.calls.items()
        }
        self._turn = itertools.cycle(self.calls)
        node.create_timer(_PERIOD, self._next)

    def forget(self) -> None:
        """Discard the warm-up and begin the measurement."""
        self.sent = 0
        for call in self.calls.values():
            call.milliseconds.clear()

    def _next(self) -> None:
        name = next(self._turn)
        if self._clients[name].service_is_ready():
            self._send(name)

    def _send(self, name: str) -> None:
        call, began = self.calls[name], time.monotonic()
        self.sent += 1

        def answered(_: Future) -> None:
            call.milliseconds.append(1e3 * (time.monotonic() - began))

        self._clients[name].call_async(call.request).add_done_callback(answered)


_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ProcessUsage:
    """Resident memory and processor time of a process from now on."""

    def __init__(self, pid: int) -> None:
        """Take the first sample."""
        self._folder = Path("/proc") / str(pid)
        self._seconds: list[float] = []
        self._megabytes: list[float] = []
        self._processor: list[float] = []
        self.sample()

    def sample(self) -> None:
        """Take a sample."""
        self._seconds.append(time.monotonic())
        self._megabytes.append(int((self._folder / "statm").read_text().split()[1]) * _PAGE_MB)
        # The name of the program, in brackets, may contain anything: count from its end.
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        self._processor.append((int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND)

    def figures(self) -> dict[str, float]:
        """Processor time as fraction of a core, memory at the start and the end (MB), its slope (MB
        per minute).
        """
        seconds = np.array(self._seconds) - self._seconds[0]
        slope = np.polyfit(seconds, self._megabytes, 1)[0] if len(seconds) > 1 else 0.0
        used = self._processor[-1] - self._processor[0]
        return {
            "cores": round(float(used / max(seconds[-1], 1e-9)), 4),
            "rss_start_mb": round(self._megabytes[0], 3),
            "rss_end_mb": round(self._megabytes[-1], 3),
            "rss_slope_mb_per_min": round(60.0 * float(slope), 4),
        }


# Fast enough to reach any goal between two scans, so that every scan completes a view.
_ANGULAR_SPEED = 1e4
_PATIENCE = 30.0


class LoopProbe(Node):
    """Records when scans were taken, and when surfaces and goals are received; all times in
    nanoseconds of one clock.

    The time of reception is that of DDS in this process: the delay of its executor is not part of
    the loop.
    """

    def __init__(self) -> None:
        """Subscribe to all topics."""
        super().__init__("loop_probe")
        #: pairs of stamp (of the newest scan in it) and time of reception.
        self.surfaces: list[tuple[int, int]] = []
        self.received_at: dict[int, int] = {}  #: time of reception of the scans by stamp.
        self.goals: dict[int, int] = {}  #: time of reception by stamp.
        self.operator = CallProbe(self)  #: calls the nodes meanwhile.
        self.forget()
        deep = qos.reliable(1000)
        self.create_subscription(
            PoseStamped, "camera_pose", lambda msg: self.scans.append(_stamp(msg)), deep
        )
        self.create_subscription(LaserScan, "scan", self._on_scan, deep)
        self.create_subscription(PointCloud2, "surface", self._on_surface, qos.latched(1000))
        self.create_subscription(PoseStamped, "goal_pose", self._on_goal, deep)
        self.create_subscription(
            DiagnosticStatus, "nbv_planner/iteration", self._on_decision, qos.latched(1000)
        )
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, deep)
        self._reset = self.create_client(Trigger, "nbv_planner/reset")
        self.create_subscription(
            DiagnosticStatus, "nbv_planner/status", self._on_status, qos.latched(1)
        )

    def forget(self) -> None:
        """Discard the warm-up and begin the measurement."""
        self.scans: list[int] = []  #: stamps of the scans, from their poses.
        self.decisions: list[dict[str, str]] = []  #: values of every decision.
        #: stamps and values of `/diagnostics` of the mapper, once a second.
        self.updates: list[tuple[int, dict[str, str]]] = []
        self.received_at.clear()
        self.surfaces.clear()
        self.goals.clear()
        self.operator.forget()

    def _on_scan(self, msg: LaserScan, info: dict[str, int]) -> None:
        self.received_at[_stamp(msg)] = info["received_timestamp"]

    def _on_surface(self, msg: PointCloud2, info: dict[str, int]) -> None:
        self.surfaces.append((_stamp(msg), info["received_timestamp"]))

    def _on_goal(self, msg: PoseStamped, info: dict[str, int]) -> None:
        self.goals.setdefault(_stamp(msg), info["received_timestamp"])

    def _on_decision(self, msg: DiagnosticStatus) -> None:
        self.decisions.append(status_values(msg))

    def _on_status(self, msg: DiagnosticStatus) -> None:
        """Begin the next episode where one has taken all views that are not near one taken."""
        if status_values(msg)["state"] == "DONE":
            self._reset.call_async(Trigger.Request())

    def _on_diagnostics(self, msg: DiagnosticArray) -> None:
        self.updates.extend(
            (_stamp(msg), status_values(status))
            for status in msg.status
            if status.name == "surface_mapper"
        )


def loop_rows(
    rate_hz: float,
    duration_s: float,
    *,
    warm_up_s: float = 10.0,
    objective: str = "IOA",
    num_beams: int = 121,
) -> dict[str, Any]:
    """Run camera, mapper and planner at full load and measure the loop.

    The camera scans at `rate_hz` and stands at the newest goal whenever it scans, so that every
    scan completes a view; the mapper maps every scan (`integrate: always`) and the planner decides
    after every surface that shows it a view. An episode ends when all candidates are near a view
    taken; the next one begins at once.

    * scan -> surface: from the stamp of a scan, which the camera sets before it casts the beams, to
      the reception of the first surface whose stamp says that it holds that scan; for every scan.
    * scan -> goal: from the stamp of the newest scan in the surface of a decision to the reception
      of the goal; for every decision.
    * scan in -> goal: the same from the reception of that scan, which the camera has then cast and
      sent; the waiting time of a robot with its own sensor.

    All are measured in a fourth process on the same machine, with the clock that sets the stamps.
    Four times a second that process also makes one of the calls of :class:`CallProbe`.

    The warm-up counts from the second goal.

    Returns:
        Counts, latencies in milliseconds (median, 99th percentile, greatest), milliseconds of the
        update (one a second) and of the decision alone, milliseconds from each kind of call to its
        answer, the mapper's drops, and by node the processor time (fraction of a core, and
        milliseconds per scan) and the resident memory in MB at the start and the end with its slope
        in MB per minute. `mapped` is the fraction of the scans that the mapper has counted; it
        differs from 1 by those that waited when it was asked, and by those lost.

    Raises:
        NbvPlannerError: a node ended, or no goal came.
    """
    domain = free_domain_id()
    with tempfile.TemporaryDirectory() as folder, separate_context(domain):
        file = Path(folder) / "parameters.yaml"
        file.write_text(
            dump_parameters(_parameters(rate_hz, objective, num_beams)), encoding="utf-8"
        )
        with NodeProcesses(file, Path(folder) / "logs", isolated_environment(domain)) as nodes:
            probe = LoopProbe()
            usage = _run(probe, nodes, warm_up_s, duration_s)
            figures = _loop_figures(probe)
            for used in usage.values():
                used["cpu_ms_per_scan"] = round(
                    1e3 * used["cores"] * duration_s / figures["scans"], 3
                )
            return {"rate_hz": rate_hz, "duration_s": duration_s, **figures, "nodes": usage}


def _parameters(rate_hz: float, objective: str, num_beams: int) -> dict[str, dict[str, Any]]:
    """Parameters of an endless loop."""
    return {
        "depth_camera": {
            "scan_rate": float(rate_hz),
            "num_beams": num_beams,
            "angular_speed": _ANGULAR_SPEED,
        },
        "surface_mapper": {"integrate": "always", "robust": False, "settle_time": 0.0},
        "nbv_planner": {
            "wait_for_start": False,
            "settle_time": 0.0,
            "objective": objective,
            "certify": False,
            "max_views": 0,
            "stall_views": 0,
            "band_tolerance": 1e-9,
            "max_duration": 0.0,
            "goal_subscribers": 3,
        },
    }


def _run(
    probe: LoopProbe, nodes: NodeProcesses, warm_up_s: float, duration_s: float
) -> dict[str, dict[str, float]]:
    """Spin for the warm-up, and then for the measured time; returns the usage in it."""
    executor = SingleThreadedExecutor()
    executor.add_node(probe)
    give_up = time.monotonic() + _PATIENCE
    while len(probe.goals) < 2:
        executor.spin_once(timeout_sec=0.1)
        nodes.check()
        if time.monotonic() > give_up:
            raise NbvPlannerError(f"the nodes sent {len(probe.goals)} goals within {_PATIENCE:g} s")
    _spin(executor, nodes, warm_up_s, {})
    probe.forget()
    usages = {name: ProcessUsage(pid) for name, pid in nodes.pids.items()}
    _spin(executor, nodes, duration_s, usages)
    return {name: usage.figures() for name, usage in usages.items()}


def _spin(
    executor: SingleThreadedExecutor,
    nodes: NodeProcesses,
    seconds: float,
    usages: dict[str, ProcessUsage],
) -> None:
    """Spin for some time, and sample the usage of the nodes every second."""
    end, look = time.monotonic() + seconds, 0.0
    while (now := time.monotonic()) < end:
        if now >= look:
            look = now + 1.0
            nodes.check()
            for usage in usages.values():
                usage.sample()
        executor.spin_once(timeout_sec=min(0.1, end - now))


def _loop_figures(probe: LoopProbe) -> dict[str, Any]:
    """Counts and latencies recorded by the probe."""
    if not probe.surfaces or not probe.decisions:
        raise NbvPlannerError(
            f"{len(probe.surfaces)} surfaces and {len(probe.decisions)} decisions received"
        )
    stamps, received = (
        np.array(column, dtype=np.int64) for column in zip(*sorted(probe.surfaces), strict=True)
    )
    scans = np.array([stamp for stamp in probe.scans if stamp <= stamps[-1]], dtype=np.int64)
    to_surface = received[np.searchsorted(stamps, scans)] - scans
    goals = [
        (int(decision["surface_stamp"]), probe.goals[int(decision["goal_stamp"])])
        for decision in probe.decisions
        if int(decision["goal_stamp"]) in probe.goals
    ]
    last = probe.updates[-1][1] if probe.updates else {}
    return {
        "scans": len(scans),
        "mapped": _mapped_fraction(probe),
        "surfaces": len(stamps),
        "goals": len(goals),
        "scan_to_surface_ms": _summary(to_surface * 1e-6),
        "scan_to_goal_ms": _summary([(came - stamp) * 1e-6 for stamp, came in goals]),
        "scan_in_to_goal_ms": _summary(
            [
                (came - probe.received_at[stamp]) * 1e-6
                for stamp, came in goals
                if stamp in probe.received_at
            ]
        ),
        "update_ms": _summary(
            [float(values["update_milliseconds"]) for _, values in probe.updates]
        ),
        "decision_ms": _summary(
            [float(values["planning_milliseconds"]) for values in probe.decisions]
        ),
        "call_ms": _call_figures(probe.operator),
        "measurements": int(last.get("measurements", 0)),
        "dropped_scans": {
            key: int(number) for key, number in last.items() if key.startswith("dropped.scan")
        },
    }


def _call_figures(operator: CallProbe) -> dict[str, Any]:
    """Times of the answers, of all calls and by kind, and the number of calls without one (yet)."""
    took = {name: call.milliseconds for name, call in operator.calls.items()}
    everything = [value for values in took.values() for value in values]
    kinds = {name: _summary(values) for name, values in took.items()}
    return {"unanswered": operator.sent - len(everything), "all": _summary(everything), **kinds}


def _mapped_fraction(probe: LoopProbe) -> float:
    """Scans mapped between the first and the last diagnostics as fraction of those taken between
    them.
    """
    if len(probe.updates) < 2:
        return float("nan")
    (begin, first), (end, last) = probe.updates[0], probe.updates[-1]
    taken = sum(begin < stamp <= end for stamp in probe.scans)
    return round((int(last["scans"]) - int(first["scans"])) / max(taken, 1), 4)


def _summary(values: Sequence[float] | np.ndarray) -> dict[str, float]:
    if len(values) == 0:
        return {}
    median, p99, greatest = np.percentile(values, [50.0, 99.0, 100.0])
    return {
        "median": round(float(median), 3),
        "p99": round(float(p99), 3),
        "max": round(float(greatest), 3),
    }


def _stamp(msg: PoseStamped | LaserScan | PointCloud2 | DiagnosticArray) -> int:
    return to_nanoseconds(msg.header.stamp)


def loop_row(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Values of :func:`loop_rows`, nested ones under dotted names, such as `scan_to_goal_ms.p99`.

    Further, for each node, `nodes.<name>.rss_growth_mb` from start to end.
    """
    row = dict(_flat(figures, ""))
    for node, usage in figures["nodes"].items():
        row[f"nodes.{node}.rss_growth_mb"] = usage["rss_end_mb"] - usage["rss_start_mb"]
    return row


def _flat(figures: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield (
                prefix + key,
                (None if isinstance(value, float) and not math.isfinite(value) else value),
            )
