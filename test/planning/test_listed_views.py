"""Views that a user lists: as candidates of a planner, and ranked by it without any effect on the
episode.
"""

from __future__ import annotations

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from beliefs import wavy_belief, with_evidence
from hypothesis import assume, given
from hypothesis import strategies as st
from test_session import feed, ready, take_view
from views import at, circle

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import SettingError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.planners.decision_settings import PLANNERS
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import (
    Exclusion,
    ViewSpaceSettings,
    check_angles,
    path_length_through,
    view_space_for,
)
from nbv_planner.session import events, targets
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

SECOND = 1_000_000_000
LIST = (0.5, 3.0, 1.7)
TWO_PI = 2 * math.pi


def on_circle(angles) -> Poses:
    return Poses.on_circle(angles, 10.0)


@pytest.mark.parametrize(
    ("angles", "words"),
    [
        ((), "is empty"),
        ((math.nan,), "not a finite number"),
        ((1.0, math.inf), "not a finite number"),
        ((-0.5,), "view_angles[0]: -0.5 is not a view angle"),
        ((-1.0, 1.0), "view_angles[0]: -1.0 is not a view angle"),
        ((1.0, 7.0), "view_angles[1]: 7.0 is not a view angle; must be >= 0 and <= 6.28319 rad"),
        ((1.0, 2.0, 1.0005), "1 and 1.0005 rad are too close"),
        ((0.0, 3.0, TWO_PI), "are too close"),
        (("a",), "is text"),
        (tuple(range(1001)), "view_angles: has 1001 angles, must be 1000 or fewer"),
    ],
)
def test_a_list_that_is_none_is_refused_with_the_reason(angles, words):
    with pytest.raises(SettingError) as refused:
        ViewSpaceSettings(view_angles=angles)
    assert words in str(refused.value)


@pytest.mark.parametrize("angles", [(), (math.nan,), (-1.0,), (1.0, 7.0), (1.0, 1.0)])
def test_angles_that_are_to_be_ranked_are_checked_alike(angles):
    with pytest.raises(SettingError, match="rank"):
        check_angles("rank", angles)


@given(st.lists(st.floats(0.0, 6.28), min_size=2, max_size=12))
def test_a_list_is_refused_exactly_if_two_of_it_are_closer_than_a_milliradian(angles):
    apart = [abs(math.remainder(a - b, TWO_PI)) for i, a in enumerate(angles) for b in angles[:i]]
    assume(abs(min(apart) - 1e-3) > 1e-9)
    if min(apart) < 1e-3:
        with pytest.raises(SettingError, match="too close"):
            check_angles("rank", angles)
    else:
        assert check_angles("rank", angles).tolist() == angles


def test_the_listed_views_are_the_candidates_in_their_order():
    space = circle(ViewSpaceSettings(view_angles=LIST))
    assert space.candidates.view_angle.tolist() == list(LIST)
    assert space.spacing == pytest.approx(1.2)
    assert len(space.around(0)) == 0  # nothing between them either
    assert "num_views" not in space.indistinct(
        ArrivalSettings(position_tolerance=50.0, heading_tolerance=3.0)
    )
    assert circle(ViewSpaceSettings()).spacing != space.spacing


@pytest.mark.parametrize("planner", PLANNERS)
def test_an_episode_takes_listed_views_only(planner):
    angles = tuple((np.arange(7) * TWO_PI / 7 + 0.1).tolist())
    config = EpisodeConfig(
        views=ViewSpaceSettings(view_angles=angles),
        planner=PlannerSettings(planner=planner, objective="U"),
        termination=TerminationSettings(stall_views=0),
    )
    simulation = Simulation(config)
    taken = list(simulation.run())
    assert 2 <= len(taken) <= 7
    assert {view.angle for view in taken} <= set(angles)


@pytest.mark.parametrize("protocol", ["thesis", "sensor"])
def test_a_simulation_never_travels_farther_than_it_may(protocol):
    def travelled(most: float) -> tuple[float, TerminationReason]:
        config = EpisodeConfig(
            protocol=protocol,
            planner=PlannerSettings(planner="greedy", objective="U"),
            termination=TerminationSettings(max_travel=most, stall_views=0),
        )
        result = Simulation(config).finish()
        ways = [
            abs(math.remainder(b.angle - a.angle, TWO_PI)) * 10.0 for a, b in pairwise(result.views)
        ]
        return sum(ways), result.termination.reason

    far, _ = travelled(0.0)
    if protocol == "thesis":  # it ends by its own rule alone
        assert travelled(far / 2)[0] == far
        return
    limited, reason = travelled(far / 2)
    assert limited <= far / 2
    assert reason is TerminationReason.MAX_TRAVEL
    exactly, reason = travelled(far * (1 + 1e-9))
    assert exactly == far
    assert reason is not TerminationReason.MAX_TRAVEL


def test_a_session_ends_before_the_view_that_is_too_far():
    free, now = ready(), SECOND
    events.update(free, 0)
    for _ in range(4):
        now += SECOND
        take_view(free, now)
    limit = path_length_through(free.planner.views, free.episode.visited) - 1e-6
    run, now = ready(termination={"max_travel": limit}), SECOND
    events.update(run, 0)
    while run.episode.termination is None:
        now += SECOND
        take_view(run, now)
    assert run.episode.termination.reason is TerminationReason.MAX_TRAVEL
    assert (
        path_length_through(run.planner.views, run.episode.visited)
        <= limit
        < run.episode.termination.figures["travel"]
    )
    assert run.episode.visited == free.episode.visited[: len(run.episode.visited)]
    assert f"more than {limit:g} m" in run.episode.termination.detail


# --- ranking


@pytest.mark.parametrize("objective", ["U", "IOA", "I", "CS"])
def test_the_ranking_is_that_of_the_candidates_at_the_same_angles(objective):
    settings = PlannerSettings(planner="greedy", objective=objective, travel_weight=0.3)
    planner = planner_named(settings, Scene(), circle(ViewSpaceSettings(num_views=40)))
    belief = wavy_belief(3)
    decision = planner.decide(belief, current_view=at(1.0))
    utilities, costs = planner.evaluate(
        belief, on_circle(decision.candidates.view_angle), current_view=at(1.0)
    )
    np.testing.assert_array_equal(utilities, decision.utilities)
    np.testing.assert_array_equal(costs, decision.costs)


def test_a_ranking_puts_the_best_first_and_what_may_not_be_chosen_last():
    run = ready(planner={"travel_weight": 0.01})
    events.update(run, 0)
    take_view(run, SECOND)
    taken = run.episode.visited[0].view_angle
    asked = np.array([0.3, taken, 2.2, 4.4])
    ranking = targets.ask(run, 2 * SECOND).rank(on_circle(asked))
    assert sorted(ranking.views.view_angle.tolist()) == sorted(asked.tolist())
    scores = ranking.utilities - ranking.costs
    assert (np.diff(scores[:3]) <= 0.0).all()
    assert ranking.excluded.tolist() == [0, 0, 0, int(Exclusion.REVISIT)]
    assert ranking.views.view_angle[3] == taken


def test_a_view_beside_an_unreachable_candidate_is_said_to_be_out_of_reach():
    run = ready()
    run.planner.views.mark_unreachable(at(math.pi / 2), 1e9)
    ranking = targets.ask(run, SECOND).rank(on_circle(np.array([math.pi / 2 + 0.1, 3.0])))
    assert dict(zip(ranking.views.view_angle.tolist(), ranking.excluded.tolist(), strict=True)) == {
        math.pi / 2 + 0.1: int(Exclusion.UNREACHABLE),
        3.0: 0,
    }


@pytest.mark.parametrize("planner", ["greedy", "two_phase", "hybrid"])
def test_ranking_changes_nothing_of_the_episode(planner):
    """Not even the regret ledger, which hybrid enters each decision into."""

    def run():
        chosen = planner_named(
            PlannerSettings(planner=planner, objective="U", shapes=8), Scene(), circle()
        )
        monitor = TerminationMonitor(TerminationSettings(certify=False))
        one = PlannerCore(
            chosen, monitor, ArrivalSettings(settle_time=0.0), SessionSettings(wait_for_start=False)
        )
        feed(
            one, belief=with_evidence(wavy_belief(2)), belief_stamp=0, pose_angle=0.0, pose_stamp=0
        )
        one.inputs.subscribers = 2
        return one

    plain, ranked = run(), run()
    for one in (plain, ranked):
        events.update(one, 0)
    before = ranked.episode, list(ranked.facts)
    targets.ask(ranked, SECOND).rank(on_circle(np.array([0.5, 1.5])))
    assert (ranked.episode, ranked.facts) == before
    assert ranked.episode.goal.decision.view == plain.episode.goal.decision.view


# --- poses


def posed(*poses: tuple[float, float, float], **more) -> ViewSpaceSettings:
    return ViewSpaceSettings(view_poses=tuple(number for pose in poses for number in pose), **more)


def test_listed_poses_are_the_candidates_in_their_order_whatever_the_view_space():
    poses = [(12.0, 0.0, 3.0), (0.0, 9.0, -1.5), (-11.0, 2.0, 0.1)]
    for more in ({}, {"view_space": "annulus"}):
        space = view_space_for(posed(*poses, **more), Scene())
        found = [(one.x, one.y, one.yaw) for one in (space.candidates[i] for i in range(3))]
        for pose, back in zip(poses, found, strict=True):
            assert back[:2] == pytest.approx(pose[:2])
            assert math.remainder(back[2] - pose[2], 2 * math.pi) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((), "has 0 numbers"),
        ((1.0, 2.0), "has 2 numbers, must be x, y, yaw"),
        ((9.0, 0.0, 1.0, 9.0, math.nan, 0.0), "nan"),
        ((9.0, 0.0, 0.0) * 2001, "has 2001 poses, must be 2000 or fewer"),
        (
            (2e4, 0.0, 0.0),
            "view_poses, pose 1: x 20000.0, y 0.0, yaw 0.0 is not a pose; must be within 10000 m",
        ),
    ],
)
def test_a_list_of_poses_that_is_none_is_refused_with_the_reason(numbers, words):
    with pytest.raises(SettingError, match=words):
        ViewSpaceSettings(view_poses=numbers)


def test_angles_on_the_circle_go_with_no_other_view_space():
    for more in ({"view_space": "annulus"}, {"view_poses": (9.0, 0.0, 3.0)}):
        with pytest.raises(SettingError, match="view_angles: are views on the circle"):
            ViewSpaceSettings(view_angles=(1.0, 2.0), **more)


def test_the_candidate_nearest_to_a_free_view_has_its_heading_too():
    space = view_space_for(ViewSpaceSettings(view_space="annulus"), Scene())
    for index in range(0, len(space.candidates), 37):
        assert space.nearest(space.candidates[index]) == index
    skipped = space.candidates[100]
    space.mark_unreachable(skipped, 10.0)
    (left_out,) = np.flatnonzero(space.excluded(0.0))
    assert space.candidates[int(left_out)] == skipped


def test_an_angle_alone_stands_for_a_free_view_that_looks_at_the_centre():
    space = view_space_for(ViewSpaceSettings(view_space="annulus"), Scene())
    home = space.at_angle(1.02)
    assert abs(math.remainder(home.view_angle - 1.02, 2 * math.pi)) <= math.pi / 48
    assert home.turn == pytest.approx(0.0, abs=1e-12)


@given(seed=st.integers(0, 500), place=st.floats(0.01, 2.0), turn=st.floats(0.01, 1.0))
def test_free_views_are_indistinct_where_a_plain_search_finds_two_alike(seed, place, turn):
    rng = np.random.default_rng(seed)
    poses = [(*rng.uniform(9.0, 12.0, 2), rng.uniform(-3.0, 3.0)) for _ in range(8)]
    space = view_space_for(posed(*poses), Scene())
    alike = [
        (a, b)
        for a, b in itertools.combinations(poses, 2)
        if math.dist(a[:2], b[:2]) <= 2 * place
        and abs(math.remainder(a[2] - b[2], 2 * math.pi)) <= 2 * turn
    ]
    said = space.indistinct(ArrivalSettings(position_tolerance=place, heading_tolerance=turn))
    assert bool(said) == bool(alike)
    assert not alike or f"takes {len(alike)} pairs" in said
