"""`nbv-planner episode start | stop | pause | skip | reset`: the services of a running planner,
without `ros2`.
"""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from test_nbv_planner import ENDLESS, Robot

from nbv_planner.cli import operate
from nbv_planner.ros.node_processes import isolated_environment
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.system import python_command


def run(world, *words: str) -> tuple[int, str, str]:
    """Run the command beside the nodes of this process; returns its exit code and what it
    printed.
    """
    command = [*python_command("nbv_planner.cli.main"), *words, "--domain", str(world.domain)]
    process = subprocess.Popen(
        command,
        env=isolated_environment(world.domain),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    world.spin_until(lambda: process.poll() is not None, f"the end of {words}")
    out, error = process.communicate()
    return process.returncode, out.strip(), error.strip()


def test_a_planner_is_started_paused_skipped_and_reset(world):
    planner = world.start(NbvPlannerNode, **ENDLESS, wait_for_start=True)
    offered = {name for name, _ in planner.get_service_names_and_types_by_node("nbv_planner", "/")}
    assert {f"/nbv_planner/{name}" for name in operate.SERVICES.values()} <= offered
    robot = Robot(world, drives=False).begin()
    code, _, said = run(world, "episode", "skip")
    assert (code, said) == (1, "no goal is under way")
    assert run(world, "episode", "start") == (0, "started", "")
    robot.goal(1)
    assert run(world, "episode", "pause") == (0, "PAUSED", "")
    assert run(world, "episode", "reset") == (0, "episode reset", "")
    assert not planner.core.episode.started


def test_without_a_planner_the_service_and_the_running_nodes_are_named(world):
    code, _, said = run(world, "episode", "start", "--wait", "10", "--namespace", "/arm")
    words = (
        "no node offers the service /arm/nbv_planner/start within 10 s (see --namespace, --domain)"
    )
    assert (code, said) == (2, f"nbv-planner episode start: error: {words}; running nodes: /peer")
