"""The runner of the nodes: domains of their own, nodes that are started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels")

from nbv_planner.errors import NbvPlannerError
from nbv_planner.ros import runner
from nbv_planner.ros.runner import NodeProcesses, free_domain_id, isolated_environment

ASK = "from nbv_planner.ros import runner; runner._DOMAINS = range({0}, {0} + 1); print(runner.free_domain_id())"


def asked_by_another_process(domain: int) -> str:
    found = subprocess.run(
        [sys.executable, "-c", ASK.format(domain)], capture_output=True, text=True, check=False, env=os.environ
    )
    return found.stdout.strip() or found.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the reservation is Linux's")
def test_a_domain_that_has_been_given_out_is_not_given_out_again_before_its_nodes_are_up(monkeypatch):
    domain = free_domain_id()
    assert "no free ROS domain id" in asked_by_another_process(domain)
    monkeypatch.setattr(runner, "_DOMAINS", range(domain, domain + 1))
    with pytest.raises(NbvPlannerError, match="no free ROS domain id"):
        free_domain_id()
    runner._release()
    assert asked_by_another_process(domain) == str(domain)


def test_a_killed_node_is_started_again_and_one_that_refuses_is_not(tmp_path):
    file = tmp_path / "parameters.yaml"
    file.write_text("surface_mapper: {ros__parameters: {grid_size: 50}}\n")
    nodes = NodeProcesses(file, tmp_path, isolated_environment(free_domain_id()), respawn=True)
    nodes.start("surface_mapper")
    try:
        first = nodes.pids["surface_mapper"]
        nodes.signal("surface_mapper", signal.SIGKILL)
        wait_until(lambda: nodes.check() or nodes.restarts["surface_mapper"])
        assert nodes.pids["surface_mapper"] != first
        file.write_text("surface_mapper: {ros__parameters: {grid_size: 1}}\n")
        nodes.signal("surface_mapper", signal.SIGKILL)
        with pytest.raises(NbvPlannerError, match="exit code 2: error: surface_mapper: grid_size"):
            wait_until(nodes.check)
        assert nodes.restarts == {"surface_mapper": 2}
    finally:
        nodes.stop()


def wait_until(condition) -> None:
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
