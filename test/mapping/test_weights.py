"""Weights under noise that is not Gaussian, against the integrals that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from nbv_planner.star2d.measurements import Beams, Measurements
from nbv_planner.star2d.robust_fit import contaminated_weights, student_t_weights, supported


@pytest.mark.parametrize("residual", [0.0, 0.5, 2.0, 10.0])
@pytest.mark.parametrize("freedom", [1.0, 4.0, 30.0])
def test_student_t_weight_is_the_posterior_mean_of_the_precision(residual, freedom):
    def density(u):
        """Prior of the precision times the likelihood of a residual e² = q."""
        return (
            stats.gamma.pdf(u, 0.5 * freedom, scale=2.0 / freedom)
            * np.sqrt(u)
            * np.exp(-0.5 * u * residual)
        )

    mean = integrate.quad(lambda u: u * density(u), 0, 60)[0] / integrate.quad(density, 0, 60)[0]
    assert student_t_weights(np.array([residual]), freedom)[0] == pytest.approx(mean, rel=1e-5)


@given(st.floats(-5.0, 5.0), st.floats(0.05, 1.0), st.floats(0.01, 0.9), st.floats(1.0, 20.0))
def test_contaminated_weight_is_bayes_rule(error, std, fraction, span):
    inlier = (1.0 - fraction) * stats.norm.pdf(error, scale=std)
    expected = inlier / (inlier + fraction / span)
    got = contaminated_weights(np.array([(error / std) ** 2]), np.array([std]), fraction, span)[0]
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_gross_outliers_lose_all_weight_only_in_the_mixture():
    gross = np.array([100.0])
    assert contaminated_weights(gross, np.array([0.2]), 0.1, 10.0)[0] < 1e-12
    assert student_t_weights(gross, 4.0)[0] == pytest.approx(5.0 / 104.0)


@given(st.lists(st.tuples(st.floats(4.0, 5.0), st.booleans()), min_size=1, max_size=12))
def test_a_return_is_supported_by_two_of_the_three_to_either_side_in_its_scan(returns):
    """Noise of 0.1 m, and 0.04 rad between beams at 4 to 5 m."""
    radius, other = (np.array(column) for column in zip(*returns, strict=True))
    scan = np.cumsum(other)
    angle = 0.04 * np.arange(len(radius))
    beams = Beams(Measurements(angle, radius, np.full(len(radius), 0.1)), scan, scan)
    votes = [
        sum(
            scan[one] == scan[i]
            and abs(radius[one] - radius[i])
            < 0.3 * np.sqrt(2.0) + 4.0 * radius[min(one, i)] * abs(angle[one] - angle[i])
            for one in range(max(i - 3, 0), min(i + 4, len(radius)))
            if one != i
        )
        for i in range(len(radius))
    ]
    assert supported(beams).tolist() == [count >= 2 for count in votes]
