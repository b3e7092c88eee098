"""A known outline as prior: where it lies, where the object is like it, what is then believed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.geometry import TWO_PI, angle_difference
from nbv_planner.known.known_outline import DIRECTIONS, KnownOutline, known_outline
from nbv_planner.known.outline_fit import (
    ANGLE,
    near_covariance,
    outline_fit,
    with_outline,
)
from nbv_planner.known.stretches import STRETCHES, Chain
from nbv_planner.star2d.belief import Evidence, uniform_grid

GRID = uniform_grid(1000)
AROUND = uniform_grid(DIRECTIONS)
NOISE = 0.05
PART = 0.1


def egg(angle):
    """A smooth outline without symmetry."""
    return 4.0 + 0.8 * np.cos(angle - 0.4) + 0.5 * np.sin(3.0 * angle) + 0.3 * np.cos(2.0 * angle)


def other(angle):
    """Another one of the same size."""
    return 4.2 + 1.1 * np.cos(2.0 * angle + 1.0) + 0.4 * np.sin(5.0 * angle)


EGG = KnownOutline(egg(AROUND), 0.1, (0.4, 0.1))


def evidence_of(radius, where, seed=0, noise=NOISE):
    """Evidence from a noisy hit at each of the angles `where` of an outline."""
    rng = np.random.default_rng(seed)
    hits = radius(where) + noise * rng.standard_normal(len(where))
    return Evidence.none(GRID).adding(GRID, where, hits, np.full(len(where), noise))


def displaced(place, outline=EGG):
    return lambda angle: outline.curve(np.asarray(place, dtype=float), angle)


@given(st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3))
@settings(max_examples=30, deadline=None)
def test_a_small_displacement_moves_the_outline_as_the_formula_says(x, y, turn):
    rise = 0.5 * DIRECTIONS / TWO_PI * (np.roll(EGG.radius, -1) - np.roll(EGG.radius, 1))
    q = rise / EGG.radius
    cos, sin = np.cos(AROUND), np.sin(AROUND)
    expected = x * (cos + q * sin) + y * (sin - q * cos) - turn * rise
    moved = EGG.curve(np.array([x, y, turn]), AROUND) - EGG.curve(np.zeros(3), AROUND)
    assert np.abs(moved - expected).max() < 1e-2 * np.hypot(np.hypot(x, y), 4.0 * turn) + 1e-9


@given(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8), st.floats(-0.5, 0.5), st.floats(-1.0, 1.0))
@settings(max_examples=30, deadline=None)
def test_the_displaced_outline_goes_through_its_displaced_corners(x, y, turn, away):
    known = EGG.about(away, -0.5 * away)
    corner = EGG.radius * np.exp(1j * (AROUND + turn)) + x + 1j * y - away * (1.0 - 0.5j)
    angle = np.unwrap(np.angle(corner))
    if (np.diff(angle) > 0.0).all():
        found = known.curve(np.array([x, y, turn]), angle)
        assert np.abs(found - np.abs(corner)).max() < 1e-9


@given(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5), st.floats(-0.3, 0.3))
@settings(max_examples=30, deadline=None)
def test_the_derivative_by_the_place_is_that_of_differences(x, y, turn):
    known, place = EGG.about(0.3, -0.2), np.array([x, y, turn])
    _, normal, by = known.about_place(place, AROUND)
    for column, step in enumerate(1e-4 * np.eye(3)):
        rise = known.curve(place + step, AROUND) - known.curve(place - step, AROUND)
        assert np.abs(by[:, column] - rise / 2e-4).max() < 0.05
    assert (normal >= 1.0).all()


def test_an_outline_beside_the_centre_has_no_radius():
    assert np.isnan(EGG.curve(np.array([20.0, 0.0, 0.0]), GRID)).all()


def test_a_message_gives_the_outline_back_and_again_the_same():
    sent = KnownOutline(egg(AROUND), 0.07, (0.3, 0.02), (0.5, -0.25))
    read = known_outline(sent.plain)
    assert np.abs(read.radius - sent.radius).max() <= 1e-5 * sent.radius.max()
    assert (read.std, read.place_std, read.origin) == (0.07, (0.3, 0.02), (0.5, -0.25))
    assert known_outline(read.plain).radius.tobytes() == read.radius.tobytes()


@pytest.mark.parametrize(
    ("name", "value"),
    [("radius", "1 2 3"), ("std", 0.0), ("place_std", [0.1, -1.0]), ("unit", float("nan"))],
)
def test_a_message_with_impossible_values_is_refused(name, value):
    with pytest.raises(ValueError, match="prior_outline"):
        known_outline({**EGG.plain, name: value})


def chain_likelihood(ratio):
    """Likelihood of all states by plain products of matrices."""
    product = np.eye(2)
    for one in ratio:
        product = product @ np.diag([np.exp(one), 1.0]) @ Chain(ratio, PART).changes
    return np.trace(product)


@given(st.lists(st.floats(-3.0, 3.0), min_size=STRETCHES, max_size=STRETCHES))
@settings(max_examples=20, deadline=None)
def test_the_chain_sums_over_all_states(ratio):
    ratio = np.array(ratio)
    chain = Chain(ratio, PART)
    assert np.exp(chain.log_evidence) == pytest.approx(chain_likelihood(ratio), rel=1e-9)
    # the probability of a state is the derivative of the log evidence by its ratio
    for place in (0, 7, STRETCHES - 1):
        step = 1e-4 * np.eye(STRETCHES)[place]
        slope = np.log(chain_likelihood(ratio + step) / chain_likelihood(ratio - step)) / 2e-4
        assert 1.0 - chain.unlike[place] == pytest.approx(slope, abs=1e-6)


def test_ratios_as_loud_as_they_may_be_do_not_overflow():
    for ratio in (np.full(STRETCHES, 30.0), np.full(STRETCHES, -30.0)):
        chain = Chain(ratio, PART)
        assert np.isfinite(chain.log_evidence)
        assert chain.unlike == pytest.approx(np.full(STRETCHES, float(ratio[0] < 0.0)), abs=1e-6)


def test_drawn_states_are_as_frequent_as_their_probability_says():
    rng = np.random.default_rng(3)
    ratio = rng.normal(0.0, 2.0, STRETCHES) - 1.0
    count = 40_000
    drawn = Chain(ratio, PART).draw(rng.random((count, STRETCHES)))
    error = 4.0 * np.sqrt(0.25 / count)
    assert np.abs(drawn.mean(axis=0) - Chain(ratio, PART).unlike).max() < error
    # neighbours, also those across the seam: P(like, like) by excluding the other states
    for one, two in ((11, 12), (STRETCHES - 1, 0)):
        only = ratio.copy()
        only[[one, two]] += 60.0
        like = chain_likelihood(only) / np.exp(120.0) / chain_likelihood(ratio)
        both = (drawn[:, [one, two]] == 0.0).all(axis=1).mean()
        assert both == pytest.approx(like, abs=error)


def test_mean_and_deviation_are_those_of_the_dense_process_with_explicit_basis():
    """At the place where the outline is linearised: covariance G K G + H B Hᵀ + noise."""
    place = np.array([0.2, -0.1, 0.04])
    where = ANGLE[20:140:2]  # one hit a cell, at its middle
    evidence = evidence_of(displaced(place), where, seed=1)
    fit = outline_fit(EGG, evidence)
    assert fit.unlike[20:140].max() < 0.01
    _, normal, by = EGG.about_place(fit.place, ANGLE)
    covariance = normal[:, None] * near_covariance(EGG.std) * normal
    covariance += by @ np.diag(EGG.place_variance) @ by.T
    angle, radius, std = evidence.measured
    at = np.arange(20, 140, 2)
    # the residual to the prior mean, to first order about the fitted place
    off = radius - EGG.curve(fit.place, angle) + by[at] @ fit.place
    gram = covariance[np.ix_(at, at)] + np.diag(std**2)
    gain = np.linalg.solve(gram, covariance[at]).T
    mean = EGG.curve(fit.place, ANGLE) - by @ fit.place + gain @ off
    deviation = np.sqrt(np.diag(covariance - gain @ covariance[at]))
    found, spread = fit.mean_and_std()
    assert np.abs(found - mean).max() < 0.02 * deviation.max()
    assert spread == pytest.approx(deviation, rel=0.02)


@pytest.mark.parametrize("place", [(0.4, -0.2, 0.087), (-0.3, 0.3, -0.087), (0.0, 0.0, 0.0)])
def test_the_place_is_found_from_a_third_of_the_object(place):
    where = GRID[100:430]
    fit = outline_fit(EGG, evidence_of(displaced(place), where))
    std = np.sqrt(np.diag(np.linalg.inv(fit.information)))
    assert (np.abs(fit.place - place) < 3.0 * std).all()
    assert fit.nothing < 0.01
    assert fit.unlike.max() < 0.25


def test_of_another_object_nothing_holds():
    for seen in (GRID[100:430], GRID):
        fit = outline_fit(EGG, evidence_of(other, seen))
        assert fit.nothing > 0.9
        assert (fit.unlike > 0.9).all()


def test_where_much_of_what_is_seen_is_unlike_the_rest_may_be_too():
    """Displaced, the outline fits half of what is seen of the other object by chance."""
    fit = outline_fit(EGG, evidence_of(other, GRID[100:700]))
    assert (fit.unlike[40:90] > 0.9).all()
    assert fit.unlike[300:350].mean() > 0.25


def test_without_a_measurement_the_outline_holds_as_probably_as_assumed():
    fit = outline_fit(EGG, Evidence.none(GRID))
    assert fit.nothing == pytest.approx(0.1, abs=1e-3)
    assert fit.chains[0].unlike == pytest.approx(np.full(STRETCHES, 0.04), abs=1e-3)
    assert fit.place == pytest.approx(np.zeros(3))


def test_a_part_that_is_unlike_is_found_where_it_is():
    def bitten(angle):
        inside = np.abs(angle_difference(angle, 2.0)) < 0.35
        return egg(angle) - np.where(inside, 1.2, 0.0)

    fit = outline_fit(EGG, evidence_of(bitten, GRID[100:600]))
    away = np.abs(angle_difference(ANGLE, 2.0))
    assert fit.nothing < 0.01
    assert (fit.unlike[away < 0.25] > 0.9).all()
    assert (fit.unlike[(away > 0.6) & (ANGLE > 0.75) & (ANGLE < 3.6)] < 0.1).all()


def test_free_space_where_the_outline_should_be_speaks_against_it():
    evidence = evidence_of(displaced((0.0, 0.0, 0.0)), GRID[100:300])
    free = np.full(len(GRID), np.inf)
    free[500:560] = egg(GRID[500:560]) - 1.0
    before, after = (outline_fit(EGG, one) for one in (evidence, evidence.bounded(free)))
    assert (before.unlike[185:198] < 0.1).all()
    assert (after.unlike[185:198] > 0.8).all()


def test_the_belief_is_the_outline_where_it_holds_and_the_other_one_where_nothing_does():
    mean, std = np.full(len(GRID), 5.0), np.ones(len(GRID))
    seen = slice(100, 430)
    like, spread = with_outline(
        mean, std, GRID, outline_fit(EGG, evidence_of(displaced((0.3, 0.0, 0.05)), GRID[seen]))
    )
    truth = EGG.curve(np.array([0.3, 0.0, 0.05]), GRID)
    assert np.abs(like - truth).max() < 0.35
    assert (np.abs(like - truth) < 3.0 * spread).all()
    known = with_outline(mean, std, GRID, outline_fit(EGG, evidence_of(other, GRID)))
    assert known[0] == pytest.approx(mean, abs=1e-2)
    assert known[1] == pytest.approx(std, rel=1e-2)


def test_the_deviation_of_the_belief_is_that_of_the_mixture_where_both_are_apart():
    """Seen from one side only, so that the other one may be like the outline or not."""
    fit = outline_fit(EGG, evidence_of(egg, AROUND[:90]))
    mean, std = np.full(len(ANGLE), 6.5), np.full(len(ANGLE), 0.3)
    near, deviation = fit.mean_and_std()
    like = 1.0 - fit.unlike
    found = with_outline(mean, std, ANGLE, fit)
    first = like * near + (1.0 - like) * mean
    second = like * (near**2 + deviation**2) + (1.0 - like) * (mean**2 + std**2)
    assert found[0] == pytest.approx(first)
    assert found[1] ** 2 == pytest.approx(second - first**2)
    assert ((like > 0.2) & (like < 0.98)).any()


def test_the_order_of_measurements_does_not_matter():
    where = GRID[100:430]
    one = evidence_of(egg, where)
    orders = itertools.islice(itertools.permutations([0, 1, 2]), 2)
    fits = []
    for order in orders:
        evidence = Evidence.none(GRID)
        for part in order:
            angle, radius, std = (values[part::3] for values in one.measured)
            evidence = evidence.adding(GRID, angle, radius, std)
        fits.append(outline_fit(EGG, evidence))
    assert fits[0].place == pytest.approx(fits[1].place, abs=1e-9)
    assert fits[0].nothing == pytest.approx(fits[1].nothing, abs=1e-9)
