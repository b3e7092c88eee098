"""The thesis's own search for surface points: its published counts, a trace by hand, and how it
differs.
"""

from __future__ import annotations

import numpy as np
import pytest

from nbv_planner.errors import ContourError
from nbv_planner.geometry import TWO_PI
from nbv_planner.world.objects import Polygon, bisected_surface_points, parse_object, surface_points
from nbv_planner.world.objects.text import THESIS_OBJECTS
from nbv_planner.world.scene import Scene

COUNTS = {
    "ellipse": [400, 401, 401, 400],
    "flower": [412, 529, 432, 520, 480, 561, 489, 672, 593, 928],
    "square": [160, 240, 320, 400],
    "polygon": [340, 448, 534, 625],
}
"""Numbers of surface points in the published runs, h = 0.1 m."""

CASES = [
    (text, count)
    for family, texts in THESIS_OBJECTS.items()
    for text, count in zip(texts, COUNTS[family], strict=True)
]


@pytest.mark.parametrize(("text", "count"), CASES)
def test_numbers_are_the_published_ones(text, count):
    points = bisected_surface_points(parse_object(text, Scene()), 0.1)
    assert len(points) == count
    assert points.angle[0] == 0.0
    assert (np.diff(points.angle) > 0.0).all()
    assert points.angle[-1] < TWO_PI


def test_first_points_of_a_circle_are_those_of_the_halvings_by_hand():
    """Brackets of 0.1 rad on a circle of 5 m: six halvings down to a chord of 7.8 mm."""
    points = bisected_surface_points(parse_object("ellipse:a=5,b=5", Scene()), 0.1)
    expected = [0.0, 0.0203125, 0.040625, 0.06015625, 0.08046875, 0.10078125, 0.1203125]
    assert points.angle[:7].tolist() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("text", [text for text, _ in CASES if text != "polygon:star"])
def test_points_lie_beside_the_exact_middles(text):
    shape = parse_object(text, Scene())
    found, exact = bisected_surface_points(shape, 0.1).angle, surface_points(shape, 0.1).angle
    assert len(found) - len(exact) in (0, 1)  # one more: the stretch across 0, a little below 2π
    assert np.abs(found[: len(exact)] - exact).max() < 2e-3


def test_star_lacks_three_points_at_one_tip():
    shape = parse_object("polygon:star", Scene())
    found, exact = bisected_surface_points(shape, 0.1).angle, surface_points(shape, 0.1).angle
    assert len(exact) - len(found) == 3
    tip = 0.9 * TWO_PI
    beside, exact_beside = (np.abs(angles - tip) < 5e-3 for angles in (found, exact))
    assert exact_beside.sum() - beside.sum() == 3


def test_surface_inside_one_pixel_is_refused():
    with pytest.raises(ContourError, match="pixel_size 40 m is too large"):
        bisected_surface_points(parse_object("ellipse:a=5,b=5", Scene()), 40.0)


def test_surface_through_the_corners_of_pixels_gets_the_exact_points():
    diamond = Polygon(
        angles=(0.0, 0.25 * TWO_PI, 0.5 * TWO_PI, 0.75 * TWO_PI), radii=(4.0, 4.0, 4.0, 4.0)
    )
    found, exact = bisected_surface_points(diamond, 0.1), surface_points(diamond, 0.1)
    np.testing.assert_array_equal(found.angle, exact.angle)
