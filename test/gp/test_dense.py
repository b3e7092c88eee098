"""The dense posterior against an independent conditioning, and its properties."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.gp import dense
from nbv_planner.gp.dense import dense_posterior, merge_repeats
from nbv_planner.gp.kernels import PeriodicMatern

TWO_PI = 2.0 * np.pi
GRID = np.arange(60) * (TWO_PI / 60)


@st.composite
def measurement_sets(draw, least=1, most=25):
    """Angles (often equal, often near 0/2π), radii and standard deviations."""
    angle = st.one_of(
        st.floats(0.0, TWO_PI, exclude_max=True),
        st.sampled_from([0.0, 1.0, 1.0 + 1e-9, np.pi, float(np.nextafter(TWO_PI, 0.0))]),
    )
    rows = draw(
        st.lists(
            st.tuples(angle, st.floats(2.0, 8.0), st.floats(0.05, 1.0)),
            min_size=least,
            max_size=most,
        )
    )
    return (
        tuple(np.array(column) for column in zip(*rows, strict=True))
        if rows
        else (np.empty(0),) * 3
    )


kernels = st.builds(
    PeriodicMatern,
    smoothness=st.sampled_from(["1/2", "3/2", "5/2"]),
    length_scale=st.sampled_from([0.05, 0.2, 1.0]),
    kernel_std=st.sampled_from([0.5, 1.5]),
)


@settings(max_examples=60)
@given(kernels, measurement_sets())
def test_posterior_equals_the_textbook_formula(kernel, data):
    mean, std = dense_posterior(kernel, 5.0, GRID, *data)
    expected_mean, expected_std = oracles.textbook_posterior(kernel, 5.0, GRID, *data)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std**2, expected_std**2, rtol=0, atol=1e-8)


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
def test_posterior_with_many_repeats_and_own_noise_equals_the_textbook_formula(nu):
    kernel = PeriodicMatern(smoothness=nu)
    rng = np.random.default_rng(3)
    angle = rng.choice(rng.uniform(0, TWO_PI, 12), 90)
    radius = 5.0 + np.cos(3 * angle) + 0.2 * rng.normal(size=90)
    noise = rng.uniform(0.05, 0.6, 90)
    mean, std = dense_posterior(kernel, 5.0, GRID, angle, radius, noise)
    expected_mean, expected_std = oracles.textbook_posterior(
        kernel, 5.0, GRID, angle, radius, noise
    )
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std, expected_std, rtol=0, atol=1e-8)


def test_posterior_equals_conditioning_of_the_joint_gaussian_one_measurement_at_a_time():
    """Recursive conditioning on the joint law of grid and measured angles: no matrix is
    inverted.
    """
    kernel = PeriodicMatern(smoothness="5/2", length_scale=0.4)
    rng = np.random.default_rng(1)
    angle, radius, noise = (
        rng.uniform(0, TWO_PI, 30),
        rng.uniform(3, 7, 30),
        rng.uniform(0.1, 0.4, 30),
    )
    where = np.concatenate([GRID, angle])
    mean = np.full(len(where), 4.5)
    covariance = kernel(where[:, None] - where)
    for i in range(30):
        k = len(GRID) + i
        gain = covariance[:, k] / (covariance[k, k] + noise[i] ** 2)
        mean = mean + gain * (radius[i] - mean[k])
        covariance = covariance - np.outer(gain, covariance[k])
    got_mean, got_std = dense_posterior(kernel, 4.5, GRID, angle, radius, noise)
    np.testing.assert_allclose(got_mean, mean[: len(GRID)], rtol=0, atol=1e-8)
    np.testing.assert_allclose(got_std**2, np.diag(covariance)[: len(GRID)], rtol=0, atol=1e-8)


@settings(max_examples=60)
@given(kernels, measurement_sets())
def test_variance_is_never_negative_never_above_the_prior_and_falls_with_more_data(kernel, data):
    _, std = dense_posterior(kernel, 5.0, GRID, *data)
    assert np.isfinite(std).all()
    assert (std >= 0.0).all()
    assert (std <= np.sqrt(kernel.variance) * (1 + 1e-9)).all()
    _, fewer = dense_posterior(kernel, 5.0, GRID, *(column[:-1] for column in data))
    assert (std <= fewer + 1e-7).all()


@settings(max_examples=40)
@given(kernels, measurement_sets(least=2), st.randoms(use_true_random=False))
def test_order_of_measurements_does_not_matter(kernel, data, random):
    order = list(range(len(data[0])))
    random.shuffle(order)
    mean, std = dense_posterior(kernel, 5.0, GRID, *data)
    other_mean, other_std = dense_posterior(kernel, 5.0, GRID, *(column[order] for column in data))
    np.testing.assert_allclose(mean, other_mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(std**2, other_std**2, rtol=0, atol=1e-9)


def test_no_measurement_gives_the_prior():
    mean, std = dense_posterior(
        PeriodicMatern(kernel_std=1.2), 4.0, GRID, np.empty(0), np.empty(0), np.empty(0)
    )
    np.testing.assert_array_equal(mean, np.full(60, 4.0))
    np.testing.assert_allclose(std, 1.2)


def test_thousands_of_repeats_with_tiny_noise_are_safe():
    kernel = PeriodicMatern(smoothness="5/2")
    angle = np.repeat(np.linspace(0.0, TWO_PI, 40, endpoint=False), 100)
    mean, std = dense_posterior(kernel, 5.0, GRID, angle, np.full(4000, 6.0), np.full(4000, 1e-6))
    assert np.isfinite(mean).all()
    assert ((std >= 0.0) & (std <= 1.5)).all()
    _, at_data = dense_posterior(
        kernel, 5.0, angle[::100], angle, np.full(4000, 6.0), np.full(4000, 1e-6)
    )
    assert at_data.max() < 1e-4


def test_almost_equal_angles_with_tiny_noise_are_safe():
    angle = 1.0 + np.arange(50) * 1e-12
    mean, std = dense_posterior(
        PeriodicMatern(smoothness="5/2"), 5.0, GRID, angle, np.full(50, 6.0), np.full(50, 1e-6)
    )
    assert np.isfinite(mean).all()
    assert ((std >= 0.0) & (std <= 1.5)).all()


def test_posterior_is_continuous_across_zero():
    data = (np.array([TWO_PI - 0.05]), np.array([7.0]), np.array([0.1]))
    mean, std = dense_posterior(
        PeriodicMatern(), 5.0, np.array([0.0, TWO_PI - 0.1, 0.05, TWO_PI - 0.15]), *data
    )
    assert mean[0] == pytest.approx(mean[1])
    assert mean[2] == pytest.approx(mean[3])
    assert std[0] == pytest.approx(std[1])
    assert mean[0] > 6.0


def test_merged_repeats_are_the_precision_weighted_mean():
    angle = np.array([2.0, 1.0, 2.0, 2.0])
    radius = np.array([4.0, 5.0, 6.0, 5.0])
    noise = np.array([0.1, 0.3, 0.2, 0.4])
    merged_angle, merged_radius, variance = merge_repeats(angle, radius, noise)
    weights = np.array([100.0, 25.0, 6.25])
    np.testing.assert_array_equal(merged_angle, [1.0, 2.0])
    np.testing.assert_allclose(variance, [0.09, 1.0 / weights.sum()])
    np.testing.assert_allclose(merged_radius, [5.0, (weights @ [4.0, 6.0, 5.0]) / weights.sum()])


@given(measurement_sets())
def test_merging_keeps_precision_and_first_moment(data):
    angle, radius, noise = data
    merged_angle, merged_radius, variance = merge_repeats(angle, radius, noise)
    assert (np.diff(merged_angle) > 0.0).all()
    assert set(merged_angle.tolist()) == set(angle.tolist())
    assert np.sum(1 / variance) == pytest.approx(np.sum(noise**-2.0))
    assert np.sum(merged_radius / variance) == pytest.approx(np.sum(radius * noise**-2.0))


def test_long_solution_in_blocks_is_the_same(monkeypatch):
    rng = np.random.default_rng(3)
    angle, grid = rng.uniform(0.0, TWO_PI, 60), np.linspace(0.0, TWO_PI, 41)
    data = PeriodicMatern(), 5.0, grid, angle, rng.normal(5.0, 1.0, 60), np.full(60, 0.2)
    whole = dense_posterior(*data)
    monkeypatch.setattr(dense, "_UNINTERRUPTED", 60**2 * 7)
    np.testing.assert_allclose(dense_posterior(*data), whole, rtol=1e-11)
