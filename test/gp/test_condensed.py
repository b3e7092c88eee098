"""Measurements condensed to a bounded number of angles: what is kept, what is lost, and how
little.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_one_call import fast_posterior
from measurement_sets import KINDS, sample

from nbv_planner.gp.circle_solver import FastPosterior
from nbv_planner.gp.condensed import CondensedMeasurements
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.gp.posterior import most_exact_angles

TWO_PI = 2.0 * np.pi
EDGE = TWO_PI * np.arange(8) / 8 + 0.1
GRID = TWO_PI * np.arange(1000) / 1000


def columns(rows):
    return tuple(np.array(column, dtype=float) for column in zip(*rows, strict=True))


special = [
    0.0,
    1.0,
    1.0 + 1e-15,
    1.0 + 1e-9,
    float(EDGE[3]),
    float(np.nextafter(TWO_PI, 0.0)),
    -1e-17,
]
angles = st.one_of(st.floats(-7.0, 14.0), st.sampled_from(special), st.floats(2.0, 2.001))
rows = st.tuples(angles, st.floats(2.0, 8.0), st.floats(1e-3, 1.0))
batches = st.lists(st.lists(rows, min_size=1, max_size=40).map(columns), min_size=1, max_size=4)


def gathered(parts, most):
    data = CondensedMeasurements.none(EDGE, most)
    for part in parts:
        data = data.adding(*part)
    return data


@settings(max_examples=200)
@given(batches, st.sampled_from([16, 20, 1000]))
@example([(np.arange(40) / 40.0, np.ones(40), np.ones(40))], 16)  # all pairs are equally cheap
@example([(1.0 + np.arange(40.0) ** 2 / 1e4, np.ones(40), np.ones(40))], 16)  # ever dearer
def test_condensing_keeps_the_sums_the_order_and_the_bound(parts, most):
    data = gathered(parts, most)
    angle, radius, noise = (np.concatenate(column) for column in zip(*parts, strict=True))
    weight = noise**-2.0
    assert len(data) <= most
    assert data.count == len(angle)
    assert (np.diff(data.angle) > 0.0).all()
    assert (data.angle >= EDGE[0]).all()
    assert (data.angle <= EDGE[0] + TWO_PI).all()
    assert data.information == pytest.approx(weight.sum())
    assert data.precision @ data.radius == pytest.approx(weight @ radius)
    place = EDGE[0] + np.mod(angle - EDGE[0], TWO_PI)
    assert data.precision @ data.angle == pytest.approx(weight @ place)
    second = data.precision @ data.angle**2 + data.columns[3].sum()
    assert second == pytest.approx(weight @ place**2)
    mixed = data.precision @ (data.angle * data.radius) + data.columns[4].sum()
    assert mixed == pytest.approx(weight @ (place * radius), rel=1e-9, abs=1e-9 * weight.sum())


@given(batches)
def test_nothing_is_merged_across_a_cell_boundary(parts):
    angle, _, noise = (np.concatenate(column) for column in zip(*parts, strict=True))
    data = gathered(parts, 16)
    wrapped = np.mod(angle, TWO_PI)
    wrapped[wrapped >= TWO_PI] = 0.0
    place = np.where(wrapped < EDGE[0], wrapped + TWO_PI, wrapped)
    cell = np.searchsorted(EDGE, place, side="right") - 1
    expected = np.bincount(cell, noise**-2.0, minlength=8)
    np.testing.assert_allclose(
        np.bincount(data.cell, data.precision, minlength=8), expected, rtol=1e-12
    )


@given(batches)
def test_changed_names_every_cell_that_differs(parts):
    before = gathered(parts[:-1], 16)
    after = before.adding(*parts[-1])
    for cell in set(range(8)) - set(after.changed.tolist()):
        np.testing.assert_array_equal(
            before.columns[:, before.cell == cell], after.columns[:, after.cell == cell]
        )


def test_only_repeats_are_merged_up_to_the_bound():
    angle = np.tile(np.linspace(0.2, 3.0, 20), 50)
    data = CondensedMeasurements.none(EDGE, 20).adding(angle, np.ones(1000), np.ones(1000))
    assert len(data) == 20
    assert data.is_exact
    np.testing.assert_array_equal(data.columns[3:], 0.0)
    assert not data.adding(np.array([4.0]), np.ones(1), np.ones(1)).is_exact


def test_a_grid_larger_than_the_bound_raises_it():
    assert CondensedMeasurements.none(EDGE, 3).most == 16


def test_merging_goes_for_near_pairs_and_for_what_is_hardly_measured():
    angle = np.array(
        [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.99, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
    )
    noise = np.where(np.arange(17) == 16, 1e3, 1.0)
    data = CondensedMeasurements.none(np.array([0.1]), 15).adding(angle, np.ones(17), noise)
    assert np.abs(data.angle - 0.995).min() < 1e-12  # the nearest pair
    # and the one with an end that is hardly measured
    np.testing.assert_allclose(data.angle[-1], 1.6, atol=1e-6)


def test_more_is_kept_beside_a_gap():
    angle = np.concatenate([np.arange(0.5, 1.0, 1e-3), np.arange(3.0, 3.5, 1e-3)])
    data = CondensedMeasurements.none(np.arange(6) * np.pi / 3, 200).adding(
        angle, np.ones(1000), np.ones(1000)
    )
    spacing = np.diff(data.angle)
    gap = int(spacing.argmax())
    beside = [spacing[0], spacing[gap - 1], spacing[gap + 1], spacing[-1]]
    assert max(beside) < 0.5 * np.median(spacing)


def test_of_a_rough_surface_what_lies_far_from_the_cell_boundaries_is_merged_first():
    """Also where that is farther apart: what lies nearer hides it, the sooner the more is
    measured.
    """
    angle = np.concatenate([[1e-3, 2e-3], np.linspace(0.4, 0.6, 20), [0.998, 0.999]])
    ones = np.ones(len(angle))
    smooth, rough = (
        CondensedMeasurements.none(np.arange(6.0), 12, diffusion=q) for q in (0.0, 100.0)
    )
    rough = rough.adding(angle, ones, ones)
    np.testing.assert_array_equal(rough.angle[[0, 1, -2, -1]], angle[[0, 1, -2, -1]])
    assert smooth.adding(angle, ones, ones).angle[0] > angle[0]


# -------------------------------------------------------------------------------- against the exact


def in_batches(kernel, data, most, size=1000):
    posterior = FastPosterior.none(kernel, 5.0, GRID, most)
    for k in range(0, len(data[0]), size):
        posterior = posterior.adding(*(column[k : k + size] for column in data))
    return posterior


def worst_difference(first, second):
    return max(float(np.abs(one - other).max()) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("nu", ["3/2", "5/2"])
@pytest.mark.parametrize("length", [0.1, 0.2, 2.0])
@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_thousand_condensed_measurements_are_within_a_millimetre(nu, length, noise, kind):
    kernel = PeriodicMatern(smoothness=nu, length_scale=length)
    data = sample(kind, 20_000, noise)
    most = most_exact_angles(kernel)
    posterior = in_batches(kernel, data, most)
    assert posterior.solver == (
        "fast" if kind in ("repeated", "nearly equal", "on the grid") else "condensed"
    )
    assert len(posterior.data) <= most
    (mean, std), (exact_mean, exact_std) = (
        posterior.mean_and_std(),
        fast_posterior(kernel, 5.0, GRID, *data),
    )
    assert np.abs(std - exact_std).max() < 1e-3
    assert np.abs(mean - exact_mean).max() < 1e-3


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("kind", ["sweep", "mixed", "one arc"])
def test_the_hardest_kinds_are_within_a_millimetre_with_other_draws_too(kind, seed):
    """In rising order, when the newest cells are merged while they fill, and beside a gap, where
    the slope decides.
    """
    kernel, data = PeriodicMatern(), sample(kind, 20_000, 0.01, seed)
    mean = in_batches(kernel, data, most_exact_angles(kernel)).mean()
    assert np.abs(mean - fast_posterior(kernel, 5.0, GRID, *data)[0]).max() < 1e-3


@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("repeated", "nearly equal", "on the grid")]
)
def test_a_condensed_rough_surface_is_never_claimed_to_be_known_better_than_it_is(kind, noise):
    """ν = 1/2: the deviation is not below the exact one, hardly above, and the means lie apart by
    less than 1 of it.
    """
    kernel, data = PeriodicMatern(smoothness="1/2"), sample(kind, 20_000, noise)
    posterior = in_batches(kernel, data, most_exact_angles(kernel))
    assert posterior.solver == "condensed"
    (mean, std), (exact_mean, exact_std) = (
        posterior.mean_and_std(),
        fast_posterior(kernel, 5.0, GRID, *data),
    )
    assert (std > 0.999 * exact_std).all()
    assert np.median(std / exact_std) < 1.1
    assert (np.abs(mean - exact_mean) < std).all()
    if kind in ("one arc", "clustered"):  # nearly all of what is kept lies where it decides
        assert np.abs(mean - exact_mean).max() < 1e-3


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
def test_adding_in_batches_gives_what_adding_at_once_does(nu):
    kernel = PeriodicMatern(smoothness=nu)
    data = sample("random", 3000, 0.05)
    together = fast_posterior(kernel, 5.0, GRID, *data)
    assert worst_difference(in_batches(kernel, data, 8192, 77).mean_and_std(), together) < 1e-10


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_a_preview_merges_nothing_and_is_nearer_to_the_exact_than_what_is_kept(noise):
    kernel, (angle, radius, std) = PeriodicMatern(), sample("random", 5000, noise)
    kept = in_batches(kernel, (angle[:3000], radius[:3000], std[:3000]), 3200)
    new = angle[3000:], radius[3000:], std[3000:]
    preview, after = kept.preview(*new), kept.adding(*new)
    assert (len(preview.data), len(after.data)) == (5000, 3200)
    exact = fast_posterior(kernel, 5.0, GRID, angle, radius, std)[0]
    assert np.abs(preview.mean() - exact).max() < 1e-10 < np.abs(after.mean() - exact).max()


def test_an_earlier_posterior_is_not_changed_by_later_measurements():
    before = in_batches(PeriodicMatern(), sample("random", 500, 0.1), 8192)
    kept = before.cells.forward.copy(), before.data.columns.copy(), before.mean()
    before.adding(*sample("random", 500, 0.1, seed=2)).mean_and_std()
    for now, then in zip(
        (before.cells.forward, before.data.columns, before.mean()), kept, strict=True
    ):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
def test_limited_information_is_within_a_millimetre_where_noise_is_overstated(nu):
    kernel = PeriodicMatern(smoothness=nu)
    data = sample("random", 3000, 1e-4)  # more than is supported; ν = 1/2 has no limit
    posterior = FastPosterior.none(kernel, 5.0, GRID, 8192).adding(*data)
    limited = posterior.limited()
    assert (limited is posterior) == (nu == "1/2")
    mean, std = limited.mean_and_std()
    exact_mean, exact_std = fast_posterior(kernel, 5.0, GRID, *data)
    np.testing.assert_allclose(mean, exact_mean, rtol=0, atol=1e-3)
    assert (std >= exact_std - 1e-6).all()
