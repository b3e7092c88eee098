"""The monitor puts an episode together from topics, whatever the order, and survives what the nodes
survive.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from beliefs import wavy_belief
from views import at

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future
from ros_world import PATIENCE, header, malformed_poses, malformed_scans, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2
from simulated_bags import info_of
from std_msgs.msg import String
from std_srvs.srv import Trigger

from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.ros import watched_episode
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.ros.watched_episode import EpisodeMonitor
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
CAMERA = SimulatedCamera(parse_object("polygon:star", SCENE), SCENE, SensorSettings(num_beams=21))
HERE = view_pose(1.0)


class Nodes:
    """Says what the three nodes would say, to a monitor in the default context (as the demo has
    it).
    """

    def __init__(self) -> None:
        self.passed_on = []
        self.monitor = EpisodeMonitor(
            SCENE, MeasurementSettings(), took=lambda *view: self.passed_on.append(view)
        )
        self.node = rclpy.create_node("nodes")
        self.executor = SingleThreadedExecutor()
        for node in (self.monitor, self.node):
            self.executor.add_node(node)
        make = self.node.create_publisher
        self.publishers = {
            "status": make(DiagnosticStatus, "nbv_planner/status", qos.latched()),
            "iteration": make(DiagnosticStatus, "nbv_planner/iteration", qos.latched(100)),
            "candidates": make(PointCloud2, "nbv_planner/candidates", qos.latched()),
            "surface": make(PointCloud2, "surface", qos.latched()),
            "info": make(String, "surface_info", qos.latched()),
            "scan": make(LaserScan, "scan", qos.reliable()),
            "pose": make(PoseStamped, "camera_pose", qos.reliable()),
        }
        angle, cost = np.arange(8) * 0.7, np.zeros(8)
        self.decision = conversions.Decision(
            at(1.0),
            0.3,
            0.3,
            2.0,
            0.1,
            Poses.on_circle(angle, 10.0),
            np.sin(angle),
            cost,
            cost != 0.0,
        )
        self.say(
            "status",
            conversions.status_message(
                "s", DiagnosticStatus.OK, "m", {"state": "MOVING", "views": 0}
            ),
        )
        self.say("info", String(data=info_of(wavy_belief(1, size=50), 0).text))  # of the prior
        while self.monitor.state != ("MOVING", "m") or self.monitor.log.info is None:
            self.executor.spin_once(timeout_sec=0.1)

    def say(self, topic: str, msg) -> None:
        self.publishers[topic].publish(msg)
        self.spin()

    def spin(self) -> None:
        for _ in range(10):
            self.executor.spin_once(timeout_sec=0.01)

    def iteration(self, number: int, stamp: int, angle: float = 1.0, **more):
        values = {
            "round": number,
            "goal_stamp": stamp,
            "view_angle": angle,
            "utility": 0.1 + 0.2,
            "planning_milliseconds": 1.5,
            **more,
        }
        return conversions.status_message("i", DiagnosticStatus.OK, "", values)

    def message(self, topic: str, number: int, stamp: int):
        """What a node says of the view whose goal has this stamp; scans are taken 5 ns later."""
        messages = {
            "iteration": lambda: self.iteration(number, stamp),
            "candidates": lambda: conversions.candidates_to_msg(
                self.decision, header("object", stamp)
            ),
            "surface": lambda: conversions.belief_to_msg(
                wavy_belief(1, size=50), header("object", stamp + 5)
            ),
            "info": lambda: String(data=info_of(wavy_belief(1, size=50), stamp + 5).text),
            "scan": lambda: conversions.scan_to_msg(
                CAMERA.scan(HERE, number), header("camera", stamp + 5)
            ),
            "pose": lambda: pose_msg(HERE, stamp + 5),
        }
        return messages[topic]()


@pytest.fixture
def nodes(monkeypatch):
    rclpy.init(
        args=[],
        domain_id=free_domain_id(),
        signal_handler_options=rclpy.signals.SignalHandlerOptions.NO,
    )
    made = Nodes()
    yield made
    made.executor.shutdown(timeout_sec=1.0)
    made.node.destroy_node()
    made.monitor.destroy_node()
    rclpy.try_shutdown()


ORDERS = [
    ("iteration", "candidates", "info", "scan", "pose", "surface"),
    ("surface", "pose", "info", "scan", "candidates", "iteration"),
    ("scan", "surface", "iteration", "pose", "candidates", "info"),
]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_step_is_complete_once_all_of_it_has_come_in_any_order(nodes, order):
    for topic in order:
        assert nodes.monitor.steps == []
        nodes.say(topic, nodes.message(topic, 1, 100))
    (step,) = nodes.monitor.steps
    assert (step.view.view_angle, step.objective_value, step.milliseconds) == (1.0, 0.1 + 0.2, 1.5)
    assert (len(step.candidates), len(step.utilities)) == (8, 8)
    assert step.belief.mean.tolist() == wavy_belief(1, size=50).as_transmitted().mean.tolist()
    assert len(step.hits) > 5


def test_a_surface_that_was_replaced_before_it_was_found_is_stood_for_by_the_next_one(nodes):
    for topic in ("iteration", "candidates", "scan", "pose"):
        nodes.say(topic, nodes.message(topic, 1, 100))
    nodes.say("iteration", nodes.iteration(2, 200, surface_stamp=105))
    nodes.say("candidates", nodes.message("candidates", 2, 200))
    assert nodes.monitor.steps == []
    for topic in ("scan", "pose", "info", "surface"):
        nodes.say(topic, nodes.message(topic, 2, 200))
    first, second = nodes.monitor.steps
    assert first.belief is second.belief
    assert len(first.hits) > 5


def test_a_goal_given_up_for_another_is_no_step_of_its_own(nodes):
    nodes.say("iteration", nodes.iteration(1, 100, 3.0))
    nodes.say("candidates", nodes.message("candidates", 1, 100))
    for topic in ORDERS[0]:
        nodes.say(topic, nodes.message(topic, 1, 200))
    assert [step.view.view_angle for step in nodes.monitor.steps] == [1.0]


@pytest.mark.parametrize(
    ("reason", "figures", "expected"),
    [
        ("MAX_VIEWS", {}, {"views": 1.0}),
        ("STOPPED", {}, {"views": 1.0}),
        (
            "NO_GAIN",
            {"predicted_gain": 0.1, "min_gain": 0.5},
            {"predicted_gain": 0.1, "min_gain": 0.5},
        ),
    ],
)
def test_the_end_is_heard_with_its_reason_and_figures(nodes, reason, figures, expected):
    values = {
        **figures,
        "state": "DONE",
        "views": 1,
        "coverage_estimate": 0.5,
        "elapsed": 2.0,
        "reason": reason,
        "detail": "why",
    }
    nodes.say(
        "status", conversions.status_message("s", DiagnosticStatus.OK, f"{reason}: why", values)
    )
    assert nodes.monitor.termination == Termination(TerminationReason(reason), expected, "why")
    assert nodes.monitor.state == ("DONE", f"{reason}: why")
    assert not nodes.monitor.complete  # the view has not been put together yet
    for topic in ORDERS[0]:
        nodes.say(topic, nodes.message(topic, 1, 100))
    assert nodes.monitor.complete


def test_it_starts_the_planner_once_it_hears_all_nodes_and_only_then(nodes):
    calls = []

    def on_start(request, response):
        calls.append(request)
        return response

    nodes.node.create_service(Trigger, "nbv_planner/start", on_start)

    def go_on() -> None:
        nodes.monitor.start_when_ready()
        nodes.spin()

    for topic in ("scan", "pose"):
        nodes.say(topic, nodes.message(topic, 1, 100))
    for _ in range(10):
        go_on()
    assert calls == []
    nodes.say("info", nodes.message("info", 1, 100))
    nodes.say("surface", nodes.message("surface", 1, 100))
    while not calls:
        go_on()
    go_on()
    assert len(calls) == 1


def test_it_asks_a_planner_again_that_does_not_answer(nodes, monkeypatch):
    """As one does that has not discovered the monitor yet."""
    monkeypatch.setattr(watched_episode, "_ASKED_AGAIN", 0.1)
    calls = []

    async def on_start(request, response):
        calls.append(request)
        if len(calls) < 3:
            await Future()
        return response

    nodes.node.create_service(
        Trigger, "nbv_planner/start", on_start, callback_group=ReentrantCallbackGroup()
    )
    for topic in ("scan", "pose", "info", "surface"):
        nodes.say(topic, nodes.message(topic, 1, 100))
    deadline = time.monotonic() + PATIENCE
    while not (nodes.monitor._answer and nodes.monitor._answer.done()):
        assert time.monotonic() < deadline
        nodes.monitor.start_when_ready()
        nodes.spin()
    asked = len(calls)
    assert asked >= 3
    time.sleep(0.2)
    nodes.monitor.start_when_ready()
    nodes.spin()
    assert len(calls) == asked


def test_malformed_messages_do_not_stop_it(nodes):
    for _, msg in malformed_scans(nodes.message("scan", 1, 100)).values():
        nodes.say("scan", msg)
    for _, msg in malformed_poses(nodes.message("pose", 1, 100)).values():
        nodes.say("pose", msg)
    cloud = nodes.message("surface", 1, 100)
    cloud.data = cloud.data[:-1]
    nodes.say("info", nodes.message("info", 1, 100))
    nodes.say("surface", cloud)
    nodes.say("candidates", cloud)
    assert nodes.monitor.steps == []
    for topic in ORDERS[0]:
        nodes.say(topic, nodes.message(topic, 1, 200))
    assert len(nodes.monitor.steps) == 1


def status(nodes, views, **more):
    values = {"state": "MOVING", "views": views, **more}
    nodes.say("status", conversions.status_message("s", DiagnosticStatus.OK, "m", values))


def estimate(mean):
    return {
        "coverage_mean": mean,
        "coverage_lower": 0.1,
        "coverage_upper": 0.9,
        "coverage_probability": 0.5,
    }


def test_estimates_are_kept_by_the_number_of_views(nodes):
    status(nodes, 1, **estimate(0.25))
    status(nodes, 2, **estimate(0.5))
    assert (nodes.monitor.views, nodes.monitor.estimates[0]) == (2, None)
    assert nodes.monitor.estimates[1] == CoverageEstimate(0.25, 0.1, 0.9, 0.5)
    assert nodes.monitor.estimates[2].mean == 0.5


def test_an_estimate_that_is_not_usable_does_not_hide_the_end(nodes):
    status(nodes, 1, reason="STALLED", **estimate("nothing"))
    assert nodes.monitor.termination.reason is TerminationReason.STALLED
    assert nodes.monitor.estimates.get(1) is None


def test_a_view_is_passed_on_once_and_with_its_estimate(nodes):
    for number in (1, 2):
        for topic in ORDERS[0]:
            nodes.say(topic, nodes.message(topic, number, 100 * number))
    first, second = nodes.monitor.steps
    nodes.monitor.pass_on(nodes.monitor.views)
    assert nodes.passed_on == []  # the planner has not said anything about them
    status(nodes, 1, **estimate(0.25))
    for _ in range(2):
        nodes.monitor.pass_on(nodes.monitor.views)
    assert nodes.passed_on == [(first, CoverageEstimate(0.25, 0.1, 0.9, 0.5))]
    nodes.monitor.pass_on(2)  # at the end, whatever has been said
    assert nodes.passed_on[1:] == [(second, None)]
