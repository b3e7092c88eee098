"""How like each other cuts are: the deviation that made them is found from what was measured."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from nbv_planner.errors import ResultsError
from nbv_planner.geometry import TWO_PI
from nbv_planner.known.cut_likeness import (
    CutPair,
    learned_deviation,
    learned_place,
    log_evidence,
    widest,
)
from nbv_planner.known.known_outline import DIRECTIONS, KnownOutline
from nbv_planner.known.outline_fit import ANGLE, near_covariance, outline_fit
from nbv_planner.star2d.belief import Evidence, uniform_grid

GRID = uniform_grid(1000)
AROUND = TWO_PI / DIRECTIONS * np.arange(DIRECTIONS)
RADIUS, NOISE = 4.0, 0.01
ROUND = KnownOutline(np.full(DIRECTIONS, RADIUS), 0.4, (0.4, 0.1))


def pair_of(std, seed, *, apart=0.25, part=1.0, known=ROUND, shift=0.0):
    """A pair whose upper cut deviates with a standard deviation, measured along a part of the
    circle.
    """
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(near_covariance(std) + 1e-12 * np.eye(len(ANGLE)))
    radius = RADIUS + root @ rng.standard_normal(len(ANGLE)) + shift * np.cos(ANGLE)
    seen = part * TWO_PI > ANGLE
    hits = radius[seen] + NOISE * rng.standard_normal(seen.sum())
    found = Evidence.none(GRID).adding(GRID, ANGLE[seen], hits, np.full(seen.sum(), NOISE))
    return CutPair.of(outline_fit(widest(known), found), apart)


@pytest.mark.parametrize("std", [0.03, 0.1, 0.3])
@pytest.mark.parametrize("part", [1.0, 0.4])
def test_the_deviation_that_made_the_cuts_is_found(std, part):
    pairs = [pair_of(std, seed, part=part) for seed in range(4)]
    assert learned_deviation(pairs, RADIUS, 0.25) == pytest.approx(std, rel=0.25)


def test_what_was_not_measured_does_not_count_as_like():
    """The difference of written outlines would be 0 there, and the deviation half as large."""
    few = [pair_of(0.2, seed, part=0.25) for seed in range(8)]
    assert learned_deviation(few, RADIUS, 0.25) > 0.15


def test_the_likelihood_is_that_of_a_normal_distribution():
    pair = pair_of(0.1, 0)
    known = widest(ROUND)
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(near_covariance(0.1) + 1e-12 * np.eye(len(ANGLE)))
    off = root @ rng.standard_normal(len(ANGLE)) + NOISE * rng.standard_normal(len(ANGLE))
    by = np.stack([np.cos(ANGLE), np.sin(ANGLE)], axis=1)
    stds = RADIUS * np.geomspace(0.003, 0.2, 25)
    place = known.place_std[0] ** 2 * by @ by.T + NOISE**2 * np.eye(len(ANGLE))
    expected = [
        multivariate_normal.logpdf(off, np.zeros(len(off)), near_covariance(std) + place)
        for std in stds
    ]
    found = np.array(pair.likelihoods)
    rise = found[:-1] - found[1:]
    assert rise == pytest.approx(np.subtract(expected[:-1], expected[1:]), rel=0.1, abs=1.0)


def test_twice_as_far_apart_cuts_deviate_twice_as_much():
    pairs = [pair_of(0.1, seed) for seed in range(3)]
    here = learned_deviation(pairs, RADIUS, 0.25)
    assert learned_deviation(pairs, RADIUS, 0.5) == pytest.approx(2.0 * here, rel=0.05)
    assert learned_deviation(pairs, 2.0 * RADIUS, 0.25) == pytest.approx(2.0 * here)


def test_equal_cuts_are_at_the_floor_and_others_never_beyond_the_ceiling():
    equal = learned_deviation([pair_of(1e-6, seed) for seed in range(3)], RADIUS, 0.25)
    assert 0.003 * RADIUS <= equal < 0.006 * RADIUS
    other = learned_deviation([pair_of(2.0, 0)], RADIUS, 0.25)
    assert math.isfinite(other)
    assert other <= 0.2 * RADIUS


def test_the_likelier_of_two_priors_has_the_greater_evidence():
    lobed = dataclasses.replace(ROUND, radius=RADIUS + 0.3 * np.cos(3.0 * AROUND))
    right, wrong = (
        [pair_of(0.05, seed, known=known) for seed in range(2)] for known in (ROUND, lobed)
    )
    assert log_evidence(right) > log_evidence(wrong) + 10.0
    assert log_evidence([]) == 0.0


def test_the_place_is_as_declared_at_first_then_as_the_cuts_have_moved():
    assert learned_place([], (0.4, 0.1)) == pytest.approx((0.4, 0.1))
    still = [pair_of(0.02, seed) for seed in range(9)]
    along, turn = learned_place(still, (0.4, 0.1))
    assert 0.4 / math.sqrt(10.0) <= along < 0.16
    assert turn <= 0.1 + 1e-9
    moved = [pair_of(0.02, seed, shift=0.5) for seed in range(9)]
    assert learned_place(moved, (0.4, 0.1))[0] > 2.0 * along


def test_a_pair_is_read_as_it_was_written_and_nothing_else():
    pair = pair_of(0.1, 0)
    content = dataclasses.asdict(pair)
    assert CutPair.read(content) == pair
    for name, value in (("apart", 0.0), ("likelihoods", [1.0]), ("moved", [1.0]), ("radius", "x")):
        with pytest.raises(ResultsError, match="pair of cuts"):
            CutPair.read({**content, name: value})
    with pytest.raises(ResultsError, match="pair of cuts"):
        CutPair.read({})
