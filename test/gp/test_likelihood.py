"""Log marginal likelihood against the dense formula and scipy, its gradient, and leave-one-out predictions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from measurement_sets import KINDS, sample
from scipy.stats import multivariate_normal, norm

from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.dense import dense_log_likelihood, dense_posterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.gp.leave_one_out import leave_one_out
from nbv_planner.gp.likelihood import condensed_log_likelihood, likelihood_gradient, log_likelihood

angles = st.one_of(st.floats(0.0, 2.0 * np.pi), st.sampled_from([0.0, 1.0, 1.0 + 1e-15, 1.0 + 1e-9, -1e-17]))
rows = st.lists(st.tuples(angles, st.floats(2.0, 8.0), st.sampled_from([0.05, 0.3, 1.0])), min_size=1, max_size=25)
kernels = st.builds(
    PeriodicMatern,
    smoothness=st.sampled_from(MATERN_SMOOTHNESS),
    length_scale=st.sampled_from([0.02, 0.2, 3.0, 100.0]),
    kernel_std=st.sampled_from([0.5, 1.5]),
)


def columns(drawn):
    return tuple(np.array(column) for column in zip(*drawn, strict=True))


@settings(max_examples=200)
@given(kernels, rows)
@example(PeriodicMatern(), [(1.0, 6.0, 0.05)])
def test_log_likelihood_is_that_of_the_joint_gaussian(kernel, drawn):
    angle, radius, noise = columns(drawn)
    covariance = kernel(angle[:, None] - angle) + np.diag(noise**2)
    expected = multivariate_normal.logpdf(radius, np.full(len(angle), 5.0), covariance, allow_singular=True)
    assert dense_log_likelihood(kernel, 5.0, angle, radius, noise) == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert log_likelihood(kernel, 5.0, angle, radius, noise) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_log_likelihood_of_many_measurements_equals_the_dense_one(nu, kind, noise):
    kernel, data = PeriodicMatern(smoothness=nu), sample(kind, 400, noise)
    assert log_likelihood(kernel, 4.7, *data) == pytest.approx(dense_log_likelihood(kernel, 4.7, *data), abs=1e-5)


def test_log_likelihood_without_measurements_is_zero():
    assert log_likelihood(PeriodicMatern(), 5.0, np.empty(0), np.empty(0), np.empty(0)) == 0.0


@pytest.mark.parametrize("nu", ["3/2", "5/2"])
@pytest.mark.parametrize("length", [0.1, 0.2, 1.0])
def test_condensed_log_likelihood_is_near_the_exact_one_for_every_kernel(nu, length):
    data = sample("random", 20_000, 0.1)
    condensed = CondensedMeasurements.none(2.0 * np.pi * np.arange(1000) / 1000, 8192).adding(*data)
    assert not condensed.is_exact
    kernel = PeriodicMatern(smoothness=nu, length_scale=length)
    exact = log_likelihood(kernel, 5.0, *data)
    assert condensed_log_likelihood(kernel, 5.0, condensed) == pytest.approx(exact, abs=0.5)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("length", [0.1, 0.2, 1.0])
def test_gradient_is_that_of_the_dense_log_likelihood(nu, length):
    """Oracle: ½ tr((ααᵀ − (K+D)⁻¹) ∂K/∂θ) (Rasmussen & Williams eq. 5.9)."""
    kernel = PeriodicMatern(smoothness=nu, length_scale=length)
    angle, radius, noise = sample("random", 200, 0.1)
    got = likelihood_gradient(kernel, 4.8, CondensedMeasurements.none(np.zeros(1), 200).adding(angle, radius, noise))
    lag = angle[:, None] - angle
    inverse = np.linalg.inv(kernel(lag) + np.diag(noise**2))
    alpha = inverse @ (radius - 4.8)
    step = 1e-5
    above, below = (dataclasses.replace(kernel, length_scale=length * np.exp(s))(lag) for s in (step, -step))
    for value, slope in [(got.log_length_scale, (above - below) / (2 * step)), (got.log_kernel_std, 2.0 * kernel(lag))]:
        expected = 0.5 * np.sum((np.outer(alpha, alpha) - inverse) * slope)
        assert value == pytest.approx(expected, rel=1e-5, abs=1e-4)
    assert got.prior_mean == pytest.approx(alpha.sum(), rel=1e-6, abs=1e-6)


# -------------------------------------------------------------------------------------------------------- leave one out


@settings(max_examples=60)
@given(kernels, rows)
def test_leaving_one_out_is_the_posterior_without_it(kernel, drawn):
    angle, radius, noise = columns(drawn)
    found = leave_one_out(kernel, 5.0, angle, radius, noise)
    for i in range(len(angle)):
        others = np.arange(len(angle)) != i
        mean, std = dense_posterior(kernel, 5.0, angle[i : i + 1], angle[others], radius[others], noise[others])
        assert found.mean[i] == pytest.approx(mean[0], abs=1e-6)
        assert found.std[i] == pytest.approx(np.hypot(std[0], noise[i]), abs=1e-6)
    np.testing.assert_allclose(found.score, (radius - found.mean) / found.std)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
def test_scores_on_a_surface_from_the_prior_are_standard_normal(nu):
    kernel, rng = PeriodicMatern(smoothness=nu), np.random.default_rng(7)
    angle = rng.uniform(0.0, 2.0 * np.pi, 1500)
    root = np.linalg.cholesky(kernel(angle[:, None] - angle) + 1e-10 * np.eye(1500))
    radius = 5.0 + root @ rng.normal(size=1500) + 0.1 * rng.normal(size=1500)
    found = leave_one_out(kernel, 5.0, angle, radius, np.full(1500, 0.1))
    for half_width in (0.5, 1.0, 2.0):
        assert found.inside(half_width) == pytest.approx(2.0 * norm.cdf(half_width) - 1.0, abs=0.04)


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 10.0])
def test_leaving_out_a_measurement_with_no_other_near_gives_the_prior(noise):
    found = leave_one_out(PeriodicMatern(), 5.0, np.array([1.0]), np.array([6.0]), np.array([noise]))
    assert found.mean[0] == pytest.approx(5.0, abs=1e-6)
    assert found.std[0] == pytest.approx(np.hypot(1.5, noise), rel=1e-6)


def test_a_kernel_without_markov_structure_is_left_to_the_dense_formula():
    class Summed:
        variance = 2.25 + 1e-9

        def __call__(self, difference):
            return PeriodicMatern()(difference) + 1e-9

    data = sample("random", 80, 0.1)
    np.testing.assert_allclose(
        leave_one_out(Summed(), 5.0, *data).mean, leave_one_out(PeriodicMatern(), 5.0, *data).mean, rtol=0, atol=1e-6
    )


def test_leaving_one_out_of_none_gives_nothing():
    assert len(leave_one_out(PeriodicMatern(), 5.0, np.empty(0), np.empty(0), np.empty(0)).mean) == 0
