"""Measurements, beliefs and the mapper."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of
from hypothesis import given
from hypothesis import strategies as st
from measurement_sets import KINDS, sample

from nbv_planner.errors import MeasurementError, NbvPlannerError, SettingError
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.gp.posterior import MOST_EXACT_ANGLES, posterior_on
from nbv_planner.star2d.belief import slope_on_grid, uniform_grid
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements

TWO_PI = 2.0 * np.pi


def measured(*rows) -> Measurements:
    return Measurements(*(np.array(column, dtype=float) for column in zip(*rows, strict=True)))


def small_mapper(**settings) -> SurfaceMapper:
    return SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=64, **settings))


def test_angles_are_wrapped_on_construction():
    data = measured((-0.5, 5.0, 0.1), (7.0, 5.0, 0.1), (-1e-17, 5.0, 0.1))
    np.testing.assert_allclose(data.angle, [TWO_PI - 0.5, 7.0 - TWO_PI, 0.0])
    assert len(data) == 3


@pytest.mark.parametrize(
    ("angle", "radius", "std", "words"),
    [
        ([0.0, 1.0], [5.0], [0.1], ["2", "1"]),
        ([0.0], [5.0], [0.1, 0.1], ["1", "2"]),
        ([math.nan], [5.0], [0.1], ["angle", "finite"]),
        ([0.0, 1.0], [5.0, math.inf], [0.1, 0.1], ["radius", "finite"]),
        ([0.0], [5.0], [math.nan], ["std", "finite"]),
        ([0.0], [5.0], [0.0], ["std", "> 0"]),
        ([0.0], [5.0], [-0.1], ["std", "> 0"]),
    ],
)
def test_measurements_that_are_not_finite_or_do_not_match_are_refused(angle, radius, std, words):
    with pytest.raises(MeasurementError) as caught:
        Measurements(np.array(angle), np.array(radius), np.array(std))
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert isinstance(caught.value, NbvPlannerError)


def test_joined_puts_the_other_set_behind_and_changes_neither():
    first, second = measured((1.0, 5.0, 0.1)), measured((2.0, 6.0, 0.2), (1.0, 5.5, 0.3))
    both = Measurements.together([first, second])
    np.testing.assert_array_equal(both.angle, [1.0, 2.0, 1.0])
    np.testing.assert_array_equal(both.radius, [5.0, 6.0, 5.5])
    np.testing.assert_array_equal(both.std, [0.1, 0.2, 0.3])
    assert (len(first), len(second), len(Measurements.none())) == (1, 2, 0)


def test_together_puts_sets_behind_each_other_and_copies_no_single_one():
    first, second = measured((1.0, 5.0, 0.1)), measured((2.0, 6.0, 0.2), (1.0, 5.5, 0.3))
    np.testing.assert_array_equal(
        Measurements.together([second, first, second]).radius, [6.0, 5.5, 5.0, 6.0, 5.5]
    )
    assert Measurements.together([first]) is first
    assert len(Measurements.together([])) == 0


def test_uniform_grid_counts_zero_once():
    grid = uniform_grid(8)
    np.testing.assert_allclose(grid, np.arange(8) * np.pi / 4)
    assert grid[-1] < TWO_PI


def test_mapper_starts_from_the_prior_and_returns_to_it():
    mapper = small_mapper(prior_mean=4.0, confidence_scale=3.0)
    prior = mapper.belief()
    np.testing.assert_allclose(prior.mean, 4.0)
    np.testing.assert_allclose(prior.std, 1.5)
    np.testing.assert_allclose(prior.lower, 4.0 - 3.0 * 1.5)
    np.testing.assert_allclose(prior.upper, 4.0 + 3.0 * 1.5)
    np.testing.assert_allclose(prior.width, 9.0)
    assert prior.hits.sum() == 0
    mapper.add(measured((1.0, 6.0, 0.1)))
    assert mapper.belief().mean.max() > 5.0
    mapper.reset()
    assert len(mapper.measurements) == 0
    np.testing.assert_array_equal(mapper.belief().mean, prior.mean)
    np.testing.assert_array_equal(mapper.belief().std, prior.std)


def test_mapper_belief_is_the_posterior_of_everything_added():
    mapper = small_mapper()
    rng = np.random.default_rng(0)
    rows = [(rng.uniform(0, TWO_PI), rng.uniform(3, 7), rng.uniform(0.1, 0.5)) for _ in range(30)]
    for part in (rows[:10], rows[10:11], rows[11:]):
        mapper.add(measured(*part))
    belief = mapper.belief()
    mean, std = oracles.textbook_posterior(
        PeriodicMatern(), 5.0, belief.angle, *map(np.array, zip(*rows, strict=True))
    )
    np.testing.assert_allclose(belief.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(belief.std, std, rtol=0, atol=1e-8)
    np.testing.assert_allclose(belief.lower, mean - 2 * std, rtol=0, atol=1e-7)
    np.testing.assert_allclose(belief.upper, mean + 2 * std, rtol=0, atol=1e-7)
    assert belief.step == pytest.approx(TWO_PI / 64)
    assert len(mapper.measurements) == 30


def test_adding_nothing_changes_nothing():
    mapper = small_mapper()
    mapper.add(measured((1.0, 6.0, 0.1)))
    before = mapper.belief()
    mapper.add(Measurements.none())
    np.testing.assert_array_equal(mapper.belief().mean, before.mean)


def test_an_earlier_belief_is_not_changed_by_later_measurements():
    mapper = small_mapper()
    before = mapper.belief()
    kept = before.mean.copy()
    mapper.add(measured((1.0, 7.0, 0.1)))
    mapper.belief()
    np.testing.assert_array_equal(before.mean, kept)
    with pytest.raises(dataclasses.FrozenInstanceError):
        before.mean = kept


@given(st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=40))
def test_hits_count_every_measurement_once_at_the_nearest_grid_angle(angles):
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=16))
    mapper.add(measured(*((a, 5.0, 0.2) for a in angles)))
    hits = mapper.belief().hits
    assert hits.sum() == len(angles)
    step = TWO_PI / 16
    clear = [a for a in angles if abs((a / step) % 1.0 - 0.5) > 1e-9]
    if len(clear) == len(angles):
        expected = np.bincount([math.floor(a / step + 0.5) % 16 for a in angles], minlength=16)
        np.testing.assert_array_equal(hits, expected)


def test_thesis_grid_that_counts_both_ends_is_accepted_and_hits_are_not_lost():
    grid = np.linspace(0.0, TWO_PI, 101)
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(), grid=grid)
    mapper.add(measured((0.0, 6.0, 0.1), (TWO_PI - 1e-3, 6.0, 0.1), (3.0, 6.0, 0.1)))
    belief = mapper.belief()
    np.testing.assert_array_equal(belief.angle, grid)
    assert belief.step == pytest.approx(TWO_PI / 100)
    assert belief.hits.sum() == 3
    assert belief.mean[0] == pytest.approx(belief.mean[-1])


@pytest.mark.parametrize("ends", [False, True])
@given(st.floats(-7.0, 7.0))
def test_interpolation_goes_round_the_circle(ends, angle):
    grid = np.linspace(0.0, TWO_PI, 13, endpoint=ends)
    belief = belief_of(3.0, lambda g: 6.0 + np.cos(g), grid=grid)
    expected = oracles.circular_interpolation(grid.tolist(), belief.upper.tolist(), angle)
    assert float(belief.interpolate(belief.upper, angle)) == pytest.approx(expected, abs=1e-9)


def test_transmitted_belief_survives_single_precision_and_a_second_trip():
    mapper = small_mapper()
    mapper.add(measured((1.0, 6.123456789, 0.1)))
    belief = mapper.belief()
    sent = belief.as_transmitted()
    for name in ("mean", "std", "lower", "upper"):
        values = getattr(sent, name)
        np.testing.assert_array_equal(values, values.astype(np.float32))
        np.testing.assert_allclose(values, getattr(belief, name), rtol=1e-6)
        np.testing.assert_array_equal(getattr(sent.as_transmitted(), name), values)
    np.testing.assert_array_equal(sent.hits, belief.hits)
    assert len(sent.angle) == len(belief.angle)
    assert (np.diff(sent.angle) > 0.0).all()


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"prior_mean": 0.0}, "prior_mean"),
        ({"grid_size": 3}, "grid_size"),
        ({"confidence_scale": 0.0}, "confidence_scale"),
    ],
)
def test_mapper_settings_outside_their_range_are_refused(values, word):
    with pytest.raises(SettingError, match=word):
        MapperSettings(**values)


def test_noise_along_the_beam_becomes_noise_of_the_radius_at_fixed_angle():
    """Monte Carlo: move returns along their beams and look how far they then lie from a sloped
    surface.
    """
    rng = np.random.default_rng(0)
    slope, tilt, sigma, radius = 1.5, math.pi - 0.5, 1e-3, 5.0
    move = sigma * rng.standard_normal(200_000)
    # the surface point stands at angle 0
    x, y = radius + move * math.cos(tilt), move * math.sin(tilt)
    departure = np.hypot(x, y) - radius * (1.0 + slope * np.arctan2(y, x))
    data = Measurements(np.zeros(1), np.full(1, radius), np.full(1, sigma), np.full(1, tilt))
    assert data.radial_std(np.array([slope]))[0] == pytest.approx(departure.std(), rel=0.01)


def test_noise_of_a_radius_is_never_less_than_that_of_the_range():
    data = Measurements(
        np.zeros(3), np.full(3, 5.0), np.full(3, 0.2), np.array([0.0, math.pi / 2, math.pi])
    )
    assert data.radial_std(np.zeros(3)) == pytest.approx(0.2)


def test_relative_slope_of_the_mean_is_that_of_the_curve():
    grid = uniform_grid(2000)
    belief = belief_of(lambda g: 4.9 + np.sin(g), lambda g: 5.1 + np.sin(g), size=2000)
    expected = np.cos(grid) / (5.0 + np.sin(grid))
    assert slope_on_grid(grid, belief.mean) == pytest.approx(expected, abs=1e-4)


def test_mapper_widens_the_noise_on_steep_flanks_when_it_knows_the_beams():
    angle = np.linspace(1.0, 1.5, 40)
    radius = 3.0 + 6.0 * (angle - 1.0)
    tilt = np.full(40, math.pi - 0.7)
    plain, aware = (SurfaceMapper(PeriodicMatern(), MapperSettings()) for _ in range(2))
    plain.add(Measurements(angle, radius, np.full(40, 0.2)))
    aware.add(Measurements(angle, radius, np.full(40, 0.2), tilt))
    assert np.median(aware.measurements.std) > 1.3 * 0.2
    assert (aware.belief().std >= plain.belief().std - 1e-12).all()


# ------------------------------------------------------------------------------------------------
# solvers of the mapper


def full_mapper(nu="3/2", **settings) -> SurfaceMapper:
    return SurfaceMapper(PeriodicMatern(smoothness=nu), MapperSettings(**settings))


def fed(mapper, kind, n, noise, *, batch=1000) -> SurfaceMapper:
    data = sample(kind, n, noise)
    for k in range(0, n, batch):
        mapper.add(Measurements(*(column[k : k + batch] for column in data)))
    return mapper


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
@pytest.mark.parametrize("kind", KINDS)
def test_solvers_of_the_mapper_agree(nu, kind):
    fast, dense = (
        fed(full_mapper(nu, solver=solver), kind, 400, 0.05, batch=90)
        for solver in ("auto", "dense")
    )
    assert fast.solver == "auto"
    belief, expected = fast.belief(), dense.belief()
    assert (fast.solver, dense.solver) == ("fast", "dense")
    np.testing.assert_allclose(belief.mean, expected.mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(belief.std, expected.std, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(belief.hits, expected.hits)
    assert fast.count == dense.count == 400


@pytest.mark.parametrize("kind", ["random", "clustered"])
def test_the_mapper_keeps_no_more_than_it_must(kind):
    mapper = fed(full_mapper(), kind, 30_000, 0.05, batch=3000)
    mapper.belief()
    assert mapper.solver == "condensed"
    assert len(mapper.measurements) == MOST_EXACT_ANGLES
    assert mapper.count == mapper.belief().hits.sum() == 30_000


def test_what_is_kept_grows_no_further_however_many_measurements_come():
    """Every array that the mapper holds, counted."""

    def size_of(mapper):
        posterior = mapper._posterior
        return sum(
            a.nbytes
            for a in (posterior.data.columns, posterior.cells.forward, posterior.cells.likelihood)
        )

    mapper = fed(full_mapper(), "random", 9_000, 0.05)
    before = size_of(mapper)
    fed(mapper, "mixed", 20_000, 0.05)
    assert size_of(mapper) == before


def test_too_much_information_is_left_to_the_dense_solution_while_there_are_few_angles():
    mapper = full_mapper()
    mapper.add(Measurements(np.linspace(0.0, 6.0, 50), np.full(50, 5.5), np.full(50, 1e-6)))
    assert mapper.belief().mean[0] == pytest.approx(5.5, abs=1e-5)
    assert mapper.solver == "dense"


def test_too_much_information_in_many_angles_is_taken_as_less():
    mapper = fed(full_mapper(), "random", 3000, 1e-4)
    belief = mapper.belief()
    assert mapper.solver == "fast"
    np.testing.assert_allclose(belief.mean, 5.0 + np.cos(3.0 * belief.angle), rtol=0, atol=0.02)
    assert np.isfinite(belief.std).all()


class Summed:
    """A kernel without Markov structure."""

    variance = 2.25 + 1e-9

    def __call__(self, difference):
        return PeriodicMatern()(difference) + 1e-9


def test_a_kernel_without_markov_structure_is_solved_densely_in_bounded_memory():
    mapper = SurfaceMapper(Summed(), MapperSettings(grid_size=64))
    few = fed(mapper, "random", 1500, 0.1).belief()
    assert mapper.solver == "dense"
    expected = fed(small_mapper(), "random", 1500, 0.1).belief()
    np.testing.assert_allclose(few.mean, expected.mean, rtol=0, atol=1e-6)
    fed(mapper, "sweep", 3000, 0.1)
    assert len(mapper.measurements) == 2000
    assert mapper.count == 4500


def test_on_the_grid_the_mapper_believes_nearly_the_same_and_never_keeps_more():
    grid, dense = (
        fed(full_mapper(solver=solver), "random", 400, 0.2, batch=90)
        for solver in ("grid", "dense")
    )
    belief, expected = grid.belief(), dense.belief()
    assert grid.solver == "grid"
    np.testing.assert_allclose(belief.mean, expected.mean, rtol=0, atol=5e-3)
    np.testing.assert_allclose(belief.std, expected.std, rtol=0, atol=5e-3)
    np.testing.assert_array_equal(belief.hits, expected.hits)
    assert len(fed(grid, "random", 5000, 0.2).measurements) <= 1000


@pytest.mark.parametrize("solver", ["auto", "dense"])
def test_samples_have_the_mean_and_deviation_of_the_posterior(solver):
    prior = posterior_on(uniform_grid(64), PeriodicMatern(), 5.0, solver)
    posterior = prior.adding(*sample("one arc", 300, 0.1))
    mean, std = posterior.mean_and_std()
    normals = np.random.default_rng(3).standard_normal((4000, posterior.normals_per_sample))
    drawn = posterior.sample(normals)
    assert drawn.shape == (4000, 64)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, rtol=0, atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.1, atol=1e-3)
    np.testing.assert_array_equal(drawn, posterior.sample(normals))


def test_the_same_normals_give_samples_that_move_with_the_posterior():
    posterior = posterior_on(uniform_grid(64), PeriodicMatern(), 5.0)
    normals = np.random.default_rng(0).standard_normal((6, posterior.normals_per_sample))
    moved = posterior.adding(*(np.array([value]) for value in (1.0, 5.3, 0.5)))
    before, after = posterior.sample(normals), moved.sample(normals)
    far = np.abs(uniform_grid(64) - 1.0 - np.pi) < 1.0
    np.testing.assert_allclose(after[:, far], before[:, far], atol=1e-3)
    mean = moved.sample(0.0 * normals[:1])[0]
    np.testing.assert_allclose(mean, moved.mean(), rtol=0, atol=1e-12)


def test_hits_are_counted_where_the_beams_meet_the_believed_surface():
    """Noise along a slanting beam moves a hit along the surface; the beam still meets it where it
    does.
    """
    rng, angle, tilt = np.random.default_rng(0), np.linspace(1.0, 1.5, 200), np.pi - 0.6
    error = 0.2 * rng.standard_normal(200)
    # On a circle of radius 5: a range that is too long by e ends e along the beam.
    x = 5.0 * np.cos(angle) + error * np.cos(angle + tilt)
    y = 5.0 * np.sin(angle) + error * np.sin(angle + tilt)
    mapper = SurfaceMapper(PeriodicMatern(smoothness="5/2", length_scale=1.0), MapperSettings())
    measured = np.arctan2(y, x)
    mapper.add(
        Measurements(
            measured, np.hypot(x, y), np.full(200, 0.2), np.full(200, tilt) + angle - measured
        )
    )
    belief = mapper.belief()
    hit = belief.angle[belief.hits > 0]
    assert measured.max() - measured.min() > 0.53  # they reach beyond what was seen
    assert 0.97 < hit.min() < 1.03
    assert 1.47 < hit.max() < 1.53
    assert belief.hits.sum() == 200
