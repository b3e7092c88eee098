"""The fast posterior against the dense one, and its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_one_call import fast_posterior
from measurement_sets import FINE, sample

from nbv_planner.gp.circle_solver import is_supported
from nbv_planner.gp.dense import dense_posterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern

TWO_PI = 2.0 * np.pi
UNIFORM = np.arange(60) * (TWO_PI / 60)
THESIS = np.linspace(0.0, TWO_PI, 61)  # counts 0 and 2π
GRIDS = {
    "uniform": UNIFORM,
    "thesis": THESIS,
    "late": UNIFORM + 0.05,  # measurements before the first grid angle
    "any order": np.random.default_rng(5).uniform(-7.0, 14.0, 40),
    "two": np.array([1.0, 1.0 + 1e-15]),
    "one": np.array([2.0]),
}

special_angles = [
    0.0,
    1.0,
    1.0 + 1e-15,
    1.0 + 1e-9,
    np.pi,
    float(UNIFORM[7]),
    float(np.nextafter(TWO_PI, 0.0)),
    -1e-17,
]
angles = st.one_of(st.floats(0.0, TWO_PI), st.sampled_from(special_angles), st.floats(2.0, 2.001))
kernels = st.builds(
    PeriodicMatern,
    smoothness=st.sampled_from(MATERN_SMOOTHNESS),
    length_scale=st.one_of(
        st.sampled_from([0.02, 0.2, 10.0]), st.floats(-1.7, 1.0).map(lambda x: 10.0**x)
    ),
    kernel_std=st.sampled_from([0.5, 1.5]),
)


@st.composite
def measurement_sets(draw, most=30):
    """Angles (often equal, often nearly so, often on the grid), radii and standard deviations of 1
    mm to 1 m.
    """
    noise = st.one_of(st.sampled_from([1e-3, 1.0]), st.floats(-3.0, 0.0).map(lambda x: 10.0**x))
    rows = draw(st.lists(st.tuples(angles, st.floats(2.0, 8.0), noise), max_size=most))
    return (
        tuple(np.array(column) for column in zip(*rows, strict=True))
        if rows
        else (np.empty(0),) * 3
    )


def assert_equal_posteriors(kernel, grid, data, atol=1e-6):
    with np.errstate(all="raise", under="ignore"):
        mean, std = fast_posterior(kernel, 5.0, grid, *data)
    expected_mean, expected_std = dense_posterior(kernel, 5.0, grid, *data)
    assert mean.shape == std.shape == grid.shape
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=atol)
    np.testing.assert_allclose(std, expected_std, rtol=0, atol=atol)


@settings(max_examples=300)
@given(kernels, measurement_sets(), st.sampled_from(list(GRIDS)))
@example(PeriodicMatern(), (np.empty(0),) * 3, "thesis")
# Cramer's rule at d = 3 was wrong by 7e-7 m here.
@example(
    PeriodicMatern(smoothness="5/2", length_scale=3.0),
    (np.array([3.3, 3.3001]), np.array([4.1, 4.102]), np.array([1e-3, 1e-3])),
    "uniform",
)
def test_posterior_equals_the_dense_solution(kernel, data, grid):
    assert_equal_posteriors(kernel, GRIDS[grid], data)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("length", [0.001, 0.02, 0.2, 2.0, 10.0, 100.0])
@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize(
    "kind", ["random", "clustered", "repeated", "nearly equal", "on the grid", "one arc"]
)
def test_posterior_on_the_full_grid_equals_the_dense_solution(nu, length, noise, kind):
    assert_equal_posteriors(
        PeriodicMatern(smoothness=nu, length_scale=length), FINE, sample(kind, 150, noise)
    )


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
def test_many_measurements_equal_the_dense_solution(nu):
    assert_equal_posteriors(
        PeriodicMatern(smoothness=nu), FINE, sample("random", 1500, 0.05), atol=1e-9
    )


@settings(max_examples=100)
@given(kernels, measurement_sets(), st.sampled_from(list(GRIDS)))
def test_standard_deviation_is_finite_never_negative_and_never_above_the_prior(kernel, data, grid):
    mean, std = fast_posterior(kernel, 5.0, GRIDS[grid], *data)
    assert np.isfinite(mean).all()
    assert np.all((std >= 0.0) & (std <= kernel.kernel_std))


@settings(max_examples=100)
@given(kernels, measurement_sets(), st.randoms(use_true_random=False))
def test_order_of_the_measurements_does_not_matter(kernel, data, random):
    order = list(range(len(data[0])))
    random.shuffle(order)
    shuffled = tuple(column[order] for column in data)
    for before, after in zip(
        fast_posterior(kernel, 5.0, UNIFORM, *data),
        fast_posterior(kernel, 5.0, UNIFORM, *shuffled),
        strict=True,
    ):
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-8)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("length", [0.02, 0.2, 10.0])
@pytest.mark.parametrize("noise", [1e-9, 1e-5, 1e-3, 1.0])
def test_one_measurement_gives_the_formula_for_one(nu, length, noise):
    """No cancellation at the measured angle: its deviation is right to ten digits, also at a noise
    of 1 nm.
    """
    kernel = PeriodicMatern(smoothness=nu, length_scale=length)
    grid = np.concatenate([THESIS, [2.345]])
    mean, std = fast_posterior(
        kernel, 5.0, grid, np.array([2.345]), np.array([6.0]), np.array([noise])
    )
    k = kernel(grid - 2.345)
    variance = kernel.variance + noise**2
    assert std[-1] == pytest.approx(noise * kernel.kernel_std / np.sqrt(variance), rel=1e-10)
    if is_supported(kernel, noise**-2.0):
        np.testing.assert_allclose(mean, 5.0 + k / variance, rtol=0, atol=1e-6)
        np.testing.assert_allclose(std**2, kernel.variance - k**2 / variance, rtol=0, atol=1e-9)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("kind", ["random", "clustered", "nearly equal"])
def test_more_information_than_is_supported_still_gives_numbers(nu, kind):
    mean, std = fast_posterior(PeriodicMatern(smoothness=nu), 5.0, FINE, *sample(kind, 200, 1e-8))
    assert np.isfinite(mean).all()
    assert np.all((std >= 0.0) & (std <= 1.5))


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
def test_both_ends_of_the_thesis_grid_are_one_angle(nu):
    mean, std = fast_posterior(
        PeriodicMatern(smoothness=nu), 5.0, THESIS, *sample("random", 20, 0.1)
    )
    assert mean[0] == mean[-1]
    assert std[0] == std[-1]


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
def test_ten_thousand_repeats_leave_the_noise_of_their_mean(nu):
    n = 10_000
    data = np.full(n, 1.0), np.full(n, 6.0), np.full(n, 0.1)
    mean, std = fast_posterior(PeriodicMatern(smoothness=nu), 5.0, np.array([1.0]), *data)
    assert std[0] == pytest.approx(1e-3, rel=1e-6)
    assert mean[0] == pytest.approx(6.0, abs=1e-6)


def test_only_kernels_with_markov_structure_are_supported():
    class Other:
        variance = 1.0

        def __call__(self, difference):
            return np.cos(difference)

    assert all(is_supported(PeriodicMatern(smoothness=nu), 1e3) for nu in MATERN_SMOOTHNESS)
    assert not is_supported(Other(), 1e3)


@pytest.mark.parametrize(
    ("nu", "n", "noise", "supported"),
    [
        ("3/2", 0, 1.0, True),
        ("3/2", 5_000, 1e-3, True),
        ("5/2", 5_000, 1e-3, True),
        ("3/2", 1_000_000, 0.01, True),
        ("3/2", 500_000, 1e-3, False),
        ("5/2", 1, 1e-6, False),
        ("1/2", 50_000, 1e-6, True),
    ],
)
def test_too_much_information_is_not_supported(nu, n, noise, supported):
    assert is_supported(PeriodicMatern(smoothness=nu), n * noise**-2.0) is supported
