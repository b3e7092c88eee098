"""Three real processes over DDS: a whole episode, twice the same, the same as without ROS, and hard
to stop.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from episodes import end_of
from rclpy.executors import SingleThreadedExecutor
from ros_world import PATIENCE, World

from nbv_planner.cli.main import main
from nbv_planner.episode.messages import status_values
from nbv_planner.episode.parameter_files import dump_parameters, load_parameters, shared_file
from nbv_planner.episode.parameters import EpisodeConfig, config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import NbvPlannerError
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.ros.core import qos
from nbv_planner.ros.node_processes import (
    NODES,
    NodeProcesses,
    free_domain_id,
    isolated_environment,
)
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.ros.watched_episode import EpisodeMonitor
from nbv_planner.star2d.measurements import polar
from nbv_planner.volume.volume_surface import VolumeSurface

PARAMETERS = {
    "depth_camera": {
        "object": "polygon:star",
        "seed": 7,
        "num_beams": 61,
        "scan_rate": 20.0,
        "dropout_probability": 0.05,
        "outlier_probability": 0.02,
        "initial_view_angle": 1.0,
    },
    # As in a simulation: by default a robot stands for a while, and a view has more scans.
    "surface_mapper": {"grid_size": 300, "settle_time": 0.0, "scans_per_view": 1},
    # The monitor starts it once it hears all nodes.
    "nbv_planner": {
        "wait_for_start": True,
        "settle_time": 0.0,
        "objective": "U",
        "certify": False,
        "num_views": 60,
        "max_views": 5,
        "stall_views": 0,
        "travel_weight": 0.01,
    },
}


@pytest.fixture(scope="module")
def parameter_file(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("parameters") / "parameters.yaml"
    file.write_text(dump_parameters(PARAMETERS), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def config(parameter_file) -> EpisodeConfig:
    parameters = load_parameters(parameter_file)
    return config_from_parameters(
        parameters, object=PARAMETERS["depth_camera"]["object"], protocol="sensor"
    )


@pytest.fixture(scope="module")
def simulated(config):
    """The same episode in this process, without ROS."""
    return simulated_episode(config)


def simulated_episode(config: EpisodeConfig) -> SimpleNamespace:
    simulation = Simulation(config)
    ended = end_of(simulation)
    return SimpleNamespace(steps=simulation.judge.steps, termination=ended)


class Following:
    """Three node processes, a monitor, and a publisher of nonsense, on a domain of their own."""

    def __init__(self, config: EpisodeConfig, parameter_file: Path, logs: Path) -> None:
        self.logs = logs
        domain = free_domain_id()
        rclpy.init(
            args=[], domain_id=domain, signal_handler_options=rclpy.signals.SignalHandlerOptions.NO
        )
        self.monitor = EpisodeMonitor(config.scene, config.measurement, config.world.placed)
        self.peer = rclpy.create_node("peer")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.monitor)
        self.executor.add_node(self.peer)
        self.nodes = NodeProcesses(parameter_file, logs, isolated_environment(domain))

    def spin_until(
        self, condition: Callable[[], object], what: str, *, patience: float = PATIENCE
    ) -> None:
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}; {self.monitor.state}"
            self.executor.spin_once(timeout_sec=0.05)
            self.monitor.start_when_ready()

    def codes(self) -> dict[str, int | None]:
        return {name: process.poll() for name, process in self.nodes._processes.items()}


@contextlib.contextmanager
def following(config: EpisodeConfig, parameter_file: Path, logs: Path) -> Iterator[Following]:
    run = Following(config, parameter_file, logs)
    try:
        with run.nodes:
            yield run
    finally:
        run.executor.shutdown(timeout_sec=1.0)
        rclpy.try_shutdown()


def whole_episode(config: EpisodeConfig, parameter_file: Path, logs: Path) -> SimpleNamespace:
    with following(config, parameter_file, logs) as run:
        run.spin_until(lambda: run.nodes.check() or run.monitor.complete, "the end of the episode")
        pids, still_running = run.nodes.pids, run.codes()
    return SimpleNamespace(
        steps=run.monitor.steps,
        termination=run.monitor.termination,
        pids=pids,
        still_running=still_running,
        codes=run.codes(),
        logs=logs,
    )


@pytest.fixture(scope="module")
def episode(ros_environment, config, parameter_file, tmp_path_factory) -> SimpleNamespace:
    return whole_episode(config, parameter_file, tmp_path_factory.mktemp("episode"))


def views(episode) -> list[float]:
    return [step.view.view_angle for step in episode.steps]


def test_three_processes_complete_an_episode(episode):
    assert len(set(episode.pids.values()) | {os.getpid()}) == 4
    assert set(episode.pids) == {"depth_camera", "surface_mapper", "nbv_planner"}
    assert episode.still_running == dict.fromkeys(NODES)
    assert episode.termination.reason is TerminationReason.MAX_VIEWS
    assert episode.termination.figures == {"views": 5.0}
    assert len(episode.steps) == 5
    assert all(len(step.hits) > 20 for step in episode.steps)


def last_words(logs: Path) -> dict[str, str]:
    return {name: (logs / f"{name}.log").read_text()[-2000:] for name in NODES}


def test_the_processes_end_cleanly_and_say_nothing_on_stderr_but_the_log(episode):
    assert episode.codes == dict.fromkeys(NODES, 0), last_words(episode.logs)
    for name in NODES:
        assert "Traceback" not in (episode.logs / f"{name}.log").read_text()


def test_processes_and_simulation_take_the_same_decisions_for_the_same_seed(episode, simulated):
    assert views(episode) == views(simulated)
    assert episode.termination.reason is simulated.termination.reason
    assert episode.termination.figures == simulated.termination.figures
    for ours, theirs in zip(episode.steps, simulated.steps, strict=True):
        assert ours.objective_value == pytest.approx(theirs.objective_value, rel=1e-9)
        assert len(ours.hits) == len(theirs.hits)
        assert polar(ours.hits).radius.tolist() == pytest.approx(
            polar(theirs.hits).radius.tolist(), abs=1e-9
        )
        assert ours.belief.mean.tolist() == pytest.approx(theirs.belief.mean.tolist(), abs=1e-6)


@pytest.mark.slow
def test_processes_and_simulation_average_the_same_scans_of_a_view(ros_environment, tmp_path):
    parameters = {
        **PARAMETERS,
        "surface_mapper": {**PARAMETERS["surface_mapper"], "scans_per_view": 3},
        "nbv_planner": {**PARAMETERS["nbv_planner"], "max_views": 3},
    }
    file = tmp_path / "dwelling.yaml"
    file.write_text(dump_parameters(parameters), encoding="utf-8")
    config = config_from_parameters(load_parameters(file), object="polygon:star", protocol="sensor")
    theirs, run = simulated_episode(config), whole_episode(config, file, tmp_path)
    assert views(run) == views(theirs)
    for ours, other in zip(run.steps, theirs.steps, strict=True):
        assert ours.objective_value == pytest.approx(other.objective_value, rel=1e-9)
        assert ours.belief.mean.tolist() == pytest.approx(other.belief.mean.tolist(), abs=1e-6)


@pytest.mark.slow
def test_an_unknown_scene_is_found_by_the_processes_as_by_the_simulation(ros_environment, tmp_path):
    (tmp_path / "world.yaml").write_text("object: {x: 4.0, y: -6.0}\n", encoding="utf-8")
    there = {"object": "ellipse:a=5,b=3", "world_file": str(tmp_path / "world.yaml")}
    parameters = {
        **PARAMETERS,
        "depth_camera": {**PARAMETERS["depth_camera"], **there, "outlier_probability": 0.0},
        "surface_mapper": {**PARAMETERS["surface_mapper"], "scene": "unknown", "rough_radius": 8.0},
    }
    file = tmp_path / "unknown.yaml"
    file.write_text(dump_parameters(parameters), encoding="utf-8")
    config = config_from_parameters(
        load_parameters(file), object=there["object"], protocol="sensor"
    )
    simulation = Simulation(config)
    end_of(simulation)
    assert simulation.approaches
    run = whole_episode(config, file, tmp_path)
    assert len(run.steps) == 5
    theirs = simulation.judge.steps
    assert views(run) == pytest.approx([step.view.view_angle for step in theirs], abs=1e-6)
    assert [step.view.distance for step in run.steps] == pytest.approx(
        [s.view.distance for s in theirs], abs=1e-6
    )
    for ours, other in zip(run.steps, theirs, strict=True):
        assert ours.belief.centre == pytest.approx(other.belief.centre, abs=1e-6)
        assert ours.belief.mean.tolist() == pytest.approx(other.belief.mean.tolist(), abs=1e-5)
    assert "the object is around x" in (tmp_path / "surface_mapper.log").read_text()


@pytest.mark.slow
def test_from_poses_of_a_file_the_processes_cover_the_object_as_the_simulation_does(
    ros_environment, tmp_path
):
    poses = tmp_path / "poses.csv"
    places = [(10.0 + 2.5 * (n % 2), a) for n, a in enumerate(np.radians(range(0, 360, 5)))]
    rows = [f"{r * math.cos(a)},{r * math.sin(a)},{a + math.pi}" for r, a in places]
    poses.write_text("\n".join(["x,y,yaw", *rows]), encoding="utf-8")
    parameters = {
        "depth_camera": {
            "object": "ellipse:a=6,b=4",
            "seed": 3,
            "num_beams": 61,
            "scan_rate": 20.0,
        },
        "surface_mapper": PARAMETERS["surface_mapper"],
        "nbv_planner": {
            "wait_for_start": True,
            "settle_time": 0.0,
            "view_space": "file",
            "view_file": str(poses),
            "max_views": 15,
            "deadline": 60.0,
        },
    }
    file = tmp_path / "poses.yaml"
    file.write_text(dump_parameters(parameters), encoding="utf-8")
    config = config_from_parameters(
        load_parameters(file), object="ellipse:a=6,b=4", protocol="sensor"
    )
    theirs = simulated_episode(config)
    run = whole_episode(config, file, tmp_path)
    assert run.termination.reason is theirs.termination.reason is TerminationReason.COVERED, (
        run.termination
    )
    for ours, other in zip(run.steps, theirs.steps, strict=True):
        assert ours.view.distance == pytest.approx(other.view.distance, abs=1e-6)
        mine, its = ((step.view.view_angle, step.view.turn) for step in (ours, other))
        assert mine == pytest.approx(its, abs=1e-6)
    assert len({round(step.view.distance, 6) for step in run.steps}) > 1
    assert run.codes == dict.fromkeys(NODES, 0), last_words(run.logs)


def test_a_killed_node_is_reported_by_name(parameter_file, tmp_path):
    with NodeProcesses(parameter_file, tmp_path, isolated_environment(free_domain_id())) as nodes:
        nodes.check()
        for name in reversed(NODES):  # the first of those that have ended is reported
            os.kill(nodes.pids[name], signal.SIGKILL)
            nodes._processes[name].wait(PATIENCE)
            with pytest.raises(NbvPlannerError, match=rf"^node {name} ended with exit code -9: "):
                nodes.check()
    assert all(process.poll() is not None for process in nodes._processes.values())


def test_a_node_that_refuses_its_parameters_is_reported_with_its_last_words(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("surface_mapper:\n  ros__parameters:\n    length_scale: -1.0\n")
    nodes = NodeProcesses(file, tmp_path, isolated_environment(free_domain_id()))
    nodes.start("surface_mapper")
    try:
        nodes._processes["surface_mapper"].wait(PATIENCE)
        with pytest.raises(
            NbvPlannerError,
            match=r"node surface_mapper ended with exit code 2: error: surface_mapper: "
            r"length_scale: -1\.0 is out of range; must be",
        ):
            nodes.check()
    finally:
        nodes.stop()


def test_every_node_ends_with_code_0_and_without_complaint_on_sigterm(world, tmp_path):
    """By SIGINT the episodes above are ended."""
    environment = {**isolated_environment(world.domain), "ROS_LOG_DIR": str(tmp_path)}
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-m", "nbv_planner.ros.executables", name],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for name in NODES
    }
    try:
        # /diagnostics of each: its executor spins.
        world.spin_until(
            lambda: {status.name for _, status in world._diagnoses} >= set(NODES), "the nodes"
        )
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        for name, process in processes.items():
            said = process.communicate(timeout=PATIENCE)[1]
            assert process.returncode == 0, (name, said)
            assert "Traceback" not in said
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("changes", "object"),
    [
        ({}, "polygon:star"),
        ({"planner": "rollout", "deadline": 60.0}, "polygon:star"),
        ({"objective": "EMC"}, "polygon:star"),
        ({"planner": "hybrid", "deadline": 60.0}, "polygon:star"),
        # the radius is given up for cells after the second view
        ({"objective": "EMC"}, "chair"),
    ],
)
def test_three_nodes_in_one_process_take_the_same_decisions_too(changes, object):
    parameters = {
        **PARAMETERS,
        "depth_camera": {**PARAMETERS["depth_camera"], "object": object},
        "nbv_planner": {**PARAMETERS["nbv_planner"], **changes},
    }
    expected = simulated_episode(
        config_from_parameters(parameters, object=object, protocol="sensor")
    )
    beliefs = [step.belief for step in expected.steps]
    assert isinstance(beliefs[-1], VolumeSurface) == (object == "chair")
    with World() as world:
        iterations = world.listen(DiagnosticStatus, "nbv_planner/iteration", qos.latched(100))
        statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        for cls, name in zip((DepthCamera, SurfaceMapperNode, NbvPlannerNode), NODES, strict=True):
            world.start(
                cls,
                **{
                    **parameters[name],
                    **({"wait_for_start": False} if name == "nbv_planner" else {}),
                },
            )
        world.spin_until(
            lambda: statuses and status_values(statuses[-1])["state"] == "DONE",
            "the end of the episode",
        )
        world.spin_until(lambda: len(iterations) == 5, "the decisions")
    angles = [float(status_values(msg)["view_angle"]) for msg in iterations]
    assert angles == views(expected)


@pytest.mark.parametrize("written", [False, True], ids=["robot.yaml", "init"])
def test_with_the_robots_file_an_episode_ends_as_its_comment_says(world, written, tmp_path):
    """Also with what `nbv-planner init` has written over it, without a change."""
    files, robot = [str(shared_file("config/robot.yaml"))], {}
    if written:
        files.append(str(tmp_path / "mine.yaml"))
        robot = {"radius_max": 0.4, "object": "ellipse:a=0.35,b=0.2"}
        assert main(["init", files[-1], "--for", "robot", "--radius-max", "0.4"]) == 0
    arguments = ["--ros-args", *(word for file in files for word in ("--params-file", file))]
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
    # A robot with a speed: what is learned of one that is everywhere at once are the delays of this
    # machine alone.
    world.start(DepthCamera, scan_rate=50.0, angular_speed=4.0, **robot)
    world.start(SurfaceMapperNode, cli_args=arguments)
    world.start(NbvPlannerNode, cli_args=arguments, wait_for_start=False)
    world.spin_until(
        lambda: statuses and status_values(statuses[-1])["state"] == "DONE",
        "the end of the episode",
        timeout=2 * PATIENCE,
    )
    values = status_values(statuses[-1])
    assert values["reason"] == "COVERED"
    assert min(float(values["coverage_probability"]), float(values["coverage_estimate"])) >= 0.95


# --- the runner's parts


def test_the_environment_is_passed_on_whole_with_a_domain_of_its_own(monkeypatch):
    monkeypatch.setenv("SOMETHING_OF_THE_WHEELS", "1")
    environment = isolated_environment(42)
    assert environment["SOMETHING_OF_THE_WHEELS"] == "1"
    assert (environment["ROS_DOMAIN_ID"], environment["ROS_AUTOMATIC_DISCOVERY_RANGE"]) == (
        "42",
        "LOCALHOST",
    )
