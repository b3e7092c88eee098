"""Candidate views: arcs, unreachable views, revisits."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from views import all_at, at, circle

from nbv_planner.errors import SettingError
from nbv_planner.planning.view_space import (
    CircleViewSpace,
    Exclusion,
    ViewSpaceSettings,
    aside,
    excluded_numbers,
    excluded_text,
    farthest_angle,
)

TWO_PI = 2 * math.pi


def space(**settings) -> CircleViewSpace:
    return circle(ViewSpaceSettings(**settings))


def free(views: CircleViewSpace, **options) -> set[int]:
    return set(np.flatnonzero(views.excluded(options.pop("now", 0.0), **options) == 0).tolist())


def test_candidates_are_equally_spaced_without_a_duplicate_end():
    views = space(num_views=8)
    np.testing.assert_allclose(views.angles, np.arange(8) * math.pi / 4)
    assert free(views) == set(range(8))


def test_given_candidates_are_used_as_they_are():
    thesis = np.linspace(0.0, TWO_PI, 100)
    views = circle(ViewSpaceSettings(), angles=thesis)
    np.testing.assert_array_equal(views.angles, thesis)
    assert free(views) == set(range(100))


@pytest.mark.parametrize("view", [0.0, -0.01, TWO_PI - 0.01, 0.01 + 4 * math.pi])
def test_nearest_candidate_wraps_across_zero(view):
    assert space(num_views=8).nearest(at(view)) == 0


def test_allowed_arc_keeps_only_its_views():
    assert free(space(num_views=8, allowed_arcs=(0.5, 2.5))) == {1, 2, 3}


def test_allowed_arc_wraps_across_zero_counter_clockwise():
    assert free(space(num_views=8, allowed_arcs=(5.0, 1.0))) == {7, 0, 1}
    assert free(space(num_views=8, allowed_arcs=(-1.0, 1.0))) == {7, 0, 1}


def test_several_arcs_are_joined_and_blocked_arcs_taken_out():
    assert free(space(num_views=8, allowed_arcs=(0.5, 2.5, 3.5, 4.0))) == {1, 2, 3, 5}
    assert free(space(num_views=8, blocked_arcs=(0.5, 2.5))) == {0, 4, 5, 6, 7}
    assert free(space(num_views=8, blocked_arcs=(6.0, 0.1, 3.0, 3.2))) == {1, 2, 3, 5, 6, 7}
    assert free(space(num_views=8, allowed_arcs=(0.5, 4.5), blocked_arcs=(1.0, 2.0))) == {
        1,
        3,
        4,
        5,
    }


def test_empty_blocked_arc_blocks_nothing():
    assert len(free(space(num_views=8, blocked_arcs=(1.5707963267948966, 1.5707963267948966)))) == 8


@given(st.integers(2, 120), st.data())
def test_arc_includes_the_views_at_both_of_its_ends(num, data):
    i, k = data.draw(st.integers(0, num - 1)), data.draw(st.integers(0, num - 1))
    if i == k:
        return
    angles = np.arange(num) * (TWO_PI / num)
    expected = {(i + n) % num for n in range((k - i) % num + 1)}
    assert free(space(num_views=num, allowed_arcs=(float(angles[i]), float(angles[k])))) == expected


@given(st.floats(-20, 20), st.floats(-20, 20))
def test_arc_goes_counter_clockwise_from_start_to_end_whatever_turn_they_are_given_in(start, end):
    length = (end - start) % TWO_PI
    if end - start >= TWO_PI - 0.01 or not 0.1 < length < TWO_PI - 0.1:
        return
    middle = start + np.array([0.1, 0.5, 0.9]) * length
    outside = end + np.array([0.1, 0.5, 0.9]) * (TWO_PI - length)
    views = circle(
        ViewSpaceSettings(allowed_arcs=(start, end)), angles=np.concatenate([middle, outside])
    )
    assert free(views) == {0, 1, 2}


@pytest.mark.parametrize(
    "arc", [(0.0, TWO_PI), (-math.pi, math.pi), (1.0, 1.0 + TWO_PI), (0.0, 7.0)]
)
def test_an_arc_of_a_turn_or_more_is_the_whole_circle(arc):
    assert len(free(space(num_views=7, allowed_arcs=arc))) == 7


@pytest.mark.parametrize(
    "settings",
    [
        {"allowed_arcs": (0.1, 0.2), "num_views": 4},
        {"blocked_arcs": (0.0, TWO_PI)},
        {"allowed_arcs": ()},
        {"allowed_arcs": (1.0, 2.0), "blocked_arcs": (0.9, 2.1)},
    ],
)
def test_arcs_that_leave_no_view_are_refused(settings):
    with pytest.raises(SettingError) as caught:
        space(**settings)
    assert "allowed_arcs" in str(caught.value)
    assert "blocked_arcs" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"num_views": 0}, "num_views"),
        ({"num_views": 10.0}, "num_views"),
        ({"allowed_arcs": (1.0,)}, "allowed_arcs"),
        ({"blocked_arcs": (1.0, 2.0, 3.0)}, "blocked_arcs"),
        ({"blocked_arcs": (1.0, math.nan)}, "blocked_arcs"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings, word):
    with pytest.raises(SettingError, match=word):
        ViewSpaceSettings(**settings)


def test_unreachable_view_is_left_out_until_its_time_and_can_be_cleared():
    views = space(num_views=8)
    views.mark_unreachable(at(math.pi / 2 + 0.1), until=10.0)
    views.mark_unreachable(at(math.pi), until=20.0)
    assert free(views, now=0.0) == {0, 1, 3, 5, 6, 7}
    assert free(views, now=9.99) == {0, 1, 3, 5, 6, 7}
    assert free(views, now=10.0) == {0, 1, 2, 3, 5, 6, 7}
    assert free(views, now=25.0) == set(range(8))
    assert free(views, now=0.0) == {0, 1, 3, 5, 6, 7}
    views.unreachable = {}
    assert free(views, now=0.0) == set(range(8))


def test_an_arc_that_is_not_reachable_doubles_with_each_failure_beside_it_and_expires():
    views, widths = space(num_views=100), []
    for step, goal in enumerate((0, 2, 6, 14)):
        assert goal in free(views, now=float(step))
        views.mark_missed(
            at(views.angles[goal]), None, None, 0.0, now=float(step), until=10.0 + step
        )
        widths.append(100 - len(free(views, now=float(step))))
    assert widths == [3, 7, 15, 24]  # 30 degrees beside the last one, at most
    views.mark_missed(at(math.pi), None, None, 0.0, now=4.0, until=10.0)
    assert 100 - len(free(views, now=4.0)) == 27  # nothing nearby
    assert 100 - len(free(views, now=10.0)) == 24
    assert 100 - len(free(views, now=12.0)) == 17
    assert len(free(views, now=13.0)) == 100
    views.mark_missed(at(0.0), None, None, 0.0, now=13.0, until=20.0)
    assert 100 - len(free(views, now=13.0)) == 3  # what has expired widens nothing


def test_a_blocked_view_does_not_become_free_when_its_time_is_over():
    views = space(num_views=8, blocked_arcs=(1.5, 1.6))
    views.mark_unreachable(at(math.pi / 2), until=1.0)
    assert 2 not in free(views, now=5.0)


def test_views_nearer_than_the_revisit_radius_are_left_out_across_zero():
    views = space(num_views=8)
    assert free(views, visited=all_at([0.1]), revisit_radius=0.8) == {2, 3, 4, 5, 6, 7}
    assert free(views, visited=all_at([0.1, math.pi]), revisit_radius=0.2) == {1, 2, 3, 5, 6, 7}
    assert free(views, visited=all_at([0.0, math.pi]), revisit_radius=0.0) == set(range(8))
    assert free(views, visited=all_at(range(7)), revisit_radius=1.0) == set()


@given(st.lists(st.floats(-10, 10), max_size=5), st.floats(0.01, 3.0))
def test_revisit_radius_is_the_angle_on_the_circle(visited, radius):
    views = space(num_views=50)
    got = free(views, visited=all_at(visited), revisit_radius=radius)
    for k, angle in enumerate(views.angles):
        gaps = [abs(oracles.signed(angle - v)) for v in visited]
        if all(abs(g - radius) > 1e-9 for g in gaps):
            assert (k in got) == all(g > radius for g in gaps)


def test_what_it_returns_can_be_changed_without_harm():
    views = space(num_views=8)
    views.excluded(0.0)[:] = 7
    assert len(free(views)) == 8


def test_every_reason_against_a_candidate_is_given():
    views = space(num_views=8, blocked_arcs=(0.1, 2.0))
    views.mark_unreachable(at(0.0), until=10.0)
    views.mark_unreachable(at(math.pi / 4), until=10.0)
    excluded = views.excluded(9.9, visited=all_at([math.pi / 2, math.pi]), revisit_radius=0.1)
    arc, revisit, unreachable = Exclusion.ARC, Exclusion.REVISIT, Exclusion.UNREACHABLE
    assert excluded.tolist() == [unreachable, arc | unreachable, arc | revisit, 0, revisit, 0, 0, 0]
    assert excluded_numbers(excluded) == {
        "excluded_arc": 2,
        "excluded_revisit": 2,
        "excluded_unreachable": 2,
    }
    assert (
        excluded_text(excluded)
        == "2 outside the allowed arcs, 2 near a view already taken, 2 near a view not reached, or"
        " skipped"
    )
    assert excluded_text(views.excluded(10.0)) == "2 outside the allowed arcs"
    assert excluded_text(space().excluded(0.0)) == ""


@given(st.integers(0, 2**32), st.integers(0, 12), st.floats(0.0, math.pi))
def test_revisited_views_are_those_nearer_than_the_radius_to_any_visited_one(seed, count, radius):
    visited = np.random.default_rng(seed).uniform(-7.0, 14.0, count).tolist()
    views = space(num_views=60)
    distance = [
        min((abs(oracles.signed(a - v)) for v in visited), default=math.inf) for a in views.angles
    ]
    expected = {k for k, apart in enumerate(distance) if radius == 0.0 or apart >= radius}
    close = {k for k, apart in enumerate(distance) if abs(apart - radius) < 1e-9}
    assert (free(views, visited=all_at(visited), revisit_radius=radius) ^ expected) <= close


def test_how_far_aside_of_the_views_taken_candidates_are():
    space = circle(ViewSpaceSettings(num_views=8, blocked_arcs=(2.0, 4.0)))
    assert aside(space.candidates, []).tolist() == [math.pi] * 8
    turns = np.arange(8) * math.pi / 4
    expected = [
        min(abs(math.remainder(turn - taken, 2 * math.pi)) for taken in (0.0, 0.2))
        for turn in turns
    ]
    assert aside(space.candidates, [at(0.0), at(0.2)]) == pytest.approx(expected)
    # those farther off are barred
    assert farthest_angle(space, [at(0.0), at(0.2)]) == pytest.approx(0.5 * math.pi)
    assert farthest_angle(space, []) == math.pi
