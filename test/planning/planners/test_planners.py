"""What every planner promises, by one checker that each runs through; the registry."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import pytest
import scipy.optimize
from beliefs import belief_of, wavy_belief, with_evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from views import all_at, at, circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import objective_named, planner_named
from nbv_planner.errors import SettingError
from nbv_planner.planning.objectives import Situation
from nbv_planner.planning.planners import PLANNERS, Decision, proof_of
from nbv_planner.planning.planners.decision_settings import PLANNER_PLUGINS
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.checks import Check, Level
from nbv_planner.thesis import OBJECTIVES, TrueSurface
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

SCENE = Scene()
TWO_PI = 2 * math.pi
BELIEF = with_evidence(wavy_belief(3, size=200))
# set_cover needs a solver that older versions of SciPy do not have.
NAMES = [
    name
    for name in (*PLANNERS, *PLANNER_PLUGINS.names)
    if name != "set_cover" or hasattr(scipy.optimize, "milp")
]
EVERY = pytest.mark.parametrize("name", NAMES)


def planner(name: str, *, num=24, arcs=None, **changes):
    views = circle(ViewSpaceSettings(num_views=num, **(arcs or {})))
    chosen = PlannerSettings(
        **{"planner": name, "objective": "U", "revisit_radius": 0.0, "deadline": 600.0, **changes}
    )
    return planner_named(chosen, SCENE, views)


def checked(plan, belief=BELIEF, **question) -> Decision | None:
    """Ask a planner; whatever it answers must be a true account of a choice that it was allowed to
    make.
    """
    decision = plan.decide(belief, **question)
    again = plan.decide(belief, **question)
    s, angles = plan.settings, plan.views.angles
    feasible = (
        plan.views.excluded(question.get("now", 0.0), question.get("visited", ()), s.revisit_radius)
        == 0
    )
    if decision is None:
        assert again is None
        assert not feasible.any()
        return None
    assert again.view_angle == decision.view_angle  # asking changes nothing
    np.testing.assert_array_equal(decision.candidates.view_angle, angles)
    np.testing.assert_array_equal(decision.feasible, feasible)
    objective, taken = (
        objective_named(s.used_objectives[-1], settings=s),
        Poses.of(question.get("visited", ())),
    )
    situation = Situation(
        StarReader(SCENE, settings=s)(belief), SCENE, Poses.on_circle(angles, 10.0), taken
    )
    np.testing.assert_array_equal(decision.utilities, objective.evaluate(situation))
    here = question.get("current_view")
    way = [0.0 if here is None else 10.0 * abs(oracles.signed(a - here.view_angle)) for a in angles]
    np.testing.assert_allclose(decision.costs, s.travel_weight * np.array(way), atol=1e-9)
    if not s.refine:
        (best,) = np.flatnonzero(angles == decision.view_angle)
        assert feasible[best]
        assert decision.utility == decision.utilities[best]
        assert decision.score == decision.utility - decision.costs[best]
        if not math.isnan(decision.runner_up):
            (second,) = np.flatnonzero(angles == decision.runner_up)
            assert feasible[second]
            assert second != best
            scores = decision.utilities - decision.costs
            assert decision.margin == scores[best] - scores[second]
    return decision


@settings(max_examples=40)
@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 1000),
    num=st.integers(1, 40),
    arc=st.tuples(st.floats(0.0, 6.0), st.floats(0.0, 5.0)),
    visited=st.lists(st.floats(0.0, 6.28), max_size=5),
    current=st.none() | st.floats(0.0, 6.28),
    weight=st.sampled_from([0.0, 3.0]),
    radius=st.sampled_from([0.0, 0.4]),
    first=st.integers(-1, 39),
)
def test_every_answer_is_a_true_account_of_an_allowed_choice(
    name, seed, num, arc, visited, current, weight, radius, first
):
    arcs = {"blocked_arcs": (arc[0], arc[0] + arc[1])}
    belief = with_evidence(wavy_belief(seed, size=120))
    try:
        plan = planner(
            name,
            num=num,
            arcs=arcs,
            travel_weight=weight,
            revisit_radius=radius,
            first_candidate=min(first, num - 1),
        )
    except SettingError:
        return  # the arcs leave no candidate
    checked(
        plan, belief, current_view=None if current is None else at(current), visited=all_at(visited)
    )


@EVERY
def test_no_feasible_view_is_no_decision(name):
    assert checked(planner(name, revisit_radius=3.0), visited=all_at([0.5, 3.5])) is None


@EVERY
def test_blocked_visited_and_unreachable_views_are_not_chosen(name):
    plan = planner(name, num=8, arcs={"allowed_arcs": (0.7, 3.2)}, revisit_radius=0.1)
    plan.views.mark_unreachable(at(math.pi / 2), until=5.0)
    assert checked(
        plan, now=1.0, visited=all_at([math.pi / 4, math.pi])
    ).view_angle == pytest.approx(3 * math.pi / 4)
    left = checked(plan, now=6.0, visited=all_at([math.pi / 4, math.pi, 3 * math.pi / 4]))
    assert left.view_angle == pytest.approx(math.pi / 2)
    assert math.isnan(left.runner_up)
    assert math.isnan(left.margin)


@EVERY
def test_first_candidate_is_taken_first_and_only_if_it_may_be(name):
    assert checked(planner(name, first_candidate=17)).view_angle == pytest.approx(17 * TWO_PI / 24)
    blocked = planner(name, first_candidate=17, arcs={"blocked_arcs": (4.4, 4.5)})
    assert checked(blocked).view_angle != pytest.approx(17 * TWO_PI / 24)
    free = [
        checked(plan, visited=all_at([1.0]))
        for plan in (planner(name), planner(name, first_candidate=17))
    ]
    assert free[0].view_angle == free[1].view_angle
    with pytest.raises(SettingError, match="first_candidate: 24 must be < 24"):
        planner(name, first_candidate=24)


@pytest.mark.parametrize("name", ["greedy", "two_phase"])
def test_among_equals_the_first_candidate_wins(name):
    """On a band that is the same everywhere all views are equal up to rounding, in both phases."""
    assert checked(planner(name), belief_of(4.0, 6.0, size=240)).view_angle == 0.0


@EVERY
def test_settings_changed_at_run_time_hold_from_the_next_decision(name):
    plan = planner(name)
    view = checked(plan).view_angle
    plan.settings = dataclasses.replace(plan.settings, revisit_radius=0.5)
    assert abs(oracles.signed(checked(plan, visited=all_at([view])).view_angle - view)) >= 0.5


@EVERY
def test_refinement_stays_near_the_candidate_and_never_loses_score(name):
    """The rollout refines what it minimises, which is no score."""
    coarse, fine = checked(planner(name)), checked(planner(name, refine=True))
    assert abs(oracles.signed(fine.view_angle - coarse.view_angle)) <= 0.5 * TWO_PI / 24 + 1e-9
    assert fine.score >= coarse.score or name == "rollout"
    if name in ("uniform", "random", "hybrid"):
        assert fine.view_angle == coarse.view_angle


@EVERY
def test_neither_the_belief_nor_the_views_are_changed(name):
    plan, belief = planner(name), with_evidence(wavy_belief(1))
    before = belief.lower.copy(), belief.upper.copy(), plan.views.angles.copy()
    checked(plan, belief, visited=all_at([0.3]), current_view=at(2.0))
    for kept, now in zip(before, (belief.lower, belief.upper, plan.views.angles), strict=True):
        np.testing.assert_array_equal(kept, now)


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
@EVERY
def test_every_planner_works_with_every_objective(name, objective):
    assert (
        checked(
            planner(name, objective=objective, phase_one_objective=objective), visited=all_at([0.1])
        )
        is not None
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"planner": "greedy", "objective": "OSM"}, "objective: OSM needs the true object"),
        ({"planner": "random", "objective": "OS"}, "objective: OS needs the true object"),
        (
            {"planner": "two_phase", "phase_one_objective": "OS"},
            "phase_one_objective: OS needs the true object",
        ),
    ],
)
def test_objectives_that_know_the_object_need_it(changes, text):
    views = circle()
    with pytest.raises(SettingError, match=text):
        planner_named(PlannerSettings(**changes), SCENE, views)
    truth = TrueSurface(np.arange(10) / 2.0, np.full(10, 5.0))
    assert planner_named(PlannerSettings(**changes), SCENE, views, truth).decide(BELIEF) is not None


def test_an_objective_that_is_not_used_needs_nothing():
    chosen = PlannerSettings(planner="greedy", phase_one_objective="OS")
    assert chosen.used_objectives == ("IOA",)
    assert planner_named(chosen, SCENE, circle()).decide(BELIEF) is not None


def test_labels_name_the_planner_as_the_thesis_does():
    assert PlannerSettings(planner="greedy", objective="UP").label == "UP"
    assert PlannerSettings(planner="two_phase", objective="U").label == "CS-U"
    assert PlannerSettings(planner="random").label == "random"


def test_what_is_proved_of_planners():
    """U, CS and CS-U; the pixel count in phase 1 is no part of the proof."""
    proved = "sublinear regret proved"
    assert proof_of(PlannerSettings(planner="greedy", objective="CS")) == proved
    assert proof_of(PlannerSettings(planner="two_phase", objective="U")) == proved
    for changes in ({"phase_one_objective": "CSN"}, {"objective": "UP"}):
        assert (
            proof_of(PlannerSettings(**{"planner": "two_phase", "objective": "U", **changes}))
            == "not attempted"
        )
    assert proof_of(PlannerSettings(planner="uniform", objective="U")) == "not attempted"


def found(level, **lacking):
    checks = tuple(Check(name, score, 0.05, level) for name, score in lacking.items())
    return dataclasses.replace(BELIEF, checks=checks)


@EVERY
def test_they_predict_with_the_sensor_that_the_scans_show(name):
    narrow = dataclasses.replace(
        SCENE, field_of_view=0.5 * SCENE.field_of_view, range_max=0.75 * SCENE.range_max
    )
    views, chosen = (
        circle(ViewSpaceSettings(num_views=24)),
        PlannerSettings(planner=name, objective="OCL", refine=True),
    )
    chosen = dataclasses.replace(chosen, deadline=600.0)
    adapted, told = planner_named(chosen, SCENE, views), planner_named(chosen, narrow, views)
    decision = adapted.decide(found(Level.NOTED, field_of_view=0.5, range=0.25))
    assert decision.view_angle == told.decide(BELIEF).view_angle
    np.testing.assert_array_equal(decision.utilities, told.decide(BELIEF).utilities)


@pytest.mark.parametrize(
    "checks",
    [
        {"level": Level.FAILED, "field_of_view": 0.5},
        {"level": Level.GOOD, "range": 0.04},
        {"level": Level.NOTED, "field_of_view": 1.0, "range": 1.0},  # nothing came yet
    ],
)
def test_else_they_predict_with_the_declared_sensor(checks):
    plan = planner("greedy", objective="OCL")
    np.testing.assert_array_equal(
        plan.decide(found(**checks)).utilities, plan.decide(BELIEF).utilities
    )


def test_a_look_fixes_what_the_noise_allows_that_the_scans_show():
    views, noisy = circle(ViewSpaceSettings(num_views=24)), found(Level.NOTED, noise=1.5)
    chosen = PlannerSettings(
        planner="greedy", objective="U", noise_std=0.02, noise_std_per_metre=0.02, seen_std=0.18
    )
    worse = dataclasses.replace(chosen, noise_std=0.03, noise_std_per_metre=0.03)
    adapted, told = (planner_named(one, SCENE, views) for one in (chosen, worse))
    utilities = adapted.decide(noisy).utilities
    # the greatest range is sampled
    np.testing.assert_allclose(utilities, told.decide(BELIEF).utilities, rtol=2e-3)
    assert (utilities < adapted.decide(BELIEF).utilities).any()
    huge = found(Level.NOTED, noise=50.0)  # no look would fix anything
    np.testing.assert_array_equal(adapted.decide(huge).utilities, adapted.decide(BELIEF).utilities)


@EVERY
def test_an_overlapping_view_goes_between_views_taken(name):
    """Its angle is as far from the nearest of them as any, whatever the planner; without views it
    is no other.
    """
    taken = all_at([0.0, 1.0, 2.6, 3.5, 5.4])  # the widest gap, of 1.9 rad, has its middle at 4.45
    decision = planner(name).decide(BELIEF, visited=taken, overlapping=True)
    assert decision.decided_by == "overlap"
    assert abs(decision.view_angle - 4.45) < 0.3  # of candidates 0.26 apart
    barred = planner(name, arcs={"blocked_arcs": (3.5, 5.4)}).decide(
        BELIEF, visited=taken, overlapping=True
    )
    assert abs(barred.view_angle - 1.8) < 0.3
    first = [planner(name).decide(BELIEF, overlapping=overlapping) for overlapping in (True, False)]
    assert first[0].view_angle == first[1].view_angle
    assert first[0].decided_by == first[1].decided_by != "overlap"


def test_of_overlapping_views_as_far_off_the_best_is_taken():
    taken = all_at([0.0, 0.5 * TWO_PI])
    decision = planner("greedy", num=40, objective="U").decide(
        BELIEF, visited=taken, overlapping=True
    )
    off = np.abs(np.sin(decision.candidates.view_angle))
    assert (
        decision.utility == decision.utilities[np.abs(np.arcsin(off)) >= 0.9 * 0.25 * TWO_PI].max()
    )
    assert decision.utility != decision.utilities.max()
