"""Straight edges that go on over what was not seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.shapes.straight_edges import EdgeDraws, with_edges_going_on

GRID = uniform_grid(360)
BOUNDS = (1.0, 8.0)
SHAPES = np.repeat(5.0 + 0.5 * np.cos(7.0 * GRID)[None], 30, axis=0)


def square(angle, half=4.0):
    """Radius of a square whose sides have this half length, metres."""
    turned = np.mod(angle + np.pi / 4, np.pi / 2) - np.pi / 4
    return half / np.cos(turned)


def filled(surface, seen, probability=1.0, shapes=SHAPES, std=1e-4, bounds=BOUNDS, seed=0):
    draws = EdgeDraws.of(np.random.default_rng(seed), len(shapes), probability)
    measured = GRID[seen], surface(GRID[seen]), np.full(seen.sum(), std)
    return draws, with_edges_going_on(shapes, GRID, seen, measured, draws, 1.0, bounds)


def hidden(begin, end):
    """Seen are all angles (degrees) but these."""
    return ~((np.arange(360) >= begin) & (np.arange(360) < end))


def test_edges_that_meet_make_the_corner():
    seen = hidden(30, 70)  # a corner of the square is at 45 degrees
    draws, radius = filled(square, seen)
    for corner in radius[draws.meeting][:, ~seen]:
        np.testing.assert_allclose(corner, square(GRID[~seen]), rtol=1e-3)
    np.testing.assert_array_equal(radius[:, seen], SHAPES[:, seen])


def corners_of(radius):
    """Number of inner grid angles at which contours on one-degree steps (S, G) are not straight,
    shape (S,).
    """
    inverse = 1.0 / radius
    bend = inverse[:, 2:] + inverse[:, :-2] - 2.0 * np.cos(np.deg2rad(1.0)) * inverse[:, 1:-1]
    return (np.abs(bend) > 1e-9).sum(axis=1)


@pytest.mark.parametrize(("begin", "end"), [(30, 70), (30, 150)])
def test_what_is_filled_in_is_straight_but_for_two_corners(begin, end):
    radius = filled(square, hidden(begin, end))[1]
    inside = radius[:, begin:end]
    changed = (inside != SHAPES[:, begin:end]).any(axis=1)
    assert changed.mean() > 0.5
    found = corners_of(inside[changed])
    assert ((found >= 1) & (found <= 2)).all()
    ends = np.tile(square(GRID[[begin, end - 1]]), (changed.sum(), 1))
    np.testing.assert_allclose(inside[changed][:, [0, -1]], ends, rtol=2e-2)


def test_as_many_shapes_as_asked_for():
    seen = hidden(30, 70)
    for probability, count in ((0.0, 0), (0.5, 15), (1.0, 30)):
        draws, radius = filled(square, seen, probability)
        changed = (radius != SHAPES).any(axis=1)
        assert changed.sum() == count
        np.testing.assert_array_equal(changed, draws.going_on)


@pytest.mark.parametrize(
    "seen", [np.ones(360, dtype=bool), np.zeros(360, dtype=bool), hidden(45, 47)]
)
def test_without_a_gap_worth_a_corner_nothing_changes(seen):
    np.testing.assert_array_equal(filled(square, seen)[1], SHAPES)


def test_around_a_circle_nothing_changes():
    np.testing.assert_array_equal(
        filled(lambda angle: np.full(len(angle), 5.0), hidden(30, 70))[1], SHAPES
    )


def test_a_gap_may_lie_around_the_turn():
    turned = np.roll(hidden(0, 40), -20)

    def diamond(angle):
        return square(angle - np.pi / 4)

    draws, radius = filled(diamond, turned)
    np.testing.assert_allclose(
        radius[draws.meeting][:, ~turned][0], diamond(GRID[~turned]), rtol=1e-3
    )


@settings(deadline=None, max_examples=60)
@given(
    begin=st.integers(0, 359),
    width=st.integers(1, 300),
    most=st.floats(4.0, 8.0),
    seed=st.integers(0, 99),
)
def test_radii_stay_between_the_bounds(begin, width, most, seed):
    seen = np.roll(hidden(0, width), begin)
    shapes = np.full((8, 360), 3.0)
    radius = filled(square, seen, shapes=shapes, bounds=(2.0, most), std=0.05, seed=seed)[1]
    assert ((radius >= 2.0 - 1e-9) & (radius <= most + 1e-9)).all()
    np.testing.assert_array_equal(radius[:, seen], shapes[:, seen])


def test_the_shapes_given_are_left_alone():
    before = SHAPES.copy()
    filled(square, hidden(30, 70))
    np.testing.assert_array_equal(SHAPES, before)
