"""Node nbv_planner: the whole conversation with a robot and a mapper, how it ends, and what it says
meanwhile.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from beliefs import belief_of, wavy_belief, with_evidence
from views import at, circle

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from ros_world import header, malformed_poses, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2
from std_srvs.srv import SetBool, Trigger

from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import STATUS_KEYS, candidates_from_msg, status_values
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.geometry import angle_difference
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.saved_state import JournalKeeper
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.settings import plain_settings
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import Prior, PriorSettings
from nbv_planner.world.ground.grid_ground import ground_of
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.scene import EstimatedScene, Scene

SMALL = {"objective": "U", "certify": False, "num_views": 20, "band_tolerance": 0.01}
ENDLESS = {**SMALL, "max_views": 0, "stall_views": 0}
PRIOR = wavy_belief(0, size=200)
NARROW = belief_of(5.0, 5.1, size=200, hits=1)
MEASURED = with_evidence(belief_of(4.0, 6.0, size=200, hits=1))


class Robot:
    """Plays mapper and robot: subscribes to goals twice, drives, and publishes poses and surfaces.

    Attributes:
        drives: whether it goes to the goals by itself and maps there.
        belief: the surface after that many views.
    """

    def __init__(
        self, world, *, drives: bool = True, belief: Callable[[int], SurfaceBelief] | None = None
    ) -> None:
        self.world = world
        self.drives = drives
        self.belief = belief or (lambda views: wavy_belief(views, size=200))
        self.prior = PriorSettings()
        self.views = 0
        self.goals: list[PoseStamped] = []
        self.statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        self.iterations = world.listen(DiagnosticStatus, "nbv_planner/iteration", qos.latched(100))
        self.candidates = world.listen(PointCloud2, "nbv_planner/candidates", qos.latched(100))
        world.listen(PoseStamped, "goal_pose")
        world.peer.create_subscription(PoseStamped, "goal_pose", self.on_goal, qos.reliable())
        self.send_pose = world.speaker(PoseStamped, "camera_pose")
        self.send_surface = world.mapper()

    def now(self) -> int:
        return self.world.peer.get_clock().now().nanoseconds

    def begin(self, prior: SurfaceBelief = PRIOR) -> Robot:
        """Send the first pose and the prior."""
        self.send_pose(pose_msg(view_pose(0.0), self.now()))
        self.send(prior, 0)
        return self

    def on_goal(self, msg: PoseStamped) -> None:
        self.goals.append(msg)
        if self.drives:
            self.arrive()
            self.map()

    def arrive(self) -> None:
        """Stand at the newest goal."""
        self.send_pose(pose_msg(pose_from_msg(self.goals[-1]), self.now()))

    def map(self) -> None:
        """Publish a surface with a scan taken now."""
        self.views += 1
        self.send(self.belief(self.views), self.now())

    def send(self, belief: SurfaceBelief, stamp: int) -> None:
        """Publish a belief as the mapper of this robot would."""
        known = {"prior": self.prior, "checks": belief.checks, "common": belief.common}
        self.send_surface(conversions.belief_to_msg(belief, header("object", stamp)), **known)

    def goal(self, number: int) -> PoseStamped:
        """Wait for that many goals; gives the last."""
        self.world.spin_until(lambda: len(self.goals) >= number, f"goal {number}")
        return self.goals[number - 1]

    def goal_angle(self, number: int) -> float:
        return pose_from_msg(self.goal(number)).view_angle

    @property
    def states(self) -> list[str]:
        """States so far, each named once when it begins."""
        states = [status_values(status)["state"] for status in self.statuses]
        return [state for i, state in enumerate(states) if i == 0 or states[i - 1] != state]

    def status(self, state: str) -> dict[str, str]:
        """Wait until the newest status says `state`; gives its values and its message."""

        def found() -> dict[str, str] | None:
            last = {**status_values(self.statuses[-1]), "message": self.statuses[-1].message}
            return last if last["state"] == state else None

        return self.world.spin_until(lambda: self.statuses and found(), f"the state {state}")


# --- the conversation


def test_the_whole_conversation_from_waiting_to_done(world):
    world.start(NbvPlannerNode, **SMALL, max_views=2, stall_views=0)
    robot = Robot(world, drives=False)
    waiting = robot.status("WAITING")
    assert "waiting for" in waiting["message"]
    assert (
        "/surface (sensor_msgs/msg/PointCloud2; reliable, transient local): " in waiting["message"]
    )
    assert (
        "/camera_pose (geometry_msgs/msg/PoseStamped; reliable, volatile): " in waiting["message"]
    )
    robot.begin()
    first = robot.goal(1)
    assert robot.status("MOVING")["message"] == "to view 1"
    robot.arrive()
    assert robot.status("MEASURING")["message"] == "at view 1, waiting for its surface"
    robot.map()
    second = robot.goal(2)
    moving = robot.status("MOVING")
    assert (moving["message"], moving["views"]) == ("to view 2", "1")
    assert set(moving) == STATUS_KEYS - {"reason", "detail"} | {"message"}
    robot.arrive()
    robot.status("MEASURING")
    robot.map()
    done = robot.status("DONE")
    to_a_view = ["PLANNING", "MOVING", "MEASURING"]
    assert robot.states == ["WAITING", *to_a_view, *to_a_view, "DONE"]
    assert (done["reason"], done["detail"], done["views"]) == ("MAX_VIEWS", "2 views taken", "2")
    assert done["message"] == "MAX_VIEWS: 2 views taken"
    assert 0.0 <= float(done["coverage_estimate"]) <= 1.0
    assert float(done["elapsed"]) > 0.0
    assert to_nanoseconds(second.header.stamp) > to_nanoseconds(first.header.stamp)
    assert len(robot.goals) == 2


def test_the_topics_that_the_awaited_recorder_does_not_hear_are_named_as_they_are_called_here(
    world,
):
    renamed = ["--ros-args", "-r", "scan:=/lidar/scan", "-r", "goal_pose:=view_goal"]
    world.start(NbvPlannerNode, recorder="my_recorder", cli_args=renamed, **SMALL)
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))

    def named(topics: str) -> bool:
        said = f"the recorder my_recorder, which has not subscribed to {topics} yet"
        return (
            bool(statuses)
            and said in statuses[-1].message
            and "subscribers" not in statuses[-1].message
        )

    world.spin_until(lambda: named("/lidar/scan, /camera_pose, /surface, /view_goal"), "the topics")
    recorder = world.start(partial(Node, "my_recorder"))
    for kind, topic in (
        (LaserScan, "/lidar/scan"),
        (PoseStamped, "camera_pose"),
        (PointCloud2, "surface"),
    ):
        recorder.create_subscription(kind, topic, print, 10)
    world.spin_until(lambda: named("/view_goal"), "the last topic")
    recorder.create_subscription(PoseStamped, "view_goal", print, 10)
    words = "1 of 2 subscribers (mapper and robot, and the recorder)"
    world.spin_until(lambda: words in statuses[-1].message, "the subscribers")


def test_while_waiting_only_what_is_missing_is_named(world):
    planner = world.start(NbvPlannerNode, **SMALL)
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
    send = world.speaker(PoseStamped, "camera_pose")
    send(pose_msg(view_pose(0.0)))
    world.spin_until(
        lambda: statuses and "/camera_pose" not in statuses[-1].message, "the pose to be heard"
    )
    assert "/surface" in statuses[-1].message
    assert (
        "/goal_pose (geometry_msgs/msg/PoseStamped; reliable, volatile): 0 of 2 subscribers (mapper"
        " and robot)" in statuses[-1].message
    )
    world.mapper()(conversions.belief_to_msg(PRIOR, header("object")))
    world.spin_until(lambda: "/surface" not in statuses[-1].message, "the surface to be heard")
    world.listen(PoseStamped, "goal_pose")
    world.spin_some()
    assert planner.core.state.value == "WAITING"  # one subscriber is not enough
    world.listen(PoseStamped, "goal_pose")
    world.spin_until(lambda: planner.core.state.value == "MOVING", "the first goal")


def test_the_goal_is_the_best_candidate_on_the_view_circle_and_says_why(world):
    node = world.start(NbvPlannerNode, **SMALL, view_distance=12.0)
    robot = Robot(world, drives=False).begin()
    goal = robot.goal(1)
    (iteration,) = world.spin_until(lambda: robot.iterations, "the reasons")
    (cloud,) = world.spin_until(lambda: robot.candidates, "the candidates")
    expected = node.core.planner.decide(PRIOR.as_transmitted(), current_view=at(0.0))
    pose = pose_from_msg(goal)
    assert pose.view_angle == pytest.approx(expected.view_angle, abs=1e-12)
    assert math.hypot(pose.x, pose.y) == pytest.approx(12.0)
    assert pose.to_camera(0.0, 0.0)[1] == pytest.approx(0.0, abs=1e-9)
    assert goal.header.frame_id == cloud.header.frame_id == "object"
    values = status_values(iteration)
    assert (
        iteration.message
        == f"view 1 at {expected.view_angle:.4f} rad, decided by {expected.decided_by}"
    )
    assert values["decided_by"] == expected.decided_by != ""
    for key in ("view_angle", "utility", "score", "runner_up", "margin"):
        assert float(values[key]) == getattr(expected, key)
    assert (values["round"], values["feasible_candidates"]) == ("1", "20")
    assert int(values["goal_stamp"]) == to_nanoseconds(goal.header.stamp)
    assert cloud.header.stamp == goal.header.stamp
    way = abs(math.remainder(expected.view_angle, 2 * math.pi)) * 12.0
    assert float(values["travel"]) == pytest.approx(way)
    assert float(values["planning_milliseconds"]) > 0.0
    assert float(values["band_width_mean"]) == pytest.approx(PRIOR.width.mean(), rel=1e-6)
    assert 0.0 <= float(values["narrow_fraction"]) <= 1.0
    assert 0.0 <= float(values["coverage_estimate"]) <= 1.0
    candidates = candidates_from_msg(cloud)
    assert candidates.angle.tolist() == pytest.approx(
        expected.candidates.view_angle.tolist(), abs=1e-6
    )
    assert candidates.utility.tolist() == pytest.approx(expected.utilities.tolist(), rel=1e-6)
    assert candidates.feasible.all()


def test_a_surface_from_before_the_goal_does_not_end_a_view(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    stamp = to_nanoseconds(robot.goal(1).header.stamp)
    robot.arrive()
    robot.status("MEASURING")
    robot.send_surface(conversions.belief_to_msg(NARROW, header("object", stamp - 1)))
    world.spin_until(lambda: planner.core.inputs.belief_stamp == stamp - 1, "the old surface")
    world.spin_some(5)
    assert robot.states[-1] == "MEASURING"
    robot.send_surface(conversions.belief_to_msg(PRIOR, header("object", stamp)))
    robot.goal(2)


def test_a_surface_that_comes_before_the_arrival_is_used_once_there(world):
    world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    robot.map()
    world.spin_some()
    assert len(robot.goals) == 1
    robot.arrive()
    robot.goal(2)


# --- how it ends


@pytest.mark.parametrize(
    ("settings", "belief", "reason", "text", "figures", "views"),
    [
        ({"max_views": 1}, None, "MAX_VIEWS", "1 views taken", {"views"}, 1),
        ({"max_duration": 1e-9}, None, "MAX_DURATION", "s passed", {"seconds"}, 0),
        (
            {"stall_views": 1},
            lambda _: PRIOR,
            "STALLED",
            "the last 1 views raised the part of the circle",
            {"stall_views", "coverage_rise", "stall_change"},
            2,
        ),
        ({"num_views": 1}, None, "NO_REACHABLE_VIEW", "no candidate view may be chosen", set(), 1),
        (
            {"band_tolerance": 0.7},
            lambda _: NARROW,
            "BAND_NARROW",
            "narrower than 0.7 m on 100.0% of the circle",
            {"narrow_fraction", "band_tolerance", "target_fraction"},
            1,
        ),
        (
            {"certify": True, "target_coverage": 0.02},
            lambda _: MEASURED,
            "COVERED",
            "at least 2.0% of the outline is within 0.3 m of the measured surface; such",
            {"probability", "target_coverage", "certificate_delta"},
            1,
        ),
    ],
    ids=[
        "MAX_VIEWS",
        "MAX_DURATION",
        "STALLED",
        "NO_REACHABLE_VIEW",
        "BAND_NARROW",
        "COVERED",
    ],
)
def test_it_ends_with_a_typed_reason_and_its_figures(
    world, settings, belief, reason, text, figures, views
):
    world.start(NbvPlannerNode, **{**ENDLESS, **settings})
    robot = Robot(world, belief=belief).begin(MEASURED if "certify" in settings else PRIOR)
    done = robot.status("DONE")
    assert done["reason"] == reason
    assert text in done["detail"]
    assert done["message"] == f"{reason}: {done['detail']}"
    assert figures <= set(done)
    assert all(math.isfinite(float(done[key])) for key in figures)
    assert done["views"] == str(views)
    # the time limit strikes on the way to the first view
    goals = 1 if reason == "MAX_DURATION" else views
    world.spin_until(lambda: min(len(robot.goals), len(robot.iterations)) >= goals, "the goals")
    world.spin_some()
    assert len(robot.goals) == len(robot.iterations) == goals


def test_a_decision_that_fails_ends_the_episode_with_the_error_and_not_the_node(world, monkeypatch):
    def broken(*_, **__):
        raise FloatingPointError("the matrix\n is singular")

    world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world)
    with monkeypatch.context() as patch:
        patch.setattr(Planner, "decide", broken)
        robot.begin()
        done = robot.status("DONE")
        answer = world.call(Trigger, "nbv_planner/plan_once")
    words = "the decision failed: FloatingPointError: the matrix is singular"
    assert (done["reason"], done["detail"], done["views"]) == ("FAILED", words, "0")
    assert (answer.success, answer.message) == (False, words)
    assert world.call(Trigger, "nbv_planner/reset").success
    robot.goal(1)


def test_after_the_end_nothing_more_is_sent(world):
    planner = world.start(NbvPlannerNode, **{**ENDLESS, "max_views": 1})
    robot = Robot(world).begin()
    robot.status("DONE")
    robot.arrive()
    robot.map()
    world.spin_some()
    assert len(robot.goals) == 1
    assert world.diagnosis(planner).message == "MAX_VIEWS: 1 views taken"


def test_a_limit_changed_at_run_time_ends_the_episode(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    for number in (1, 2):
        robot.goal(number)
        robot.arrive()
        robot.map()
    robot.goal(3)
    assert world.set_parameters(planner, max_views=3)[0].successful
    robot.arrive()
    robot.map()
    assert robot.status("DONE")["reason"] == "MAX_VIEWS"


def test_with_exit_when_done_the_node_finishes_and_the_status_stays_a_while(world):
    world.start(NbvPlannerNode, **{**ENDLESS, "max_views": 1}, exit_when_done=True)
    robot = Robot(world).begin()
    robot.status("DONE")
    with pytest.raises(SystemExit):
        world.spin_until(lambda: False, "the node to finish")


# --- goals that are not reached


def test_a_goal_that_is_not_reached_is_sent_again_and_then_left_for_another_view(world):
    world.start(NbvPlannerNode, **ENDLESS, goal_timeout=0.4, goal_retries=1)
    robot = Robot(world, drives=False).begin()
    first, again = robot.goal(1), robot.goal(2)
    assert again == first  # the same stamp: no new view
    other = robot.goal(3)
    assert other.header.stamp != first.header.stamp
    assert abs(robot.goal_angle(3) - robot.goal_angle(1)) > 0.1
    world.spin_until(
        lambda: min(len(robot.candidates), len(robot.iterations)) >= 3, "candidates and reasons"
    )
    cloud = candidates_from_msg(robot.candidates[2])
    beside = np.sort(angle_difference(cloud.angle[~cloud.feasible], robot.goal_angle(1)))
    assert beside.tolist() == pytest.approx([-math.pi / 10, 0.0, math.pi / 10], abs=1e-6)
    values = status_values(robot.iterations[2])
    assert (values["round"], values["candidates"], values["feasible_candidates"]) == (
        "1",
        "20",
        "17",
    )
    assert [values[f"excluded_{why}"] for why in ("arc", "revisit", "unreachable")] == [
        "0",
        "0",
        "3",
    ]
    assert (cloud.excluded != 0).tolist() == (~cloud.feasible).tolist()
    # to the goals after this one, too, should this one have been given up meanwhile
    robot.drives = True
    robot.arrive()
    robot.map()
    world.spin_until(lambda: status_values(robot.statuses[-1])["views"] == "1", "the first view")


def test_tolerances_that_take_neighbouring_views_for_the_same_are_warned_about(world):
    node = world.start(NbvPlannerNode, **SMALL, position_tolerance=2.0, heading_tolerance=0.3)
    found = world.diagnosis(node)
    assert found.level == DiagnosticStatus.WARN
    assert (
        "position_tolerance: 2 m with heading_tolerance: 0.3 rad takes neighbouring"
        in found.message
    )


def test_a_robot_that_reaches_nothing_ends_the_episode(world):
    world.start(NbvPlannerNode, **{**ENDLESS, "num_views": 2}, goal_timeout=0.1, goal_retries=0)
    robot = Robot(world, drives=False).begin()
    done = robot.status("DONE")
    assert (done["reason"], done["views"]) == ("NO_REACHABLE_VIEW", "0")
    assert len(robot.goals) == 2
    assert robot.goal_angle(1) != robot.goal_angle(2)


# --- missing and malformed inputs


def test_after_input_timeout_the_status_warns_and_names_the_missing_inputs(world):
    planner = world.start(NbvPlannerNode, **SMALL, input_timeout=0.2)
    robot = Robot(world, drives=False)
    world.spin_until(
        lambda: robot.statuses and robot.statuses[-1].level == DiagnosticStatus.WARN, "the warning"
    )
    message = robot.statuses[-1].message
    assert "/surface" in message
    assert "/camera_pose" in message
    assert "/goal_pose" not in message
    assert message.endswith("nothing for more than 0.2 s")
    assert world.diagnosis(planner).level == DiagnosticStatus.WARN
    robot.begin()
    robot.goal(1)
    robot.arrive()
    robot.status("MEASURING")
    world.spin_until(lambda: robot.statuses[-1].level == DiagnosticStatus.WARN, "the warning")
    assert robot.statuses[-1].message.startswith(
        "waiting for a surface with a scan of view 1 on /surface (sensor_msgs/msg/PointCloud2;"
        " reliable, transient local); nothing for more than 0.2 s"
    )
    robot.map()
    assert robot.goal(2)
    # Again and again: each is overdue after 0.2 s, too.
    world.peer.create_timer(0.05, lambda: robot.send_pose(pose_msg(view_pose(0.0), robot.now())))
    robot.status("MOVING")
    world.spin_until(lambda: robot.statuses[-1].level == DiagnosticStatus.OK, "the warning to go")


def test_malformed_poses_and_surfaces_are_counted_by_reason_and_change_nothing(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False)
    bad = [
        ("camera_pose", robot.send_pose, r, m)
        for r, m in malformed_poses(pose_msg(view_pose(2.0), 1)).values()
    ]
    good = conversions.belief_to_msg(PRIOR, header("object", 1))
    surfaces = {
        "layout": conversions.belief_to_msg(PRIOR, header("object", 1)),
        "frame": conversions.belief_to_msg(PRIOR, header("map", 1)),
        "grid": conversions.belief_to_msg(
            belief_of(4.0, 5.0, grid=PRIOR.angle[::-1]), header("object", 1)
        ),
        "band": conversions.belief_to_msg(belief_of(5.0, 4.0), header("object", 1)),
        "not_finite": conversions.belief_to_msg(
            dataclasses.replace(PRIOR, upper=PRIOR.upper + math.inf), header("object", 1)
        ),
    }
    surfaces["layout"].data = surfaces["layout"].data[:-1]
    bad += [("surface", robot.send_surface, reason, msg) for reason, msg in surfaces.items()]
    expected: dict[str, int] = {}
    for topic, send, reason, msg in bad:
        key = f"{topic}.{reason}"
        expected[key] = expected.get(key, 0) + 1
        send(msg)
        world.spin_until(lambda k=key: planner.drops[k] == expected[k], f"the count of {key}")
    assert world.drops(planner) == expected
    inputs = planner.core.inputs
    assert (inputs.pose, inputs.belief) == (None, None)
    robot.send_surface(good)
    robot.begin()
    robot.goal(1)


def test_a_surface_without_evidence_is_refused_where_shapes_are_drawn(world):
    planner = world.start(NbvPlannerNode, **{**ENDLESS, "objective": "EMC"})
    robot = Robot(world, drives=False)
    robot.send_surface(conversions.belief_to_msg(PRIOR, header("object", 1)))
    world.spin_until(lambda: planner.drops["surface.evidence"] == 1, "the count")
    assert planner.core.inputs.belief is None
    robot.send(MEASURED, 2)
    world.spin_until(lambda: planner.core.inputs.belief, "the surface")


ON_SHAPES = {**ENDLESS, "objective": "EMC"}
OTHER = PriorSettings(length_scale=0.6, kernel_std=0.5, prior_mean=4.0)


def partly_measured(views: int) -> SurfaceBelief:
    """What a mapper knows that has seen a part of the object."""
    return with_evidence(
        belief_of(4.0, 6.0, size=200, hits=lambda grid: (grid < 1.0 + views).astype(int))
    )


def decision_by(prior: Prior, belief: SurfaceBelief) -> float:
    """What the best first view is worth to the core planner if it draws shapes from this prior."""
    settings = PlannerSettings(planner="greedy", objective="EMC")
    planner = planner_named(settings, Scene(), circle(ViewSpaceSettings(num_views=20)), prior=prior)
    return planner.decide(belief, current_view=at(0.0)).utility


def test_it_draws_shapes_from_the_prior_that_the_surface_carries(world):
    """Not from one of its own, by which it would decide otherwise."""
    world.start(NbvPlannerNode, **ON_SHAPES)
    robot = Robot(world, drives=False)
    robot.prior = OTHER
    robot.begin(partly_measured(0)).goal(1)
    world.spin_until(lambda: robot.iterations, "the reasons")
    utility = float(status_values(robot.iterations[0])["utility"])
    belief = partly_measured(0).as_transmitted()
    assert utility == decision_by(OTHER.prior(), belief)
    assert utility != decision_by(Prior(), belief)


def test_it_decides_by_the_prior_of_the_mapper_that_runs_beside_it(world):
    world.start(DepthCamera)
    world.start(SurfaceMapperNode, grid_size=200, length_scale=0.6, kernel_std=0.5, prior_mean=4.0)
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    iterations = world.listen(DiagnosticStatus, "nbv_planner/iteration", qos.latched(100))
    world.start(NbvPlannerNode, **{**ON_SHAPES, "max_views": 1})
    world.spin_until(lambda: iterations, "the reasons")
    belief = belief_from_msg(surfaces[0])
    utility = float(status_values(iterations[0])["utility"])
    assert utility == decision_by(OTHER.prior(), belief)
    assert utility != decision_by(Prior(), belief)


@pytest.mark.parametrize(
    ("reason", "prior", "size", "texts"),
    [
        (
            "other_prior",
            OTHER,
            200,
            ["kernel_std 0.5 (the episode's: 1.5)", "length_scale 0.6 (the episode's: 0.2)"],
        ),
        ("other_grid", PriorSettings(), 100, ["size 100 (the episode's: 200)"]),
    ],
)
def test_a_surface_of_another_mapper_is_refused_and_said_until_a_reset(
    world, reason, prior, size, texts
):
    planner = world.start(NbvPlannerNode, **ON_SHAPES)
    robot = Robot(world, drives=False, belief=partly_measured).begin(partly_measured(0))
    robot.goal(1)
    other = with_evidence(belief_of(4.0, 6.0, size=size, hits=1))
    robot.prior = prior
    robot.send(other, robot.now())
    world.spin_until(lambda: planner.drops[f"surface.{reason}"] == 1, "the count")
    assert len(planner.core.inputs.belief.angle) == 200
    world.spin_until(lambda: robot.statuses[-1].level == DiagnosticStatus.WARN, "the warning")
    assert [text for text in texts if text not in robot.statuses[-1].message] == []
    assert world.call(Trigger, "nbv_planner/reset").success
    world.spin_until(
        lambda: len(robot.goals) == 2 and robot.statuses[-1].level == DiagnosticStatus.OK,
        "a new episode",
    )
    assert len(planner.core.inputs.belief.angle) == size
    assert planner.core.episode.origin.prior == plain_settings(prior)
    assert world.drops(planner) == {f"surface.{reason}": 1}


def test_a_mapper_that_comes_back_the_same_is_accepted_and_the_warning_goes(world):
    planner = world.start(NbvPlannerNode, **ON_SHAPES)
    robot = Robot(world, drives=False, belief=partly_measured).begin(partly_measured(0))
    robot.goal(1)
    for prior, level in ((OTHER, DiagnosticStatus.WARN), (PriorSettings(), DiagnosticStatus.OK)):
        robot.prior = prior
        robot.map()
        world.spin_until(lambda level=level: robot.statuses[-1].level == level, "the status")
    assert world.drops(planner) == {"surface.other_prior": 1}


# no length: the estimated coverage is NaN
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("size", [2, 3, 16])
@pytest.mark.parametrize("objective", ["IOA", "U"])
def test_odd_but_well_formed_surfaces_do_not_stop_it(world, objective, size):
    world.start(NbvPlannerNode, **{**ENDLESS, "objective": objective})
    odd = [belief_of(*band, size=size) for band in ((-1.0, 1.0), (-6.0, -5.0))]
    Robot(world, belief=lambda views: odd[views % 2]).begin(odd[0]).goal(3)


# --- services


def test_with_wait_for_start_it_waits_for_start(world):
    world.start(NbvPlannerNode, **SMALL, wait_for_start=True)
    robot, wanted = Robot(world).begin(), "waiting for the service ~/start"
    world.spin_until(
        lambda: robot.status("WAITING")["message"] == wanted, "everything but the start"
    )
    world.spin_some()
    assert robot.goals == []
    answer = world.call(Trigger, "nbv_planner/start")
    assert (answer.success, answer.message) == (True, "started")
    robot.goal(1)


def test_stop_ends_the_episode_and_start_then_asks_for_a_reset(world):
    world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    robot.arrive()
    robot.map()
    robot.goal(2)
    answer = world.call(Trigger, "nbv_planner/stop")
    assert (answer.success, answer.message) == (True, "1 views taken")
    done = robot.status("DONE")
    assert (done["reason"], done["detail"], done["views"]) == (
        "STOPPED",
        "stopped by the operator",
        "1",
    )
    answer = world.call(Trigger, "nbv_planner/start")
    assert (answer.success, answer.message) == (
        False,
        "the episode has ended (STOPPED); call reset first",
    )
    robot.arrive()
    robot.map()
    world.spin_some()
    assert len(robot.goals) == 2


def test_reset_begins_a_new_episode(world):
    world.start(NbvPlannerNode, **{**ENDLESS, "max_views": 2})
    robot = Robot(world, belief=lambda _: PRIOR).begin()
    robot.status("DONE")
    answer = world.call(Trigger, "nbv_planner/reset")
    assert (answer.success, answer.message) == (True, "episode reset")
    world.spin_until(lambda: robot.states.count("DONE") == 2, "the second episode's end")
    assert [robot.goal_angle(n) for n in (3, 4)] == [robot.goal_angle(n) for n in (1, 2)]
    assert [status_values(msg)["round"] for msg in robot.iterations] == ["1", "2", "1", "2"]


def around(angle: float) -> str:
    """A polygon about the place on the view circle at an angle."""
    x, y = 10.0 * math.cos(angle), 10.0 * math.sin(angle)
    return f"{x - 1},{y - 1} {x + 1},{y - 1} {x + 1},{y + 1} {x - 1},{y + 1}"


def test_a_goal_that_comes_to_lie_in_a_no_go_area_is_withdrawn_and_another_is_sent(world):
    planner = world.start(NbvPlannerNode, robot_radius=0.1, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    first = robot.goal_angle(1)
    planner.core.planner.views.ground = ground_of(
        GroundSettings(no_go_polygons=around(first)), 10.0
    )
    robot.goal(2)
    assert abs(robot.goal_angle(2) - first) > 0.05
    assert planner.core.episode.withdrawn_views == 1
    assert planner.core.episode.withdrawal.endswith("it is now in a no-go polygon")
    world.spin_until(lambda: len(robot.iterations) == 2, "the reasons")
    assert int(status_values(robot.iterations[1])["excluded_polygon"]) > 0
    world.end(planner)
    world.start(NbvPlannerNode, no_go_polygons=around(first), **ENDLESS)
    again = Robot(world, drives=False).begin()
    assert abs(again.goal_angle(1) - first) > 0.05


def test_skip_view_gives_up_the_goal_and_takes_the_next_best(world):
    world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    first = robot.goal_angle(1)
    answer = world.call(Trigger, "nbv_planner/skip_view")
    assert (answer.success, answer.message) == (True, f"skipped the view at {first:.6f} rad")
    robot.goal(2)
    assert abs(robot.goal_angle(2) - first) > 0.1
    world.spin_until(lambda: len(robot.iterations) == 2, "the reasons")
    assert status_values(robot.iterations[1])["excluded_unreachable"] == "1"
    status = robot.status("MOVING")
    world.spin_until(lambda: robot.status("MOVING")["skipped_views"] == "1", "the status")
    assert (status["unreached_views"], status["views"]) == ("0", "0")


def test_without_a_goal_there_is_nothing_to_skip(world):
    world.start(NbvPlannerNode, **ENDLESS)
    answer = world.call(Trigger, "nbv_planner/skip_view")
    assert (answer.success, answer.message) == (False, "no goal is under way")


def test_pause_holds_goals_back_until_it_goes_on(world):
    world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    answer = world.call(SetBool, "nbv_planner/pause", data=True)
    assert (answer.success, answer.message) == (True, "PAUSED")
    assert robot.status("PAUSED")["message"] == "paused by the operator"
    robot.arrive()
    robot.map()
    world.spin_some()
    assert len(robot.goals) == 1
    answer = world.call(SetBool, "nbv_planner/pause", data=False)
    assert answer.success
    robot.goal(2)


def test_pause_before_the_first_goal_holds_it_back_too(world):
    world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False)
    world.call(SetBool, "nbv_planner/pause", data=True)
    robot.begin()
    world.spin_some()
    assert robot.goals == []
    assert world.call(Trigger, "nbv_planner/start").success
    robot.goal(1)


def test_plan_once_says_view_and_utility_without_sending_a_goal(world):
    node = world.start(NbvPlannerNode, **SMALL, wait_for_start=True)
    robot = Robot(world)
    answer = world.call(Trigger, "nbv_planner/plan_once")
    assert (answer.success, answer.message) == (False, "no surface received yet")
    robot.begin()
    robot.status("WAITING")
    expected = node.core.planner.decide(PRIOR.as_transmitted(), current_view=at(0.0))
    world.spin_until(
        lambda: world.call(Trigger, "nbv_planner/plan_once").success, "the surface to be heard"
    )
    answer = world.call(Trigger, "nbv_planner/plan_once")
    assert (
        answer.message
        == f"view_angle: {expected.view_angle:.6f} rad, utility: {expected.utility:.6g}"
    )
    world.spin_some()
    assert (robot.goals, robot.iterations, robot.candidates) == ([], [], [])


# --- who hears what


def test_late_subscribers_get_status_candidates_and_every_iteration_but_no_goal(world):
    planner = world.start(NbvPlannerNode, **{**ENDLESS, "max_views": 4})
    robot = Robot(world).begin()
    robot.status("DONE")
    goals = world.listen(PoseStamped, "goal_pose")
    status = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(10))
    candidates = world.listen(PointCloud2, "nbv_planner/candidates", qos.latched(10))
    iterations = world.listen(DiagnosticStatus, "nbv_planner/iteration", qos.latched(100))
    world.spin_until(
        lambda: status and len(candidates) >= 4 and len(iterations) >= 4, "the latched messages"
    )
    world.spin_some()
    assert goals == []
    assert [status_values(msg)["state"] for msg in status] == ["DONE"]
    stamps = [to_nanoseconds(goal.header.stamp) for goal in robot.goals]
    assert [to_nanoseconds(cloud.header.stamp) for cloud in candidates] == stamps
    assert [status_values(msg)["round"] for msg in iterations] == ["1", "2", "3", "4"]
    assert planner.core.state.value == "DONE"


@pytest.mark.parametrize("cls", [NbvPlannerNode, SurfaceMapperNode])
def test_planner_and_mapper_do_not_listen_to_the_ground_truth(world, cls):
    camera, node = world.start(DepthCamera), world.start(cls)
    assert "/ground_truth/surface" in {publisher.topic_name for publisher in camera.publishers}
    heard = {subscription.topic_name for subscription in node.subscriptions}
    assert "/camera_pose" in heard
    assert not [topic for topic in heard if "ground_truth" in topic]


def test_every_latched_topic_has_one_publisher(world):
    for cls in (DepthCamera, SurfaceMapperNode, NbvPlannerNode):
        world.start(cls)

    def publishers(topic: str) -> list:
        return [
            publisher
            for node in world.nodes
            for publisher in node.publishers
            if publisher.topic_name == topic
        ]

    for topic in (
        "surface",
        "ground_truth/surface",
        "run_info",
        "nbv_planner/status",
        "nbv_planner/candidates",
        "nbv_planner/iteration",
    ):
        (publisher,) = publishers(f"/{topic}")
        assert publisher.qos_profile.durability == rclpy.qos.DurabilityPolicy.TRANSIENT_LOCAL
        assert publisher.qos_profile.reliability == rclpy.qos.ReliabilityPolicy.RELIABLE
    (goal,) = publishers("/goal_pose")
    assert goal.qos_profile.durability == rclpy.qos.DurabilityPolicy.VOLATILE


# --- the way home


def test_before_the_end_the_camera_is_sent_home_without_another_view(world):
    world.start(NbvPlannerNode, **{**ENDLESS, "max_views": 1}, return_home=True)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    robot.arrive()
    robot.map()
    assert robot.goal_angle(2) == pytest.approx(0.0, abs=1e-9)
    assert robot.status("MOVING")["message"] == "to the home view"
    robot.arrive()
    done = robot.status("DONE")
    assert (done["reason"], done["views"]) == ("MAX_VIEWS", "1")
    assert done["detail"] == "1 views taken; the camera is back at the home view"
    world.spin_some()
    assert len(robot.iterations) == len(robot.candidates) == 1


def test_views_that_come_fast_are_not_a_line_each(world, monkeypatch):
    """The end is, however soon it comes."""
    from types import SimpleNamespace

    from nbv_planner.ros.io import status as status_module
    from nbv_planner.session.questions import State

    node, now, lines = world.start(NbvPlannerNode), [0.0], []
    monkeypatch.setattr(status_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(
        node, "get_logger", lambda: SimpleNamespace(info=lines.append, debug=lambda line: None)
    )
    for later, state in [
        (0.0, State.MOVING),
        (0.1, State.MOVING),
        (0.6, State.MEASURING),
        (0.6, State.MOVING),
        (0.7, State.DONE),
    ]:
        now[0] = 1e9 + later
        node._report._log(state, f"{state.value} after {later}")
    assert lines == ["MOVING after 0.0", "MOVING after 0.6", "DONE after 0.7"]


def send_found(robot: Robot, found: EstimatedScene) -> None:
    belief = dataclasses.replace(PRIOR, centre=(found.x, found.y))
    robot.send_surface(conversions.belief_to_msg(belief, header("object", 0)), scene=found)


def test_a_goal_is_sent_though_the_centre_moved_while_it_was_saved(world, tmp_path, monkeypatch):
    saving, written = threading.Event(), JournalKeeper.write

    def slowly(keeper):
        saving.wait(30.0)
        return written(keeper)

    monkeypatch.setattr(JournalKeeper, "write", slowly)
    planner = world.start(
        NbvPlannerNode, **{**SMALL, "goal_subscribers": 0}, state_file=str(tmp_path / "s.jsonl")
    )
    robot, found = Robot(world, drives=False), EstimatedScene(0.0, 0.0, 2.0, 8.0, 10.0, views=1)
    robot.send_pose(pose_msg(view_pose(0.0), robot.now()))
    send_found(robot, found)
    world.spin_until(lambda: planner.core.episode.goal, "the goal")
    send_found(robot, dataclasses.replace(found, x=1.0, views=2))
    world.spin_until(lambda: planner.core.episode.estimated_scene.x == 1.0, "the other centre")
    assert not robot.goals
    saving.set()
    world.spin_until(lambda: robot.goals, "the goal")


def test_a_length_that_is_changed_in_a_found_scene_stays_in_proportion(world):
    """Its parameter is that of the declared scene, whose object is twice as large."""
    planner = world.start(NbvPlannerNode, **{**SMALL, "goal_subscribers": 0})
    robot, found = Robot(world, drives=False), EstimatedScene(0.0, 0.0, 1.0, 4.0, 5.0, views=1)
    robot.send_pose(pose_msg(view_pose(0.0), robot.now()))
    send_found(robot, found)
    world.spin_until(lambda: planner.core.episode.estimated_scene, "the scene")
    assert planner.core.monitor.settings.band_tolerance == pytest.approx(0.005)
    assert planner.set_parameters([rclpy.parameter.Parameter("band_tolerance", value=0.6)])[
        0
    ].successful
    assert planner.core.monitor.settings.band_tolerance == pytest.approx(0.3)
    send_found(robot, dataclasses.replace(found, x=1.0))
    world.spin_until(lambda: planner.core.episode.estimated_scene.x == 1.0, "the other centre")
    assert planner.core.monitor.settings.band_tolerance == pytest.approx(0.3)
