"""How a node process starts and ends, whatever comes in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

import rclpy
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import String

from nbv_planner.episode.parameters import CommonParameters
from nbv_planner.errors import SettingError
from nbv_planner.ros import executables
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.running import run_node
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.system import ending_signals


@pytest.fixture(autouse=True)
def process(monkeypatch, handlers):
    """run_node acts on the whole process: give it a domain."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(free_domain_id()))
    yield
    assert not rclpy.ok()


def node_doing(action) -> Node:
    """Node that does something as soon as it is spun."""
    node = Node("acting")
    node.create_timer(0.01, lambda: action(node))
    return node


def raising(error: BaseException):
    def action(_) -> None:
        raise error

    return action


def test_a_node_that_has_finished_ends_with_code_0():
    assert run_node(lambda: node_doing(raising(SystemExit())), []) == 0


SIGNALS = pytest.mark.parametrize("kind", ending_signals())


@SIGNALS
def test_a_signal_interrupts_no_callback_and_leaves_ros_to_the_clean_up(kind):
    seen = []

    def create() -> Node:
        node = Node("acting")
        publisher = node.create_publisher(String, "somewhere", 1)

        def act() -> None:
            os.kill(os.getpid(), kind)
            time.sleep(0.2)  # time enough for whatever a signal does beside
            publisher.publish(String())
            seen.append(rclpy.ok())

        node.create_timer(0.01, act)
        destroy = node.destroy_node
        node.destroy_node = lambda: (
            seen.append("destroyed" if rclpy.ok() else "too late"),
            destroy(),
        )
        return node

    assert run_node(create, []) == 0
    assert seen[0] is True
    assert seen[-1] == "destroyed"


@SIGNALS
def test_a_signal_wakes_a_node_that_waits(kind):
    def create() -> Node:
        threading.Timer(0.3, os.kill, (os.getpid(), kind)).start()
        return Node("waiting")

    assert run_node(create, []) == 0


def test_a_signal_ends_a_node_that_has_been_cleaned_up():
    """The clean-up destroys what the node has created since; it must still look for signals."""

    def create() -> Node:
        node = BaseNode("cleaned", [CommonParameters])
        node.autostart()

        def clean_up() -> None:
            node.trigger_deactivate()
            node.trigger_cleanup()
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

        node.create_timer(0.01, clean_up)
        return node

    assert run_node(create, []) == 0


@SIGNALS
def test_a_signal_during_construction_ends_with_code_0_after_it(kind):
    made = []

    def create() -> Node:
        os.kill(os.getpid(), kind)
        made.append(Node("acting"))
        return made[0]

    assert run_node(create, []) == 0
    assert made


@SIGNALS
def test_a_signal_is_heard_while_a_callback_waits_for_something(kind):
    def create() -> Node:
        node = Node("acting")

        async def act() -> None:
            os.kill(os.getpid(), kind)
            await Future()

        node.create_timer(0.01, act)
        return node

    assert run_node(create, []) == 0


def test_a_second_signal_does_not_break_the_clean_up():
    def create() -> Node:
        node = node_doing(raising(SystemExit()))
        destroy = node.destroy_node
        node.destroy_node = lambda: (os.kill(os.getpid(), signal.SIGINT), destroy())
        return node

    assert run_node(create, []) == 0
    # nor what comes between the clean-up and the end of the process
    os.kill(os.getpid(), signal.SIGINT)


ENDS_WHILE_IT_LOADS = """
import os, signal, sys

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == WANTED:
            os.kill(os.getpid(), int(KIND))

from nbv_planner.ros import executables
sys.meta_path.insert(0, Signal())
KIND, WANTED = sys.argv[1:]
del sys.argv[1:]
executables.surface_mapper()
"""


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        *((kind, "numpy") for kind in ending_signals()),
        (signal.SIGINT, "nbv_planner.ros.nodes.surface_mapper"),
        (signal.SIGINT, "rclpy.node"),
        (signal.SIGINT, "sensor_msgs.msg"),
    ],
)
def test_a_signal_while_modules_are_loaded_ends_with_code_0_and_says_nothing(kind, module):
    command = [sys.executable, "-c", ENDS_WHILE_IT_LOADS, str(int(kind)), module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ctrl_c_before_ros_has_taken_over_the_signals_ends_with_code_0(monkeypatch):
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rclpy, "init", interrupted)
    monkeypatch.setattr(sys, "argv", ["depth_camera"])
    with pytest.raises(SystemExit) as ended:
        executables.depth_camera()
    assert ended.value.code == 0


def test_a_refused_parameter_ends_with_code_2_and_one_line(capfd):
    def create() -> Node:
        raise SettingError("n: x: 1 is out of range")

    assert run_node(create, []) == 2
    assert capfd.readouterr().err == "error: n: x: 1 is out of range\n"


def test_a_topic_name_that_is_not_allowed_ends_with_code_2(capfd):
    def create() -> Node:
        node = Node("acting")
        node.create_publisher(String, "not a name", 1)
        return node

    assert run_node(create, []) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: Invalid topic name")


def test_an_error_of_the_program_is_not_hidden():
    with pytest.raises(RuntimeError, match="a mistake"):
        run_node(lambda: node_doing(raising(RuntimeError("a mistake"))), [])
