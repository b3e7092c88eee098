"""The table of covariances: the kernel's own numbers, whatever was asked before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.gp import dense
from nbv_planner.gp.dense import CovarianceTable, dense_posterior
from nbv_planner.gp.kernels import PeriodicMatern

GRID = np.linspace(0.0, 2 * np.pi, 40)


class CountingKernel(PeriodicMatern):
    """Counts how many covariances are evaluated."""

    evaluated = 0

    def __call__(self, difference):
        type(self).evaluated += np.size(difference)
        return super().__call__(difference)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_covariances_are_those_of_the_kernel_to_the_last_bit(seed, requests):
    rng, kernel = np.random.default_rng(seed), PeriodicMatern()
    table, places = CovarianceTable(kernel, GRID), rng.uniform(0.0, 2 * np.pi, 30)
    for _ in range(requests):
        angle = np.unique(rng.choice(places, rng.integers(1, 30)))
        gram, cross = table.at(angle)
        np.testing.assert_array_equal(gram, kernel(angle[:, None] - angle))
        np.testing.assert_array_equal(cross, kernel(angle[:, None] - GRID))


def test_what_is_done_to_an_answer_does_not_change_the_next_one():
    """The dense solution adds noise to the diagonal and factors in place."""
    table, angle = CovarianceTable(PeriodicMatern(), GRID), np.array([0.5, 1.0, 4.0])
    gram, cross = table.at(angle)
    expected = gram.copy(), cross.copy()
    gram[:], cross[:] = 0.0, 0.0
    for got, want in zip(table.at(angle), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_known_angles_are_not_evaluated_again_until_the_table_is_cleared():
    table, angle = CovarianceTable(CountingKernel(), GRID), np.array([0.5, 1.0, 4.0])
    table.at(angle)
    CountingKernel.evaluated = 0
    table.at(angle[1:])
    assert CountingKernel.evaluated == 0
    table.clear()
    table.at(angle)
    assert CountingKernel.evaluated > 0


@pytest.mark.parametrize("most", [0, 20, 10_000])
def test_posterior_does_not_depend_on_what_the_table_has_kept(most, monkeypatch):
    monkeypatch.setattr(dense, "_MOST_KEPT", most)
    rng, kernel = np.random.default_rng(0), PeriodicMatern()
    table = CovarianceTable(kernel, GRID)
    angle, radius = rng.uniform(0.0, 2 * np.pi, 60), rng.uniform(3.0, 7.0, 60)
    for n in (5, 25, 60):
        data = angle[:n], radius[:n], np.full(n, 0.2)
        for got, want in zip(
            dense_posterior(kernel, 5.0, GRID, *data, table=table),
            dense_posterior(kernel, 5.0, GRID, *data),
            strict=True,
        ):
            np.testing.assert_array_equal(got, want)
