"""Three real processes over DDS: a whole episode, the same after a reset and without ROS, and hard
to stop.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from episodes import end_of
from ros_world import PATIENCE, World
from three_nodes import PARAMETERS, ThreeNodes, simulated_episode, views

from nbv_planner.cli.main import main
from nbv_planner.episode.messages import status_values
from nbv_planner.episode.parameter_files import dump_parameters, shared_file
from nbv_planner.episode.parameters import config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import NbvPlannerError
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.running import separate_context
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
from nbv_planner.volume.volume_surface import VolumeSurface


@pytest.mark.slow
def test_processes_and_simulation_average_the_same_scans_of_a_view(ros_environment, tmp_path):
    parameters = {
        **PARAMETERS,
        "surface_mapper": {**PARAMETERS["surface_mapper"], "scans_per_view": 3},
        "nbv_planner": {**PARAMETERS["nbv_planner"], "max_views": 3},
    }
    with ThreeNodes(tmp_path, parameters) as nodes:
        theirs, run = simulated_episode(nodes.config), nodes.episode()
    assert views(run) == views(theirs)
    for ours, other in zip(run.steps, theirs.steps, strict=True):
        assert ours.objective_value == pytest.approx(other.objective_value, rel=1e-9)
        assert ours.belief.mean.tolist() == pytest.approx(other.belief.mean.tolist(), abs=1e-6)


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
    with ThreeNodes(tmp_path, parameters) as nodes:
        theirs, run = simulated_episode(nodes.config), nodes.episode()
    assert run.termination.reason is theirs.termination.reason is TerminationReason.COVERED, (
        run.termination
    )
    for ours, other in zip(run.steps, theirs.steps, strict=True):
        assert ours.view.distance == pytest.approx(other.view.distance, abs=1e-6)
        mine, its = ((step.view.view_angle, step.view.turn) for step in (ours, other))
        assert mine == pytest.approx(its, abs=1e-6)
    assert len({round(step.view.distance, 6) for step in run.steps}) > 1


def test_a_killed_node_is_reported_by_name(tmp_path):
    parameter_file = tmp_path / "parameters.yaml"
    parameter_file.write_text(dump_parameters(PARAMETERS), encoding="utf-8")
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
    config = config_from_parameters(parameters, object=object, protocol="sensor")
    expected = simulated_episode(config)
    beliefs = [step.belief for step in expected.steps]
    assert isinstance(beliefs[-1], VolumeSurface) == (object == "chair")
    assert views(in_one_process(parameters, object)) == views(expected)


def in_one_process(parameters: dict, object: str) -> EpisodeMonitor:
    """An episode of the three nodes in this process, followed to its end."""
    config = config_from_parameters(parameters, object=object, protocol="sensor")
    with World() as world, separate_context(world.domain) as executor:
        for cls, name in zip((DepthCamera, SurfaceMapperNode, NbvPlannerNode), NODES, strict=True):
            world.start(cls, **parameters[name])
        monitor = EpisodeMonitor(config.scene, config.measurement, config.world.placed)
        executor.add_node(monitor)

        def ended() -> bool:
            executor.spin_once(timeout_sec=0.0)
            monitor.start_when_ready()
            return monitor.complete

        world.spin_until(ended, "the end of the episode")
    return monitor


def test_an_unknown_scene_is_found_by_the_nodes_as_by_the_simulation(tmp_path, capfd):
    (tmp_path / "world.yaml").write_text("object: {x: 4.0, y: -6.0}\n", encoding="utf-8")
    there = {"object": "ellipse:a=5,b=3", "world_file": str(tmp_path / "world.yaml")}
    parameters = {
        **PARAMETERS,
        "depth_camera": {**PARAMETERS["depth_camera"], **there, "outlier_probability": 0.0},
        "surface_mapper": {**PARAMETERS["surface_mapper"], "scene": "unknown", "rough_radius": 8.0},
    }
    simulation = Simulation(
        config_from_parameters(parameters, object=there["object"], protocol="sensor")
    )
    end_of(simulation)
    assert simulation.approaches
    run, theirs = in_one_process(parameters, there["object"]), simulation.judge.steps
    assert len(run.steps) == 5
    assert views(run) == pytest.approx([step.view.view_angle for step in theirs], abs=1e-6)
    assert [step.view.distance for step in run.steps] == pytest.approx(
        [s.view.distance for s in theirs], abs=1e-6
    )
    for ours, other in zip(run.steps, theirs, strict=True):
        assert ours.belief.centre == pytest.approx(other.belief.centre, abs=1e-6)
        assert ours.belief.mean.tolist() == pytest.approx(other.belief.mean.tolist(), abs=1e-5)
    assert "the object is around x" in capfd.readouterr().err


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
