"""Algebra of stretches of the circle."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nbv_planner.gp.arcs import Arcs, inverse_of, product, root_of
from nbv_planner.gp.chain import MaternChain
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern

chains = st.builds(
    lambda nu, length: MaternChain.of(PeriodicMatern(smoothness=nu, length_scale=length)),
    st.sampled_from(MATERN_SMOOTHNESS),
    st.sampled_from([0.02, 0.2, 10.0]),
)


def one_step(chain, gap, precision):
    likelihood = np.zeros((chain.size, chain.size + 1, 1))
    likelihood[0, 0], likelihood[0, -1] = precision, 0.3 * precision
    return Arcs.steps(chain, np.array([gap]), likelihood)


@st.composite
def chain_and_arcs(draw):
    """A chain and three neighbouring stretches, with or without a measurement each."""
    chain = draw(chains)
    gaps = draw(arrays(float, 3, elements=st.floats(1e-6, 2.0)))
    precisions = draw(arrays(float, 3, elements=st.sampled_from([0.0, 1.0, 1e2, 1e4])))
    return chain, [
        one_step(chain, gap, precision) for gap, precision in zip(gaps, precisions, strict=True)
    ]


@given(chain_and_arcs())
def test_combining_arcs_is_associative_and_no_step_is_neutral(drawn):
    chain, (first, second, third) = drawn
    left, right = first.then(second).then(third), first.then(second.then(third))
    nothing = Arcs.steps(chain, np.zeros(1))
    for one, other in [(left, right), (first.then(nothing), first), (nothing.then(first), first)]:
        np.testing.assert_allclose(one.forward, other.forward, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(one.likelihood, other.likelihood, rtol=1e-7, atol=1e-7)


@given(chain_and_arcs())
def test_a_bridge_is_the_conditional_of_the_joint_gaussian(drawn):
    """Write down the joint law of middle and end given the start and the measurements, and
    condition it densely.
    """
    chain, (first, second, _) = drawn
    both, meeting = first.joined(second)
    bridge = meeting.bridges(chain.size)
    d = chain.size
    A1, b1, C1 = first.forward[:, :d, 0], first.forward[:, d, 0], first.forward[:, d + 1 :, 0]
    A2, b2, C2 = second.forward[:, :d, 0], second.forward[:, d, 0], second.forward[:, d + 1 :, 0]
    J, eta = second.likelihood[:, :d, 0], second.likelihood[:, d, 0]
    start = np.linspace(0.5, 1.0, d)
    gain = C1 @ np.linalg.inv(np.eye(d) + J @ C1)  # covariance of the middle given the start
    mean = (A1 @ start + b1) + gain @ (eta - J @ (A1 @ start + b1))
    reached = A2 @ mean + b2
    spread = A2 @ gain @ A2.T + C2
    end = reached + np.linalg.cholesky(spread) @ np.ones(d)
    kalman = np.linalg.solve(spread, A2 @ gain).T
    np.testing.assert_allclose(
        both.forward[:, :d, 0] @ start + both.forward[:, d, 0], reached, rtol=1e-6, atol=1e-8
    )
    middle = bridge.weight[..., 0] @ np.concatenate([start, end]) + bridge.offset[:, 0]
    # Over short stretches the end hardly strays from where the start leads, so that its last digits
    # decide.
    rounding = 4.0 * np.finfo(float).eps * np.abs(kalman) @ np.abs(end)
    assert (
        np.abs(middle - mean - kalman @ (end - reached)) < 1e-6 + 1e-4 * np.abs(mean) + rounding
    ).all()
    np.testing.assert_allclose(
        bridge.covariance[..., 0],
        gain - kalman @ A2 @ gain,
        rtol=1e-4,
        atol=1e-8 * np.abs(gain).max(),
    )
    first_only = meeting.bridges(1)
    np.testing.assert_allclose(first_only.weight, bridge.weight[:1], rtol=1e-12)
    np.testing.assert_allclose(first_only.offset, bridge.offset[:1], rtol=1e-12)
    np.testing.assert_allclose(first_only.covariance, bridge.covariance[:1, :1], rtol=1e-12)


@settings(max_examples=300)
@given(chain_and_arcs())
def test_where_stretches_meet_no_pivot_falls_below_one(drawn):
    """So that the systems can be solved without exchanging rows."""
    chain, (first, second, third) = drawn
    for before, after in [
        (first, second),
        (first, second.then(third)),
        (first.then(second), third),
    ]:
        d = chain.size
        rest = np.eye(d) + before.forward[:, d + 1 :, 0] @ after.likelihood[:, :d, 0]
        while len(rest):
            assert rest[0, 0] > 1.0 - 1e-6
            rest = rest[1:, 1:] - np.outer(rest[1:, 0], rest[0, 1:]) / rest[0, 0]


@given(st.integers(1, 3), st.integers(0, 1000))
def test_inverses_and_roots_of_a_stack(d, seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, d, 5))
    covariance = product(factor, factor.swapaxes(0, 1)) + 0.1 * np.eye(d)[..., None]
    unit = np.broadcast_to(np.eye(d)[..., None], covariance.shape)
    np.testing.assert_allclose(product(inverse_of(covariance), covariance), unit, rtol=0, atol=1e-9)
    root = root_of(covariance)
    np.testing.assert_allclose(
        product(root, root.swapaxes(0, 1)), covariance, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(root, np.tril(root.transpose(2, 0, 1)).transpose(1, 2, 0))


def test_the_root_of_a_covariance_without_spread_in_a_direction_leaves_it_out():
    flat = np.array([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])[..., None]
    root = root_of(flat)
    np.testing.assert_allclose(product(root, root.swapaxes(0, 1)), flat, atol=1e-15)
