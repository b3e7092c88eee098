"""The confidence schedule against the formula of lemma 2-4, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.gp.confidence import scheduled_beta, scheduled_half_width
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements

parameters = st.tuples(
    st.integers(1, 500), st.floats(1e-6, 0.99), st.floats(1.0, 1e6), st.floats(1.0, 1e3)
)


@given(parameters)
def test_beta_is_the_union_bound_over_angles_and_rounds(values):
    """As the proof has it: 2 log(|D_t| π_t / (δ/2)) with π_t = π²t²/6 and |D_t| = 2πb √log(2a/δ)
    t².
    """
    t, delta, a, b = values
    size = 2 * math.pi * b * math.sqrt(math.log(2 * a / delta)) * t**2
    expected = 2 * math.log(size * (math.pi**2 * t**2 / 6) / (delta / 2))
    assert scheduled_beta(t, delta, a, b) == pytest.approx(expected, rel=1e-12)


@given(parameters)
def test_band_misses_with_at_most_the_probability_that_the_round_may_have(values):
    """2·P(N(0,1) > β^½) per angle, times the angles, is at most (δ/2)/π_t."""
    t, delta, a, b = values
    size = 2 * math.pi * b * math.sqrt(math.log(2 * a / delta)) * t**2
    per_angle = math.erfc(math.sqrt(scheduled_beta(t, delta, a, b) / 2))
    assert size * per_angle <= delta / 2 / (math.pi**2 * t**2 / 6) * (1 + 1e-9)


def test_discretisation_of_the_print_does_not_bound_the_error_between_its_angles():
    """With log(2a/b), as printed, the slope b √log(2a/δ) gives more than 1/t² over one step; with δ
    it does not.
    """
    delta, a, b = 0.05, 530.0, 26.0
    steepest = b * math.sqrt(math.log(2 * a / delta))
    printed = 2 * math.pi * b * math.sqrt(math.log(2 * a / b))
    assert steepest * 2 * math.pi / printed > 1.0
    assert steepest * 2 * math.pi / math.ceil(2 * math.pi * steepest) <= 1.0


def test_half_width_is_wider_by_one_over_t_squared():
    std = np.array([0.0, 0.5, 1.5])
    width = scheduled_half_width(std, 4, 0.05, 530.0, 26.0)
    np.testing.assert_allclose(
        width, math.sqrt(scheduled_beta(4, 0.05, 530.0, 26.0)) * std + 1 / 16
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1, 0.0, 10.0, 1.0), ["delta", "0.0", "> 0"]),
        ((1, 1.0, 10.0, 1.0), ["delta", "1.0", "< 1"]),
        ((1, math.nan, 10.0, 1.0), ["delta", "nan"]),
        ((1, 0.1, 0.0, 1.0), ["schedule_a", "> 0"]),
        ((1, 0.1, 10.0, -1.0), ["schedule_b", "-1", "> 0"]),
        ((0, 0.1, 10.0, 1.0), ["round", "0", ">= 1"]),
        ((1, 0.1, 0.05, 1.0), ["schedule_a", "0.05", "delta/2"]),
        ((1, 0.9, 1.0, 0.01), ["schedule_b", "0.01", "round 1", "> 0"]),
    ],
)
def test_impossible_schedules_are_refused(values, words):
    with pytest.raises(SettingError) as caught:
        scheduled_beta(*values)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def measured(*angles: float) -> Measurements:
    return Measurements(np.array(angles), np.full(len(angles), 5.0), np.full(len(angles), 0.2))


def test_mapper_counts_views_and_widens_its_band_with_them():
    settings = MapperSettings(
        grid_size=64, confidence="schedule", delta=0.1, schedule_a=100.0, schedule_b=20.0
    )
    mapper = SurfaceMapper(PeriodicMatern(), settings)
    for t in (1, 2, 3):
        assert mapper.round == t
        belief = mapper.belief()
        half = math.sqrt(scheduled_beta(t, 0.1, 100.0, 20.0)) * belief.std + 1 / t**2
        np.testing.assert_allclose(belief.upper, belief.mean + half)
        np.testing.assert_allclose(belief.lower, belief.mean - half)
        mapper.add(measured(float(t), t + 0.1))
    mapper.reset()
    assert mapper.round == 1


def test_scans_of_one_view_count_once_and_an_empty_view_counts():
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=64))
    mapper.add(measured(1.0))
    mapper.add(measured(1.1), same_view=True)
    mapper.add(Measurements.none())
    assert mapper.round == 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"delta": 0.0}, ["delta", ">= 1e-09"]),
        ({"delta": 1.0}, ["delta", "< 1"]),
        ({"delta": math.nan}, ["delta", "nan"]),
        ({"confidence": "schedule", "delta": 0.9, "schedule_a": 0.4}, ["schedule_a", "delta/2"]),
        ({"schedule_a": 0.0}, ["schedule_a", ">= 1e-09"]),
        ({"schedule_b": 0.0}, ["schedule_b", ">= 1e-09"]),
        ({"confidence": "schedule", "schedule_b": 1e-6}, ["schedule_b", "β"]),
        ({"confidence": "wide"}, ["confidence", "'wide'", "fixed", "schedule"]),
    ],
)
def test_mapper_refuses_impossible_schedules(values, words):
    with pytest.raises(SettingError) as caught:
        MapperSettings(**values)
    assert all(word in str(caught.value) for word in words), str(caught.value)
