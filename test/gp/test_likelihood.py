"""Log marginal likelihood against the dense formula and scipy, its gradient, and leave-one-out
predictions.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_one_call import log_likelihood
from measurement_sets import KINDS, sample
from scipy.stats import multivariate_normal

from nbv_planner.gp.circle_solver import condensed_log_likelihood
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.dense import dense_log_likelihood
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern

angles = st.one_of(
    st.floats(0.0, 2.0 * np.pi), st.sampled_from([0.0, 1.0, 1.0 + 1e-15, 1.0 + 1e-9, -1e-17])
)
rows = st.lists(
    st.tuples(angles, st.floats(2.0, 8.0), st.sampled_from([0.05, 0.3, 1.0])),
    min_size=1,
    max_size=25,
)
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
    expected = multivariate_normal.logpdf(
        radius, np.full(len(angle), 5.0), covariance, allow_singular=True
    )
    assert dense_log_likelihood(kernel, 5.0, angle, radius, noise) == pytest.approx(
        expected, rel=1e-7, abs=1e-7
    )
    assert log_likelihood(kernel, 5.0, angle, radius, noise) == pytest.approx(
        expected, rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_log_likelihood_of_many_measurements_equals_the_dense_one(nu, kind, noise):
    kernel, data = PeriodicMatern(smoothness=nu), sample(kind, 400, noise)
    assert log_likelihood(kernel, 4.7, *data) == pytest.approx(
        dense_log_likelihood(kernel, 4.7, *data), abs=1e-5
    )


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
