"""The rows of the mapper's benchmark are measured, whatever the times are."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.core import mapper_row, measured_contour
from benchmarks.measure import megabytes_of


@pytest.mark.parametrize("nu", ["1/2", "3/2", "5/2"])
def test_a_row_compares_with_the_dense_solution(nu):
    row = mapper_row(nu, 64, 120)
    assert (row["smoothness"], row["grid"], row["measurements"], row["solver"]) == (
        nu,
        64,
        120,
        "fast",
    )
    assert row["difference"] < 1e-9
    assert row["ratio"] == row["dense_update"] / row["update"]
    assert min(row[name] for name in ("update", "samples", "megabytes")) > 0.0


def test_a_row_of_many_measurements_has_no_dense_solution_to_compare_with():
    row = mapper_row("3/2", 64, 9000)
    assert row["solver"] == "condensed"
    assert row["dense_update"] is row["ratio"] is row["difference"] is None


def test_memory_is_that_of_what_is_kept():
    def build():
        np.zeros(1_000_000)
        return np.zeros(500_000)

    assert megabytes_of(build) == pytest.approx(4.0, rel=0.05)


def test_the_contour_is_the_same_every_time():
    for first, second in zip(measured_contour(10), measured_contour(10), strict=True):
        np.testing.assert_array_equal(first, second)
