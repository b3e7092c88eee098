"""One checker that every kernel goes through, and the closed forms against their infinite sums."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern

TWO_PI = 2.0 * math.pi
LENGTHS = (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)


def check_kernel(kernel, std: float) -> None:
    """What every stationary kernel on the circle must fulfil; new kernels are added to `KERNELS`."""
    variance = std**2
    r = np.concatenate([np.linspace(-20.0, 20.0, 801), np.logspace(-12, 0, 60), [0.0, math.pi, TWO_PI, -TWO_PI]])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        k = kernel(r)
        at_zero = kernel(0.0)
    assert k.shape == r.shape
    assert np.isfinite(k).all()
    # k(0) is the variance, and the greatest value
    assert kernel.variance == pytest.approx(variance, rel=1e-14)
    assert float(at_zero) == pytest.approx(variance, rel=1e-12)
    assert np.max(np.abs(k)) <= variance * (1 + 1e-12)
    # symmetric and periodic, up to what the rounding of r + 2π n moves the argument by
    np.testing.assert_allclose(kernel(-r), k, rtol=0, atol=1e-12 * variance)
    steepness = _steepness(kernel, variance)
    for turns in (1, -1, 3):
        shift = np.spacing(np.abs(r) + abs(turns) * TWO_PI) * 4
        assert np.all(np.abs(kernel(r + TWO_PI * turns) - k) <= 1e-12 * variance + steepness * shift)
    # positive semi-definite up to rounding, for scattered, clustered and repeated angles
    rng = np.random.default_rng(0)
    for angles in (
        rng.uniform(0, TWO_PI, 80),
        1.0 + 1e-4 * rng.uniform(size=40),
        rng.integers(0, 12, 60) * (TWO_PI / 12),
        np.arange(64) * (TWO_PI / 64),
    ):
        gram = kernel(angles[:, None] - angles)
        assert np.linalg.eigvalsh(0.5 * (gram + gram.T)).min() >= -1e-12 * variance * len(angles)


def _steepness(kernel, variance: float) -> float:
    """Bound of |dk/dr|: a rough Matérn falls off as λ times its variance."""
    return 2.0 * kernel.rate * variance if hasattr(kernel, "rate") else 10.0 * variance


KERNELS = [
    pytest.param(PeriodicMatern(smoothness=nu, length_scale=length, kernel_std=std), std, id=f"{nu}-{length}-{std}")
    for nu in MATERN_SMOOTHNESS
    for length, std in [*((length, 1.5) for length in LENGTHS), (0.2, 0.01), (0.2, 30.0)]
]


@pytest.mark.parametrize(("kernel", "std"), KERNELS)
def test_kernel_is_a_covariance_function_on_the_circle(kernel, std):
    check_kernel(kernel, std)


def test_all_smoothness_values_exist():
    assert set(MATERN_SMOOTHNESS) >= {"1/2", "3/2", "5/2"}


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
@pytest.mark.parametrize("length", LENGTHS)
def test_closed_form_equals_the_infinite_sum(nu, length):
    kernel = PeriodicMatern(smoothness=nu, length_scale=length, kernel_std=1.0)
    near = length * np.array([0.0, 1e-6, 1e-3, 0.1, 0.3, 1.0, 2.0, 5.0, 10.0])
    r = np.concatenate([near[near <= math.pi], np.linspace(0.0, TWO_PI, 41), np.linspace(0.0, 0.1, 11)])
    total = oracles.periodic_sum(nu, 0.0, length)
    expected = [oracles.periodic_sum(nu, float(x), length) / total for x in r]
    np.testing.assert_allclose(kernel(r), expected, rtol=0, atol=1e-12)


@given(st.sampled_from(["1/2", "3/2", "5/2"]), st.floats(-2.0, 1.0), st.floats(-math.pi, math.pi))
@example("3/2", -2.0, math.pi)
@example("5/2", 1.0, math.pi)
def test_closed_form_equals_the_infinite_sum_at_any_length_scale(nu, exponent, r):
    length = 10.0**exponent
    kernel = PeriodicMatern(smoothness=nu, length_scale=length, kernel_std=1.5)
    expected = 2.25 * oracles.periodic_sum(nu, r, length) / oracles.periodic_sum(nu, 0.0, length)
    assert float(kernel(r)) == pytest.approx(expected, rel=0, abs=2.25e-12)


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
@pytest.mark.parametrize("length", [0.2, 1.0, 5.0])
def test_fourier_coefficients_are_those_of_the_summed_matern(nu, length):
    """s_m ∝ (2ν/l² + m²)^-(ν+1/2): an oracle that shares nothing with the sum."""
    size = 1 << 14
    kernel = PeriodicMatern(smoothness=nu, length_scale=length)
    spectrum = np.fft.rfft(kernel(np.arange(size) * (TWO_PI / size))).real[:30]
    value = {"1/2": 0.5, "3/2": 1.5, "5/2": 2.5}[nu]
    expected = (2 * value / length**2 + np.arange(30.0) ** 2) ** (-(value + 0.5))
    # aliases of the slowly falling ν=1/2 spectrum limit the agreement
    np.testing.assert_allclose(spectrum / spectrum[0], expected / expected[0], rtol=2e-4, atol=1e-12)


def test_short_length_scale_neither_overflows_nor_underflows_to_nan():
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for nu in MATERN_SMOOTHNESS:
            k = PeriodicMatern(smoothness=nu, length_scale=0.001)(np.linspace(0, TWO_PI, 1001))
            assert float(k[0]) == pytest.approx(2.25)
            assert float(k[500]) == 0.0


def test_longer_length_scales_and_smoother_kernels_correlate_more_nearby():
    at = 0.1
    values = [float(PeriodicMatern(length_scale=length)(at)) for length in (0.05, 0.1, 0.2, 0.5)]
    assert values == sorted(values)
    by_nu = [float(PeriodicMatern(smoothness=nu)(at)) for nu in ("1/2", "3/2", "5/2")]
    assert by_nu == sorted(by_nu)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"smoothness": "7/3"}, ["smoothness", "7/3", "1/2", "3/2", "5/2"]),
        ({"smoothness": 1.5}, ["smoothness", "string"]),
        ({"length_scale": 0.0}, ["length_scale", ">="]),
        ({"length_scale": math.nan}, ["length_scale", "finite"]),
        ({"kernel_std": -1.0}, ["kernel_std", "> 0"]),
    ],
)
def test_kernel_parameters_outside_their_range_are_refused(values, words):
    with pytest.raises(SettingError) as caught:
        PeriodicMatern(**values)
    assert all(word in str(caught.value) for word in words), str(caught.value)
