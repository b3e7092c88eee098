"""The thread beside a node: results in order, once each, in the node's thread; errors come out; it
can be left.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from rclpy.node import Node
from ros_world import PATIENCE

from nbv_planner.ros.core.worker import Worker
from nbv_planner.ros.node_processes import free_domain_id, isolated_environment


class Working(Node):
    """A node with a worker."""

    def __init__(self, **kwargs):
        kwargs.pop("parameter_overrides")
        super().__init__("working", **kwargs)
        self.worker = Worker(self)

    def destroy_node(self):
        self.worker.stop()
        super().destroy_node()


def test_results_come_in_order_in_the_thread_that_spins(world):
    node, results = world.start(Working), []
    for number in range(300):
        node.worker.submit(
            lambda n=number: (n, threading.get_ident()),
            lambda result: results.append((*result, threading.get_ident())),
        )
    assert node.worker.pending == 300
    world.spin_until(lambda: node.worker.pending == 0, "all results")
    assert [number for number, _, _ in results] == list(range(300))
    here = threading.get_ident()
    assert {there for _, there, _ in results} != {here}
    assert {back for _, _, back in results} == {here}


def test_callbacks_that_submit_while_others_are_computed_lose_and_repeat_nothing(world):
    node, given, got = world.start(Working), [], []

    def tick():
        for _ in range(7):
            number = len(given)
            given.append(number)
            node.worker.submit(lambda n=number: sum(range(n % 50)) * 0 + n, receive)

    def receive(number):
        got.append(number)
        if number % 10 == 0:  # results may ask for more, too
            again = len(given)
            given.append(again)
            node.worker.submit(lambda n=again: n, got.append)

    timers = [node.create_timer(0.001, tick) for _ in range(3)]
    world.spin_until(lambda: len(given) > 2000, "the jobs")
    for timer in timers:
        timer.cancel()
    world.spin_until(lambda: node.worker.pending == 0, "all results")
    assert got == given == list(range(len(given)))


def test_an_error_comes_out_where_the_node_is_spun(world):
    node, got = world.start(Working), []
    node.worker.submit(lambda: 1 // 0, got.append)
    with pytest.raises(ZeroDivisionError):
        world.spin_until(lambda: False, "the error")
    node.worker.submit(lambda: "goes on", got.append)
    world.spin_until(lambda: got, "the next result")
    assert got == ["goes on"]


def test_a_node_may_be_destroyed_in_the_middle_of_a_computation(world):
    node, got, begun, release = world.start(Working), [], threading.Event(), threading.Event()

    def work():
        begun.set()
        release.wait()

    node.worker.submit(work, got.append)
    node.worker.submit(lambda: got.append("computed after the end"), got.append)
    begun.wait()
    world.executor.remove_node(node)
    world.nodes.remove(node)
    node.destroy_node()
    release.set()
    node.worker._pool.shutdown()
    assert got == []


BUSY = """
import numpy as np
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.running import run_node
from nbv_planner.ros.core.worker import end_process

matrix = np.eye(1500)

def work():
    print("computing", flush=True)
    for _ in range(100_000):
        np.linalg.cholesky(matrix)

class Busy(BaseNode):
    def __init__(self):
        super().__init__("busy", [])
        self.worker.submit(work, print)

end_process(run_node(Busy, []))
"""


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_process_ends_cleanly_in_the_middle_of_a_computation(kind):
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY],
        env=isolated_environment(free_domain_id()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "computing\n"
        process.send_signal(kind)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "")
    assert [
        line for line in err.splitlines() if "unconfigured: waiting for the transition" not in line
    ] == []
