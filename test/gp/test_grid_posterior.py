"""The posterior whose measurements are moved to the grid, against conditioning of all states by
dense algebra.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measurement_sets import KINDS, sample

from nbv_planner.errors import MeasurementError, SettingError
from nbv_planner.gp.chain import MaternChain
from nbv_planner.gp.dense import dense_posterior
from nbv_planner.gp.grid_posterior import GridPosterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, KernelSettings, PeriodicMatern
from nbv_planner.gp.posterior import posterior_from_state, posterior_on, posterior_state

TWO_PI = 2.0 * np.pi


def grid_of(size):
    return TWO_PI * np.arange(size) / size


def states_covariance(kernel, size):
    """Prior covariance of all states on the grid, by the inverse of the sum over the steps of their
    densities.
    """
    chain, step, d = MaternChain.of(kernel), np.array([TWO_PI / size]), kernel.order + 1
    forward, noise = chain.transition(step)[..., 0], chain.noise(step)[..., 0]
    precision = np.zeros((size * d, size * d))
    for k in range(size):
        difference = np.zeros((d, size * d))
        following = (k + 1) % size
        difference[:, following * d : following * d + d] += np.eye(d)
        difference[:, k * d : k * d + d] -= forward
        precision += difference.T @ np.linalg.solve(noise, difference)
    return np.linalg.inv(precision)


def conditioned(kernel, size, angle, radius, std):
    """Mean and deviation of the radius on the grid, by the formula of the class, one
    row a measurement.
    """
    chain, d = MaternChain.of(kernel), kernel.order + 1
    prior, rows, noise = states_covariance(kernel, size), [], []
    for phi, sigma in zip(angle, std, strict=True):
        apart = (phi - grid_of(size) + np.pi) % TWO_PI - np.pi
        k = int(np.argmin(np.abs(apart)))
        gap = np.array([abs(apart[k])])
        row = np.zeros(size * d)
        row[k * d : k * d + d] = chain.transition(gap)[0, :, 0] * np.sign(apart[k]) ** np.arange(d)
        rows.append(row)
        noise.append(sigma**2 + chain.noise(gap)[0, 0, 0])
    seen = np.array(rows)
    gain = np.linalg.solve(seen @ prior @ seen.T + np.diag(noise), seen @ prior).T
    covariance = (prior - gain @ seen @ prior)[::d, ::d]
    return 5.0 + (gain @ (radius - 5.0))[::d], np.sqrt(np.diag(covariance))


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_posterior_is_that_of_all_states_conditioned_densely(nu, kind):
    kernel, data = PeriodicMatern(smoothness=nu, length_scale=0.3), sample(kind, 50, 0.1)
    posterior = (
        GridPosterior.none(kernel, 5.0, 40)
        .adding(*(c[:20] for c in data))
        .adding(*(c[20:] for c in data))
    )
    mean, std = conditioned(kernel, 40, *data)
    for value, expected in zip(posterior.mean_and_std(), (mean, std), strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(MATERN_SMOOTHNESS),
    st.floats(0.05, 2.0),
    st.sampled_from([2, 3, 16, 120]),
    st.integers(0, 99),
)
def test_measured_on_the_grid_angles_it_is_exact(nu, length, size, seed):
    kernel, rng = PeriodicMatern(smoothness=nu, length_scale=length), np.random.default_rng(seed)
    angle = rng.choice(grid_of(size), 30) + TWO_PI * rng.integers(-1, 2, 30)
    radius, std = rng.uniform(3.0, 7.0, 30), 10.0 ** rng.uniform(-3.0, 0.0, 30)
    posterior = GridPosterior.none(kernel, 5.0, size)
    assert posterior.mean_and_std()[1] == pytest.approx(kernel.kernel_std, abs=1e-6)
    grid = grid_of(size)
    expected = dense_posterior(kernel, 5.0, grid, np.round(angle % TWO_PI, 12), radius, std)
    for value, exact in zip(
        posterior.adding(angle, radius, std).mean_and_std(), expected, strict=True
    ):
        np.testing.assert_allclose(value, exact, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("nu", "size", "off"), [("3/2", 360, 0.02), ("3/2", 1000, 0.004), ("5/2", 360, 1e-3)]
)
def test_between_the_grid_angles_it_is_near_the_exact_posterior(nu, size, off):
    kernel, data = PeriodicMatern(smoothness=nu), sample("random", 400, 0.2)
    exact = dense_posterior(kernel, 5.0, grid_of(size), *data)
    for value, expected in zip(
        GridPosterior.none(kernel, 5.0, size).adding(*data).mean_and_std(), exact, strict=True
    ):
        assert np.abs(value - expected).max() < off


def test_a_kernel_or_grid_that_does_not_fit_is_refused():
    for kernel, grid in (
        (KernelSettings(kernel="rbf", periodisation="warp").build(), grid_of(60)),
        (PeriodicMatern(smoothness="7/2"), grid_of(60)),
        (PeriodicMatern(), np.linspace(0.0, TWO_PI, 60)),
    ):
        with pytest.raises(SettingError, match="solver: grid needs"):
            posterior_on(grid, kernel, 5.0, "grid")
    with pytest.raises(SettingError, match="grid_size: 30000 must be at most 25256"):
        posterior_on(grid_of(30_000), PeriodicMatern(), 5.0, "grid")


@pytest.mark.parametrize("nu", ["3/2", "5/2"])
@pytest.mark.parametrize("length", [0.05, 1.0])
def test_on_the_finest_grid_it_is_exact_but_for_rounding(nu, length):
    kernel, std = PeriodicMatern(smoothness=nu, length_scale=length), np.full(100, 0.1)
    with pytest.raises(SettingError) as refused:
        GridPosterior.none(kernel, 5.0, 10**9)
    finest = min(int(str(refused.value).split("at most ")[1].split()[0]), 20_000)
    angle, few = (
        np.random.default_rng(0).choice(grid_of(finest), 100),
        slice(None, None, finest // 40),
    )
    radius = 5.0 + np.cos(3.0 * angle)
    found = GridPosterior.none(kernel, 5.0, finest).adding(angle, radius, std).mean_and_std()
    for value, exact in zip(
        found, dense_posterior(kernel, 5.0, grid_of(finest)[few], angle, radius, std), strict=True
    ):
        np.testing.assert_allclose(value[few], exact, rtol=0, atol=3e-4)


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_angles_of_any_number_type_are_those_numbers(kind):
    angle, rest = np.array([0, 1, 3]), (np.full(3, 4.0), np.full(3, 0.2))
    blank = GridPosterior.none(PeriodicMatern(), 5.0, 60)
    one, other = (blank.adding(angle.astype(of), *rest) for of in (kind, np.float64))
    np.testing.assert_array_equal(one.mean_and_std(), other.mean_and_std())


def test_a_state_without_meaning_is_refused():
    empty = GridPosterior.none(PeriodicMatern(), 5.0, 30)
    state = posterior_state(empty.adding(*sample("random", 9, 0.1)))
    for wrong in (-state["sums"], np.full_like(state["sums"], np.nan), state["sums"][:, :, 1:]):
        with pytest.raises(MeasurementError, match="sums"):
            posterior_from_state(empty, {"sums": wrong})
