"""The runner of the nodes: domains of their own, nodes that are started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from ros_world import PATIENCE, World

from nbv_planner.errors import NbvPlannerError
from nbv_planner.ros import node_processes
from nbv_planner.ros.node_processes import NodeProcesses, free_domain_id, isolated_environment

ASK = (
    "from nbv_planner.ros import node_processes as here; here._DOMAINS = range({}, {} + 1); "
    "here._PARTICIPANT_PORTS = {!r}; print(here.free_domain_id())"
)


def asked_by_another_process(domain: int) -> str:
    asked = ASK.format(domain, domain, node_processes._PARTICIPANT_PORTS)
    found = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=False, env=os.environ
    )
    return found.stdout.strip() or found.stderr


@pytest.fixture
def domain(monkeypatch):
    """Return the only domain that may be given out here; no other test gets one above 101."""
    only = 102 + os.getpid() % 100
    monkeypatch.setattr(node_processes, "_DOMAINS", range(only, only + 1))
    # there any program may get more of them
    monkeypatch.setattr(node_processes, "_PARTICIPANT_PORTS", range(10, 14))
    yield only
    while node_processes._reserved:
        node_processes._reserved.pop().close()


@pytest.mark.skipif(sys.platform != "linux", reason="the reservation is Linux's")
def test_a_domain_that_has_been_given_out_is_not_given_out_again_before_its_nodes_are_up(domain):
    assert free_domain_id() == domain
    assert "no free ROS domain id" in asked_by_another_process(domain)
    with pytest.raises(NbvPlannerError, match="no free ROS domain id"):
        free_domain_id()
    node_processes._reserved.pop().close()
    assert asked_by_another_process(domain) == str(domain)


@pytest.mark.parametrize("offset", [10, 11, 13])  # of the first participant and the second, RTPS
def test_a_domain_in_use_is_not_given_out_and_is_not_kept_from_others(domain, offset):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as used:
        used.bind(("", 7400 + 250 * domain + offset))
        with pytest.raises(NbvPlannerError, match="no free ROS domain id"):
            free_domain_id()
    assert asked_by_another_process(domain) == str(domain)


def test_a_domain_where_another_process_has_its_second_participant_alone_is_in_use():
    with World(), World() as second:
        while node_processes._reserved:
            node_processes._reserved.pop().close()
        assert "no free ROS domain id" in asked_by_another_process(second.domain)


@pytest.mark.skipif(sys.platform != "linux", reason="the reservation is Linux's")
def test_ports_of_a_domain_that_is_reserved_are_not_touched(domain, monkeypatch):
    """Its nodes may be about to take them."""
    assert free_domain_id() == domain
    monkeypatch.setattr(node_processes, "_is_free", lambda port: pytest.fail("a port was tried"))
    with pytest.raises(NbvPlannerError, match="no free ROS domain id"):
        free_domain_id()


def test_a_killed_node_is_started_again_and_one_that_refuses_is_not(tmp_path):
    file = tmp_path / "parameters.yaml"
    file.write_text("surface_mapper: {ros__parameters: {grid_size: 50}}\n")
    nodes = NodeProcesses(file, tmp_path, isolated_environment(free_domain_id()), respawn=True)
    nodes.start("surface_mapper")
    try:
        first = nodes.pids["surface_mapper"]
        nodes.signal("surface_mapper", signal.SIGKILL)
        wait_until(lambda: nodes.check() or nodes.pids["surface_mapper"] != first)
        file.write_text("surface_mapper: {ros__parameters: {grid_size: 1}}\n")
        nodes.signal("surface_mapper", signal.SIGKILL)
        with pytest.raises(NbvPlannerError, match="exit code 2: error: surface_mapper: grid_size"):
            wait_until(nodes.check)
    finally:
        nodes.stop()


def wait_until(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
