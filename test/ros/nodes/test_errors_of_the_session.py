"""Node nbv_planner: an error of the program, whatever it is and wherever it comes up, ends the
episode alone.
"""

from __future__ import annotations

import os
import signal
import threading

import pytest
from beliefs import belief_of

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from ros_world import PATIENCE, parameter_list
from std_srvs.srv import Trigger
from test_nbv_planner import ENDLESS, PRIOR, Robot

from nbv_planner.ros.core.planner_parts import EpisodeJournal
from nbv_planner.ros.core.running import run_node
from nbv_planner.ros.core.worker import Worker
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.ros.nodes import nbv_planner as module
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.session import events
from nbv_planner.session.journal import Journal, from_records


def broken(*_, **__):
    raise IndexError("index 0 is out of bounds\nfor axis 0")


@pytest.fixture
def process(monkeypatch, handlers):
    """run_node acts on the whole process."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(free_domain_id()))
    hangs = threading.Timer(PATIENCE, os.kill, (os.getpid(), signal.SIGINT))
    hangs.start()
    yield
    hangs.cancel()


@pytest.mark.parametrize(
    ("owner", "name", "reason", "saved"),
    [
        (events, "advance", "FAILED", True),
        (NbvPlannerNode, "figures", "FAILED", True),
        (EpisodeJournal, "note_facts", "FAILED", False),
        (Worker, "submit", "STOPPED", False),
        (module, "summary", "STOPPED", True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_raises_in_a_callback_ends_the_episode_and_the_process_only_as_wanted(
    process, monkeypatch, tmp_path, capfd, owner, name, reason, saved
):
    """Here `exit_when_done` ends it: after the error it still spins, with its timers."""
    file, nodes = tmp_path / "session.jsonl", []
    monkeypatch.setattr(module, "_LINGER", 0.2)

    def create() -> NbvPlannerNode:
        given = {**ENDLESS, "state_file": str(file), "exit_when_done": True}
        node = NbvPlannerNode(parameter_overrides=parameter_list(given))
        nodes.append(node)
        monkeypatch.setattr(owner, name, broken)
        if reason == "STOPPED":
            node.create_timer(0.05, lambda: events.stop(node.core))
        return node

    assert run_node(create, []) == 0
    said = capfd.readouterr().err
    assert "IndexError: index 0 is out of bounds" in said
    assert "Traceback" in said
    assert nodes[0].core.episode.termination.reason.value == reason
    if saved:
        episode, _ = from_records(Journal(file, "planning session").read())
        assert episode.termination.reason.value == reason


def test_an_error_in_a_service_is_its_answer_and_after_a_reset_the_node_goes_on(world, monkeypatch):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    with monkeypatch.context() as patch:
        patch.setattr(events, "skip", broken)
        answer = world.call(Trigger, "nbv_planner/skip_view")
    words = "IndexError: index 0 is out of bounds for axis 0"
    assert (answer.success, answer.message) == (False, words)
    done = robot.status("DONE")
    assert (done["reason"], done["detail"]) == (
        "FAILED",
        f"internal error: {words}; 0 views taken",
    )
    assert world.call(Trigger, "nbv_planner/reset").success
    robot.goal(2)
    assert planner.core.episode.termination is None


def test_a_mapper_that_is_reset_between_a_view_and_its_decision_ends_nothing(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(
        world, drives=False, belief=lambda views: belief_of(4.0, 6.0, size=200, hits=1)
    ).begin()
    robot.goal(1)
    robot.arrive()
    world.spin_until(lambda: planner.core.state.value == "MEASURING", "the arrival")
    # as if a decision were under way elsewhere: the window is open
    planner.decisions.under_way = True
    robot.map()
    world.spin_until(lambda: planner.core.episode.visited, "the view")
    robot.send(PRIOR, 0)
    world.spin_until(lambda: planner.core.episode.lost_views, "the loss")
    planner.decisions.under_way = False
    robot.goal(2)
    assert (planner.core.episode.visited, planner.core.episode.lost_views) == ((), 1)
    assert planner.core.state.value == "MOVING"
