"""The Markov chain has the covariance of the kernel, and keeps its digits for gaps of any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from nbv_planner.gp.chain import MaternChain
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern

TWO_PI = 2.0 * math.pi
LENGTHS = (0.001, 0.02, 0.2, 1.0, 10.0, 100.0)

chains = st.builds(
    lambda nu, length: MaternChain.of(PeriodicMatern(smoothness=nu, length_scale=length)),
    st.sampled_from(MATERN_SMOOTHNESS),
    st.sampled_from(LENGTHS),
)
gaps = st.one_of(st.floats(0.0, TWO_PI), st.floats(1e-15, 1e-3))


def relative(covariance: np.ndarray) -> np.ndarray:
    """Scale that an entry of a covariance is compared on: the deviations of its row and column."""
    deviation = np.sqrt(np.diag(covariance))
    return np.outer(deviation, deviation)


def drift(d: int) -> np.ndarray:
    """Companion matrix of (s + 1)^d."""
    matrix = np.eye(d, k=1)
    matrix[-1] = [-math.comb(d, j) for j in range(d)]
    return matrix


def response(d: int, s: float) -> np.ndarray:
    """h(s): the state after a unit push of the highest derivative, f = s^p e^{-s}/p! and its
    derivatives.
    """
    if d == 1:
        return np.array([1.0]) * math.exp(-s)
    if d == 2:
        return np.array([s, 1.0 - s]) * math.exp(-s)
    return np.array([s * s / 2.0, s - s * s / 2.0, 1.0 - 2.0 * s + s * s / 2.0]) * math.exp(-s)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("length", LENGTHS)
def test_chain_closed_on_the_circle_has_the_covariance_of_the_kernel(nu, length):
    """Solve x(r) = A1 x(0) + e1, x(0) = A2 x(r) + e2 for the covariance of f(r) and f(0)."""
    kernel = PeriodicMatern(smoothness=nu, length_scale=length)
    chain = MaternChain.of(kernel)
    lag = np.concatenate([np.linspace(0.0, TWO_PI, 31), np.logspace(-12, 0, 13)])
    there, back = chain.transition(lag), chain.transition(TWO_PI - lag)
    pushed, turn = chain.noise(lag), chain.transition(np.array([TWO_PI]))[..., 0]
    closing = np.linalg.inv(np.eye(chain.size) - turn)
    for i, r in enumerate(lag):
        covariance = there[..., i] @ chain.prior() + pushed[..., i] @ back[..., i].T @ closing.T
        assert covariance[0, 0] == pytest.approx(float(kernel(r)), abs=1e-12 * kernel.variance)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("length", LENGTHS)
def test_prior_variance_is_that_of_the_kernel(nu, length):
    kernel = PeriodicMatern(smoothness=nu, length_scale=length, kernel_std=0.7)
    prior = MaternChain.of(kernel).prior()
    assert prior[0, 0] == pytest.approx(0.49, rel=1e-12)
    np.testing.assert_allclose(prior, prior.T, rtol=0, atol=1e-12)


@given(chains, gaps)
def test_transition_is_the_matrix_exponential_of_the_drift(chain, gap):
    expected = expm(drift(chain.size) * chain.rate * gap)
    np.testing.assert_allclose(
        chain.transition(np.array([gap]))[..., 0], expected, rtol=0, atol=1e-12
    )


@given(chains, gaps, gaps)
def test_two_steps_are_one_step_of_the_summed_gap(chain, first, second):
    gap = np.array([first, second, first + second])
    A, Q = chain.transition(gap), chain.noise(gap)
    np.testing.assert_allclose(A[..., 1] @ A[..., 0], A[..., 2], rtol=0, atol=1e-12)
    combined = A[..., 1] @ Q[..., 0] @ A[..., 1].T + Q[..., 1]
    assert np.all(np.abs(combined - Q[..., 2]) <= 1e-11 * relative(Q[..., 2]))


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("u", [1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.5, 2.0, 8.0])
def test_process_noise_keeps_its_relative_accuracy(nu, u):
    """Against Gauss-Legendre quadrature of h h^T; all terms of the quadrature of the diagonal are
    positive.
    """
    chain = MaternChain.of(PeriodicMatern(smoothness=nu, length_scale=0.3))
    noise = chain.noise(np.array([u / chain.rate]))[..., 0]
    node, weight = np.polynomial.legendre.leggauss(40)
    rows = np.array([response(chain.size, 0.5 * u * (x + 1.0)) for x in node])
    integral = np.einsum("k,ki,kj->ij", 0.5 * u * weight, rows, rows)
    # intensity on the line
    stationary = {"1/2": 2.0, "3/2": 4.0, "5/2": 16.0 / 3.0}[nu] * chain.variance
    turns = float(sum(_matern(nu, chain.rate * TWO_PI * i) for i in range(-9, 10)))
    expected = integral * stationary / turns
    assert np.all(np.abs(noise - expected) <= 1e-12 * relative(expected))


def _matern(nu: str, u: float) -> float:
    u = abs(u)
    return math.exp(-u) * {"1/2": 1.0, "3/2": 1.0 + u, "5/2": 1.0 + u + u * u / 3.0}[nu]


@given(chains)
def test_no_gap_means_no_step(chain):
    zero = np.zeros(1)
    np.testing.assert_array_equal(chain.transition(zero)[..., 0], np.eye(chain.size))
    np.testing.assert_array_equal(chain.noise(zero)[..., 0], np.zeros((chain.size, chain.size)))


@pytest.mark.parametrize("length", [0.05, 0.2, 3.0])
def test_only_the_rough_surface_diffuses(length):
    rough = PeriodicMatern(smoothness="1/2", length_scale=length)
    change = 2.0 * (rough.variance - rough(np.array([1e-7]))) / 1e-7
    assert MaternChain.of(rough).diffusion == pytest.approx(change[0], rel=1e-5)
    assert MaternChain.of(PeriodicMatern(smoothness="3/2", length_scale=length)).diffusion == 0.0
