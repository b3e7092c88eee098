"""The life cycle of the nodes: what each holds and does in every state, by itself and through the
services.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import yaml
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from ros_world import header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import Trigger

import nbv_planner
from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import status_values
from nbv_planner.errors import NbvPlannerError
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.world.objects import parse_object
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

NODES = {
    "depth_camera": DepthCamera,
    "surface_mapper": SurfaceMapperNode,
    "nbv_planner": NbvPlannerNode,
}
MS = 1_000_000
HERE, THERE = view_pose(1.0), view_pose(2.5)
SMALL = {
    "objective": "U",
    "certify": False,
    "num_views": 20,
    "max_views": 0,
    "stall_views": 0,
    "band_tolerance": 0.01,
}


class Operator:
    """Leads a node through its life, by the services."""

    def __init__(self, world, node) -> None:
        self.world, self.node = world, node

    def asks(self, transition: str | int) -> bool:
        """Ask for a transition, by label or number; gives whether it succeeded."""
        wanted = (
            Transition(label=transition)
            if isinstance(transition, str)
            else Transition(id=transition)
        )
        return self.world.call(
            ChangeState, f"{self.node.get_name()}/change_state", transition=wanted
        ).success

    @property
    def state(self) -> str:
        return self.world.call(GetState, f"{self.node.get_name()}/get_state").current_state.label

    def does(self, *transitions: str) -> str:
        """Ask for transitions that must succeed; gives the state afterwards."""
        for transition in transitions:
            assert self.asks(transition), transition
        return self.state


def topics_of(node) -> set[str]:
    """Topics of the node beside those that every node has."""
    own = {entity.topic_name for entity in (*node.publishers, *node.subscriptions)}
    return own - {
        "/rosout",
        "/parameter_events",
        "/diagnostics",
        "/clock",
        f"/{node.get_name()}/transition_event",
    }


@pytest.mark.parametrize("name", NODES)
def test_by_default_a_node_is_active_at_once(world, name):
    operator = Operator(world, world.start(NODES[name]))
    assert operator.state == "active"
    assert world.diagnosis(operator.node).values["stage"] == "active"


@pytest.mark.parametrize("name", NODES)
def test_without_autostart_it_goes_through_its_life_when_told_to(world, name):
    node = world.start(NODES[name], autostart=False)
    operator = Operator(world, node)
    assert operator.state == "unconfigured"
    assert topics_of(node) <= {"/nbv_planner/status"}
    found = world.diagnosis(node)
    assert (found.level, found.message) == (
        DiagnosticStatus.WARN,
        "unconfigured: waiting for the transition configure of the life cycle",
    )
    assert operator.does("configure") == "inactive"
    opened = topics_of(node)
    assert opened >= {"/camera_pose", "/goal_pose"}
    assert (
        world.diagnosis(node).message
        == "inactive: waiting for the transition activate of the life cycle"
    )
    assert operator.does("activate") == "active"
    assert operator.does("deactivate") == "inactive"
    assert topics_of(node) == opened
    assert operator.does("cleanup") == "unconfigured"
    world.spin_until(lambda: topics_of(node) <= {"/nbv_planner/status"}, "its topics to go")
    assert operator.does("configure", "activate") == "active"
    assert topics_of(node) == opened
    assert operator.does("shutdown") == "finalized"
    assert world.diagnosis(node).message == "finalized: it can only be ended"
    world.spin_some()


@pytest.mark.parametrize("name", NODES)
def test_many_lives_leave_nothing_behind(world, name):
    node = world.start(NODES[name])
    operator = Operator(world, node)

    def parts() -> list[int]:
        owned = (
            node.timers,
            node.publishers,
            node.subscriptions,
            node.services,
            node.clients,
            node.waitables,
        )
        return [len(list(entities)) for entities in owned]

    before = parts()
    for _ in range(5):
        operator.does("deactivate", "cleanup", "configure", "activate")
    assert parts() == before


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("depth_camera", "reset"),
        ("surface_mapper", "reset"),
        ("nbv_planner", "start"),
        ("nbv_planner", "plan_once"),
    ],
)
def test_services_say_why_a_resting_node_does_nothing(world, name, service):
    operator = Operator(world, world.start(NODES[name], autostart=False))
    for transition, stage in (("configure", "unconfigured"), ("activate", "inactive")):
        answer = world.call(Trigger, f"{name}/{service}")
        assert not answer.success
        assert (
            answer.message == f"{stage}: waiting for the transition {transition} of the life cycle"
        )
        operator.does(transition)


def test_a_transition_that_does_not_fit_is_refused_and_changes_nothing(world):
    operator = Operator(world, world.start(DepthCamera))
    for transition in (
        "configure",
        "activate",
        "cleanup",
        "no_such_transition",
        Transition.TRANSITION_CONFIGURE,
        200,
    ):
        assert not operator.asks(transition)
    assert operator.state == "active"
    assert operator.does("deactivate") == "inactive"


# --- failures


@pytest.mark.parametrize(
    ("name", "bad", "good", "reason"),
    [
        ("depth_camera", {"object": "banana"}, {"object": "ellipse:a=6,b=4"}, "banana"),
        (
            "surface_mapper",
            {"prior_mean": 9.0},
            {"prior_mean": 6.0},
            "prior_mean: 9.0 m must be within [2, 8] m",
        ),
        (
            "surface_mapper",
            {"kernel": "rbf"},
            {"periodisation": "warp"},
            "periodisation: sum has no closed form",
        ),
        (
            "nbv_planner",
            {"view_distance": 8.0},
            {"view_distance": 9.0},
            "view_distance: 8.0 puts the camera inside",
        ),
    ],
)
def test_a_configuration_that_fails_is_told_and_can_be_mended(world, name, bad, good, reason):
    node = world.start(NODES[name], autostart=False, **bad)
    operator = Operator(world, node)
    assert not operator.asks("configure")
    assert operator.state == "unconfigured"
    found = world.diagnosis(node)
    assert found.level == DiagnosticStatus.ERROR
    assert "the last transition failed: " in found.message
    assert reason in found.message
    assert topics_of(node) <= {"/nbv_planner/status"}
    assert all(result.successful for result in world.set_parameters(node, **good))
    assert operator.does("configure", "activate") == "active"
    assert world.diagnosis(node).level != DiagnosticStatus.ERROR


def test_with_autostart_a_configuration_that_fails_ends_the_node(world):
    with pytest.raises(NbvPlannerError, match=r"view_distance: 8\.0 puts the camera inside"):
        world.start(NbvPlannerNode, view_distance=8.0)


def test_an_error_of_the_program_is_told_and_not_hidden(world, monkeypatch):
    node = world.start(SurfaceMapperNode, autostart=False)
    operator = Operator(world, node)
    monkeypatch.setattr(node, "configure", lambda: 1 / 0)
    assert not operator.asks("configure")
    assert operator.state == "unconfigured"
    assert "division by zero" in world.diagnosis(node).message
    monkeypatch.undo()
    assert operator.does("configure", "activate") == "active"


@pytest.mark.parametrize("name", NODES)
def test_until_it_is_configured_every_parameter_may_change_within_its_range(world, name):
    node = world.start(NODES[name], autostart=False)
    (good,) = world.set_parameters(node, view_distance=12.0)
    assert good.successful, good.reason
    (bad,) = world.set_parameters(node, view_distance=-1.0)
    assert not bad.successful
    assert "view_distance" in bad.reason
    Operator(world, node).does("configure", "activate")
    assert node.scene.view_distance == 12.0
    (late,) = world.set_parameters(node, view_distance=11.0)
    assert late.reason.startswith(
        "view_distance: is fixed while the node is configured; clean the node up"
    )


# --- what an inactive node holds


class Feed:
    """Scans, poses and goals for the mapper, and its surfaces."""

    def __init__(self, world) -> None:
        self.world = world
        self.camera = SimulatedCamera(
            parse_object("polygon:star", Scene()), Scene(), SensorSettings(num_beams=31)
        )
        self.surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
        self.send_scan = world.speaker(LaserScan, "scan")
        self.send_pose = world.speaker(PoseStamped, "camera_pose")
        self.send_goal = world.speaker(PoseStamped, "goal_pose")

    def view(self, stamp: int, pose) -> None:
        """A goal, and a scan taken there."""
        self.send_goal(pose_msg(pose, stamp))
        scan = self.camera.scan(pose, 1, 0)
        self.send_scan(conversions.scan_to_msg(scan, header("camera", stamp + MS)))
        self.send_pose(pose_msg(pose, stamp + MS))

    def newest(self) -> int:
        return to_nanoseconds(self.surfaces[-1].header.stamp) if self.surfaces else -1

    def mapped(self, stamp: int) -> PointCloud2:
        """Wait for the surface with the view of this goal."""
        self.world.spin_until(lambda: self.newest() == stamp + MS, f"the surface of {stamp}")
        return self.surfaces[-1]


def test_a_mapper_keeps_its_map_while_inactive_takes_no_scan_and_goes_on(world):
    mapper = world.start(SurfaceMapperNode, grid_size=100)
    operator, feed = Operator(world, mapper), Feed(world)
    feed.view(100 * MS, HERE)
    before = belief_from_msg(feed.mapped(100 * MS))
    operator.does("deactivate")
    heard = len(feed.surfaces)
    feed.view(200 * MS, THERE)
    world.spin_some()
    assert len(feed.surfaces) == heard
    operator.does("activate")
    world.spin_some(5)
    assert feed.newest() == 101 * MS
    feed.send_scan(
        conversions.scan_to_msg(feed.camera.scan(THERE, 1, 1), header("camera", 210 * MS))
    )
    feed.send_pose(pose_msg(THERE, 210 * MS))  # the goal given meanwhile counts
    world.spin_until(lambda: feed.newest() == 210 * MS, "the surface after the rest")
    after = belief_from_msg(feed.surfaces[-1])
    assert (after.hits >= before.hits).all()
    assert after.hits.sum() > before.hits.sum()


def test_a_mapper_forgets_its_map_when_cleaned_up(world):
    mapper = world.start(SurfaceMapperNode, grid_size=100)
    operator, feed = Operator(world, mapper), Feed(world)
    feed.view(100 * MS, HERE)
    feed.mapped(100 * MS)
    operator.does("deactivate", "cleanup", "configure", "activate")
    feed = Feed(world)
    scan = feed.camera.scan(HERE, 1, 0)
    feed.send_scan(conversions.scan_to_msg(scan, header("camera", 300 * MS)))
    feed.send_pose(pose_msg(HERE, 300 * MS))
    world.spin_until(lambda: feed.newest() == 0, "the prior")
    assert belief_from_msg(feed.surfaces[-1]).hits.sum() == 0


def test_an_inactive_camera_publishes_nothing_and_stands_still(world):
    camera = world.start(
        DepthCamera, num_beams=21, scan_rate=100.0, angular_speed=0.5, initial_view_angle=0.0
    )
    operator = Operator(world, camera)
    scans, poses = world.listen(LaserScan, "scan"), world.listen(PoseStamped, "camera_pose")
    send = world.speaker(PoseStamped, "goal_pose")
    world.spin_until(lambda: scans, "a scan")
    operator.does("deactivate")
    world.spin_some(5)
    seen, angle = len(scans), camera.motion.view.view_angle
    send(pose_msg(view_pose(3.0), 1))
    world.spin_some()
    assert (len(scans), camera.motion.view.view_angle) == (seen, angle)
    poses.clear()
    before = world.peer.get_clock().now().nanoseconds
    operator.does("activate")
    world.spin_until(lambda: poses, "a pose")
    moved = pose_from_msg(poses[0]).view_angle - angle
    seconds = 1e-9 * (to_nanoseconds(poses[0].header.stamp) - before)
    assert abs(moved) <= 0.5 * seconds + 1e-6  # the rest was no time to move in
    world.spin_until(lambda: camera.motion.view.view_angle > angle + 0.01, "the way to the goal")


class Robot:
    """Mapper and robot as the planner sees them."""

    def __init__(self, world) -> None:
        self.world = world
        self.goals = world.listen(PoseStamped, "goal_pose")
        world.listen(PoseStamped, "goal_pose")
        self.statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        self.send_pose = world.speaker(PoseStamped, "camera_pose")
        self.send_surface = world.mapper()

    def now(self) -> int:
        return self.world.peer.get_clock().now().nanoseconds

    def begin(self) -> None:
        self.send_pose(pose_msg(view_pose(0.0), self.now()))
        self.send_surface(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))

    def take_view(self, number: int) -> None:
        self.send_pose(pose_msg(pose_from_msg(self.goals[number - 1]), self.now()))
        self.send_surface(
            conversions.belief_to_msg(wavy_belief(number, size=200), header("object", self.now()))
        )

    def goal(self, number: int) -> PoseStamped:
        self.world.spin_until(lambda: len(self.goals) >= number, f"goal {number}")
        return self.goals[number - 1]

    def status(self, state: str, text: str = "") -> DiagnosticStatus:
        def found() -> bool:
            last = self.statuses[-1]
            return status_values(last)["state"] == state and text in last.message

        self.world.spin_until(lambda: self.statuses and found(), f"the status {state} {text}")
        return self.statuses[-1]


def test_an_inactive_planner_pauses_and_knows_where_it_is_when_it_goes_on(world):
    planner = world.start(NbvPlannerNode, **SMALL)
    operator, robot = Operator(world, planner), Robot(world)
    robot.begin()
    robot.goal(1)
    operator.does("deactivate")
    status = robot.status("PAUSED")
    assert status.level == DiagnosticStatus.WARN
    assert status.message == "inactive: waiting for the transition activate of the life cycle"
    robot.take_view(1)  # comes while it rests
    world.spin_some()
    assert len(robot.goals) == 1
    operator.does("activate")
    robot.goal(2)
    assert status_values(robot.status("MOVING", "to view 2"))["views"] == "1"


def test_a_rest_is_no_time_in_which_a_goal_could_have_been_reached(world):
    planner = world.start(NbvPlannerNode, **SMALL, goal_timeout=0.5, goal_retries=5)
    operator, robot = Operator(world, planner), Robot(world)
    robot.begin()
    first = robot.goal(1)
    operator.does("deactivate")
    rested = robot.now()
    world.spin_until(lambda: robot.now() > rested + 700 * MS, "time to pass")
    before = robot.now()
    operator.does("activate")
    assert robot.goal(2) == first
    assert robot.now() - before >= 500 * MS


def test_a_planner_forgets_its_episode_when_cleaned_up(world):
    planner = world.start(NbvPlannerNode, **SMALL)
    operator, robot = Operator(world, planner), Robot(world)
    robot.begin()
    robot.goal(1)
    robot.take_view(1)
    robot.goal(2)
    operator.does("deactivate", "cleanup")
    assert robot.status("WAITING", "unconfigured: waiting").level == DiagnosticStatus.WARN
    operator.does("configure", "activate")
    again = Robot(world)
    again.begin()
    again.goal(1)
    assert status_values(again.status("MOVING", "to view 1"))["views"] == "0"


class LifecycleManager:
    """Makes the calls of nav2_lifecycle_manager in its order, without bonds
    (`bond_timeout: 0.0`).
    """

    EXPECTED = {
        Transition.TRANSITION_CONFIGURE: "inactive",
        Transition.TRANSITION_ACTIVATE: "active",
        Transition.TRANSITION_DEACTIVATE: "inactive",
        Transition.TRANSITION_CLEANUP: "unconfigured",
        Transition.TRANSITION_UNCONFIGURED_SHUTDOWN: "finalized",
    }

    def __init__(self, operators: list[Operator]) -> None:
        self.operators = operators

    def change(self, *transitions: int) -> None:
        """Each transition for all nodes: up in their order, down in the other one; each must reach
        its state.
        """
        up = {Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE}
        for transition in transitions:
            for operator in self.operators if transition in up else reversed(self.operators):
                assert operator.asks(transition)
                assert operator.state == self.EXPECTED[transition]

    def startup(self) -> None:
        self.change(Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)

    def pause(self) -> None:
        self.change(Transition.TRANSITION_DEACTIVATE)

    def resume(self) -> None:
        self.change(Transition.TRANSITION_ACTIVATE)

    def reset(self) -> None:
        self.change(Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP)

    def shutdown(self) -> None:
        self.reset()
        self.change(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)


def recipe() -> dict[str, dict]:
    """The parameter file that the page gives for the manager."""
    page = (Path(nbv_planner.__file__).parents[1] / "docs" / "how_to" / "integration.md").read_text(
        encoding="utf-8"
    )
    (text,) = re.findall(
        r"^  ```yaml\n(  # lifecycle.yaml\n.*?)^  ```", page, re.MULTILINE | re.DOTALL
    )
    return yaml.safe_load(textwrap.dedent(text))


def test_the_manager_of_nav2_leads_the_nodes_of_its_recipe_through_all_its_commands(world):
    given = recipe()
    manager = given["lifecycle_manager_nbv"]["ros__parameters"]
    assert manager["bond_timeout"] == 0.0
    assert given["/**"]["ros__parameters"] == {"autostart": False}
    nodes = [
        world.start(NODES[name], **(SMALL if name == "nbv_planner" else {}), autostart=False)
        for name in manager["node_names"]
    ]
    leads = LifecycleManager([Operator(world, node) for node in nodes])
    leads.startup()
    leads.pause()
    assert (
        world.diagnosis(nodes[-1]).message
        == "inactive: waiting for the transition activate of the life cycle"
    )
    leads.resume()
    leads.reset()
    leads.startup()
    leads.shutdown()
    assert all(world.diagnosis(node).message == "finalized: it can only be ended" for node in nodes)
