"""The table of measurements between rooms, and what star2d makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from nbv_planner.geometry import angle_difference
from nbv_planner.star2d.measurements import polar
from nbv_planner.surface.seam import Hits


def some(number: int, seed: int, dimension: int = 2, *, spread: bool = False) -> Hits:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(number, dimension, dimension))
    return Hits(
        rng.normal(size=(number, dimension)),
        rng.uniform(0.1, 1.0, number),
        rng.normal(size=(number, dimension)) + 8.0,
        np.full(number, seed),
        *([root @ root.transpose(0, 2, 1)] if spread else []),
    )


@pytest.mark.parametrize("dimension", [2, 3])
def test_tables_are_joined_and_chosen_from_row_by_row(dimension):
    first, second = some(3, 1, dimension), some(4, 2, dimension, spread=True)
    both = Hits.together([first, second])
    assert (len(both), both.view.tolist()) == (7, [1, 1, 1, 2, 2, 2, 2])
    np.testing.assert_array_equal(both.spread[:3], 0.0)
    again = both.chosen(np.arange(7) >= 3)
    for name in ("points", "sigma", "origin", "view", "spread"):
        np.testing.assert_array_equal(getattr(again, name), getattr(second, name))
    assert not both.chosen(slice(0, 3)).spread.any()
    assert len(Hits.together([])) == 0
    assert Hits.together([first]) is first


def test_moved_hits_are_the_same_about_another_point():
    hits = some(5, 3)
    moved = hits.moved(1.0, -2.0)
    assert hits.moved(0.0, 0.0) is hits
    np.testing.assert_allclose(moved.points - moved.origin, hits.points - hits.origin)
    here, there = polar(hits), polar(moved, (1.0, -2.0))
    for name in ("angle", "radius", "tilt", "distance"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), atol=1e-12)


def test_measurements_are_angle_radius_and_slant_of_each_beam():
    hits = some(50, 4)
    found = polar(hits)
    np.testing.assert_allclose(found.radius * np.exp(1j * found.angle), hits.points @ [1.0, 1.0j])
    beam = (hits.points - hits.origin) @ [1.0, 1.0j]
    np.testing.assert_allclose(found.distance, np.abs(beam))
    np.testing.assert_allclose(
        angle_difference(found.angle + found.tilt, np.angle(beam)), 0.0, atol=1e-9
    )


def test_a_covariance_turns_into_radial_and_tangential_parts():
    hits = some(50, 5, spread=True)
    found = polar(hits)
    for number in range(50):
        cos, sin = np.cos(found.angle[number]), np.sin(found.angle[number])
        turn = np.array([[cos, sin], [-sin, cos]])
        (radial, mixed), (_, tangential) = turn @ hits.spread[number] @ turn.T
        np.testing.assert_allclose(found.spread[number], [radial, mixed, tangential])
