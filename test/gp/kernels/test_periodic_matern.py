"""The closed forms of the summed Matérn kernel against their infinite sums."""

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
LENGTHS = (0.001, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
@pytest.mark.parametrize("length", LENGTHS)
def test_closed_form_equals_the_infinite_sum(nu, length):
    kernel = PeriodicMatern(smoothness=nu, length_scale=length, kernel_std=1.0)
    near = length * np.array([0.0, 1e-6, 1e-3, 0.1, 0.3, 1.0, 2.0, 5.0, 10.0])
    r = np.concatenate(
        [near[near <= math.pi], np.linspace(0.0, TWO_PI, 41), np.linspace(0.0, 0.1, 11)]
    )
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


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.5, 4.5, 7.5, 10.5])
@pytest.mark.parametrize("length", [0.05, 0.2, 1.0, 3.0])
def test_closed_form_of_any_half_integer_equals_fifty_images_of_the_bessel_form(nu, length):
    kernel = PeriodicMatern(smoothness=f"{int(2 * nu)}/2", length_scale=length, kernel_std=1.0)

    def correlation(s):
        return oracles.matern_integral(nu, s, length)

    total = oracles.image_sum(correlation, 0.0, 50)
    r = [0.0, 1e-6, 0.01, 0.1, 0.3, 1.0, 2.0, math.pi, 5.0]
    expected = [oracles.image_sum(correlation, x, 50) / total for x in r]
    np.testing.assert_allclose(kernel(r), expected, rtol=0, atol=1e-12)


def test_short_length_scale_neither_overflows_nor_underflows_to_nan():
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for nu in (*MATERN_SMOOTHNESS, "7/2", "99/2"):
            k = PeriodicMatern(smoothness=nu, length_scale=0.001)(np.linspace(0, TWO_PI, 1001))
            assert float(k[0]) == pytest.approx(2.25)
            assert float(k[500]) == 0.0


def printed_closed_form(nu: str, r, length: float):
    """The thesis's eq. periodic-matern-kernel-infinite-sum-examples, as printed, with k(0) = 1."""
    root = math.sqrt({"3/2": 3.0, "5/2": 5.0}[nu])
    u, coth = root * (r - math.pi) / length, 1.0 / math.tanh(root * math.pi / length)
    if nu == "3/2":
        a0 = math.pi * length / 6 * (length / math.pi + root * coth)
        k = a0 * np.cosh(u) - length**2 / 6 * np.sinh(u)
    else:
        a0 = -(math.pi**2 * length**2 / 200) * (
            -5 + 3 * length**2 / math.pi**2 + 3 * root * length / math.pi * coth + 10 * coth**2
        )
        a1 = math.pi * length**3 / 100 * (3 * length / 200 + root * coth)
        k = a0 * np.cosh(u) + a1 * u * np.sinh(u) - length**4 / 200 * u**2 * np.cosh(u)
    return k / k[0]


def corrected_closed_form(nu: str, r, length: float):
    """The same with the factor u in the second term for 3/2, and 3l/(2π) in place of 3l/200 in a_1
    for 5/2.
    """
    root = math.sqrt({"3/2": 3.0, "5/2": 5.0}[nu])
    u, coth = root * (r - math.pi) / length, 1.0 / math.tanh(root * math.pi / length)
    if nu == "3/2":
        a0 = math.pi * length / 6 * (length / math.pi + root * coth)
        k = a0 * np.cosh(u) - length**2 / 6 * u * np.sinh(u)
    else:
        a0 = -(math.pi**2 * length**2 / 200) * (
            -5 + 3 * length**2 / math.pi**2 + 3 * root * length / math.pi * coth + 10 * coth**2
        )
        a1 = math.pi * length**3 / 100 * (3 * length / (2 * math.pi) + root * coth)
        k = a0 * np.cosh(u) + a1 * u * np.sinh(u) - length**4 / 200 * u**2 * np.cosh(u)
    return k / k[0]


@pytest.mark.parametrize("nu", ["3/2", "5/2"])
@pytest.mark.parametrize("length", [0.5, 1.0, 2.0])
def test_printed_closed_forms_are_misprinted_and_the_corrected_ones_are_the_sum(nu, length):
    r = np.linspace(0.0, TWO_PI, 41)
    kernel = PeriodicMatern(smoothness=nu, length_scale=length, kernel_std=1.0)(r)
    assert np.abs(printed_closed_form(nu, r, length) - kernel).max() > 0.1
    np.testing.assert_allclose(corrected_closed_form(nu, r, length), kernel, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"smoothness": "7/3"}, ["smoothness", "7/3", "1/2", "3/2", "5/2"]),
        ({"smoothness": "2"}, ["smoothness", "'2'", "1/2", "7/2", "periodisation"]),
        ({"smoothness": "-1/2"}, ["smoothness", "'-1/2'", "> 0"]),
        ({"smoothness": "101/2"}, ["smoothness", "<= 50"]),
        ({"smoothness": "1/0"}, ["smoothness", "1/0", "fraction"]),
        ({"smoothness": "smooth"}, ["smoothness", "'smooth'", "fraction"]),
        ({"smoothness": "nan"}, ["smoothness", "'nan'"]),
        ({"smoothness": 1.5}, ["smoothness", "string"]),
        ({"length_scale": 0.0}, ["length_scale", ">="]),
        ({"length_scale": math.nan}, ["length_scale", "finite"]),
        ({"kernel_std": -1.0}, ["kernel_std", ">= 1e-12"]),
    ],
)
def test_kernel_parameters_outside_their_range_are_refused(values, words):
    with pytest.raises(SettingError) as caught:
        PeriodicMatern(**values)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_same_smoothness_may_be_written_as_a_decimal_number():
    np.testing.assert_array_equal(PeriodicMatern("2.5")(0.3), PeriodicMatern("5/2")(0.3))
