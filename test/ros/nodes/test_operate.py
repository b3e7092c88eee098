"""`nbv-planner episode start | stop | pause | skip | reset`: the services of a running planner,
without `ros2`.
"""

from __future__ import annotations

import threading

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from test_nbv_planner import ENDLESS, Robot

from nbv_planner.cli import operate
from nbv_planner.cli.main import main
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode


@pytest.fixture
def run(world, capsys):
    """Return what runs a command while the nodes of this process spin in another thread; gives its
    exit code and what it printed.
    """

    def in_this_process(*words: str) -> tuple[int, str, str]:
        ended = threading.Event()

        def spin() -> None:
            while not ended.is_set():
                world.executor.spin_once(timeout_sec=0.02)

        spinning = threading.Thread(target=spin)
        spinning.start()
        try:
            code = main([*words, "--domain", str(world.domain)])
        finally:
            ended.set()
            spinning.join()
        said = capsys.readouterr()
        return code, said.out.strip(), said.err.strip()

    return in_this_process


def test_a_planner_is_started_paused_skipped_and_reset(world, run):
    planner = world.start(NbvPlannerNode, **ENDLESS, wait_for_start=True)
    offered = {name for name, _ in planner.get_service_names_and_types_by_node("nbv_planner", "/")}
    assert {f"/nbv_planner/{name}" for name in operate.SERVICES.values()} <= offered
    robot = Robot(world, drives=False).begin()
    code, _, said = run("episode", "skip")
    assert (code, said) == (1, "no goal is under way")
    assert run("episode", "start") == (0, "started", "")
    robot.goal(1)
    assert run("episode", "pause") == (0, "PAUSED", "")
    assert run("episode", "reset") == (0, "episode reset", "")
    assert not planner.core.episode.started


def test_without_a_planner_the_service_and_the_running_nodes_are_named(run):
    code, _, said = run("episode", "start", "--wait", "4", "--namespace", "/arm")
    words = (
        "no node offers the service /arm/nbv_planner/start within 4 s (see --namespace, --domain)"
    )
    assert (code, said) == (2, f"nbv-planner episode start: error: {words}; running nodes: /peer")
