"""What the robot says of its way: given up, cancelled by somebody else; and the way home at the
end.
"""

from __future__ import annotations

import math

import pytest
from test_session import SECOND, feed, ready, take_view

from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.session import events
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import State
from nbv_planner.world.pose import CameraPose

HOME = {"return_home": True, "home_angle": 2.5}


def ended(run: PlannerCore) -> Termination:
    assert run.state is State.DONE
    assert run.episode.termination is not None
    return run.episode.termination


# --- goals that the robot gives up


def test_a_goal_that_the_robot_gives_up_is_sent_again_at_once_and_then_left_for_another_view():
    run = ready(goal_timeout=1000.0, goal_retries=1)
    goal = events.update(run, 0)
    assert events.failed(run, goal.stamp, 1 * SECOND) is goal
    assert run.state is State.MOVING
    assert events.failed(run, goal.stamp, 2 * SECOND) is None
    other = events.update(run, 3 * SECOND)
    assert other.decision.view_angle != goal.decision.view_angle
    assert not other.decision.feasible[run.planner.views.nearest(goal.decision.view)]
    assert run.episode.visited == ()


def test_a_view_that_was_given_up_may_be_chosen_again_after_a_while():
    run = ready(goal_retries=0, unreachable_duration=100.0)
    goal = events.update(run, 0)
    events.failed(run, goal.stamp, 0)
    assert events.update(run, 99 * SECOND).decision.view_angle != goal.decision.view_angle
    events.failed(run, run.episode.goal.stamp, 99 * SECOND)
    assert events.update(run, 101 * SECOND).decision.view_angle == goal.decision.view_angle


def test_what_is_said_of_another_goal_or_after_the_arrival_changes_nothing():
    run = ready(goal_retries=0)
    goal = events.update(run, 5)
    assert events.failed(run, 4, 6) is None
    events.interrupted(run, 4, "cancelled")
    assert (run.episode.goal, run.state) == (goal, State.MOVING)
    feed(run, pose_angle=goal.decision.view_angle, pose_stamp=7)
    events.update(run, 7)
    events.failed(run, goal.stamp, 8)
    events.interrupted(run, goal.stamp, "cancelled")
    assert (run.episode.goal, run.state) == (goal, State.MEASURING)


def test_a_goal_that_fails_while_paused_is_sent_again_when_it_goes_on_and_not_before():
    run = ready(goal_retries=0)
    goal = events.update(run, 0)
    events.pause(run, True, 1)
    assert events.failed(run, goal.stamp, 2) is None
    assert events.update(run, 3) is None
    events.pause(run, False, 4)
    assert events.update(run, 5) is goal
    assert events.update(run, 6) is None


# --- goals that somebody else cancels


def test_a_cancelled_goal_pauses_and_counts_as_no_try():
    run = ready(goal_retries=1, goal_timeout=10.0)
    goal = events.update(run, 0)
    for now in (1 * SECOND, 2 * SECOND, 3 * SECOND):
        events.interrupted(run, goal.stamp, "cancelled by somebody else")
        assert run.state is State.PAUSED
        assert run.episode.interruption == "cancelled by somebody else"
        assert events.update(run, now + 100 * SECOND) is None
        events.start(run, now)
        assert run.episode.interruption == ""
        assert events.update(run, now) is goal
    assert run.planner.views.unreachable == {}
    assert events.update(run, 13 * SECOND) is None
    # the first try that counts, ten seconds after it was sent last
    assert events.update(run, 14 * SECOND) is goal


def test_a_camera_that_arrives_although_its_goal_was_cancelled_measures():
    run = ready()
    goal = events.update(run, 1)
    events.interrupted(run, goal.stamp, "cancelled")
    feed(run, pose_angle=goal.decision.view_angle, pose_stamp=SECOND)
    events.start(run, SECOND)
    assert events.update(run, SECOND) is None
    assert run.state is State.MEASURING


# --- the way home


def at_the_end(**settings) -> PlannerCore:
    run = ready(termination={"max_views": 1}, **{**HOME, **settings})
    events.update(run, SECOND)
    assert take_view(run, 2 * SECOND) is None
    return run


def test_before_the_end_the_camera_goes_home():
    run = at_the_end()
    assert (run.state, run.episode.termination, run.episode.goal) == (State.MOVING, None, None)
    home = events.update(run, 3 * SECOND)
    assert home.stamp == 3 * SECOND
    assert home.pose == CameraPose.from_polar(2.5, 10.0)
    assert events.update(run, 4 * SECOND) is None
    feed(run, pose_angle=2.5, pose_stamp=5 * SECOND)
    assert events.update(run, 5 * SECOND) is None
    end = ended(run)
    assert end.reason is TerminationReason.MAX_VIEWS
    assert end.detail == "1 views taken; the camera is back at the home view"
    assert len(run.episode.visited) == 1


def test_a_pose_from_before_the_way_home_is_no_arrival():
    run = at_the_end()
    feed(run, pose_angle=2.5, pose_stamp=3 * SECOND - 1)
    events.update(run, 3 * SECOND)
    events.update(run, 4 * SECOND)
    assert run.state is State.MOVING


@pytest.mark.parametrize("says", [True, False], ids=["the robot says so", "it takes too long"])
def test_a_home_that_is_not_reached_is_tried_again_and_then_reported(says):
    run = at_the_end(goal_timeout=10.0, goal_retries=1)
    home, now = events.update(run, 3 * SECOND), 3 * SECOND
    for expected in (home, None):
        now += 11 * SECOND
        found = events.failed(run, home.stamp, now) if says else events.update(run, now)
        assert found is expected
    assert ended(run).reason is TerminationReason.MAX_VIEWS
    assert ended(run).detail.endswith("; the home view was not reached")


def test_stopped_on_the_way_home_it_ends_there_with_the_reason_it_had():
    run = at_the_end()
    events.update(run, 3 * SECOND)
    events.stop(run)
    assert ended(run).reason is TerminationReason.MAX_VIEWS
    assert ended(run).detail.endswith(
        "; stopped by the operator during the return to the home view"
    )
    assert events.update(run, 4 * SECOND) is None


def test_the_way_home_can_be_skipped_and_then_nothing_is_left_to_skip():
    run = at_the_end()
    events.update(run, 3 * SECOND)
    assert events.skip(run, 4 * SECOND) == "skipped the return home"
    assert ended(run).detail == "1 views taken; the return home was skipped"
    assert run.episode.skipped_views == 0
    with pytest.raises(ValueError, match="no goal is under way"):
        events.skip(run, 5 * SECOND)


def test_an_episode_that_is_stopped_stays_where_it_is():
    run = ready(**HOME)
    events.update(run, 0)
    events.stop(run)
    assert ended(run).reason is TerminationReason.STOPPED
    assert events.update(run, SECOND) is None


def test_the_time_limit_does_not_send_it_home_twice():
    run = ready(termination={"max_duration": 5.0}, **HOME)
    events.update(run, 0)
    assert events.update(run, 6 * SECOND) is None
    home = events.update(run, 7 * SECOND)
    assert home.pose.view_angle == pytest.approx(2.5)
    assert events.update(run, 8 * SECOND) is None
    feed(run, pose_angle=2.5, pose_stamp=9 * SECOND)
    events.update(run, 9 * SECOND)
    assert ended(run).reason is TerminationReason.MAX_DURATION


def test_paused_on_the_way_home_it_waits_and_goes_on():
    run = at_the_end()
    home = events.update(run, 3 * SECOND)
    events.interrupted(run, home.stamp, "cancelled")
    assert run.state is State.PAUSED
    events.start(run, 4 * SECOND)
    assert events.update(run, 4 * SECOND) is home


def test_without_return_home_it_ends_where_it_is():
    run = at_the_end(return_home=False)
    assert ended(run).detail == "1 views taken"


def test_reset_forgets_the_way_home():
    run = at_the_end()
    events.update(run, 3 * SECOND)
    run.begin()
    assert (run.episode.ending, run.episode.target) == (None, None)
    assert math.isfinite(events.update(run, 4 * SECOND).decision.view_angle)
