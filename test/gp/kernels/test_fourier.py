"""Fourier coefficients of the summed Matérn kernel against the kernel itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nbv_planner.gp.kernels import PeriodicMatern, fourier_coefficients

TWO_PI = 2.0 * math.pi


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2", "7/2"])
@pytest.mark.parametrize("length", [0.05, 0.2, 1.0, 5.0])
def test_coefficients_are_the_integrals_of_the_kernel(nu, length):
    """The discrete transform gives the coefficients folded at the size of the grid: s_m + s_{N-m} +
    s_{N+m} + ...
    """
    size = 2048
    kernel = PeriodicMatern(nu, length)
    spectrum = np.fft.rfft(kernel(np.arange(size) * (TWO_PI / size))).real / size
    s = fourier_coefficients(kernel, 400 * size)
    folded = s[0::size].sum() + s[size::size].sum()  # m = 0
    assert spectrum[0] == pytest.approx(folded, rel=1e-6)
    m = np.arange(1, 200)
    folded = s[m] + sum(s[j * size + m] + s[j * size - m] for j in range(1, 399))
    np.testing.assert_allclose(spectrum[m], folded, rtol=1e-4 if nu == "1/2" else 1e-8, atol=1e-15)


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2", "99/2"])
@pytest.mark.parametrize("length", [0.001, 0.02, 0.2, 1.0, 100.0])
def test_coefficients_are_positive_fall_and_sum_to_the_variance(nu, length):
    kernel = PeriodicMatern(nu, length, 1.3)
    s = fourier_coefficients(kernel, 200_000)
    assert (s[:2] > 0.0).all()
    assert (s >= 0.0).all()
    assert (np.diff(s) <= 0.0).all()
    tail = s[-1] * 2e5 / (2 * float(kernel.order) + 1)  # the integral of C m^-(2ν+1) from there on
    assert s[0] + 2 * s[1:].sum() + 2 * tail == pytest.approx(kernel.variance, rel=1e-7)


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
@pytest.mark.parametrize("length", [0.2, 1.0, 5.0])
def test_series_gives_the_kernel_back(nu, length):
    kernel = PeriodicMatern(nu, length)
    s = fourier_coefficients(kernel, 100_000)
    r = np.array([0.5, 1.0, 3.0])
    series = s[0] + 2 * np.cos(np.outer(r, np.arange(1, 100_000))) @ s[1:]
    np.testing.assert_allclose(series, kernel(r), rtol=0, atol=1e-5 if nu == "1/2" else 1e-9)


@pytest.mark.parametrize(
    ("nu", "bracket_at_0"),
    [
        (0.5, lambda u, length: math.cosh(u)),
        (
            1.5,
            lambda u, length: (
                math.pi
                * length
                / 6
                * (length / math.pi + math.sqrt(3) / math.tanh(u))
                * math.cosh(u)
                - length**2 / 6 * u * math.sinh(u)
            ),
        ),
    ],
)
@pytest.mark.parametrize("length", [0.2, 1.0, 2.0])
def test_printed_constant_belongs_to_whole_numbers_and_not_to_m_over_two_pi(
    nu, bracket_at_0, length
):
    """C_1 as printed in the thesis (lemma 2-6) sums to k(0) with m, and to as much as 2π k(0) with
    m/2π.
    """
    u = math.sqrt(2 * nu) * math.pi / length
    c_1 = math.sqrt(2 * nu) * math.sinh(u) / (math.pi * length * bracket_at_0(u, length))
    m = np.arange(-400_000.0, 400_001.0)
    whole = c_1 * np.sum((2 * nu / length**2 + m**2) ** -(nu + 0.5))
    printed = c_1 * np.sum((2 * nu / length**2 + (m / TWO_PI) ** 2) ** -(nu + 0.5))
    assert whole == pytest.approx(1.0, rel=1e-4)
    assert printed > 5.0
    exact = fourier_coefficients(PeriodicMatern(f"{int(2 * nu)}/2", length, 1.0), 5)
    np.testing.assert_allclose(
        exact, c_1 * (2 * nu / length**2 + np.arange(5.0) ** 2) ** -(nu + 0.5), rtol=1e-9
    )
