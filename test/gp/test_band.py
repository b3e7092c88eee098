"""Banded factors give the posterior of the dense solution, wherever they are allowed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.gp.dense import dense_covariance, dense_posterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.gp.posterior import posterior_from_state, posterior_on, posterior_state
from nbv_planner.mapping.belief import uniform_grid


def measured(seed, number, noise):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.0, rng.uniform(0.3, TWO_PI), number)
    return angle, 5.0 + np.sin(2.0 * angle), rng.uniform(0.5, 2.0, number) * noise


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(MATERN_SMOOTHNESS), st.floats(0.05, 1.0), st.integers(3, 400), st.integers(0, 10**6),
    st.integers(0, 200), st.floats(1e-3, 1.0),
)
def test_mean_and_deviation_are_the_dense_ones(smoothness, length_scale, size, seed, number, noise):
    kernel, grid = PeriodicMatern(smoothness, length_scale, 1.5), uniform_grid(size)
    data = measured(seed, number, noise)
    try:
        posterior = posterior_on(grid, kernel, 5.0, "banded")
    except SettingError:
        return
    half = number // 2
    posterior = posterior.adding(*(values[:half] for values in data))
    posterior.mean()
    posterior = posterior.adding(*(values[half:] for values in data))
    for found, dense in zip(posterior.mean_and_std(), dense_posterior(kernel, 5.0, grid, *data), strict=True):
        assert np.abs(found - dense).max() <= 1e-6


@pytest.mark.parametrize("smoothness", MATERN_SMOOTHNESS)
def test_by_default_it_is_within_rounding(smoothness):
    kernel, grid, data = PeriodicMatern(smoothness, 0.2, 1.5), uniform_grid(360), measured(1, 900, 0.2)
    posterior = posterior_on(grid, kernel, 5.0, "banded").adding(*data)
    for found, dense in zip(posterior.mean_and_std(), dense_posterior(kernel, 5.0, grid, *data), strict=True):
        assert np.abs(found - dense).max() <= (1e-8 if smoothness == "5/2" else 1e-11)


@pytest.mark.parametrize("smoothness", MATERN_SMOOTHNESS)
def test_samples_have_the_posterior_covariance(smoothness):
    """They are linear in the normals: the images of the unit vectors give their covariance exactly."""
    kernel, grid, data = PeriodicMatern(smoothness, 0.4, 1.5), uniform_grid(40), measured(3, 30, 0.1)
    posterior = posterior_on(grid, kernel, 5.0, "banded").adding(*data)
    images = posterior.sample(np.eye(posterior.normals_per_sample)) - posterior.mean()
    assert np.allclose(images.T @ images, dense_covariance(kernel, grid, data[0], data[2]), rtol=0.0, atol=1e-9)


def test_a_saved_state_gives_the_same_posterior():
    kernel, grid = PeriodicMatern("3/2", 0.2, 1.5), uniform_grid(360)
    empty = posterior_on(grid, kernel, 5.0, "banded")
    posterior = empty.adding(*measured(5, 300, 0.2))
    again = posterior_from_state(empty, posterior_state(posterior))
    assert all(map(np.array_equal, again.mean_and_std(), posterior.mean_and_std()))


@pytest.mark.parametrize(("smoothness", "most"), [("1/2", 99346), ("3/2", 3060), ("5/2", 1031)])
def test_a_finer_grid_is_refused_with_the_finest(smoothness, most):
    kernel = PeriodicMatern(smoothness, 0.2, 1.5)
    with pytest.raises(SettingError, match=f"banded .* 3 to {most} angles"):
        posterior_on(uniform_grid(most + 1), kernel, 5.0, "banded")
    posterior_on(uniform_grid(most - 1), kernel, 5.0, "banded")
    with pytest.raises(SettingError, match="banded needs the kernel matern"):
        posterior_on(uniform_grid(16), PeriodicMatern("7/2", 0.2, 1.5), 5.0, "banded")
