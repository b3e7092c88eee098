"""How much of a shape has a measurement nearby, on shapes made by hand and against a plain
search.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.geometry import TWO_PI
from nbv_planner.star2d.belief import Evidence, uniform_grid
from nbv_planner.star2d.shapes.shape_coverage import MeasuredSurface

FINE, GRID = uniform_grid(1000), uniform_grid(360)


def measured(angle, radius) -> Evidence:
    return Evidence.none(FINE).adding(
        FINE, np.asarray(angle), np.asarray(radius), np.full(len(angle), 0.1)
    )


def part(evidence: Evidence, *radii, reach: float = 0.2):
    return MeasuredSurface.of(evidence, GRID, reach, 8.0).part(np.stack(radii))


def test_all_or_nothing():
    circle = np.full(360, 5.0)
    np.testing.assert_array_equal(part(Evidence.none(FINE), circle), 0.0)
    np.testing.assert_array_equal(part(measured(FINE, np.full(1000, 5.1)), circle), 1.0)
    np.testing.assert_array_equal(part(measured(FINE, np.full(1000, 5.4)), circle), 0.0)


def test_one_measurement_reaches_as_far_across_as_along():
    """At 5 m, 0.2 m are 0.04 rad."""
    for middle in (1.0, 0.0):
        found = part(measured([middle], [5.0]), np.full(360, 5.0))[0]
        np.testing.assert_array_equal(found > 0.0, np.cos(GRID - middle) > np.cos(0.04))


def test_of_a_wall_that_part_counts_which_is_near_a_measurement():
    """A wall from 6 m to 3 m at 1 rad with measurements on its rim, at its foot and in its
    middle.
    """
    wall = np.where(GRID < 1.0, 6.0, 3.0)
    last = np.flatnonzero(GRID < 1.0)[-1]
    ends = part(measured([0.99, 1.01], [6.0, 3.0]), wall)[0]
    # Half of the wall, 1.5 m, belongs to the grid angle on either side; 0.2 m are near, in whole
    # steps of 0.05 m.
    for k in (last, last + 1):
        assert 0.2 / 1.6 < ends[k] <= 0.3 / 1.5
    more = part(measured([0.99, 1.0, 1.01], [6.0, 4.5, 3.0]), wall)[0]
    for k in (last, last + 1):
        assert 0.4 / 1.6 < more[k] <= 0.55 / 1.5
    whole = part(measured(FINE[156:162], np.linspace(6.0, 3.0, 6)), wall, reach=0.35)[0]
    np.testing.assert_array_equal(whole[[last, last + 1]], 1.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_a_plain_search_finds_the_same(seed, count):
    rng = np.random.default_rng(seed)
    shape = np.clip(5.0 + np.cumsum(rng.normal(size=360)) * 0.3, 2.0, 8.0)
    angle = FINE[rng.choice(1000, count, replace=False)]
    radius = np.interp(angle, GRID, shape) + rng.normal(size=count) * 0.3
    found = part(measured(angle, radius), shape)[0]
    for k in rng.integers(0, 360, 20):
        halves = [
            0.5 * (shape[k] + shape[k - 1]),
            shape[k],
            0.5 * (shape[k] + shape[(k + 1) % 360]),
        ]
        low, high = min(halves), max(halves)
        across = np.abs((angle - GRID[k] + np.pi) % TWO_PI - np.pi) * radius
        if (np.abs(across - 0.2) < 1e-9).any():
            continue
        places = np.linspace(low, high, 400)[:, None]
        near = [
            (np.abs(places - radius[across <= 0.2]) <= way).any(axis=1).mean()
            for way in (0.1, 0.2, 0.3)
        ]
        # Whole steps of 0.05 m: both the contour and what is near end up to a step further out.
        length = high - low + 0.1
        assert (
            near[1] * (high - low) / length - 0.11 / length
            <= found[k]
            <= min(1.0, near[2] + 0.2 / length) + 1e-9
        )
