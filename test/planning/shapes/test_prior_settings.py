"""The mapper's prior as the numbers that travel with each surface: exact, and refused where they are none."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.star2d.shapes.sampler import PriorSettings

NUMBERS = PriorSettings().numbers
LINE = ("warp", "approximate", "truncate", "none")
SMOOTHNESS = st.one_of(
    st.integers(0, 40).map(lambda p: f"{2 * p + 1}/2"), st.sampled_from(["0.8", "7/3", "1e-3", "49.99", "1.5"])
)
PRIORS = st.builds(
    PriorSettings,
    kernel=st.sampled_from(["matern", "rbf"]), smoothness=SMOOTHNESS, length_scale=st.floats(1e-3, 100.0),
    kernel_std=st.floats(1e-6, 1e3), periodisation=st.sampled_from(LINE), kappa=st.integers(0, 1000),
    cut_start=st.floats(0.0, 3.0), cut_end=st.floats(3.1, 1000.0), prior_mean=st.floats(1e-6, 1e3),
)
SUMMED = st.builds(
    PriorSettings, smoothness=st.sampled_from(["1/2", "3/2", "1.5", "5/2", "7/2"]), length_scale=st.floats(0.05, 2.0)
)


def bits(numbers) -> bytes:
    return struct.pack(f"{len(numbers)}d", *numbers)


@given(prior=st.one_of(PRIORS, SUMMED))
def test_numbers_give_the_same_prior_to_the_bit(prior):
    again = PriorSettings.from_numbers(list(prior.numbers))
    assert bits(again.numbers) == bits(prior.numbers)
    assert PriorSettings.from_numbers(again.numbers) == again
    angles = np.linspace(0.0, 2.0 * math.pi, 7)
    np.testing.assert_array_equal(again.build()(angles), prior.build()(angles))


def test_the_default_comes_back_as_it_is_written():
    assert PriorSettings.from_numbers(NUMBERS) == PriorSettings()
    assert PriorSettings().prior().mean == 5.0


@pytest.mark.parametrize("place", range(len(NUMBERS)))
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.5, 1e9])
def test_numbers_that_are_no_prior_are_refused(place, value):
    spoilt = [*NUMBERS[:place], value, *NUMBERS[place + 1 :]]
    if place in (1, 2) and value == 1e9:  # a length, however large
        assert PriorSettings.from_numbers(spoilt).numbers[place] == value
        return
    with pytest.raises(SettingError):
        PriorSettings.from_numbers(spoilt)
