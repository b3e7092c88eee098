"""What three real processes do with `~/reset` between the tests.

They run while this file does: each second they take a twelfth of a core.
"""

from __future__ import annotations

import os
import re
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from ros_world import World
from sensor_msgs.msg import PointCloud2
from three_nodes import ThreeNodes, simulated_episode, views

from nbv_planner.cli.main import main
from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.episode.messages import status_values
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.ros.core import qos
from nbv_planner.ros.node_processes import NODES
from nbv_planner.star2d.measurements import polar


@pytest.fixture(scope="module")
def running_nodes(ros_environment, tmp_path_factory):
    with ThreeNodes(tmp_path_factory.mktemp("three_nodes")) as made:
        yield made


@pytest.fixture
def three_nodes(running_nodes):
    """Return the three processes, reset."""
    running_nodes.reset()
    return running_nodes


@pytest.fixture(scope="module")
def simulated(running_nodes):
    """The same episode in this process, without ROS."""
    return simulated_episode(running_nodes.config)


@pytest.fixture(scope="module")
def episode(running_nodes) -> SimpleNamespace:
    running_nodes.reset()
    return running_nodes.episode()


def test_three_processes_complete_an_episode(running_nodes, episode):
    assert len({*running_nodes.pids.values(), os.getpid()}) == 4
    assert set(running_nodes.pids) == {"depth_camera", "surface_mapper", "nbv_planner"}
    assert episode.termination.reason is TerminationReason.MAX_VIEWS
    assert episode.termination.figures == {"views": 5.0}
    assert len(episode.steps) == 5
    assert all(len(step.hits) > 20 for step in episode.steps)


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


def test_after_a_reset_nothing_is_left_of_an_episode(episode, three_nodes):
    """Of none of its views: a node that is told of one of them later would say so."""
    with World(three_nodes.domain) as world:
        statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        surface = world.surfaces()
        world.spin_until(
            lambda: {status.name for _, status in world._diagnoses} >= set(NODES), "the nodes"
        )
        world.spin_until(lambda: statuses, "a status")
        known = surface()
        status = status_values(statuses[-1])
        said = {status.name: status_values(status) for _, status in world._diagnoses}
        clouds = world.listen(PointCloud2, "surface", qos.latched())
        world.spin_until(lambda: clouds, "the surface")
    assert (status["state"], status["views"], status["unreached_views"]) == ("WAITING", "0", "0")
    assert to_nanoseconds(clouds[-1].header.stamp) == 0  # of no scan
    assert not known.hits.any()
    assert np.ptp(known.std) == pytest.approx(0.0, abs=1e-6)
    assert said["surface_mapper"]["views"] == said["depth_camera"]["views"] == "0"
    assert float(said["depth_camera"]["view_angle"]) == 1.0


def test_after_a_reset_the_same_processes_take_the_same_views_to_the_digit(episode, three_nodes):
    before = three_nodes.pids
    again = three_nodes.episode()
    assert three_nodes.pids == before
    assert again.termination == episode.termination
    assert views(again) == views(episode)
    for one, other in zip(episode.steps, again.steps, strict=True):
        assert one.objective_value == other.objective_value
        assert np.array_equal(one.utilities, other.utilities)
        assert np.array_equal(one.hits.points, other.hits.points)
        assert np.array_equal(one.belief.mean, other.belief.mean)
        assert np.array_equal(one.belief.std, other.belief.std)


def test_the_command_checks_real_processes(three_nodes, capsys):
    for _ in range(6):  # a message may be late, and earlier nodes take their time to be forgotten
        code = main(["check", "--domain", str(three_nodes.domain), "--seconds", "3"])
        found = capsys.readouterr().out
        if code == 0 and "no message" not in found and "is called" not in found:
            break
    assert code == 0, found
    assert re.search(r"^(pass|warn) +surface_mapper +mapping", found, re.MULTILINE), found
    for name in (
        "distance of the camera",
        "spread of the poses",
        "tolerances",
        "age of scan",
        "scans with a pose",
        "beams on the object",
    ):
        assert re.search(rf"^pass +{name} ", found, re.MULTILINE), found
    assert "0 failed" in found
