"""Information gain and capacity against plain formulas, and the bounds that hold between them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_bench.experiments.theory import (
    capacity_constants,
    greedy_capacity,
    information_gain,
    printed_capacity_constants,
    spectral_capacity_bound,
)
from nbv_planner.gp.dense import dense_posterior
from nbv_planner.gp.kernels import PeriodicMatern, fourier_coefficients

KERNELS = [
    PeriodicMatern(nu, length, std)
    for nu in ("1/2", "3/2", "5/2")
    for length, std in ((0.2, 1.5), (1.0, 1.0))
]


@given(st.lists(st.floats(0.0, 6.28), min_size=1, max_size=12), st.floats(0.05, 2.0))
def test_gain_is_the_sum_of_what_each_measurement_tells_given_those_before(angles, noise_std):
    """Chain rule with the posterior variance; no sum over t stands in front of the determinant."""
    kernel, angle = PeriodicMatern(), np.array(angles)
    total = 0.0
    for t in range(len(angles)):
        before = angle[:t], np.full(t, 5.0), np.full(t, noise_std)
        _, std = dense_posterior(kernel, 5.0, angle[t : t + 1], *before)
        total += 0.5 * math.log(1.0 + float(std[0]) ** 2 / noise_std**2)
    assert information_gain(kernel, angle, noise_std) == pytest.approx(total, rel=1e-6)


def test_gain_of_one_and_of_repeated_measurements():
    assert information_gain(PeriodicMatern(), np.array([1.0]), 0.5) == pytest.approx(
        0.5 * math.log(1 + 2.25 / 0.25)
    )
    assert information_gain(PeriodicMatern(), np.full(7, 1.0), 0.5) == pytest.approx(
        0.5 * math.log(1 + 7 * 9.0)
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_greedy_gains_are_the_gains_of_a_plain_greedy_choice(kernel):
    grid = np.arange(40) * (2 * math.pi / 40)
    chosen: list[float] = []
    expected = []
    for _ in range(6):
        gains = [information_gain(kernel, np.array([*chosen, x]), 0.2) for x in grid]
        expected.append(max(gains))
        chosen.append(grid[int(np.argmax(np.round(gains, 9)))])
    # ties may go either way
    np.testing.assert_allclose(greedy_capacity(kernel, 6, 0.2, 40), expected, rtol=1e-3)


def test_greedy_is_within_its_factor_of_the_best_set():
    kernel, grid = PeriodicMatern(length_scale=1.0), np.arange(9) * (2 * math.pi / 9)
    best = max(information_gain(kernel, np.array(s), 0.3) for s in itertools.combinations(grid, 4))
    greedy = greedy_capacity(kernel, 4, 0.3, 9)[-1]
    assert (1 - 1 / math.e) * best <= greedy <= best * (1 + 1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("noise_std", [0.05, 0.2, 1.0])
def test_capacity_lies_between_the_greedy_gain_and_the_bounds(kernel, noise_std):
    gains = greedy_capacity(kernel, 60, noise_std)
    for rounds in (1, 2, 5, 20, 60):
        spectral = spectral_capacity_bound(kernel, rounds, noise_std)
        # greedy / (1 - 1/e) is at least the capacity of the grid only; the capacity itself is at
        # least the greedy gain
        assert gains[rounds - 1] <= spectral <= capacity_constants(kernel, noise_std).bound(rounds)


@settings(max_examples=50)
@given(
    st.sampled_from(KERNELS),
    st.lists(st.floats(0.0, 6.28), min_size=1, max_size=30),
    st.floats(0.05, 1.0),
)
def test_no_set_of_measurements_gains_more_than_the_bound(kernel, angles, noise_std):
    gain = information_gain(kernel, np.array(angles), noise_std)
    assert gain <= spectral_capacity_bound(kernel, len(angles), noise_std) * (1 + 1e-9)


def eigenvalues(kernel: PeriodicMatern, count: int) -> np.ndarray:
    """Largest eigenvalues of the operator with the uniform probability: each coefficient but the
    first twice.
    """
    s = fourier_coefficients(kernel, count)
    return np.concatenate([s[:1], np.repeat(s[1:], 2)])[:count]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_eigenvalues_of_the_kernel_come_in_pairs(kernel):
    """The cosines alone, as printed in the thesis, are half of the eigenfunctions."""
    n = 600
    grid = np.arange(n) * (2 * math.pi / n)
    found = np.sort(np.linalg.eigvalsh(kernel(grid[:, None] - grid)))[::-1] / n
    np.testing.assert_allclose(found[:9], eigenvalues(kernel, 9), rtol=2e-3)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_constants_bound_every_eigenvalue_times_the_square_of_its_eigenfunction(kernel):
    constants = capacity_constants(kernel, 0.2)
    j = np.arange(1.0, 2001.0)
    factor = np.where(j == 1, 1.0, 2.0)
    bound = constants.c_3 * j**-constants.power * (1 + 1e-9)  # it is reached at one j
    assert np.all(factor * eigenvalues(kernel, 2000) / kernel.variance <= bound)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_both_conventions_of_the_spectrum_sum_to_the_variance_with_their_own_constant(kernel):
    nu, m = kernel.order + 0.5, np.arange(-300_000.0, 300_001.0)
    for constants, frequency in (
        (capacity_constants(kernel, 0.2), m),
        (printed_capacity_constants(kernel, 0.2), m / (2 * math.pi)),
    ):
        spectrum = constants.c_1 * (2 * nu / kernel.length_scale**2 + frequency**2) ** -(nu + 0.5)
        assert spectrum.sum() == pytest.approx(1.0, rel=2e-3 if nu == 0.5 else 1e-9)
    # but only the first is the spectrum of the kernel
    s = fourier_coefficients(kernel, 4) / kernel.variance
    ours, printed = capacity_constants(kernel, 0.2), printed_capacity_constants(kernel, 0.2)
    base, k = 2 * nu / kernel.length_scale**2, np.arange(4.0)
    np.testing.assert_allclose(ours.c_1 * (base + k**2) ** -(nu + 0.5), s, rtol=1e-9)
    assert (
        np.abs(printed.c_1 * (base + (k / (2 * math.pi)) ** 2) ** -(nu + 0.5) / s - 1).max() > 0.5
    )


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
def test_constants_are_the_formulas(nu):
    """C_4 in one piece as in the thesis, with l²/(2ν) in place of the printed l²/2^ν."""
    kernel, noise_std = PeriodicMatern(nu, 0.7, 1.0), 0.3
    constants, v = printed_capacity_constants(kernel, noise_std), kernel.order + 0.5
    power = 2 * v + 1
    right, wrong = ((4 * math.pi**2 + 0.49 / x) ** 0.5 for x in (2 * v, 2**v))
    scale = (2 * constants.c_1 / noise_std**2) ** (1 / power)
    assert constants.c_4 == pytest.approx(scale * right, rel=1e-12)
    assert constants.c_4 != pytest.approx(scale * wrong, rel=1e-6)
    bound = constants.bound(30)
    log = math.log(1 + 30 / noise_std**2)
    assert bound == pytest.approx(constants.c_4 * 30 ** (1 / power) * log ** (2 * v / power) + log)
