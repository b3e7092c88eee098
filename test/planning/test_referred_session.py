"""A session whose scene is being found: nothing moves in the world when the centre does, and no
view is lost.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from journaled import restarted
from test_session import ENDLESS, SECOND, band, feed

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import StateFileError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.endings import MOST_APPROACHES, TerminationReason
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import Exclusion, SearchViewSpace, ViewSpaceSettings
from nbv_planner.session import events
from nbv_planner.session.facts import Barred
from nbv_planner.session.journal import from_records
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings, State
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scale import at_estimate
from nbv_planner.world.scene import EstimatedScene, Scene

FOUND = EstimatedScene(1.0, -0.5, 2.0, 8.0, 10.0, views=1)
SEARCHING = EstimatedScene(0.0, 0.0, 2.0, 8.0, 10.0)


def deciders(found: EstimatedScene):
    views = SearchViewSpace(ViewSpaceSettings(num_views=8), found)
    planner = planner_named(
        PlannerSettings(planner="greedy", objective="UP"), at_estimate(Scene(), found), views
    )
    return planner, TerminationMonitor(TerminationSettings(certify=False, **ENDLESS))


def session(found: EstimatedScene = FOUND) -> PlannerCore:
    run = PlannerCore(
        *deciders(found), ArrivalSettings(settle_time=0.0), SessionSettings(wait_for_start=False)
    )
    run.recentre(found, *deciders(found))
    run.inputs.subscribers = 2
    feed(run, belief=band(math.pi), belief_stamp=0, pose_angle=0.0, pose_stamp=0)
    return run


def take(run: PlannerCore, now: int) -> None:
    run.inputs.pose, run.inputs.pose_stamp = run.episode.goal.pose, now
    events.update(run, now)
    feed(run, belief=band(math.pi), belief_stamp=now)
    events.update(run, now + SECOND // 2)


@given(x=st.floats(-3.0, 3.0), y=st.floats(-3.0, 3.0), distance=st.floats(8.5, 14.0))
def test_no_view_nor_goal_is_expressed_anew_when_the_centre_moves(x, y, distance):
    run = session()
    events.update(run, SECOND)
    take(run, 2 * SECOND)
    before = run.episode
    found = EstimatedScene(x, y, 2.0, 8.0, distance, views=2)
    run.recentre(found, *deciders(found))
    assert run.episode.goal is before.goal
    assert run.episode.visited == before.visited
    assert dataclasses.replace(run.episode, estimated_scene=before.estimated_scene) == before
    assert len(run.episode.visited) == 1


@given(x=st.floats(-3.0, 3.0), y=st.floats(-3.0, 3.0), angle=st.floats(0.0, 6.28))
def test_a_view_on_the_circle_about_a_centre_is_where_the_origin_sees_it(x, y, angle):
    """The decision about a centre, and the same one about the origin moved there, send the camera
    to one pose.
    """
    about = CameraPose.from_polar(angle, 10.0, 0.1, (x, y))
    there = CameraPose.from_polar(angle, 10.0, 0.1).relative_to(-x, -y)
    assert (about.x, about.y, about.yaw) == pytest.approx((there.x, there.y, there.yaw), abs=1e-12)
    assert there.about((x, y)).polar == pytest.approx(about.polar, abs=1e-12)
    both = Poses.of([about, there])
    assert both.polar == pytest.approx(np.array([about.polar, about.polar]), abs=1e-12)
    assert both.relative_to(x, y).polar[0].tolist() == list(about.polar)


def test_a_decision_about_the_old_centre_is_not_followed():
    run = session()
    question = events.question(run, SECOND)
    run.recentre(dataclasses.replace(FOUND, x=2.0), *deciders(FOUND))
    assert events.answer(run, question, question.decide(), SECOND) is None
    assert run.state is State.PLANNING


def test_a_decision_is_followed_where_only_more_scans_have_hit():
    """With `integrate: always` every scan on the way is one more."""
    run = session()
    question = events.question(run, SECOND)
    more = dataclasses.replace(FOUND, views=5, arc_start=0.1)
    run.recentre(more, *deciders(more))
    assert events.answer(run, question, question.decide(), SECOND) is not None
    assert run.episode.estimated_scene == more


def test_a_view_that_was_not_reached_is_left_out_about_the_new_centre():
    run = session()
    view = run.planner.views.candidates[2]
    run.note(Barred(((view, 100.0),)))
    found = dataclasses.replace(FOUND, x=1.3, y=-0.2)
    run.recentre(found, *deciders(found))
    assert run.planner.views.unreachable == {2: 100.0}


def test_an_approach_is_no_view():
    run = session(SEARCHING)
    events.update(run, SECOND)
    take(run, 2 * SECOND)
    assert (run.episode.approaches, run.episode.visited) == (1, ())
    assert run.episode.goal is not None
    run.recentre(FOUND, *deciders(FOUND))
    events.update(run, 3 * SECOND)
    take(run, 4 * SECOND)
    assert (run.episode.approaches, len(run.episode.visited)) == (1, 1)


def test_an_endless_approach_ends_with_words():
    run = session(SEARCHING)
    for step in range(1, MOST_APPROACHES + 1):
        events.update(run, (2 * step - 1) * SECOND)
        take(run, 2 * step * SECOND)
    assert run.episode.termination.reason is TerminationReason.FAILED
    assert "rough_radius" in run.episode.termination.detail


def test_views_beside_the_circle_survive_a_restart():
    run = session()
    events.update(run, SECOND)
    take(run, 2 * SECOND)
    found = dataclasses.replace(FOUND, x=2.3, view_distance=11.0)
    run.recentre(found, *deciders(found))
    twin = restarted(run, session(found))
    assert twin.episode.estimated_scene == found
    assert np.array_equal(Poses.of(twin.episode.visited).polar, Poses.of(run.episode.visited).polar)
    assert twin.episode.visited[0].distance != 11.0


@pytest.mark.parametrize(
    "values",
    [
        {"x": 1.0},
        {**dataclasses.asdict(FOUND), "x": math.nan},
        {**dataclasses.asdict(FOUND), "radius_max": 50.0},
        {**dataclasses.asdict(FOUND), "more": 1.0},
        [1.0],
    ],
)
def test_a_saved_scene_that_cannot_be_is_refused(values):
    with pytest.raises(StateFileError):
        from_records([{"at": 1, "fact": "SceneEstimated", "estimated_scene": values}])


def excluded(found: EstimatedScene, **settings) -> list[int]:
    space = SearchViewSpace(ViewSpaceSettings(num_views=8, **settings), found)
    return [index for index, reason in enumerate(space.excluded(0.0)) if reason & Exclusion.ARC]


def test_views_outside_of_the_arc_that_is_known_to_be_safe_are_left_out():
    assert excluded(FOUND) == []
    assert excluded(dataclasses.replace(FOUND, arc_start=-0.8, arc_end=0.8)) == [2, 3, 4, 5, 6]
    assert excluded(dataclasses.replace(FOUND, arc_start=0.8, arc_end=0.8)) == [0, 2, 3, 4, 5, 6, 7]


def test_of_a_list_of_views_the_nearest_to_the_safe_ray_is_the_one():
    angles = (0.3, 1.0, 2.5, 4.0)
    assert excluded(dataclasses.replace(FOUND, arc_start=2.4, arc_end=2.4), view_angles=angles) == [
        0,
        1,
        3,
    ]


def test_arcs_of_the_settings_win_where_no_view_is_left():
    blocked = {"blocked_arcs": (-0.1, 1.6)}
    assert excluded(dataclasses.replace(FOUND, arc_start=0.8, arc_end=0.8), **blocked) == [0, 1, 2]
