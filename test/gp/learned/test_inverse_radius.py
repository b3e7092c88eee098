"""The radius as a function of its inverse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.star2d.shapes.learned_shapes import from_inverse, to_inverse


@given(st.floats(1e-3, 1e3), st.floats(0.1001, 1e3), st.floats(1e-6, 1.0))
def test_there_and_back_again(mean, ratio, std):
    radius = np.array([mean * ratio])
    value, scaled = to_inverse(radius, np.array([std]), mean)
    assert from_inverse(value, mean) == pytest.approx(radius, rel=1e-9)
    assert scaled == pytest.approx(std / ratio**2)


def test_at_the_mean_nothing_changes():
    value, std = to_inverse(np.array([5.0]), np.array([0.2]), 5.0)
    assert (value, std) == (5.0, 0.2)
    assert from_inverse(value, 5.0) == 5.0


@pytest.mark.parametrize("radius", [2.0, 5.0, 7.5])
def test_the_standard_deviation_goes_with_the_derivative(radius):
    step = 1e-5
    ends, _ = to_inverse(np.array([radius - step, radius + step]), np.ones(2), 5.0)
    assert to_inverse(np.array([radius]), np.array([0.2]), 5.0)[1] == pytest.approx(
        0.2 * np.diff(ends) / (2.0 * step), rel=1e-6
    )


def test_a_straight_edge_is_a_single_wave():
    angle, mean, distance, normal = np.linspace(-1.2, 1.2, 50), 5.0, 2.5, 0.3
    radius = distance / np.cos(angle - normal)
    seen = (radius > 0.0) & (np.abs(angle - normal) < 1.4)
    value, _ = to_inverse(radius[seen], np.ones(seen.sum()), mean)
    np.testing.assert_allclose(
        value, 2.0 * mean - mean**2 / distance * np.cos(angle - normal)[seen], rtol=1e-12
    )


def test_radii_near_0_stay_finite_and_values_beyond_the_pole_are_infinite():
    value, std = to_inverse(np.array([0.0, -1.0, 1e-300]), np.full(3, 0.2), 5.0)
    assert np.isfinite(value).all()
    assert np.isfinite(std).all()
    np.testing.assert_array_equal(
        from_inverse(np.array([10.0, 12.0, 5.0]), 5.0), [np.inf, np.inf, 5.0]
    )
