"""Node nbv_planner: views that a user asks about, and a list of views that it is restricted to."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels")

import yaml
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from test_nbv_planner import PRIOR, SMALL, Robot
from views import circle

from nbv_planner.episode.messages import candidates_from_msg, pose_from_msg, status_values
from nbv_planner.mapping.saved import read_state, write_state
from nbv_planner.planning.planners import PlannerSettings, planner_named
from nbv_planner.ros.core import qos
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.world.pose import Views
from nbv_planner.world.scene import Scene

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
    world.spin_until(lambda: planner.session.inputs.belief, "the surface")
    angles = [0.1, 1.1, 4.0]
    answer = Asker(world).ask(angles)
    values = status_values(answer)
    assert (answer.level, values["objective"], values["views"]) == (DiagnosticStatus.OK, "U", "3")
    own = planner_named(PlannerSettings(planner="greedy", objective="U"), Scene(), circle())
    expected, _ = own.evaluate(PRIOR.as_transmitted(), Views.on_circle(np.array(angles), 10.0))
    order = np.argsort(-expected)
    assert [float(values[f"{place}.view_angle"]) for place in (1, 2, 3)] == [angles[i] for i in order]
    assert [float(values[f"{place}.utility"]) for place in (1, 2, 3)] == pytest.approx(expected[order].tolist())
    assert answer.message.startswith(f"best: {angles[order[0]]:.4f} rad, U ")
    assert (robot.goals, planner.session.visited, planner.session.started) == ([], [], False)


def test_ranking_during_an_episode_leaves_it_as_it_is(world):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    goal = robot.goal(1)
    before, asker = planner.session.milestone, Asker(world)
    values = status_values(asker.ask([pose_from_msg(goal).view_angle, 1.0]))
    assert values["1.view_angle"] == repr(pose_from_msg(goal).view_angle)
    assert planner.session.milestone == before
    world.spin_some()
    assert len(robot.goals) == 1
    robot.arrive()
    robot.map()
    robot.goal(2)
    taken = status_values(asker.ask([pose_from_msg(goal).view_angle]))
    assert taken["1.excluded"] == "2"


@pytest.mark.parametrize(
    ("angles", "words"),
    [([], "is empty"), ([1.0] * 1001, "rank: has 1001 angles, must be 1000 or fewer"),
     ([1.0, math.nan], "rank[1]: nan"), ([9.0], "must be >= 0 and <= 6.28319 rad"),
     ([1.0, 1.0], "too close")],
)  # fmt: skip
def test_angles_that_are_none_are_answered_with_the_reason_and_counted(world, angles, words):
    planner = world.start(NbvPlannerNode, **IDLE)
    Robot(world).begin()
    world.spin_until(lambda: planner.session.inputs.belief, "the surface")
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
    [([1.0, math.nan], "not a finite number"), ([-0.3, 1.0], "is no view angle"),
     ([1.0, 1.0001], "too close"), ([3.0], "leave none of the candidate views")],
)  # fmt: skip
def test_a_list_that_is_none_is_refused_with_the_reason_and_changes_nothing(world, angles, words):
    planner = world.start(NbvPlannerNode, **IDLE, view_angles=LIST, allowed_arcs=[0.0, 2.8])
    (answer,) = world.set_parameters(planner, view_angles=angles)
    assert not answer.successful
    assert words in answer.reason
    assert planner.session.planner.views.angles.tolist() == LIST
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
        return infos and yaml.safe_load(infos[-1].data)["nodes"]["nbv_planner"]["view_angles"] == LIST

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
    file = tmp_path / "session.npz"
    planner = world.start(NbvPlannerNode, **IDLE, state_file=str(file))
    robot = Robot(world, drives=False).begin()
    assert world.set_parameters(planner, view_angles=LIST)[0].successful
    world.call(Trigger, "nbv_planner/start")
    first = taken(robot, 1)
    world.end(planner)
    other = world.start(NbvPlannerNode, **IDLE, state_file=str(file))
    assert list(other.get_parameter("view_angles").value) == LIST
    assert other.session.planner.views.angles.tolist() == LIST
    robot = Robot(world)
    robot.send_surface(robot.surface(PRIOR, 0))
    assert sorted(dict.fromkeys(taken(robot, 3))) == LIST
    assert taken(robot, 1) == first


@pytest.mark.parametrize("damage", [[1.0, 1.0], "x", [None], 3])
def test_a_saved_list_that_is_none_is_set_aside_with_its_file(world, tmp_path, damage):
    file = tmp_path / "session.npz"
    planner = world.start(NbvPlannerNode, **IDLE, state_file=str(file), view_angles=LIST)
    world.spin_until(file.exists, "the saved session")
    world.end(planner)
    state = read_state(file, "planning session")
    write_state(file, type(state)(**{**vars(state), "values": {**state.values, "view_angles": damage}}))
    other = world.start(NbvPlannerNode, **IDLE, state_file=str(file), view_angles=LIST)
    assert world.drops(other)["state.content"] == 1
    assert other.session.planner.views.angles.tolist() == LIST


def test_the_way_may_not_exceed_max_travel(world):
    world.start(NbvPlannerNode, **ENDLESS, max_travel=25.0)
    robot = Robot(world).begin()
    done = robot.status("DONE")
    assert done["reason"] == "MAX_TRAVEL"
    assert "more than 25 m" in done["detail"]
    angles = taken(robot, int(done["views"]))
    way = sum(abs(math.remainder(b - a, 2 * math.pi)) * 10.0 for a, b in pairwise(angles))
    assert way <= 25.0 < float(done["travel"])


def test_numbers_for_plots_are_on_diagnostics_as_numbers(world):
    """As PlotJuggler reads /diagnostics: each value that is a number becomes a curve."""
    planner = world.start(NbvPlannerNode, **ENDLESS)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    robot.arrive()
    robot.map()
    robot.goal(2)
    values = world.diagnosis(planner).values
    for name in ("views", "coverage_estimate", "elapsed", "travelled", "band_width_mean", "narrow_fraction",
                 "utility", "view_angle", "planning_milliseconds"):
        assert math.isfinite(float(values[name])), name
    assert float(values["band_width_mean"]) == pytest.approx(float(planner.session.inputs.belief.width.mean()))
