"""Samples down the tree, and the tree at the edges of what floating-point numbers hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from measurement_sets import sample

from nbv_planner.gp.arcs import Arcs
from nbv_planner.gp.circle_solver import FastPosterior
from nbv_planner.gp.dense import DensePosterior, dense_covariance, dense_posterior
from nbv_planner.gp.kernels import MATERN_SMOOTHNESS, PeriodicMatern
from nbv_planner.gp.tree import Pairing, Tree

TWO_PI = 2.0 * np.pi
GRIDS = {
    "uniform": TWO_PI * np.arange(101) / 101,
    "thesis": np.linspace(0.0, TWO_PI, 65),
    "any order": np.random.default_rng(5).uniform(-7.0, 14.0, 40),
    "three": np.array([0.5, 1.0, 4.0]),
    "one": np.array([2.0]),
}


def posterior_of(kernel, grid, data, most=8192):
    return FastPosterior.none(kernel, 5.0, grid, most).adding(*data)


def linear_map(posterior):
    """The matrix that takes standard normals to samples, column by column."""
    normals = np.eye(posterior.normals_per_sample)
    return posterior.sample(normals).T - posterior.sample(np.zeros((1, len(normals)))).T


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("length", [0.02, 0.2, 3.0, 100.0])
@pytest.mark.parametrize("kind", ["random", "clustered", "repeated", "one arc"])
@pytest.mark.parametrize("grid", GRIDS)
def test_samples_have_exactly_the_posterior_covariance(nu, length, kind, grid):
    """L Lᵀ of the map from normals to samples is the dense posterior covariance; nothing
    statistical about it.
    """
    kernel, data = PeriodicMatern(smoothness=nu, length_scale=length), sample(kind, 60, 0.1)
    posterior = posterior_of(kernel, GRIDS[grid], data)
    root = linear_map(posterior)
    expected = dense_covariance(kernel, GRIDS[grid], data[0], data[2])
    np.testing.assert_allclose(root @ root.T, expected, rtol=0, atol=1e-8)
    mean, std = posterior.mean_and_std()
    np.testing.assert_allclose(
        posterior.sample(np.zeros((1, root.shape[1])))[0], mean, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(np.sum(root**2, axis=1), std**2, rtol=0, atol=1e-10)


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
def test_samples_before_the_first_measurement_have_the_covariance_of_the_kernel(nu):
    kernel, grid = PeriodicMatern(smoothness=nu), GRIDS["uniform"]
    root = linear_map(FastPosterior.none(kernel, 5.0, grid, 8192))
    np.testing.assert_allclose(root @ root.T, kernel(grid[:, None] - grid), rtol=0, atol=1e-10)


@pytest.mark.parametrize("nu", ["3/2", "5/2"])
def test_condensed_samples_have_nearly_the_posterior_covariance(nu):
    kernel, data, grid = (
        PeriodicMatern(smoothness=nu),
        sample("random", 3000, 0.05),
        GRIDS["uniform"],
    )
    posterior = posterior_of(kernel, grid, data, most=1000)
    assert posterior.solver == "condensed"
    root = linear_map(posterior)
    np.testing.assert_allclose(
        root @ root.T, dense_covariance(kernel, grid, data[0], data[2]), rtol=0, atol=1e-4
    )


def test_dense_samples_have_the_posterior_covariance_too():
    kernel, data, grid = (
        PeriodicMatern(smoothness="5/2"),
        sample("random", 50, 0.1),
        GRIDS["thesis"],
    )
    posterior = DensePosterior(kernel, 5.0, grid).adding(*data)
    root = linear_map(posterior)
    np.testing.assert_allclose(
        root @ root.T, dense_covariance(kernel, grid, data[0], data[2]), rtol=0, atol=1e-8
    )


def test_samples_of_both_ends_of_the_thesis_grid_are_equal():
    posterior = posterior_of(PeriodicMatern(), GRIDS["thesis"], sample("random", 20, 0.1))
    drawn = posterior.sample(
        np.random.default_rng(0).standard_normal((5, posterior.normals_per_sample))
    )
    np.testing.assert_array_equal(drawn[:, 0], drawn[:, -1])


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("kind", ["random", "one arc", "on the grid", "clustered"])
def test_bringing_the_tree_up_to_date_gives_the_same_bits_as_combining_all_cells(nu, grid, kind):
    posterior = FastPosterior.none(PeriodicMatern(smoothness=nu), 5.0, GRIDS[grid], 8192)
    for seed, size in enumerate([30, 1, 2, 7]):
        posterior = posterior.adding(*sample(kind, size, 0.1, seed))
        if seed != 1:  # once, two updates must be made up for
            posterior.mean_and_std()
    grown, anew = posterior.tree, Tree.over(posterior.cells, posterior.pairing)
    normals = np.random.default_rng(0).standard_normal((2, grown.size))
    np.testing.assert_array_equal(grown.mean(), anew.mean())
    np.testing.assert_array_equal(grown.variance(), anew.variance())
    np.testing.assert_array_equal(grown.sample(normals), anew.sample(normals))


def test_an_update_combines_only_what_lies_above_changed_cells(monkeypatch):
    posterior = posterior_of(PeriodicMatern(), GRIDS["uniform"], sample("random", 50, 0.1))
    posterior.mean()
    combined = []
    joined = Arcs.joined
    monkeypatch.setattr(
        Arcs, "joined", lambda one, after: combined.append(len(one)) or joined(one, after)
    )
    # a single pair is combined twice over
    posterior.adding(np.array([1.0]), np.array([6.0]), np.array([0.1])).mean()
    levels = len(posterior.pairing.sizes) - 1
    assert combined[-levels:] == [2] * levels


# ---------------------------------------------------------------------------------- numerical edges

close_angles = st.sampled_from(
    [1.0, 1.0 + 2.3e-16, 1.0 + 1e-15, 1.0 + 1e-12, 1.0 + 1e-6, 1e-300, 0.0, TWO_PI]
)


def logarithmic(low, high):
    return st.floats(low, high).map(lambda x: 10.0**x)


rows = st.lists(
    st.tuples(
        st.one_of(close_angles, st.floats(0.0, TWO_PI)), st.floats(2.0, 8.0), logarithmic(-6.0, 1.0)
    ),
    min_size=1,
    max_size=30,
)
kernels = st.builds(
    PeriodicMatern,
    smoothness=st.sampled_from(MATERN_SMOOTHNESS),
    length_scale=logarithmic(-3.0, 2.0),
    kernel_std=logarithmic(-2.0, 1.0),
)
odd_grid = np.array([0.0, 1e-300, 1.0, 1.0 + 1e-15, 1.0 + 1e-9, 1.001, 3.0, TWO_PI - 1e-13, TWO_PI])


@settings(max_examples=300)
@given(kernels, rows, st.sampled_from([odd_grid, GRIDS["uniform"]]))
@example(
    PeriodicMatern(length_scale=100.0, smoothness="5/2"),
    [(1.0, 5.0, 1e-6), (1.0 + 1e-15, 5.0, 1e-6)],
    odd_grid,
)
def test_any_angles_length_scales_and_noises_give_numbers(kernel, drawn, grid):
    """Also with more information than is supported: then they are merely not exact."""
    data = tuple(np.array(column) for column in zip(*drawn, strict=True))
    for most in (8192, 20):
        posterior = posterior_of(kernel, grid, data, most)
        mean, std = posterior.mean_and_std()
        assert np.isfinite(mean).all()
        assert np.all((std >= 0.0) & (std <= kernel.kernel_std))
        normals = np.random.default_rng(0).standard_normal((2, posterior.normals_per_sample))
        assert np.isfinite(posterior.sample(normals)).all()


@pytest.mark.parametrize("nu", MATERN_SMOOTHNESS)
@pytest.mark.parametrize("length", [1e-3, 0.2, 100.0])
@pytest.mark.parametrize("noise", [0.01, 10.0])
def test_nearly_equal_grid_angles_agree_with_the_dense_solution(nu, length, noise):
    kernel, data = PeriodicMatern(smoothness=nu, length_scale=length), sample("random", 40, noise)
    for fast, dense in zip(
        posterior_of(kernel, odd_grid, data).mean_and_std(),
        dense_posterior(kernel, 5.0, odd_grid, *data),
        strict=True,
    ):
        np.testing.assert_allclose(fast, dense, rtol=0, atol=1e-6)


@given(st.lists(st.floats(-10.0, 20.0), min_size=1, max_size=80), st.sampled_from([0.0, 0.1, 7.0]))
def test_the_plan_of_a_grid_names_each_cell_once_and_its_neighbour(grid, shortest):
    pairing = Pairing.of(np.array(grid), shortest)
    assert sorted(pairing.order) == list(range(len(pairing)))
    np.testing.assert_array_equal(pairing.order[pairing.place], np.arange(len(pairing)))
    assert len(pairing.following) == len(pairing.sizes) - 1
    offset = np.abs(np.mod(pairing.node[pairing.back] - np.array(grid) + 1.0, TWO_PI) - 1.0)
    assert offset.max() < 1e-9
    assert (np.diff(pairing.node) > 0.0).all()
    assert pairing.sizes[-1] == 1 or pairing.sizes[-1] <= 16
