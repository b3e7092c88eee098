"""The regret bound: its constants, and each step of the proof on numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_bench.experiments.theory import information_gain
from nbv_planner.gp.dense import dense_posterior
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.thesis.regret import printed_regret_bound, regret_bound
from nbv_planner.world.scene import Scene

SCENE = Scene()
WIDTH = 2 * math.atan2(10 * math.sin(math.radians(17.5)), 10 - 10 * math.cos(math.radians(17.5)))


def test_constants_are_the_formulas():
    bound = regret_bound(SCENE, 1.0, 0.2)
    assert bound.c_1 == pytest.approx(2 * 8 * WIDTH / 0.01 * math.sqrt(3 / math.log(1 + 0.2**-2)))
    assert bound.c_2 == pytest.approx(8 * WIDTH / 0.01 * math.pi**2 / math.sqrt(3))
    printed = printed_regret_bound(SCENE, 0.2)
    assert printed.c_1 == pytest.approx(bound.c_1)
    assert printed.c_2 == pytest.approx(8 * WIDTH / 0.01 * math.pi / math.sqrt(3))
    polar = regret_bound(SCENE, 1.0, 0.2, polar=True)
    assert (polar.c_1 * 8, polar.c_2 * 8) == pytest.approx((bound.c_1, bound.c_2))
    assert bound.at(9, 4.0, 25.0) == pytest.approx(30 * bound.c_1 + bound.c_2)


def test_printed_second_constant_is_less_than_what_it_has_to_cover():
    """2 |Φ_S| d_max / h² times Σ 1/t² alone exceeds it: the series is π²/6, not π/6."""
    series = 2 * 8 * WIDTH / 0.01 * sum(1 / t**2 for t in range(1, 1000))
    assert printed_regret_bound(SCENE, 0.2).c_2 < series < regret_bound(SCENE, 1.0, 0.2).c_2


@given(
    st.lists(st.floats(0.0, 6.28), min_size=1, max_size=15),
    st.floats(0.1, 1.0),
    st.floats(0.3, 3.0),
)
def test_variances_at_the_measured_angles_are_bounded_by_the_information_gain(
    angles, noise_std, std
):
    """Lemma 2-5b for any k(0), and the printed form (k(0) = 1) where it applies."""
    kernel, angle, total = PeriodicMatern("5/2", 0.2, std), np.array(angles), 0.0
    for t in range(len(angles)):
        before = angle[:t], np.full(t, 5.0), np.full(t, noise_std)
        total += float(dense_posterior(kernel, 5.0, angle[t : t + 1], *before)[1][0]) ** 2
    gain = information_gain(kernel, angle, noise_std)
    v = kernel.variance
    assert 0.5 * total <= v / math.log(1 + v / noise_std**2) * gain * (1 + 1e-6)
    if v <= 1.0:
        assert 0.5 * total <= gain / math.log(1 + noise_std**-2) * (1 + 1e-6)
