"""Node nbv_planner: views that a user asks about, and a list of views that it is restricted to."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

import yaml
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Pose, PoseArray, Quaternion
from rclpy.parameter import Parameter
from ros_world import header
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from test_nbv_planner import MEASURED, PRIOR, SMALL, Robot
from test_saved_state import rewrite
from views import circle

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.episode.messages import candidates_from_msg, decision_from_values, status_values
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import EstimatedScene, Scene

LIST = [0.5, 2.5, 4.5]
ENDLESS = {**SMALL, "certify": False, "max_views": 0, "stall_views": 0}
IDLE = {**ENDLESS, "wait_for_start": True}


class Asker:
    """Asks for rankings and hears the answers."""

    def __init__(self, world) -> None:
        self.world = world
        self.answers = world.listen(DiagnosticStatus, "nbv_planner/ranking", qos.latched(100))
        self.send = world.speaker(Float64MultiArray, "nbv_planner/rank")

    def ask(self, angles) -> DiagnosticStatus:
        before = len(self.answers)
        self.send(Float64MultiArray(data=angles))
        self.world.spin_until(lambda: len(self.answers) > before, "the ranking")
        return self.answers[-1]


def test_views_are_ranked_by_the_objective_on_the_present_belief_without_an_episode(world):
    planner = world.start(NbvPlannerNode, **IDLE)
    robot = Robot(world).begin()
    world.spin_until(lambda: planner.core.inputs.belief, "the surface")
    angles = [0.1, 1.1, 4.0]
    answer = Asker(world).ask(angles)
    values = status_values(answer)
    assert (answer.level, values["objective"], values["views"]) == (DiagnosticStatus.OK, "U", "3")
    own = planner_named(PlannerSettings(planner="greedy", objective="U"), Scene(), circle())
    expected, _ = own.evaluate(PRIOR.as_transmitted(), Poses.on_circle(np.array(angles), 10.0))
    order = np.argsort(-expected)
    assert [float(values[f"{place}.view_angle"]) for place in (1, 2, 3)] == [
        angles[i] for i in order
    ]
    assert [float(values[f"{place}.utility"]) for place in (1, 2, 3)] == pytest.approx(
        expected[order].tolist()
    )
    assert answer.message.startswith(f"best: {angles[order[0]]:.4f} rad, U ")
    assert (robot.goals, planner.core.episode.visited, planner.core.episode.started) == (
        [],
        (),
        False,
    )


def test_ranking_during_an_episode_leaves_it_as_it_is(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    goal = robot.goal(1)
    before, asker = planner.core.episode, Asker(world)
    values = status_values(asker.ask([pose_from_msg(goal).view_angle, 1.0]))
    assert values["1.view_angle"] == repr(pose_from_msg(goal).view_angle)
    assert planner.core.episode == before
    world.spin_some()
    assert len(robot.goals) == 1
    robot.arrive()
    robot.map()
    robot.goal(2)
    taken = status_values(asker.ask([pose_from_msg(goal).view_angle]))
    assert taken["1.excluded"] == "2"


@pytest.mark.parametrize(
    ("angles", "words"),
    [
        ([], "is empty"),
        ([1.0] * 1001, "rank: has 1001 angles, must be 1000 or fewer"),
        ([1.0, math.nan], "rank[1]: nan"),
        ([9.0], "must be >= 0 and <= 6.28319 rad"),
        ([1.0, 1.0], "too close"),
    ],
)
def test_angles_that_are_none_are_answered_with_the_reason_and_counted(world, angles, words):
    planner = world.start(NbvPlannerNode, **IDLE)
    Robot(world).begin()
    world.spin_until(lambda: planner.core.inputs.belief, "the surface")
    answer = Asker(world).ask(angles)
    assert answer.level == DiagnosticStatus.ERROR
    assert words in answer.message
    assert world.drops(planner)["~/rank.angles"] == 1


def test_without_a_surface_the_answer_says_so(world):
    world.start(NbvPlannerNode, **IDLE)
    assert Asker(world).ask([1.0]).message == "no surface received yet"


def test_an_inactive_planner_answers_what_it_waits_for(world):
    planner = world.start(NbvPlannerNode, **IDLE)
    asker = Asker(world)
    planner.trigger_deactivate()
    assert "activate" in asker.ask([1.0]).message


# --- poses

ANNULUS = {**IDLE, "objective": "EMC", "planner": "greedy", "view_space": "annulus"}


def pose(x: float, y: float, yaw: float) -> Pose:
    return conversions.pose_to_msg(CameraPose(x, y, yaw), header("object")).pose


def poses_told(world, planner, poses: list[Pose], frame: str = "object") -> None:
    world.speaker(PoseArray, "nbv_planner/view_poses")(PoseArray(header=header(frame), poses=poses))
    world.spin_some()


GOOD = [(9.0, 0.0, 3.0), (0.0, 12.0, -1.5), (-14.0, 1.0, 0.2)]


def test_poses_by_message_are_the_candidates_and_bad_ones_are_dropped_with_the_reason(world):
    planner = world.start(NbvPlannerNode, **{**IDLE, "planner": "rollout", "certify": False})
    bad = [pose(3.0, 0.0, 0.0), pose(math.nan, 0.0, 0.0), Pose(orientation=Quaternion(w=0.0))]
    poses_told(world, planner, [pose(*GOOD[0]), *bad, pose(*GOOD[1]), pose(*GOOD[2])])
    views = planner.core.planner.views.candidates
    assert views.position.ravel() == pytest.approx(np.ravel([place[:2] for place in GOOD]))
    drops = world.drops(planner)
    assert (
        drops["~/view_poses.inside"]
        == drops["~/view_poses.not_finite"]
        == drops["~/view_poses.quaternion"]
        == 1
    )
    assert list(planner.get_parameter("view_poses").value) == pytest.approx(np.ravel(GOOD))
    robot = Robot(world).begin()
    robot.send(MEASURED, 0)
    assert world.call(Trigger, "nbv_planner/start").success
    goal = pose_from_msg(robot.goal(1))
    assert min(math.dist((goal.x, goal.y), place[:2]) for place in GOOD) < 1e-9
    values = status_values(world.spin_until(lambda: robot.iterations, "the iteration")[-1])
    assert float(values["view_distance"]) == pytest.approx(math.hypot(goal.x, goal.y))
    cloud = candidates_from_msg(robot.candidates[-1])
    assert cloud.views(10.0).polar == pytest.approx(views.polar, abs=1e-5)


@pytest.mark.parametrize(
    ("poses", "frame", "reason"),
    [
        ([], "object", "refused"),
        ([pose(*GOOD[0])] * 2001, "object", "refused"),
        ([pose(*GOOD[0])], "map", "frame"),
        ([pose(1.0, 0.0, 0.0)], "object", "refused"),
    ],
)
def test_poses_that_leave_none_change_nothing_and_are_counted(world, poses, frame, reason):
    planner = world.start(NbvPlannerNode, **IDLE)
    before = planner.core.planner.views
    poses_told(world, planner, poses, frame)
    assert world.drops(planner)[f"~/view_poses.{reason}"] == 1
    assert planner.core.planner.views is before


def test_during_an_episode_poses_are_refused(world):
    planner = world.start(NbvPlannerNode, **{**ENDLESS, "planner": "rollout"})
    robot = Robot(world, drives=False).begin()
    robot.send(MEASURED, 0)
    robot.goal(1)
    poses_told(world, planner, [pose(*GOOD[0])])
    assert world.drops(planner)["~/view_poses.refused"] == 1
    assert len(planner.core.planner.views.candidates) == 20


def test_a_restarted_planner_goes_on_with_the_poses_of_its_episode(world, tmp_path):
    file = tmp_path / "session.jsonl"
    planner = world.start(NbvPlannerNode, **{**IDLE, "planner": "rollout"}, state_file=str(file))
    poses_told(world, planner, [pose(*place) for place in GOOD])
    robot = Robot(world, drives=False).begin()
    robot.send(MEASURED, 0)
    world.call(Trigger, "nbv_planner/start")
    first = pose_from_msg(robot.goal(1))
    world.end(planner)
    other = world.start(NbvPlannerNode, **{**IDLE, "planner": "rollout"}, state_file=str(file))
    assert list(other.get_parameter("view_poses").value) == pytest.approx(np.ravel(GOOD))
    goal = other.core.episode.goal.pose
    assert (goal.x, goal.y) == pytest.approx((first.x, first.y))


def test_in_an_annulus_words_and_numbers_name_distance_and_turn(world):
    planner = world.start(NbvPlannerNode, **ANNULUS)
    robot = Robot(world, drives=False).begin()
    robot.send(MEASURED, 0)
    world.spin_until(lambda: planner.core.inputs.belief, "the surface")
    once = world.call(Trigger, "nbv_planner/plan_once").message
    assert " m, turned by " in once
    world.call(Trigger, "nbv_planner/start")
    goal = pose_from_msg(robot.goal(1))
    (iteration,) = world.spin_until(lambda: robot.iterations, "the iteration")
    assert f"{goal.distance:.4g} m, turned by {goal.turn:.4f} rad" in iteration.message
    decision = decision_from_values(status_values(iteration))
    assert decision.view(10.0).distance == pytest.approx(goal.distance)
    values = world.diagnosis(planner).values
    assert float(values["view_turn"]) == pytest.approx(goal.turn)
    skipped = world.call(Trigger, "nbv_planner/skip_view").message
    assert skipped.startswith("skipped the view at ")
    assert " m, turned by " in skipped
    assert pose_from_msg(robot.goal(2)) != goal


def test_an_unknown_scene_is_refused_off_the_circle(world):
    planner = world.start(NbvPlannerNode, **ANNULUS)
    robot = Robot(world, drives=False).begin()
    robot.send_surface(
        conversions.belief_to_msg(MEASURED, header("object", 0)),
        scene=EstimatedScene(1.0, 0.5, 2.0, 6.0, 9.0),
    )
    world.spin_until(lambda: world.drops(planner).get("surface.scene"), "the refusal")
    assert planner.core.episode.estimated_scene is None


# --- the list


def taken(robot: Robot, number: int) -> list[float]:
    robot.goal(number)
    return [round(pose_from_msg(goal).view_angle, 9) for goal in robot.goals[:number]]


def test_with_a_list_at_start_only_its_views_are_taken(world):
    world.start(NbvPlannerNode, **ENDLESS, view_angles=LIST)
    robot = Robot(world).begin()
    assert robot.status("DONE")["reason"] == "NO_REACHABLE_VIEW"
    assert sorted(taken(robot, 3)) == LIST
    assert candidates_from_msg(robot.candidates[-1]).angle.tolist() == pytest.approx(LIST)


@pytest.mark.parametrize(
    ("angles", "words"),
    [
        ([1.0, math.nan], "not a finite number"),
        ([-0.3, 1.0], "is not a view angle"),
        ([1.0, 1.0001], "too close"),
        ([3.0], "leave none of the candidate views"),
    ],
)
def test_a_list_that_is_none_is_refused_with_the_reason_and_changes_nothing(world, angles, words):
    planner = world.start(NbvPlannerNode, **IDLE, view_angles=LIST, allowed_arcs=[0.0, 2.8])
    (answer,) = world.set_parameters(planner, view_angles=angles)
    assert not answer.successful
    assert words in answer.reason
    assert planner.core.planner.views.angles.tolist() == LIST
    assert list(planner.get_parameter("view_angles").value) == LIST


def test_an_empty_list_is_refused(world):
    """From a terminal it has no type, from a program that of the parameter."""
    planner = world.start(NbvPlannerNode, **IDLE)
    assert not world.set_parameters(planner, view_angles=[])[0].successful
    (answer,) = planner.set_parameters([Parameter("view_angles", Parameter.Type.DOUBLE_ARRAY, [])])
    assert (answer.successful, "view_angles: is empty" in answer.reason) == (False, True)


def test_a_list_given_before_the_start_counts_and_is_in_run_info(world):
    planner = world.start(NbvPlannerNode, **IDLE)
    infos = world.listen(String, "run_info", qos.latched(10))
    robot = Robot(world).begin()
    assert world.set_parameters(planner, view_angles=LIST)[0].successful

    def recorded():
        return (
            infos and yaml.safe_load(infos[-1].data)["nodes"]["nbv_planner"]["view_angles"] == LIST
        )

    world.spin_until(recorded, "the list in run_info")
    assert world.call(Trigger, "nbv_planner/start").success
    assert sorted(taken(robot, 3)) == LIST


def test_during_an_episode_the_list_is_fixed_and_after_it_not(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    (answer,) = world.set_parameters(planner, view_angles=LIST)
    assert (answer.successful, "fixed during an episode" in answer.reason) == (False, True)
    assert world.call(Trigger, "nbv_planner/stop").success
    assert world.set_parameters(planner, view_angles=LIST)[0].successful
    robot.goals.clear()
    robot.drives = True
    assert world.call(Trigger, "nbv_planner/reset").success
    assert sorted(taken(robot, 3)) == LIST


def test_a_restarted_planner_goes_on_with_the_list_of_its_episode(world, tmp_path):
    file = tmp_path / "session.jsonl"
    planner = world.start(NbvPlannerNode, **IDLE, state_file=str(file))
    robot = Robot(world, drives=False).begin()
    assert world.set_parameters(planner, view_angles=LIST)[0].successful
    world.call(Trigger, "nbv_planner/start")
    first = taken(robot, 1)
    world.end(planner)
    other = world.start(NbvPlannerNode, **IDLE, state_file=str(file))
    assert list(other.get_parameter("view_angles").value) == LIST
    assert other.core.planner.views.angles.tolist() == LIST
    robot = Robot(world)
    robot.send(PRIOR, 0)
    assert sorted(dict.fromkeys(taken(robot, 3))) == LIST
    assert taken(robot, 1) == first


@pytest.mark.parametrize("damage", [[1.0, 1.0], "x", [None], 3])
def test_a_saved_list_that_is_none_is_set_aside_with_its_file(world, tmp_path, damage):
    file = tmp_path / "session.jsonl"
    planner = world.start(NbvPlannerNode, **IDLE, state_file=str(file), view_angles=LIST)
    world.spin_until(file.exists, "the saved session")
    world.end(planner)
    rewrite(
        file,
        "planning session",
        lambda records: [
            {**record, "lists": {"view_angles": damage}} if record["fact"] == "Listed" else record
            for record in records
        ],
    )
    other = world.start(NbvPlannerNode, **IDLE, state_file=str(file), view_angles=LIST)
    assert world.drops(other)["state.content"] == 1
    assert other.core.planner.views.angles.tolist() == LIST


def test_numbers_for_plots_are_on_diagnostics_as_numbers(world):
    """As PlotJuggler reads /diagnostics: each value that is a number becomes a curve."""
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    robot.arrive()
    robot.map()
    robot.goal(2)
    values = world.diagnosis(planner).values
    for name in (
        "views",
        "coverage_estimate",
        "elapsed",
        "travelled",
        "band_width_mean",
        "narrow_fraction",
        "utility",
        "view_angle",
        "planning_milliseconds",
    ):
        assert math.isfinite(float(values[name])), name
    assert float(values["band_width_mean"]) == pytest.approx(
        float(planner.core.inputs.belief.width.mean())
    )
