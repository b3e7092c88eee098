"""Warping, the finite sum and truncation against their definitions, image by image."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import (
    FiniteSum,
    Matern,
    PeriodicMatern,
    Rbf,
    Truncated,
    Warped,
    cut_off,
)

TWO_PI = 2.0 * math.pi
BASES = [Matern(1.5, 0.2), Matern(0.5, 2.0), Matern(0.8, 1.0), Rbf(1.0)]


@pytest.mark.parametrize("base", BASES, ids=repr)
@given(st.floats(-15.0, 15.0))
def test_warped_kernel_is_the_base_at_the_chord(base, r):
    chord = math.hypot(math.cos(r) - 1.0, math.sin(r))
    assert float(Warped(base)(r)) == pytest.approx(float(base(chord)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("kappa", [0, 1, 4])
def test_finite_sum_is_the_sum_of_its_images(base, kappa):
    for r in (0.0, 0.3, -2.0, math.pi, 6.0, -TWO_PI, 9.0):
        total = oracles.image_sum(lambda s: float(base(s)), 0.0, kappa)
        expected = base.variance * oracles.image_sum(lambda s: float(base(s)), r, kappa) / total
        assert float(FiniteSum(base, kappa)(r)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 3.5])
def test_many_images_tend_to_the_infinite_sum(nu):
    r = np.linspace(0.0, TWO_PI, 30)
    summed = PeriodicMatern(f"{int(2 * nu)}/2", 1.0)(r)
    errors = [np.abs(FiniteSum(Matern(nu, 1.0), kappa)(r) - summed).max() for kappa in (0, 1, 3, 9)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-12


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize(("start", "end"), [(math.pi, TWO_PI), (0.2, 1.0), (0.0, 4.0), (1.0, 15.0)])
def test_truncation_is_the_sum_of_all_cut_images(base, start, end):
    """More images than κ change nothing: the cut-off leaves none out."""
    kernel = Truncated(base, start, end)
    assert kernel.kappa == math.ceil(end / TWO_PI)

    def cut(s):
        return oracles.smooth_cut_off(s, start, end) * float(base(s))

    for r in (0.0, 0.3, -2.0, math.pi, 6.0, -TWO_PI, 9.0):
        expected = base.variance * oracles.image_sum(cut, r, 12) / oracles.image_sum(cut, 0.0, 12)
        assert float(kernel(r)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.floats(0.0, 3.0), st.floats(0.01, 5.0), st.floats(-9.0, 9.0))
def test_cut_off_is_its_formula_symmetric_and_falls_from_one_to_zero(start, width, r):
    value = float(cut_off(r, start, start + width))
    assert value == pytest.approx(oracles.smooth_cut_off(r, start, start + width), abs=1e-12)
    assert value == float(cut_off(-r, start, start + width))
    assert float(cut_off(abs(r) + 0.1, start, start + width)) <= value


def test_cut_off_is_smooth_at_both_ends():
    r = np.linspace(0.0, 3.0, 30_001)
    slopes = np.diff(cut_off(r, 1.0, 2.0)) / np.diff(r)
    assert np.abs(np.diff(slopes)).max() < 1e-2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FiniteSum(Rbf(), -1), ["kappa", "-1", ">= 0"]),
        (lambda: Truncated(Rbf(), 2.0, 2.0), ["cut_start", "2.0", "cut_end"]),
        (lambda: Truncated(Rbf(), -0.1, 2.0), ["cut_start", "-0.1", ">= 0"]),
    ],
)
def test_impossible_parameters_are_refused(make, words):
    with pytest.raises(SettingError) as caught:
        make()
    assert all(word in str(caught.value) for word in words)
