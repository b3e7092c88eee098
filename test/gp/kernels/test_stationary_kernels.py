"""RBF and Matérn on the line against their definitions."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import kv

from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import Matern, Rbf


@given(st.floats(-30.0, 30.0), st.sampled_from([0.02, 0.2, 1.0, 10.0]), st.floats(0.1, 3.0))
def test_rbf_is_its_formula(r, length, std):
    assert float(Rbf(length, std)(r)) == pytest.approx(
        std**2 * math.exp(-((r / length) ** 2) / 2), rel=1e-12
    )


@given(st.floats(0.05, 40.0), st.floats(-6.0, 1.5), st.sampled_from([0.02, 0.2, 1.0, 10.0]))
def test_matern_of_any_smoothness_is_the_integral_of_its_bessel_function(nu, exponent, length):
    r = 10.0**exponent * length
    assert float(Matern(nu, length, 1.0)(r)) == pytest.approx(
        oracles.matern_integral(nu, r, length), abs=1e-11
    )


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.5, 8.5])
def test_matern_of_half_integers_is_the_bessel_form_too(nu):
    r = np.logspace(-3, 1, 50)
    u = math.sqrt(2 * nu) * r / 0.2
    expected = 2.0 ** (1 - nu) / math.gamma(nu) * u**nu * kv(nu, u)
    np.testing.assert_allclose(Matern(nu, 0.2, 1.0)(r), expected, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("nu", [49.9, 50.0, 20.3])
def test_matern_tends_to_the_rbf_kernel_and_is_smooth_at_the_origin(nu):
    r = np.linspace(0.0, 0.6, 200)
    np.testing.assert_allclose(Matern(nu)(r), Rbf()(r), atol=0.05 * 2.25)
    near = Matern(nu, 1.0, 1.0)(np.array([0.0, 1e-9, 1e-7, 1e-5]))
    np.testing.assert_allclose(near, 1.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "values", [{"smoothness": 0.0}, {"smoothness": 50.1}, {"smoothness": "3/2"}]
)
def test_smoothness_outside_its_range_is_refused(values):
    with pytest.raises(SettingError, match="smoothness"):
        Matern(**values)
