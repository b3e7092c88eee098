"""Intervals against scipy's own, against simulation, and on examples worked out by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from nbv_bench.statistics import differences, mean_interval, object_interval
from nbv_planner.errors import SettingError

VALUES = st.floats(-100.0, 100.0).map(lambda x: round(x, 3))


def on_one_object(values):
    return {("star", seed): value for seed, value in enumerate(values)}


@given(st.lists(VALUES, min_size=3, max_size=9))
def test_on_one_object_it_is_the_textbook_interval(values):
    found = mean_interval(on_one_object(values))
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert (found.low, found.high) == pytest.approx(
        (found.mean - half, found.mean + half), abs=1e-9
    )
    assert found.cases == len(values)


@settings(max_examples=50)
@given(st.integers(1, 4), st.integers(3, 6), st.integers(0, 2**32 - 1))
def test_with_all_seeds_on_all_objects_it_is_the_interval_of_the_means_per_seed(
    objects, seeds, draw
):
    table = np.random.default_rng(draw).normal(size=(objects, seeds))
    found = mean_interval({(o, s): table[o, s] for o in range(objects) for s in range(seeds)})
    by_seed = mean_interval(on_one_object(table.mean(axis=0)))
    assert (found.mean, found.low, found.high) == pytest.approx(
        (by_seed.mean, by_seed.low, by_seed.high)
    )


def test_three_values_by_hand():
    """Mean 2, standard deviation 1, standard error 1/√3, t(0.975; 2) = 4.302653."""
    found = mean_interval(on_one_object([1.0, 2.0, 3.0]))
    assert found.mean == 2.0
    assert found.high - found.mean == pytest.approx(4.302653 / math.sqrt(3.0), rel=1e-6)


def test_the_spread_between_objects_does_not_count():
    """The objects are a fixed set: however different they are, the interval is that of the
    noise.
    """
    found = mean_interval(
        {("a", seed): 0.0 for seed in range(3)} | {("b", seed): 100.0 for seed in range(3)}
    )
    assert (found.mean, found.low, found.high) == (50.0, 50.0, 50.0)


def test_each_object_has_the_same_weight_however_many_seeds_it_has():
    cases = {("a", seed): 1.0 for seed in range(8)} | {("b", 0): 4.0, ("b", 1): 6.0}
    assert mean_interval(cases).mean == pytest.approx(3.0)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Noise that a seed shares between objects, and cases that are missing."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(1000):
        shared, own = rng.normal(size=6), rng.normal(size=(3, 6))
        cases = {
            (o, s): 10.0 * o + shared[s] + 0.5 * own[o, s]
            for o in range(3)
            for s in range(6)
            if (o, s) != (1, 2)
        }
        found = mean_interval(cases)
        held += found.low <= 10.0 <= found.high
    assert 0.92 <= held / 1000 <= 0.975


def test_two_seeds_give_a_mean_without_an_interval():
    found = mean_interval({("a", 0): 3.0, ("a", 1): 5.0, ("b", 0): 2.0, ("b", 1): 4.0})
    assert found.mean == 3.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_one_seed_gives_a_mean_without_an_interval():
    found = mean_interval({("a", 0): 3.0, ("a", 1): 5.0, ("b", 0): 2.0})
    assert found.mean == 3.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(mean_interval({}).mean)
    assert mean_interval({}).cases == 0


def test_differences_are_paired_by_object_and_seed():
    first = {
        ("a", 0): 10.0,
        ("a", 1): 20.0,
        ("b", 0): 7.0,
        ("b", 1): 9.0,
        ("b", 2): 50.0,
        ("a", 3): 4.0,
        ("b", 3): 4.0,
    }
    second = {
        ("a", 1): 18.0,
        ("a", 0): 9.0,
        ("b", 0): 6.0,
        ("b", 1): 7.0,
        ("c", 0): 99.0,
        ("a", 3): 3.0,
        ("b", 3): 2.0,
    }
    pairs = differences(first, second)
    assert sorted(pairs.index[pairs.isna()]) == [("b", 2), ("c", 0)]
    found = mean_interval(pairs)
    assert found.mean == pytest.approx(1.5)
    assert found.cases == 6
    assert math.isfinite(found.low)
    swapped = mean_interval(differences(second, first))
    assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low))


def test_pairing_takes_out_what_both_have_in_common():
    noise = np.random.default_rng(1).normal(scale=100.0, size=5)
    first, second = (on_one_object(noise + shift) for shift in (3.0, 1.0))
    found = mean_interval(differences(first, second))
    assert (found.low, found.high) == pytest.approx((2.0, 2.0))


def test_a_figure_that_is_not_finite_is_refused_by_name():
    for interval in (mean_interval, object_interval):
        with pytest.raises(SettingError, match=r"\('star', 1\): inf is not finite"):
            interval(on_one_object([1.0, math.inf]))


def test_what_is_not_there_is_left_out():
    known = mean_interval(on_one_object([1.0, 2.0, 4.0]))
    assert mean_interval(on_one_object([1.0, 2.0, 4.0, math.nan])) == known
    assert object_interval({("a", 0): 1.0, ("b", 0): math.nan}).cases == 1
    assert mean_interval({("a", 0): math.nan}).cases == 0


def test_values_without_seeds_are_those_of_one_object_each():
    values = [1.0, 5.0, 2.0, 4.0, 9.0]
    assert object_interval(pd.Series(values)) == object_interval(
        {(place, 0): value for place, value in enumerate(values)}
    )


@given(st.lists(VALUES, min_size=4, max_size=9))
def test_over_objects_it_is_the_textbook_interval_of_their_means(values):
    found = object_interval({(name, 3): value for name, value in enumerate(values)})
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    assert (found.mean, found.high - found.mean, found.mean - found.low) == pytest.approx(
        (np.mean(values), half, half), abs=1e-9
    )


def test_over_objects_the_seeds_only_count_through_the_mean_of_their_object():
    noisy = {
        ("a", 0): 0.0,
        ("a", 1): 2.0,
        ("b", 0): 9.0,
        ("b", 1): 11.0,
        ("c", 0): 4.0,
        ("d", 0): 5.0,
    }
    means = {("a", 0): 1.0, ("b", 0): 10.0, ("c", 0): 4.0, ("d", 0): 5.0}
    assert object_interval(noisy) == dataclasses.replace(object_interval(means), cases=6)


@pytest.mark.parametrize("objects", [1, 2, 3])
def test_fewer_than_four_objects_have_no_interval_over_objects(objects):
    found = object_interval(
        {(name, seed): 10.0 * name for name in range(objects) for seed in range(5)}
    )
    assert found.mean == pytest.approx(5.0 * (objects - 1))
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_one_object_has_no_interval_over_objects_and_none_has_no_mean():
    found = object_interval({("a", 0): 1.0, ("a", 1): 3.0})
    assert found.mean == 2.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(object_interval({}).mean)


def test_paired_differences_take_the_interval_that_is_asked_for():
    first = {("a", 0): 3.0, ("b", 0): 7.0, ("d", 0): 2.0, ("e", 0): 1.0}
    second = {("a", 0): 1.0, ("b", 0): 1.0, ("d", 0): 1.0, ("e", 0): 1.0, ("c", 0): 5.0}
    pair = differences(first, second)
    found = object_interval(pair)
    assert found == object_interval({("a", 0): 2.0, ("b", 0): 6.0, ("d", 0): 1.0, ("e", 0): 0.0})
    assert math.isfinite(found.low)
    assert pair.isna().sum() == 1
