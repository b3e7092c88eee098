"""Coverage judged from the belief alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from beliefs import belief_of

from nbv_planner.surface.coverage import CoverageEstimate


def test_narrow_fraction_counts_angles_with_a_band_below_the_tolerance():
    belief = belief_of(5.0, lambda g: np.where(g < math.pi / 2 - 1e-9, 5.5, 7.0), size=400, hits=1)
    assert belief.narrow_part(1.0) == pytest.approx(0.25)
    assert belief.narrow_part(0.1) == 0.0
    assert belief.narrow_part(3.0) == 1.0


def test_coverage_estimate_is_the_narrow_part_of_the_l1_length():
    """On a circle a right-angled sector between the axes holds a quarter of the L1 length."""

    def half(g):
        return np.where(g < math.pi / 2, 0.1, 1.0)

    belief = belief_of(lambda g: 5.0 - half(g), lambda g: 5.0 + half(g), size=2000, hits=1)
    assert belief.measured(1.0) == pytest.approx(0.25, abs=0.005)


def test_coverage_estimate_weights_far_parts_more():
    """Half of the angles, but nearer to the centre: less than half of the length."""

    def middle(g):
        return np.where(g < math.pi, 3.0, 6.0)

    def half(g):
        return np.where(g < math.pi, 0.1, 2.0)

    belief = belief_of(
        lambda g: middle(g) - half(g), lambda g: middle(g) + half(g), size=2000, hits=1
    )
    # L1 lengths of the half circles: 4 r each; the jumps of 3 m at 0 and π may go to either side
    low, high = 12.0 / (36.0 + 6.0), (12.0 + 6.0) / (36.0 + 6.0)
    assert low - 0.01 <= belief.measured(1.0) <= high + 0.01


def test_coverage_estimate_of_all_and_nothing():
    assert belief_of(4.9, 5.1, hits=1).measured(1.0) == pytest.approx(1.0)
    assert belief_of(3.0, 7.0, hits=1).measured(1.0) == 0.0
    closed = belief_of(4.9, 5.1, grid=np.linspace(0, 2 * math.pi, 101), hits=1)
    assert closed.measured(1.0) == pytest.approx(1.0)


def test_a_band_that_is_narrow_without_measurements_is_none():
    assert belief_of(4.9, 5.1).narrow_part(1.0) == 0.0
    assert belief_of(4.9, 5.1).measured(1.0) == 0.0


def test_a_narrow_band_counts_up_to_the_tolerance_beside_a_measurement():
    """At a radius of 5 m, 1 m is 0.2 rad."""
    belief = belief_of(4.9, 5.1, size=2000, hits=lambda g: (g < 1.0).astype(int))
    assert belief.narrow_part(1.0) == pytest.approx(1.4 / (2.0 * math.pi), abs=0.002)
    assert belief.measured(10.0) == pytest.approx(belief.narrow_part(10.0), abs=0.05)


def test_the_interval_of_hypotheses_leaves_half_of_delta_on_either_side():
    estimate = CoverageEstimate.by_hypotheses(np.linspace(0.0, 1.0, 1001), 0.8, 0.1, 0.3)
    assert (estimate.lower, estimate.mean, estimate.upper) == pytest.approx((0.05, 0.5, 0.95))
    assert (estimate.level, estimate.tau) == (0.9, 0.3)
    assert estimate.probability == pytest.approx(201 / 1001)
    whole = CoverageEstimate.by_hypotheses(np.array([1.0, 1.0, 0.9]), 1.0, 0.1, 0.3)
    assert whole.probability == pytest.approx(2 / 3)
