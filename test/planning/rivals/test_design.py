"""Optimal design: the three reductions against the dense covariance and the likelihood of the
Gaussian process.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_bench.rivals.design import reduction
from nbv_planner.gp.dense import dense_covariance
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.star2d.belief import uniform_grid

GRID, KERNEL, STD = uniform_grid(48), PeriodicMatern(), 0.2


def covariances(measured: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Before and after one measurement at each of the angles seen, by the dense Gaussian
    process.
    """
    old = GRID[measured]
    both = np.concatenate([old, GRID[seen]])
    return tuple(
        dense_covariance(KERNEL, GRID, angle, np.full(len(angle), STD)) for angle in (old, both)
    )


MASKS = st.tuples(st.integers(0, 47), st.integers(1, 20)).map(
    lambda r: (np.arange(48) - r[0]) % 48 < r[1]
)


@settings(max_examples=30, deadline=None)
@given(MASKS, MASKS)
def test_the_reductions_are_those_of_the_dense_posterior(measured, seen):
    before, after = covariances(measured, seen)
    expected = {
        "A": np.trace(before) - np.trace(after),
        "E": np.linalg.eigvalsh(before)[-1] - np.linalg.eigvalsh(after)[-1],
    }
    for criterion, value in expected.items():
        assert reduction(before, seen, STD**2, criterion) == pytest.approx(value, abs=1e-8)


@settings(max_examples=30, deadline=None)
@given(MASKS, MASKS)
def test_d_is_the_log_det_ratio_and_twice_the_mutual_information(measured, seen):
    """H(y) - H(y|f) of the measurements y is ½ ln det(Σ_ss/σ² + I), and ln det falls by twice
    that.
    """
    before, after = covariances(measured, seen)
    found = reduction(before, seen, STD**2, "D")
    number = int(seen.sum())
    entropy_of_y = 0.5 * np.linalg.slogdet(before[np.ix_(seen, seen)] + STD**2 * np.eye(number))[1]
    mutual = entropy_of_y - 0.5 * number * np.log(STD**2)
    assert found == pytest.approx(2.0 * mutual, rel=1e-9)
    jitter = 1e-9 * np.eye(48)  # both covariances are next to singular; what is common cancels
    ratio = np.linalg.slogdet(before + jitter)[1] - np.linalg.slogdet(after + jitter)[1]
    assert found == pytest.approx(ratio, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("criterion", "ADE")
def test_more_measurements_reduce_more_and_none_reduce_nothing(criterion):
    prior = covariances(np.zeros(48, dtype=bool), np.zeros(48, dtype=bool))[0]
    values = [
        reduction(prior, np.arange(48) < number, STD**2, criterion) for number in range(0, 48, 6)
    ]
    assert values[0] == 0.0
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] > 0.0
