"""The kit in one command: the robot in MuJoCo, surface_mapper and nbv_planner as processes over
DDS, and a judge.

The judge alone knows the truth: the outline of the object, measured by rays in the simulation.
Robot, mapper and planner get nothing from it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor

from nbv_planner.cli.options import positive_number, whole_number
from nbv_planner.cli.output import EXIT_CODES, finish, print_header, print_view, say, stopped
from nbv_planner.episode.judge import EpisodeJudge
from nbv_planner.episode.messages import status_values
from nbv_planner.episode.parameter_files import values_for
from nbv_planner.episode.parameters import NODE_SETTINGS, EpisodeConfig, config_from_parameters
from nbv_planner.episode.records import Step
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import NbvPlannerError, install_hint
from nbv_planner.files.results_folder import ResultsFolder, fresh_folder
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.ros.core.running import separate_context
from nbv_planner.ros.node_processes import free_domain_id, isolated_environment
from nbv_planner.ros.watched_episode import EpisodeMonitor
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.system import held_signals, python_command

try:
    import mujoco
    from robot import Machine
except ImportError as error:
    sys.exit(f"cannot import {error.name}: {install_hint('ros,analysis,mujoco')}")

HERE = Path(__file__).resolve().parent
PARAMETERS, WORLD = HERE / "params.yaml", HERE / "world.xml"
OBJECT_GROUP, LIDAR_HEIGHT = 1, 0.34
PATIENCE = 60.0  # seconds without news, after which the run is given up
STRONGER = ((signal.SIGINT, 10.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


def outline(world: Path, count: int = 3600) -> np.ndarray:
    """Outline of the object at the height of the lidar, shape (count, 2): angle (radians) and
    radius (metres).

    Rays from outside to the centre, which meet the object alone: where a star-shaped object ends.
    """
    machine, far = Machine(world), 10.0
    groups = np.array([number == OBJECT_GROUP for number in range(6)], dtype=np.uint8)
    angle, geom = np.arange(count) * (2.0 * np.pi / count), np.zeros(1, dtype=np.int32)
    radius = []
    for direction in np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1):
        start = far * direction + [0.0, 0.0, LIDAR_HEIGHT]
        radius.append(
            far - mujoco.mj_ray(machine.model, machine.data, start, -direction, groups, 1, -1, geom)
        )
    return np.stack([angle, radius], axis=1)


def configuration(contour: Path) -> EpisodeConfig:
    """The parameters of the nodes, and the true object, as the package's tools take them."""
    parameters = {node: values_for(PARAMETERS, node) for node in NODE_SETTINGS}
    return config_from_parameters(parameters, object=f"file:{contour}", protocol="sensor")


@contextlib.contextmanager
def processes(
    domain: int, logs: Path, arguments: argparse.Namespace
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """The robot and the two nodes, each with a log file; ended by ever stronger signals."""
    words = ["--ros-args", "--params-file", str(PARAMETERS)]
    settings = [f"speedup:={arguments.speedup}", f"seed:={arguments.seed}"]
    node = python_command("nbv_planner.ros.executables")
    commands = {
        "robot": [
            sys.executable,
            str(HERE / "robot.py"),
            *words,
            *(word for one in settings for word in ("-p", one)),
        ],
        "surface_mapper": [*node, "surface_mapper", *words],
        "nbv_planner": [*node, "nbv_planner", *words],
    }
    logs.mkdir()
    environment = {**isolated_environment(domain), "ROS_LOG_DIR": str(logs)}
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in commands.items():
            # a session of its own: Ctrl-C is for this process
            with (logs / f"{name}.log").open("wb") as log:
                running[name] = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        yield running
    finally:
        for kind, patience in STRONGER:
            left = [process for process in running.values() if process.poll() is None]
            for process in left:
                process.send_signal(kind)
            for process in left:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(patience)


class Monitor(EpisodeMonitor):
    """Follows the episode, and what the robot says of itself."""

    def __init__(
        self, config: EpisodeConfig, took: Callable[[Step, CoverageEstimate | None], None]
    ) -> None:
        super().__init__(config.scene, config.measurement, took=took)
        self.robot: dict[str, str] = {}
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_report, 10)

    def _on_report(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            if status.name == "mujoco_robot":
                self.robot = status_values(status)


def follow(
    monitor: Monitor,
    executor: SingleThreadedExecutor,
    running: dict[str, subprocess.Popen[bytes]],
    judge: EpisodeJudge,
    came: list[int],
) -> Termination:
    """Spin until the planner is done, a signal comes, a process ends or all is silent."""
    heard, heard_at = None, time.monotonic()
    while not monitor.complete and not came:
        executor.spin_once(timeout_sec=0.2)
        monitor.start_when_ready()
        monitor.pass_on(monitor.views)
        for name, process in running.items():
            if process.poll() is not None:
                return Termination(
                    TerminationReason.FAILED,
                    {},
                    f"{name} ended with exit code {process.returncode}",
                )
        news = (monitor.state, len(monitor.steps))
        if news != heard:
            heard, heard_at = news, time.monotonic()
        if time.monotonic() - heard_at > PATIENCE:
            return Termination(
                TerminationReason.FAILED,
                {},
                f"silent for {PATIENCE:.0f} s; last: {monitor.state[1]}",
            )
    monitor.pass_on(monitor.known)
    return monitor.termination or stopped(judge, came)


def run(arguments: argparse.Namespace, came: list[int]) -> int:
    """Run the episode; returns the exit code, 0 for a success."""
    path = arguments.out or fresh_folder("results", "mujoco")
    with ResultsFolder(path, force=arguments.force) as results:
        contour = Path(f"{results.path}_outline.csv")
        np.savetxt(contour, outline(WORLD), delimiter=",", header="phi,r", comments="", fmt="%.9f")
        config = configuration(contour)
        judge, domain = Simulation(config).judge, arguments.domain
        with (
            processes(domain, results.folder / "logs", arguments) as running,
            separate_context(domain) as executor,
        ):

            def took(step: Step, estimate: CoverageEstimate | None) -> None:
                """Judge and print a view."""
                judge.add(step)
                print_view(judge, config, estimate)

            monitor = Monitor(config, took)
            executor.add_node(monitor)
            ids = ", ".join(f"{name} {process.pid}" for name, process in running.items())
            say(
                f"three processes on ROS domain {domain}: {ids}; nbv-planner view --web --domain"
                f" {domain} shows them"
            )
            print_header(config)
            termination = follow(monitor, executor, running, judge, came)
        finish(results, config, judge, termination, figures=arguments.figures)
    if judge.views:
        last = judge.views[-1]
        say(
            f"against the simulated geometry: rmse {1e3 * last.rmse:.1f} mm, intersection over"
            f" union {last.iou:.1%}, band holds {last.band_coverage:.1%} of the outline"
        )
    if monitor.robot:
        said = {key: float(value) for key, value in monitor.robot.items()}
        say(
            f"robot: {said['driven']:.1f} m in {said['time']:.0f} s of the simulation, "
            f"{said['collisions']:.0f} steps in contact with anything but the floor"
        )
    return 128 + came[0] if came else EXIT_CODES.get(termination.reason, 0)


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", metavar="FOLDER", help="results folder (default: a new one in results/)"
    )
    parser.add_argument("--force", action="store_true", help="replace the results folder")
    parser.add_argument(
        "--speedup",
        type=positive_number,
        default=5.0,
        metavar="N",
        help="seconds of the simulation in one second (default: 5)",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="of the noise of the ranges (default: 0)",
    )
    parser.add_argument(
        "--domain",
        type=whole_number(0, 232),
        metavar="ID",
        help="ROS domain on this machine (default: a free one)",
    )
    parser.add_argument(
        "--no-figures", dest="figures", action="store_false", help="draw no pictures"
    )
    arguments = parser.parse_args()
    try:
        with held_signals() as came:
            arguments.domain = free_domain_id() if arguments.domain is None else arguments.domain
            os.environ.update(isolated_environment(arguments.domain))
            code = run(arguments, came)
            came.clear()
            return code
    except NbvPlannerError as error:
        say(f"error: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
