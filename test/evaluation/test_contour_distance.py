"""The Hausdorff distance of contours against shapes whose distance is known, and against all
pairs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.episode.judge import SampledContour, hausdorff_distance
from nbv_planner.world.objects import Ellipse, Flower, Square
from nbv_planner.world.objects.true_shapes import Polygon


def all_pairs(first: SampledContour, second: SampledContour) -> float:
    distance = np.hypot(*(first.points[:, None, :] - second.points[None, :, :]).T)
    return float(max(distance.min(axis=0).max(), distance.min(axis=1).max()))


def test_samples_stand_at_equal_distances_along_the_contour():
    contour = SampledContour.of_shape(Square(width=8.0), samples=320)
    assert contour.spacing == pytest.approx(0.1)
    assert np.abs(contour.points).max(axis=1) == pytest.approx(np.full(320, 4.0))
    steps = np.hypot(*np.diff(contour.points, axis=0).T)
    assert steps == pytest.approx(np.full(319, 0.1))


def test_concentric_circles_are_apart_by_the_difference_of_their_radii():
    outer, inner = (SampledContour.of_shape(Ellipse(a=r, b=r)) for r in (6.0, 4.5))
    assert hausdorff_distance(outer, inner) == pytest.approx(1.5, abs=1e-4)


def test_a_square_is_farthest_from_its_inscribed_circle_at_the_corners():
    square, circle = (
        SampledContour.of_shape(Square(width=8.0)),
        SampledContour.of_shape(Ellipse(a=4.0, b=4.0)),
    )
    found = hausdorff_distance(square, circle)
    assert found == pytest.approx(4.0 * (math.sqrt(2.0) - 1.0), abs=square.spacing)
    assert found == hausdorff_distance(circle, square)


def test_one_spike_is_found_from_both_sides():
    """The circle's points all have a near neighbour on the spiked contour, but not the other way
    round.
    """
    angle = np.arange(2000) * (2 * math.pi / 2000)
    radius = np.where(np.abs(angle - 2.0) < 0.004, 7.0, 4.0)
    spiked, circle = (
        SampledContour.of_polar(angle, radius),
        SampledContour.of_shape(Ellipse(a=4.0, b=4.0)),
    )
    assert hausdorff_distance(circle, spiked) == pytest.approx(3.0, abs=spiked.spacing)


def test_a_contour_is_no_distance_from_itself():
    contour = SampledContour.of_shape(Flower(frequency=5, amplitude=2.0))
    assert hausdorff_distance(contour, contour) == 0.0


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(8, 203))
def test_leaving_out_samples_changes_nothing(data, samples):
    """The search looks at one sample in eight first; all pairs are the oracle."""
    radii = st.lists(st.floats(2.0, 8.0), min_size=5, max_size=9)
    first, second = (
        SampledContour.of_shape(Polygon.equally_spaced(tuple(data.draw(radii))), samples)
        for _ in range(2)
    )
    assert hausdorff_distance(first, second) == pytest.approx(all_pairs(first, second), abs=1e-12)
