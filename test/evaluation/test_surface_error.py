"""Errors of a belief against the true object, on beliefs whose errors are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from beliefs import belief_of, wavy_belief

from nbv_planner.episode.judge import surface_error
from nbv_planner.geometry import intersection_over_union
from nbv_planner.star2d.belief import once_around
from nbv_planner.world.objects import Ellipse, Flower, Square

CIRCLE = Ellipse(a=5.0, b=5.0)
FLOWER = Flower(frequency=3, amplitude=1.0)


def test_a_belief_that_is_right_has_no_error():
    belief = belief_of(
        lambda phi: FLOWER.radius(phi) - 0.1, lambda phi: FLOWER.radius(phi) + 0.1, size=1000
    )
    found = surface_error(belief, FLOWER)
    assert found.rmse == pytest.approx(0.0, abs=1e-12)
    assert found.max_error == pytest.approx(0.0, abs=1e-12)
    assert found.iou == pytest.approx(1.0)
    assert found.band_coverage == 1.0
    assert found.hausdorff < 0.03  # of two samplings of one curve


def test_errors_of_a_circle_believed_too_large():
    found = surface_error(belief_of(5.9, 6.1), CIRCLE)
    assert (found.rmse, found.max_error) == pytest.approx((1.0, 1.0))
    assert found.hausdorff == pytest.approx(1.0, abs=1e-3)
    assert found.iou == pytest.approx(25.0 / 36.0)
    assert found.band_coverage == 0.0


def test_errors_of_a_mean_radius_against_a_flower():
    """The mean of cos² is one half; a band of ±1/√2 holds half of the angles."""
    half = math.sqrt(0.5)
    found = surface_error(belief_of(5.0 - half, 5.0 + half, size=3600), FLOWER)
    assert found.rmse == pytest.approx(half)
    assert found.max_error == pytest.approx(1.0)
    assert found.band_coverage == pytest.approx(0.5, abs=0.01)


def test_intersection_over_union_of_two_squares():
    angle = np.arange(100_000) * (2 * math.pi / 100_000)
    radii = [Square(width=w).radius(angle) for w in (4.0, 6.0)]
    assert intersection_over_union(*radii) == pytest.approx(16.0 / 36.0, abs=1e-6)
    assert intersection_over_union(*radii[::-1]) == intersection_over_union(*radii)


def test_a_grid_that_holds_0_and_2_pi_counts_the_direction_once():
    """A belief that is wrong at angle 0 alone, on a grid of 9 angles of which the last is the first
    again.
    """
    grid = np.linspace(0.0, 2 * math.pi, 9)
    wrong = np.isin(np.arange(9), (0, 8))
    belief = belief_of(
        lambda phi: np.where(wrong, 6.0, 4.0), lambda phi: np.where(wrong, 8.0, 6.0), grid=grid
    )
    found = surface_error(belief, CIRCLE)
    assert found.rmse == pytest.approx(math.sqrt(4.0 / 8.0))
    assert found.band_coverage == pytest.approx(7.0 / 8.0)
    assert len(grid[once_around(belief)]) == 8
    assert once_around(wavy_belief(0)) == slice(None)


def test_beliefs_on_several_grids_are_compared_with_one_object():
    coarse, fine = belief_of(4.0, 6.0, size=50), belief_of(4.0, 6.0, size=2000)
    for belief in (coarse, fine, coarse):
        assert surface_error(belief, FLOWER).rmse == pytest.approx(math.sqrt(0.5))


def test_a_mean_below_zero_counts_as_an_empty_contour():
    found = surface_error(belief_of(-2.0, -1.0), CIRCLE)
    assert found.iou == 0.0
    assert found.max_error == pytest.approx(6.5)
    assert found.hausdorff == pytest.approx(5.0)
