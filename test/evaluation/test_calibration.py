"""Calibration on truths drawn from the belief itself, and on beliefs that are wrong in a known
way.
"""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from beliefs import belief_of, wavy_belief
from scipy.special import erf

from nbv_planner.episode.records import ANGLE_BINS, NOMINAL_LEVELS, calibration

SIZE = 72_000


def drawn(belief, seed, factor=1.0):
    """True radii drawn from the belief, independent from one angle to the next."""
    return belief.mean + factor * belief.std * np.random.default_rng(seed).standard_normal(
        len(belief.angle)
    )


def test_truths_drawn_from_the_belief_lie_inside_as_often_as_promised():
    belief = wavy_belief(1, size=SIZE)
    found = calibration(belief, drawn(belief, 2))
    assert found.levels == NOMINAL_LEVELS
    assert found.inside == pytest.approx(found.levels, abs=4.0 * 0.5 / math.sqrt(SIZE))
    two_sigma = erf(math.sqrt(2.0))
    assert found.inside_by_angle == pytest.approx([two_sigma] * ANGLE_BINS, abs=0.025)


def test_a_belief_with_half_the_spread_is_found_out():
    """P(|X| ≤ z) of a normal variable twice as wide as believed."""
    belief = wavy_belief(3, size=SIZE)
    found = calibration(belief, drawn(belief, 4, factor=2.0))
    assert found.inside[NOMINAL_LEVELS.index(0.95)] == pytest.approx(
        erf(0.5 * 1.959964 / math.sqrt(2.0)), abs=0.01
    )


def test_inside_by_angle_says_where_the_band_fails():
    belief = belief_of(4.0, 6.0, size=720)
    true = np.where(belief.angle < math.pi / 2, 7.0, 5.5)
    found = calibration(belief, true)
    assert found.inside_by_angle == pytest.approx([0.0] * 9 + [1.0] * 27)
    assert found.angle_bins[0] == pytest.approx(math.pi / 36)
    assert np.diff(found.angle_bins) == pytest.approx(np.full(35, math.pi / 18))


def test_levels_are_nested():
    found = calibration(wavy_belief(5), np.full(400, 5.0))
    assert list(found.inside) == sorted(found.inside)


def test_what_is_known_exactly_is_inside_at_every_level():
    belief = belief_of(5.0, 5.0)
    assert set(calibration(belief, belief.mean).inside) == {1.0}
    assert set(calibration(belief, belief.mean + 1e-9).inside) == {0.0}


def test_a_bin_without_a_grid_angle_has_no_value_and_json_takes_it():
    belief = belief_of(4.0, 6.0, size=18)
    found = calibration(belief, np.full(18, 5.0))
    assert found.inside_by_angle.count(None) == 18
    assert json.loads(json.dumps(dataclasses.asdict(found), allow_nan=False))["inside_by_angle"][
        :3
    ] == [1.0, None, 1.0]


def test_the_doubled_end_of_the_thesis_grid_counts_once():
    belief = belief_of(4.0, 6.0, grid=np.linspace(0.0, 2 * math.pi, 11))
    true = np.full(11, 5.0)
    true[[0, 10]] = 9.0
    assert calibration(belief, true).inside[-1] == pytest.approx(9.0 / 10.0)
    open_end = dataclasses.replace(belief, angle=np.arange(11) * (2 * math.pi / 11))
    assert calibration(open_end, true).inside[-1] == pytest.approx(9.0 / 11.0)
