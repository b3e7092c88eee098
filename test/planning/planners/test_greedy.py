"""The greedy planner: maximum, ties, travel, revisits, refinement."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of
from hypothesis import given
from hypothesis import strategies as st
from views import all_at, at, circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import SettingError
from nbv_planner.planning.objectives.objective import ObjectiveInfo
from nbv_planner.planning.planners.simple import GreedyPlanner
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.world.scene import Scene

SCENE = Scene()
TWO_PI = 2 * math.pi
BELIEF = belief_of(4.0, 6.0, size=64)


@dataclasses.dataclass
class Curve:
    """Objective that is a given function of the view."""

    function: object
    info = ObjectiveInfo("X", "curve", "nnnnnn", "none")

    def evaluate(self, situation):
        return np.array([float(self.function(v % TWO_PI)) for v in situation.views.view_angle])


def planner(values=None, *, function=None, num=8, views=None, **settings) -> GreedyPlanner:
    """Planner over `num` views whose objective has the given values at the candidates."""
    if function is None:
        function = lambda v: values[round(v / (TWO_PI / num)) % num]  # noqa: E731
    space = circle(views or ViewSpaceSettings(num_views=num))
    return GreedyPlanner(Curve(function), SCENE, space, PlannerSettings(**settings))


def test_the_largest_utility_wins():
    decision = planner([1, 5, 2, 9, 3, 0, 4, 6]).decide(BELIEF)
    assert decision.view_angle == pytest.approx(3 * math.pi / 4)
    assert decision.utility == decision.score == 9
    assert decision.runner_up == pytest.approx(7 * math.pi / 4)
    assert decision.margin == 3
    np.testing.assert_array_equal(decision.utilities, [1, 5, 2, 9, 3, 0, 4, 6])
    np.testing.assert_array_equal(decision.costs, np.zeros(8))
    assert decision.feasible.all()
    np.testing.assert_allclose(decision.candidates.view_angle, np.arange(8) * math.pi / 4)


@given(st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_ties_take_the_first_candidate(values):
    decision = planner(values).decide(BELIEF)
    assert decision.view_angle == pytest.approx(values.index(max(values)) * math.pi / 4)
    ranked = sorted(values, reverse=True)
    assert decision.margin == ranked[0] - ranked[1]


def test_differences_within_the_tie_tolerance_count_as_ties():
    values = [1.0, 100.0, 100.0 + 1e-8, 100.0, 1, 1, 1, 1]
    assert planner(values).decide(BELIEF).view_angle == pytest.approx(math.pi / 4)
    assert planner(values, tie_tolerance=0.0).decide(BELIEF).view_angle == pytest.approx(
        math.pi / 2
    )


def test_ties_of_negative_scores_take_the_first_too():
    assert planner([-5, -2, -2, -9, -9, -9, -9, -9]).decide(BELIEF).view_angle == pytest.approx(
        math.pi / 4
    )


def test_travel_costs_metres_along_the_view_circle_the_short_way():
    values = [10, 10, 10, 10, 10, 10, 10, 10]
    decision = planner(values, travel_weight=0.1).decide(BELIEF, current_view=at(7 * math.pi / 4))
    expected = [
        0.1 * 10.0 * abs(oracles.signed(k * math.pi / 4 - 7 * math.pi / 4)) for k in range(8)
    ]
    np.testing.assert_allclose(decision.costs, expected, atol=1e-9)
    assert decision.view_angle == pytest.approx(7 * math.pi / 4)
    assert decision.utility == 10
    assert decision.score == pytest.approx(10.0)


def test_travel_cost_decides_between_near_and_far():
    values = [0, 8, 0, 0, 9, 0, 0, 0]
    assert planner(values).decide(BELIEF, current_view=at(0.0)).view_angle == pytest.approx(math.pi)
    near = planner(values, travel_weight=0.1).decide(BELIEF, current_view=at(0.0))
    assert near.view_angle == pytest.approx(math.pi / 4)
    assert near.score == pytest.approx(8 - 0.1 * 10 * math.pi / 4)
    assert near.margin == pytest.approx(near.score - (9 - 0.1 * 10 * math.pi))


def test_without_a_known_position_travel_is_free():
    decision = planner([0, 8, 0, 0, 9, 0, 0, 0], travel_weight=5.0).decide(
        BELIEF, current_view=None
    )
    assert decision.view_angle == pytest.approx(math.pi)
    assert not decision.costs.any()


def test_infeasible_candidates_are_neither_best_nor_runner_up():
    plan = planner(
        [1, 5, 2, 9, 3, 0, 4, 6], views=ViewSpaceSettings(num_views=8, blocked_arcs=(2.3, 2.4))
    )
    plan.views.mark_unreachable(at(7 * math.pi / 4), until=5.0)
    decision = plan.decide(BELIEF, now=1.0)
    assert decision.view_angle == pytest.approx(math.pi / 4)
    assert decision.runner_up == pytest.approx(6 * math.pi / 4)
    assert decision.margin == 1
    assert set(np.flatnonzero(~decision.feasible)) == {3, 7}
    assert plan.decide(BELIEF, now=5.0).view_angle == pytest.approx(7 * math.pi / 4)


def test_visited_views_are_left_out_within_the_revisit_radius():
    plan = planner([1, 5, 2, 9, 3, 0, 4, 6], revisit_radius=0.5)
    assert plan.decide(BELIEF, visited=all_at([3 * math.pi / 4])).view_angle == pytest.approx(
        7 * math.pi / 4
    )
    allowed = planner([1, 5, 2, 9, 3, 0, 4, 6], revisit_radius=0.0)
    assert allowed.decide(BELIEF, visited=all_at([3 * math.pi / 4])).view_angle == pytest.approx(
        3 * math.pi / 4
    )


def test_a_single_feasible_view_has_no_runner_up():
    views = ViewSpaceSettings(num_views=8, allowed_arcs=(0.7, 0.9))
    decision = planner([1] * 8, views=views).decide(BELIEF)
    assert decision.view_angle == pytest.approx(math.pi / 4)
    assert math.isnan(decision.runner_up)
    assert math.isnan(decision.margin)


def test_no_feasible_view_is_no_decision():
    plan = planner([1] * 8, revisit_radius=1.0)
    assert plan.decide(BELIEF, visited=all_at(np.arange(7.0).tolist())) is None


def test_first_candidate_is_taken_first_and_only_first():
    plan = planner([1, 5, 2, 9, 3, 0, 4, 6], first_candidate=5)
    assert plan.decide(BELIEF).view_angle == pytest.approx(5 * math.pi / 4)
    assert plan.decide(BELIEF, visited=all_at([5 * math.pi / 4])).view_angle == pytest.approx(
        3 * math.pi / 4
    )


def test_first_candidate_that_may_not_be_chosen_is_not_chosen():
    plan = planner(
        [1] * 8, first_candidate=5, views=ViewSpaceSettings(num_views=8, blocked_arcs=(3.8, 4.0))
    )
    decision = plan.decide(BELIEF)
    assert decision is None or abs(decision.view_angle - 5 * math.pi / 4) > 0.1


def test_first_candidate_beyond_the_candidates_is_refused():
    with pytest.raises(SettingError, match="first_candidate"):
        planner([1] * 8, first_candidate=8).decide(BELIEF)


def test_refinement_finds_the_optimum_between_the_candidates():
    def bump(v):
        return 10 * math.cos(v - 1.0)

    coarse = planner(function=bump).decide(BELIEF)
    fine = planner(function=bump, refine=True).decide(BELIEF)
    assert coarse.view_angle == pytest.approx(math.pi / 4)
    assert abs(fine.view_angle - 1.0) < 0.03
    assert fine.utility == pytest.approx(bump(fine.view_angle))
    assert fine.utility > coarse.utility
    assert fine.score == fine.utility


def test_refinement_keeps_the_candidate_where_nothing_near_is_better():
    fine = planner(function=lambda v: -abs(oracles.signed(v - math.pi / 2)), refine=True).decide(
        BELIEF
    )
    assert fine.view_angle == pytest.approx(math.pi / 2)


def test_refinement_wraps_across_zero():
    fine = planner(function=lambda v: math.cos(v + 0.1), refine=True).decide(BELIEF)
    assert 0.0 <= fine.view_angle < TWO_PI
    assert abs(oracles.signed(fine.view_angle + 0.1)) < 0.03


def test_refinement_counts_the_travel():
    fine = planner(function=lambda v: 5.0, refine=True, travel_weight=1.0).decide(
        BELIEF, current_view=at(0.9)
    )
    assert abs(fine.view_angle - 0.9) < 0.03
    assert fine.score == pytest.approx(5.0 - 10.0 * abs(fine.view_angle - 0.9))


def test_refinement_stays_out_of_blocked_arcs():
    views = ViewSpaceSettings(num_views=8, blocked_arcs=(0.8, 1.2))
    fine = planner(function=lambda v: 10 * math.cos(v - 1.0), refine=True, views=views).decide(
        BELIEF
    )
    assert not 0.8 <= fine.view_angle <= 1.2


def test_refinement_keeps_away_from_visited_views():
    plan = planner(function=lambda v: 10 * math.cos(v - 1.0), refine=True, revisit_radius=0.3)
    fine = plan.decide(BELIEF, visited=all_at([1.1]))
    assert abs(fine.view_angle - 1.1) >= 0.3


@pytest.mark.parametrize("name", ["U", "UP", "CSW", "I", "IOA"])
def test_planner_goes_where_the_band_is_wide(name):
    def half(g):
        return np.where(np.abs(g - 4.0) < 0.5, 2.0, 0.1)

    belief = belief_of(lambda g: 5.0 - half(g), lambda g: 5.0 + half(g))
    plan = planner_named(PlannerSettings(planner="greedy", objective=name), SCENE, circle())
    assert abs(plan.decide(belief).view_angle - 4.0) < 0.6
