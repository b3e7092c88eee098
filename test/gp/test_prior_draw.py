"""Draws from the prior have its covariance, and the tail of their slopes is the one that is
stated.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.slope_tail import slope_tail, spectral_moment
from nbv_planner.errors import SettingError
from nbv_planner.gp.chain import draw_prior
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.star2d.mapper import MapperSettings

TWO_PI = 2.0 * math.pi


@pytest.mark.parametrize(
    ("nu", "length"), [("1/2", 0.5), ("3/2", 0.2), ("3/2", 3.0), ("5/2", 0.2), ("7/2", 1.0)]
)
def test_covariance_of_the_draws_is_the_kernel(nu, length):
    kernel = PeriodicMatern(nu, length)
    draws = draw_prior(kernel, 256, 20_000, np.random.default_rng(0))
    covariance = draws[:, :1].T @ draws / len(draws)
    # twice the standard error of a covariance estimate, over 256 of them: five of it
    np.testing.assert_allclose(
        covariance[0], kernel(np.arange(256) * TWO_PI / 256), atol=5 * 2.25 * math.sqrt(2 / 2e4)
    )


@pytest.mark.parametrize("nu", ["3/2", "5/2"])
def test_derivative_belongs_to_the_draw_of_the_same_seed(nu):
    kernel = PeriodicMatern(nu, 1.0)
    f = draw_prior(kernel, 8192, 3, np.random.default_rng(4))
    slope = draw_prior(kernel, 8192, 3, np.random.default_rng(4), derivative=1)
    difference = (np.roll(f, -1, axis=1) - np.roll(f, 1, axis=1)) / (2 * TWO_PI / 8192)
    assert np.abs(slope - difference).mean() < 0.02 * np.abs(slope).mean()


@pytest.mark.parametrize("nu", ["3/2", "5/2", "7/2"])
@pytest.mark.parametrize("length", [0.2, 1.0, 4.0])
def test_spectral_moment_is_the_curvature_of_the_kernel_at_the_origin(nu, length):
    kernel = PeriodicMatern(nu, length)
    h = 1e-4 * length
    curvature = 2.0 * float(kernel(0.0) - kernel(h)) / h**2
    assert spectral_moment(kernel, 1) == pytest.approx(curvature, rel=1e-3)
    assert spectral_moment(kernel, 0) == pytest.approx(kernel.variance)


@pytest.mark.parametrize(("nu", "length"), [("5/2", 0.2), ("5/2", 1.0), ("7/2", 0.2)])
def test_tail_of_the_steepest_slope_is_bounded_by_rice(nu, length):
    kernel = PeriodicMatern(nu, length, 1.0)
    a, b = slope_tail(kernel)
    steepest = np.abs(draw_prior(kernel, 2048, 4000, np.random.default_rng(1), derivative=1)).max(
        axis=1
    )
    for level in np.quantile(steepest, [0.05, 0.5, 0.9, 0.98]):
        frequency = np.mean(steepest > level)
        bound = a * math.exp(-((level / b) ** 2))
        assert frequency <= bound + 4 * math.sqrt(frequency / 4000)
    # and it is no empty bound: within a factor of two where it is rare
    assert a * math.exp(-((np.quantile(steepest, 0.98) / b) ** 2)) < 0.04


def test_default_constants_of_the_mapper_are_those_of_the_default_kernel():
    """ν = 3/2: Borell-TIS around a measured mean of about 45 m/rad; the default allows for 46."""
    # the grid misses peaks: the mean still rises by 1 % from 16 384 to 65 536 angles
    rng = np.random.default_rng(0)
    steepest = np.concatenate(
        [
            np.abs(draw_prior(PeriodicMatern(), 1 << 15, 20, rng, derivative=1)).max(axis=1)
            for _ in range(5)
        ]
    )
    assert 43.0 < steepest.mean() < 46.0 - 2 * steepest.std(ddof=1) / math.sqrt(len(steepest))
    a, b = slope_tail(PeriodicMatern(), 46.0)
    settings = MapperSettings()
    assert a <= settings.schedule_a <= 1.01 * a
    assert b <= settings.schedule_b <= 1.01 * b


def test_default_constants_bound_the_measured_tail():
    settings = MapperSettings()
    steepest = np.abs(
        draw_prior(PeriodicMatern(), 8192, 400, np.random.default_rng(2), derivative=1)
    ).max(axis=1)
    for level in np.quantile(steepest, [0.05, 0.5, 0.9]):
        assert np.mean(steepest > level) <= settings.schedule_a * math.exp(
            -((level / settings.schedule_b) ** 2)
        )


def test_a_prior_without_slopes_is_refused():
    with pytest.raises(SettingError, match="smoothness: 1/2"):
        slope_tail(PeriodicMatern("1/2"))
    with pytest.raises(SettingError, match="mean_steepest"):
        slope_tail(PeriodicMatern("3/2"))
