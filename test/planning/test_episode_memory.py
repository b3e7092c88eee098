"""What of an episode survives the planner, the mapper and the clock (without ROS)."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from beliefs import belief_of
from test_session import SECOND, band, feed, ready, session, take_view

from nbv_planner.errors import InputRejectedError, StateFileError
from nbv_planner.planning.planners import PlannerSettings, planner_named
from nbv_planner.planning.termination import TerminationReason
from nbv_planner.session.episode_memory import SurfaceOrigin
from nbv_planner.session.planning_session import PlanningSession, State
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import Check, Level
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

KEPT = {
    "started", "paused", "visited", "lost_views", "skipped_views", "unreached_views", "_counted", "_hits", "_began",
    "_arrived", "_away", "_sent", "_tries", "goal", "termination", "ending", "origin",
    "approaches", "withdrawn_views", "legs",
}
NOT_KEPT = {
    "inputs": "comes in again",
    "planner": "its unreachable views are kept, and the scans that it has heard",
    "monitor": "its history and its doubts are kept",
    "settings": "comes from the parameters", "_arrival": "comes from the parameters",
    "_episode": "names the episode within the process",
    "_waiting_since": "the wait begins anew",
    "_home": "the way home begins anew",
    "_since": "the time for which the camera stands at its goal is measured anew",
    "_stood": "a surface that comes after the camera has left again counts within a process only",
    "_track": "the speed of the camera is judged by newer poses",
    "_set_out": "only narrows what a miss is taken to tell",
    "last_miss": "only words and numbers for the status",
    "_again": "a goal that was interrupted is sent again on start, or after its timeout",
    "found": "the node refers the session to it before it restores",
    "interruption": "only words for the status", "refusal": "only words for the status",
    "unchecked": "the node asks for the checks again",
    "withdrawal": "only words for the status",
    "leg": "the leg under way was disturbed by the restart", "_came": "belongs to that leg",
    "_judged": "the goal is judged again",
    "_rest": "whether the pose changes is judged by newer ones", "_vain": "belongs to that",
    "_pose_before": "poses that come after a restart are received since the goal",
    "refused": "a mapper that is still there publishes again",
}


def restarted(run: PlanningSession, **settings) -> PlanningSession:
    """Another process that has read the state and has heard what the first one had."""
    values, arrays = run.saved()
    other = session(**settings)
    other.restore(json.loads(json.dumps(values)), arrays)
    other.inputs = dataclasses.replace(run.inputs)
    return other


def goals_equal(one, other) -> bool:
    if one is None or other is None:
        return one is other
    first, second = ({k: v for k, v in vars(goal).items() if k not in ("decision", "belief")} for goal in (one, other))
    left_out = ("view", "candidates", "evidence", "common", "_polar", "promised")  # what is asked once, at the answer
    arrays = [
        (getattr(mine, field.name), getattr(theirs, field.name))
        for mine, theirs in (
            (one.decision, other.decision), (one.decision.candidates, other.decision.candidates),
            (one.belief, other.belief),
        )
        for field in dataclasses.fields(mine) if field.name not in left_out
    ]  # fmt: skip
    words = {array for pair in arrays for array in pair if isinstance(array, str)}
    numbers = [pair for pair in arrays if not isinstance(pair[0], str)]
    first["view"], second["view"] = one.decision.view, other.decision.view
    return first == second and len(words) == 1 and all(np.array_equal(a, b, equal_nan=True) for a, b in numbers)


def assert_same(one: PlanningSession, other: PlanningSession) -> None:
    for name in KEPT - {"goal", "legs"}:  # a leg that a restart disturbs is none
        assert getattr(one, name) == getattr(other, name), name
    assert goals_equal(one.goal, other.goal)
    assert one.state is other.state
    assert (one.monitor.history, one.monitor.doubts) == (other.monitor.history, other.monitor.doubts)
    assert one.planner.views.unreachable == other.planner.views.unreachable


def test_everything_that_a_session_remembers_is_kept_or_said_not_to_be():
    """Whoever gives the session something new to remember has to say here whether it survives."""
    assert set(vars(session())) == KEPT | set(NOT_KEPT)


def test_at_every_moment_of_an_episode_another_process_goes_on_the_same():
    run, wide = ready(termination={"max_views": 4}), [0.0, 2.0, 4.0, 1.0]
    twin, moments = restarted(run, termination={"max_views": 4}), 0
    for number in range(4):
        for step in range(6):
            now = (10 * number + step + 1) * SECOND
            for one in (run, twin):
                if step == 1:
                    feed(one, pose_angle=one.goal.decision.view_angle - 0.3, pose_stamp=now)
                if step == 3:
                    feed(one, pose_angle=one.goal.decision.view_angle, pose_stamp=now)
                if step == 4:
                    one.take_surface(band(wide[number]), now)
                one.update(now)
            if run.goal is not None and twin.goal is not None:  # the one thing that is measured anew
                time_taken = {"planning_milliseconds": run.goal.planning_milliseconds}
                twin.goal = dataclasses.replace(twin.goal, **time_taken)
            assert_same(run, twin)
            twin, moments = restarted(twin, termination={"max_views": 4}), moments + 1
            assert_same(run, twin)
    assert moments == 24
    assert run.termination.reason is TerminationReason.MAX_VIEWS


@pytest.mark.parametrize("what", ["paused", "stopped", "not started", "unreachable", "retried"])
def test_whatever_state_it_is_in_survives(what):
    run = ready(wait_for_start=what == "not started", goal_timeout=5.0)
    run.update(SECOND)
    if what == "paused":
        run.pause(True, 2 * SECOND)
    elif what == "stopped":
        run.stop("the operator's word")
    elif what in ("unreachable", "retried"):
        for second in (7, 14) if what == "unreachable" else (7,):
            run.update(second * SECOND)
    twin = restarted(run, wait_for_start=what == "not started", goal_timeout=5.0)
    assert_same(run, twin)
    assert run.state is {
        "paused": State.PAUSED, "stopped": State.DONE, "not started": State.WAITING, "unreachable": State.MOVING,
        "retried": State.MOVING,
    }[what]
    assert len(run.planner.views.unreachable) == (what == "unreachable")


def hearing(*ranges: list[float]) -> PlanningSession:
    run = session()
    run.planner = planner_named(PlannerSettings(planner="volumetric"), Scene(), run.planner.views)
    run.planner.heard = tuple(
        (Scan(-0.3, 0.2, np.array(found), 0.05, math.inf), CameraPose(10.0 - turn, turn, 3.0 + turn, height=0.5))
        for turn, found in enumerate(ranges)
    )
    return run


@pytest.mark.parametrize("ranges", [[], [[5.0, math.inf, math.nan]], [[5.0], [-math.inf, 4.0], [3.0, 3.0, 3.0]]])
def test_a_planner_that_takes_scans_has_them_after_a_restart(ranges):
    run, other = hearing(*ranges), hearing()
    values, arrays = run.saved()
    other.restore(json.loads(json.dumps(values)), arrays)
    assert len(other.planner.heard) == len(ranges)
    for (scan, pose), (its, its_pose) in zip(other.planner.heard, run.planner.heard, strict=True):
        np.testing.assert_array_equal(scan.ranges, its.ranges)
        assert (scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max) == (-0.3, 0.2, 0.05, math.inf)
        assert pose == its_pose


def test_scans_that_do_not_fit_their_ranges_are_refused():
    values, arrays = hearing([5.0, 4.0], [3.0]).saved()
    for name, spoilt in (("heard_ranges", arrays["heard_ranges"][:2]), ("heard", arrays["heard"] * np.nan)):
        other = hearing()
        with pytest.raises(StateFileError):
            other.restore(values, {**arrays, name: spoilt})
        assert other.planner.heard == ()


def test_the_time_since_the_start_goes_on_over_a_restart():
    run = ready()
    run.update(SECOND)
    assert restarted(run).elapsed(31 * SECOND) == pytest.approx(30.0)


BAD = {
    "a view that is not finite": {"visited": [math.nan], "counted": [1]},
    "a view that is text": {"visited": ["north"], "counted": [1]},
    "more views than surfaces": {"visited": [1.0, 2.0], "counted": [1]},
    "more doubts than views": {"doubts": [True]},
    "a doubt that is a number": {"coverage": [0.5], "doubts": [1]},
    "a stamp with a fraction": {"away": 1.5},
    "a truth that is a number": {"paused": 1},
    "an end for no known reason": {"termination": {"reason": "BORED", "figures": {}, "detail": ""}},
    "a figure that is not finite": {"termination": {"reason": "STOPPED", "figures": {"x": math.inf}, "detail": ""}},
    "a candidate that is none": {"unreachable": [[99, 1.0]]},
    "an arrival at no goal": {"goal": None, "arrived": True},
    "a goal without arrays": {"goal": {"stamp": 1}},
    "no list at all": {"visited": None},
}


@pytest.mark.parametrize("name", BAD)
def test_what_no_session_can_remember_is_refused_and_changes_nothing(name):
    run = ready()
    run.update(SECOND)
    values, arrays = run.saved()
    other = session()
    other.paused = True
    with pytest.raises(StateFileError) as caught:
        other.restore({**values, **BAD[name]}, {} if "arrays" in name else arrays)
    assert caught.value.reason == "content"
    assert (other.paused, other.goal, other.visited) == (True, None, [])


@pytest.mark.parametrize("name", ["goal_decision", "goal_belief"])
def test_a_goal_that_is_not_finite_is_refused(name):
    run = ready()
    run.update(SECOND)
    values, arrays = run.saved()
    spoilt = arrays[name].copy()
    spoilt.flat[0] = math.nan
    with pytest.raises(StateFileError, match="not finite"):
        session().restore(values, {**arrays, name: spoilt})


def test_a_missing_value_is_refused():
    values, arrays = ready().saved()
    optional = {"origin", "found", "approaches", "withdrawn_views", "legs", "doubts"}  # older files do not have them
    for name in values.keys() - optional:
        with pytest.raises(StateFileError):
            session().restore({key: value for key, value in values.items() if key != name}, arrays)


DOUBT = Check("overlap", 7.0, 5.0, Level.FAILED)
MAPPER = SurfaceOrigin("object", 100, PriorSettings())


@pytest.mark.parametrize(
    ("other", "reason", "words"),
    [
        (dataclasses.replace(MAPPER, prior=PriorSettings(kappa=2)), "other_prior", "it has kappa 2 (the episode's: 1)"),
        (dataclasses.replace(MAPPER, prior=None), "other_prior", "it has prior None (the episode's: {'kernel': "),
        (dataclasses.replace(MAPPER, size=50), "other_grid", "it has size 50 (the episode's: 100)"),
        (dataclasses.replace(MAPPER, frame="map"), "other_grid", "it has frame map (the episode's: object)"),
    ],
)
def test_surfaces_of_another_mapper_are_refused_from_the_first_question_to_the_reset(other, reason, words):
    run, belief, its = ready(), band(5.0), band(1.0)
    run.take_surface(its, 0, other)
    run.take_surface(belief, 0, MAPPER)  # nothing has been decided yet
    run.update(SECOND)
    again = restarted(run)
    for one in (run, again):
        with pytest.raises(InputRejectedError) as caught:
            one.take_surface(its, SECOND, other)
        assert caught.value.reason == reason
        assert words in str(caught.value)
        assert (one.inputs.belief, one.origin) == (belief, MAPPER)
    run.take_surface(belief, SECOND, MAPPER)
    assert run.refused is None
    again.reset()
    assert (again.inputs.belief, again.origin, again.refused) == (its, other, None)


def mapped_at(view: int) -> int:
    return 3 * view * SECOND - SECOND // 2


def counted(number: int) -> PlanningSession:
    """A session in which views mapped at 2.5, 5.5, 8.5, ... s have counted, each with 10 more hits."""
    run = ready()
    for view in range(1, number + 1):
        run.update((3 * view - 2) * SECOND)
        feed(run, pose_angle=run.goal.decision.view_angle, pose_stamp=(3 * view - 1) * SECOND)
        run.update((3 * view - 1) * SECOND)
        run.take_surface(hit(band(float(view)), 10 * view), mapped_at(view))
        run.update(3 * view * SECOND)
    return run


def hit(belief, hits: int):
    count = np.zeros_like(belief.hits)
    count[0] = hits
    return dataclasses.replace(belief, hits=count)


def test_a_mapper_that_comes_back_with_less_has_lost_its_views():
    run = counted(3)
    before = list(run.visited)
    assert run.take_surface(hit(band(9.9), 10), mapped_at(1)) == 2
    assert run.visited == before[:1]
    assert run.lost_views == 2
    assert len(run.monitor.history) == 1
    assert run.take_surface(hit(band(9.9), 10), mapped_at(1)) == 0


def test_a_mapper_that_comes_back_with_nothing_has_lost_them_all():
    run = counted(3)
    assert run.take_surface(band(9.9), 0) == 3
    assert run.visited == []


def test_a_mapper_that_comes_back_with_everything_has_lost_nothing():
    run = counted(3)
    assert run.take_surface(hit(band(9.9), 30), mapped_at(3)) == 0
    assert len(run.visited) == 3


def test_a_mapper_that_was_told_to_forget_has_lost_nothing():
    run = counted(3)
    assert run.take_surface(band(9.9), 10 * SECOND) == 0
    assert len(run.visited) == 3


def test_a_planner_that_was_started_again_notices_the_loss_too():
    assert restarted(counted(3)).take_surface(hit(band(9.9), 20), mapped_at(2)) == 1


@pytest.mark.parametrize("back", [0, 1])  # the views that the map still has
@pytest.mark.parametrize("paused", [False, True])
def test_a_map_that_is_lost_between_a_view_and_its_decision_takes_the_leg_to_that_view_with_it(back, paused):
    """The mapper was reset or restarted, or has loaded another map, while the decision was due or made elsewhere."""
    run = counted(1)
    run.update(4 * SECOND)
    feed(run, pose_angle=run.goal.decision.view_angle, pose_stamp=5 * SECOND)
    run.update(5 * SECOND)
    run.take_surface(hit(band(2.0), 20), mapped_at(2))
    run.advance(6 * SECOND)
    question = run.question(6 * SECOND)
    legs = len(run.legs)
    if paused:
        run.pause(True, 6 * SECOND)
    assert run.take_surface(hit(band(9.9), 10 * back), mapped_at(back)) == 2 - back
    if paused:
        run.pause(False, 7 * SECOND)
    assert run.answer(question, question.decide(), 7 * SECOND) is None  # it was about a map that is no more
    assert run.update(7 * SECOND).round == back + 1
    assert len(run.legs) == legs
    assert run.leg is not None


def test_an_episode_that_is_loaded_between_a_view_and_its_decision_has_no_leg_of_the_one_before():
    values, arrays = ready().saved()
    run = counted(1)
    run.update(4 * SECOND)
    feed(run, pose_angle=run.goal.decision.view_angle, pose_stamp=5 * SECOND)
    run.update(5 * SECOND)
    run.take_surface(hit(band(2.0), 20), mapped_at(2))
    run.advance(6 * SECOND)
    assert run.leg is not None
    run.restore(values, arrays)
    assert run.update(7 * SECOND).round == 1
    assert len(run.legs) == 0


def test_a_map_that_is_lost_on_the_way_to_the_next_view_leaves_the_leg_to_that_one():
    run = counted(2)
    run.update(7 * SECOND)
    under_way = run.leg
    assert run.take_surface(hit(band(9.9), 0), 0) == 2
    assert run.leg is under_way is not None


@pytest.mark.parametrize("how", ["restarted", "prior", "scene"])
def test_what_was_doubted_before_a_restart_or_another_planner_counts(how):
    run = counted(2)
    run.monitor.doubts = [True, True]
    if how == "restarted":
        run = restarted(run)
    elif how == "prior":
        run.use(session().planner, session().monitor)
    else:
        run.refer(None, session().planner, session().monitor)
    assert run.monitor.doubts == [True, True]
    assert sum(run.monitor.doubts) == run.monitor.settings.doubt_views
    belief = dataclasses.replace(belief_of(5.0, 5.1, size=400, hits=1), checks=(DOUBT,))
    assert run.monitor.after_view(belief, 1.0).reason is TerminationReason.DOUBTFUL


def test_a_doubt_about_a_view_that_is_lost_is_lost_with_it():
    run = counted(3)
    run.monitor.doubts = [True, False, True]
    run.take_surface(hit(band(9.9), 10), mapped_at(1))
    assert run.monitor.doubts == [True]


def test_after_the_end_nothing_is_taken_back():
    run = counted(3)
    run.stop()
    assert run.take_surface(band(9.9), 0) == 0
    assert len(run.visited) == 3


def test_a_clock_that_goes_back_keeps_views_and_time_and_gives_the_goal_anew():
    run = counted(2)
    run.update(100 * SECOND)
    view, elapsed = run.goal.decision.view_angle, run.elapsed(101 * SECOND)
    again = run.clock_went_back(101 * SECOND, 20 * SECOND)
    assert (again.stamp, again.decision.view_angle, again.round) == (20 * SECOND, view, 3)
    assert run.elapsed(20 * SECOND) == elapsed
    assert run.take_surface(hit(band(2.0), 20), 5 * SECOND) == 0
    take_view(run, 21 * SECOND)
    run.take_surface(hit(band(0.5), 30), 22 * SECOND)
    run.update(22 * SECOND)
    assert len(run.visited) == 3


def test_a_surface_from_before_the_clock_went_back_does_not_count_for_the_goal():
    run = counted(1)
    run.update(100 * SECOND)
    run.clock_went_back(101 * SECOND, 20 * SECOND)
    feed(run, pose_angle=run.goal.decision.view_angle, pose_stamp=21 * SECOND)
    run.update(21 * SECOND)
    assert run.state is State.MEASURING


def test_views_stay_unreachable_for_as_long_as_they_were_meant_to():
    run = ready(goal_timeout=5.0, goal_retries=0, unreachable_duration=30.0)
    run.update(SECOND)
    run.update(7 * SECOND)
    (index,) = run.planner.views.unreachable
    run.clock_went_back(7 * SECOND, 2 * SECOND)
    assert run.planner.views.unreachable == {index: pytest.approx(32.0)}


def test_each_change_that_must_not_be_lost_is_a_milestone():
    run = ready(goal_timeout=5.0)
    seen = [run.milestone]
    for change in (
        lambda: run.update(SECOND), lambda: run.pause(True, 2 * SECOND), lambda: run.pause(False, 2 * SECOND),
        lambda: run.update(8 * SECOND), lambda: run.update(14 * SECOND),
        lambda: feed(run, pose_angle=run.goal.decision.view_angle, pose_stamp=16 * SECOND) or run.update(16 * SECOND),
        lambda: run.take_surface(hit(band(1.0), 5), 17 * SECOND) or run.update(17 * SECOND),
        run.stop, run.reset,
    ):
        change()
        assert run.milestone != seen[-1]
        seen.append(run.milestone)
    assert run.milestone == seen[-1]
