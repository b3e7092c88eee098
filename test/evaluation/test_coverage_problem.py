"""The reduction changes no best coverage, and greedy is greedy."""

from __future__ import annotations

import math

import coverage_oracles as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nbv_bench.optimum.optimum_problem import greedy_views, plain_problem, reduced_problem

VISIBLE = st.tuples(st.integers(1, 6), st.integers(1, 9)).flatmap(lambda shape: arrays(bool, shape))


def test_reduction_of_an_example_worked_out_by_hand():
    visible = np.array(
        [
            [1, 1, 0, 0, 0, 0],  # part of the third
            [0, 0, 0, 1, 1, 0],
            [1, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, 1, 0],  # equal to the second
            [0, 0, 1, 0, 1, 0],
        ]
    ).astype(bool)
    problem = reduced_problem(visible)
    assert problem.candidates.tolist() == [1, 2, 4]
    # points 0 and 1 as one; nobody sees point 5
    assert sorted(problem.weights.tolist()) == [1, 1, 1, 2]
    assert problem.reachable == 5
    assert [problem.coverage([row]) for row in range(3)] == [2, 3, 2]


@given(VISIBLE)
def test_reduction_keeps_the_best_coverage_by_any_number_of_views(visible):
    problem = reduced_problem(visible)
    points = np.repeat(problem.visible, problem.weights, axis=1)
    assert problem.reachable == visible.any(axis=0).sum()
    for views in range(1, len(problem.visible) + 1):
        assert oracle.best_by_trying_all(points, views) == oracle.best_by_trying_all(visible, views)


@given(VISIBLE)
def test_reduced_views_see_as_many_points_as_the_candidates_they_stand_for(visible):
    problem = reduced_problem(visible)
    rows = range(len(problem.visible))
    assert [problem.coverage([row]) for row in rows] == [
        visible[problem.candidates[row]].sum() for row in rows
    ]


@given(VISIBLE)
def test_greedy_takes_the_first_of_the_best_until_nothing_is_new(visible):
    seen: set[int] = set()
    expected = []
    while True:
        new = [len(set(np.flatnonzero(row).tolist()) - seen) for row in visible]
        if max(new) == 0:
            break
        expected.append(new.index(max(new)))
        seen |= set(np.flatnonzero(visible[expected[-1]]).tolist())
    assert greedy_views(plain_problem(visible)) == expected


@given(VISIBLE)
def test_greedy_sees_at_least_1_less_1_over_e_of_the_best(visible):
    problem = plain_problem(visible)
    taken = greedy_views(problem)
    for views in range(1, len(taken) + 1):
        least = (1.0 - math.exp(-1.0)) * oracle.best_by_trying_all(visible, views)
        assert problem.coverage(taken[:views]) >= least


def test_no_view_sees_nothing():
    problem = plain_problem(np.ones((2, 3), dtype=bool))
    assert problem.coverage([]) == 0
    assert problem.gains([]).tolist() == [3, 3]
    assert problem.gains([1]).tolist() == pytest.approx([0, 0])
