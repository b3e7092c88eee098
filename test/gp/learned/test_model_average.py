"""Averaging over priors: each against a dense Gaussian process of its own, and the weights of
all.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.star2d.shapes.learned_prior import FourierBasis, LearnedPriorSettings, ModelAverage

MEAN, ORDER = 5.0, 24
SMALL = LearnedPriorSettings(
    prior_length_scales=(0.3, 0.8), prior_kernel_stds=(1.2,), prior_symmetries=(2.0, 5.0)
)
GRID = np.linspace(0.0, TWO_PI, 50, endpoint=False)


def covariance(member, mean_std, first, second):
    """Covariance of the radius by plain summation: the kernel at every turn by 2π/n, and the
    unknown mean.
    """
    variance = member.variances(ORDER, 0.0)[:, None, None]
    frequency = np.arange(ORDER + 1)[:, None, None]
    series = (
        np.where(frequency == 0, 1.0, 2.0)
        * variance
        * np.cos(frequency * (first[:, None] - second[None, :]))
    )
    return series.sum(axis=0) + mean_std**2


def measurements(count, seed=0, fold=1):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.0, TWO_PI / 2, count)
    std = rng.uniform(0.05, 0.3, count)
    return angle, 5.0 + np.cos(fold * angle) + std * rng.standard_normal(count), std


def test_basis_gives_the_covariance_back():
    basis = FourierBasis(ORDER)
    member = ModelAverage(SMALL, MEAN, ORDER).members[-1]
    variance = member.variances(ORDER, 0.7)[basis.frequency]
    at = basis.at(GRID)
    np.testing.assert_allclose(
        (at * variance) @ at.T, covariance(member, 0.7, GRID, GRID), atol=1e-12
    )


@pytest.mark.parametrize("fold", [2, 5])
def test_symmetric_priors_add_the_correlation_at_every_turn(fold):
    plain, symmetric = (
        next(
            m
            for m in ModelAverage(SMALL, MEAN, 200).members
            if m.fold == n and m.kernel.length_scale == 0.8
        )
        for n in (1, fold)
    )
    frequency = np.arange(201)

    def kernel(member, angle):
        weight = np.where(frequency == 0, 1.0, 2.0) * member.variances(200, 1e-12)
        return np.cos(np.multiply.outer(angle, frequency)) @ weight

    turned = sum(kernel(plain, GRID + TWO_PI * m / fold) for m in range(fold))
    np.testing.assert_allclose(kernel(symmetric, GRID), turned, atol=1e-9)


def test_weights_are_those_of_the_dense_evidence():
    average = ModelAverage(SMALL, MEAN, ORDER)
    angle, radius, std = measurements(30)
    dense = np.array(
        [
            multivariate_normal(
                np.full(30, MEAN),
                covariance(m, SMALL.prior_mean_std, angle, angle) + np.diag(std**2),
            ).logpdf(radius)
            + np.log(m.probability)
            for m in average.members
        ]
    )
    expected = np.exp(dense - dense.max())
    np.testing.assert_allclose(
        average.given(angle, radius, std).weights, expected / expected.sum(), rtol=1e-6
    )


def test_draws_of_each_prior_have_the_moments_of_its_dense_posterior():
    average = ModelAverage(SMALL, MEAN, ORDER)
    angle, radius, std = measurements(20)
    posterior = average.given(angle, radius, std)
    ends = np.concatenate([[0.0], np.cumsum(posterior.weights)])
    features = average.basis.at(GRID)
    for index, member in enumerate(average.members):
        if posterior.weights[index] < 1e-9:
            continue
        middle = np.full(2 * average.basis.size, 0.5 * (ends[index] + ends[index + 1]))
        # Unit vectors and their opposites as normals: mean and covariance come out exactly.
        unit = np.sqrt(average.basis.size) * np.vstack(
            [np.eye(average.basis.size), -np.eye(average.basis.size)]
        )
        drawn = posterior.surfaces(features, posterior.draw(middle, unit))
        prior = covariance(member, SMALL.prior_mean_std, GRID, GRID)
        cross = covariance(member, SMALL.prior_mean_std, GRID, angle)
        gram = covariance(member, SMALL.prior_mean_std, angle, angle) + np.diag(std**2)
        mean = MEAN + cross @ np.linalg.solve(gram, radius - MEAN)
        spread = prior - cross @ np.linalg.solve(gram, cross.T)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=1e-8)
        np.testing.assert_allclose(
            (drawn - mean).T @ (drawn - mean) / len(drawn), spread, atol=1e-7
        )


def test_without_measurements_the_weights_are_the_prior_ones():
    average = ModelAverage(SMALL, MEAN, ORDER)
    nothing = np.zeros(0)
    weights = average.given(nothing, nothing, nothing).weights
    np.testing.assert_allclose(weights, [m.probability for m in average.members], rtol=1e-12)
    assert weights[:4].sum() == pytest.approx(1.0 - SMALL.symmetry_probability)


def test_symmetry_is_found_once_more_than_a_period_has_been_seen():
    average = ModelAverage(LearnedPriorSettings(), MEAN)
    angle = np.linspace(0.0, 3.0, 120)
    posterior = average.given(angle, 5.0 + np.cos(5 * angle), np.full(120, 0.1))
    found = sum(w for w, m in zip(posterior.weights, posterior.members, strict=True) if m.fold == 5)
    assert found > 0.9


def test_one_contrary_measurement_refutes_a_symmetry_without_nan():
    average = ModelAverage(LearnedPriorSettings(), MEAN)
    angle = np.append(np.linspace(0.0, 3.0, 120), 5.0)
    radius = np.append(5.0 + np.cos(5 * angle[:-1]), 7.9)
    posterior = average.given(angle, radius, np.full(121, 0.01))
    assert np.isfinite(posterior.weights).all()
    assert posterior.weights.sum() == pytest.approx(1.0)
    assert (
        sum(w for w, m in zip(posterior.weights, posterior.members, strict=True) if m.fold == 5)
        < 1e-6
    )


@settings(max_examples=25, deadline=None)
@given(
    data=st.lists(
        st.tuples(st.floats(0.0, 6.28), st.floats(0.0, 20.0), st.floats(1e-12, 10.0)),
        min_size=0,
        max_size=40,
    )
)
def test_whatever_is_measured_weights_and_draws_are_finite(data):
    angle, radius, std = np.array(data, dtype=float).reshape(-1, 3).T
    average = ModelAverage(SMALL, MEAN, ORDER)
    posterior = average.given(angle, radius, std)
    assert posterior.weights.min() >= 0.0
    assert posterior.weights.sum() == pytest.approx(1.0)
    normal = np.random.default_rng(0).standard_normal((3, average.basis.size))
    assert np.isfinite(posterior.draw(np.array([0.0, 0.5, 0.999]), normal)).all()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"prior_length_scales": ()}, "prior_length_scales: has 0 numbers, must be 1 to 10"),
        ({"prior_kernel_stds": (1.0,) * 11}, "prior_kernel_stds: has 11 numbers, must be 1 to 10"),
        ({"prior_symmetries": (2.5,)}, "prior_symmetries.*whole numbers"),
        ({"prior_symmetries": (1.0,)}, "prior_symmetries.*>= 2"),
        ({"symmetry_probability": 1.0}, "symmetry_probability.*< 1"),
        ({"prior_smoothness": "3/2,blue"}, "smoothness: 'blue'"),
        ({"prior_kernel_stds": (0.0,)}, "prior_kernel_stds.*>= 1e-12"),
    ],
)
def test_families_that_make_no_sense_are_refused(changes, text):
    with pytest.raises(SettingError, match=text):
        LearnedPriorSettings(**changes)


def test_without_symmetries_no_prior_is_symmetric():
    family = ModelAverage(LearnedPriorSettings(prior_symmetries=()), MEAN).members
    assert {m.fold for m in family} == {1}
    assert sum(m.probability for m in family) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_measurements_of_any_number_type_are_those_numbers(kind):
    average = ModelAverage(LearnedPriorSettings(), 5.0)
    measured = np.array([0, 1, 3]), np.array([4, 5, 4]), np.ones(3)
    one, other = (
        average.given(*(values.astype(of) for values in measured)) for of in (kind, np.float64)
    )
    np.testing.assert_array_equal(one.weights, other.weights)
