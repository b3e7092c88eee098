"""Regret and ratio against an optimum worked out by hand, and the greedy planner's guarantee on a
thesis object.
"""

from __future__ import annotations

import math

import pytest

from nbv_bench.optimum.best_sets import optimality
from nbv_bench.optimum.optimum_problem import Optimum

OPTIMUM = Optimum(100, 100, (50, 96, 100), (50, 96, 100), ((0,), (0, 1), (0, 1, 2)))
SHARE = 1.0 - math.exp(-1.0)


def test_an_episode_worked_out_by_hand():
    found = optimality([40, 40, 10, 5, 5], OPTIMUM)
    assert found.regret == pytest.approx(
        [SHARE * 50 - 40, SHARE * 96 - 80, SHARE * 100 - 90, SHARE * 100 - 95, SHARE * 100 - 100]
    )
    assert found.approximation_ratio == pytest.approx([40 / 50, 80 / 96, 0.9, 0.95, 1.0])
    assert found.views_95_relative == pytest.approx(4 / 2)
    assert found.proved


def test_95_percent_itself_counts():
    assert optimality([95], OPTIMUM).views_95_relative == pytest.approx(1 / 2)


def test_an_episode_that_stays_below_95_percent_has_no_relative_number_of_views():
    assert optimality([40, 54], OPTIMUM).views_95_relative is None


def test_candidates_that_cannot_see_95_percent_give_none_either():
    poor = Optimum(100, 60, (60,), (60,), ((3,),))
    found = optimality([96], poor)  # a view that is no candidate
    assert found.views_95_relative is None
    assert found.approximation_ratio == pytest.approx([1.6])


def test_what_is_not_proved_is_said_as_far_as_the_episode_goes():
    loose = Optimum(100, 100, (50, 90, 100), (50, 96, 100), ((0,), (0, 1), (0, 1, 2)))
    assert optimality([40], loose).proved
    assert not optimality([40, 40], loose).proved


def test_nothing_seen_of_nothing_has_no_ratio():
    found = optimality([0], Optimum(10, 0, (), (), ()))
    assert found.regret == (0.0,)
    assert math.isnan(found.approximation_ratio[0])
    assert optimality([], OPTIMUM).regret == ()
