"""The straight line that a measured stretch ends with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.star2d.shapes.straight_edges import edge_line

NORMAL = np.zeros((1, 2))


def edge(distance: float, direction: float):
    """Radius of the line at this distance (metres) from the centre, its normal in this direction
    (radians).
    """
    return lambda angle: distance / np.cos(angle - direction)


def fitted(angle, radius, std=0.02, end=None, turn=1, length=1.0):
    return edge_line(
        angle, radius, np.full(len(angle), std), angle.max() if end is None else end, turn, length
    )


@settings(deadline=None, max_examples=60)
@given(
    distance=st.floats(1.0, 6.0),
    direction=st.floats(0.0, 6.28),
    begin=st.floats(-1.1, 0.3),
    turn=st.sampled_from([1, -1]),
)
def test_a_straight_stretch_goes_on_straight(distance, direction, begin, turn):
    angle = direction + np.linspace(begin, begin + 0.8, 120)
    surface, end = edge(distance, direction), angle[-1] if turn > 0 else angle[0]
    line = fitted(angle, surface(angle), end=end, turn=turn, length=0.5)
    assert line is not None
    beyond = angle + 0.1 * turn
    np.testing.assert_allclose(
        1.0 / line.inverse_radius(beyond, NORMAL)[0], surface(beyond), rtol=1e-6
    )


def test_its_errors_are_those_of_least_squares():
    random, draws = np.random.default_rng(0), []
    angle = np.linspace(-0.5, 0.5, 100)
    for _ in range(200):
        noisy = edge(5.0, 0.0)(angle) + 0.02 * random.standard_normal(100)
        line = fitted(angle, noisy, length=2.5)
        if line is not None:
            whitened = np.linalg.solve(line.factor, line.coefficients - np.array([0.2, 0.0]))
            draws.append(whitened @ whitened)
    assert len(draws) > 150
    assert 1.6 < np.mean(draws) < 2.4  # χ² of two degrees of freedom, less those that looked bent


def test_draws_have_the_covariance_of_the_fit():
    angle = np.linspace(-0.5, 0.5, 100)
    line = fitted(angle, edge(5.0, 0.0)(angle))
    normal = np.random.default_rng(1).standard_normal((20_000, 2))
    there = np.array([0.7])
    features = np.array([np.cos(there), np.sin(there)])[:, 0]
    expected = np.sqrt(features @ line.factor @ line.factor.T @ features)
    np.testing.assert_allclose(line.inverse_radius(there, normal).std(), expected, rtol=0.03)


def test_a_circle_is_told_from_a_line_where_the_noise_lets_it():
    angle = np.linspace(0.0, 1.0, 100)
    circle = np.full(100, 5.0)
    assert fitted(angle, circle, std=0.005) is None
    assert fitted(angle, circle, std=0.5) is not None


FEW = np.array([0.0, 0.002, 0.004, 0.006, 0.008, 0.5])


@pytest.mark.parametrize(
    "angle", [np.linspace(0.0, 0.1, 100), np.linspace(0.0, 1.0, 4), FEW, np.array([])]
)
def test_stretches_that_are_too_short_or_bare_give_none(angle):
    assert fitted(angle, edge(5.0, 0.0)(angle), end=0.1) is None


@settings(deadline=None, max_examples=100)
@given(
    angle=st.lists(st.sampled_from(np.linspace(0.0, 0.01, 4).tolist()), min_size=1, max_size=12),
    radius=st.lists(st.floats(0.1, 10.0), min_size=12, max_size=12),
    std=st.sampled_from([1e-6, 0.02, 1.0]),
)
def test_walls_and_clutter_are_no_error(angle, radius, std):
    line = fitted(np.array(angle), np.array(radius[: len(angle)]), std=std)
    assert line is None or np.isfinite(line.coefficients).all()


def test_the_line_ends_at_a_corner():
    angle = np.linspace(0.0, 1.5, 300)
    radius = np.minimum(edge(5.0, 0.2)(angle), edge(5.0, 1.3)(angle))
    for turn, end, direction in ((1, angle[-1], 1.3), (-1, angle[0], 0.2)):
        line = fitted(angle, radius, end=end, turn=turn)
        np.testing.assert_allclose(
            1.0 / line.inverse_radius(np.array([end]), NORMAL)[0], edge(5.0, direction)(end)
        )


def test_around_the_turn_it_is_the_same():
    angle = np.linspace(-0.4, 0.4, 100)
    radius = edge(5.0, 0.0)(angle)
    here = fitted(angle, radius, end=0.4)
    there = fitted(np.mod(angle, 2.0 * np.pi), radius, end=0.4)
    np.testing.assert_allclose(there.coefficients, here.coefficients, rtol=1e-9, atol=1e-12)
