"""Values on a grid around the circle: interpolation against numpy's, windows against plain
indexing.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.geometry import CircleInterpolation, windows_of

TWO_PI = 2 * np.pi
GRIDS = {
    "open": np.arange(100) * (TWO_PI / 100),
    "closed": np.linspace(0.0, TWO_PI, 100),
    "transmitted": (np.arange(100) * (TWO_PI / 100)).astype(np.float32).astype(float),
    "shifted": 0.3 + np.arange(40) * (TWO_PI / 40),
}


@pytest.mark.parametrize("name", GRIDS)
@given(st.integers(0, 2**32))
def test_interpolation_is_that_of_numpy_to_the_last_bit(name, seed):
    grid, rng = GRIDS[name], np.random.default_rng(seed)
    values = rng.normal(size=len(grid))
    values[-1] = values[0] if name == "closed" else values[-1]
    places = np.concatenate([rng.uniform(-7.0, 14.0, 50), grid, [0.0, -1e-300, TWO_PI]])
    got = CircleInterpolation.at(grid, places)(values)
    np.testing.assert_array_equal(got, np.interp(places, grid, values, period=TWO_PI))


def test_interpolation_keeps_the_shape_of_the_places():
    grid = GRIDS["open"]
    assert CircleInterpolation.at(grid, 1.0)(grid).shape == ()
    assert CircleInterpolation.at(grid, np.zeros((3, 2)))(grid).shape == (3, 2)


@given(st.integers(1, 30), st.data())
def test_windows_are_consecutive_values_around_the_circle(size, data):
    width = data.draw(st.integers(1, size))
    first = data.draw(st.lists(st.integers(0, size), max_size=8))
    values = np.random.default_rng(0).normal(size=size)
    got = windows_of(values, np.array(first, dtype=np.intp), width)
    assert got.shape == (len(first), width)
    for row, begin in zip(got, first, strict=True):
        np.testing.assert_array_equal(row, [values[(begin + k) % size] for k in range(width)])


def test_windows_are_a_copy():
    values = np.arange(5.0)
    windows_of(values, np.array([1, 2]), 3)[:] = -1.0
    np.testing.assert_array_equal(values, [0, 1, 2, 3, 4])


def test_interpolation_at_some_of_the_places_gives_some_of_the_values():
    grid = GRIDS["shifted"]
    at_all, index = CircleInterpolation.at(grid, np.linspace(0.0, 7.0, 30)), np.array([28, 3, 3, 0])
    np.testing.assert_array_equal(at_all.chosen(index)(np.cos(grid)), at_all(np.cos(grid))[index])
