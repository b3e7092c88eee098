"""Surface points: the published counts, and what one point per pixel means."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.world.objects import (
    THESIS_OBJECTS,
    Ellipse,
    Flower,
    Polygon,
    Square,
    parse_object,
    surface_points,
)
from nbv_planner.world.scene import Scene

SCENE = Scene()
TWO_PI = 2 * math.pi
COUNTS = {
    "ellipse": (400, 401, 401, 400),
    "flower": (412, 529, 432, 520, 480, 561, 489, 672, 593, 928),
    "square": (160, 240, 320, 400),
    "polygon": (340, 448, 534, 625),
}
CASES = [
    (t, n) for family in COUNTS for t, n in zip(THESIS_OBJECTS[family], COUNTS[family], strict=True)
]


def pixels_of(points, h=0.1) -> list[tuple[int, int]]:
    x, y = points.radius * np.cos(points.angle), points.radius * np.sin(points.angle)
    return [oracles.pixel_of(float(a), float(b), h) for a, b in zip(x, y, strict=True)]


def visited_pixels(shape, h, steps=400_000) -> dict[tuple[int, int], int]:
    """Pixels that a dense sampling of the curve falls into, and how often."""
    phi = (np.arange(steps) + 0.5) * (TWO_PI / steps)
    r = shape.radius(phi)
    columns, rows = np.floor(r * np.cos(phi) / h + 0.5), np.floor(r * np.sin(phi) / h + 0.5)
    keys, counts = np.unique(np.stack([columns, rows]).astype(int), axis=1, return_counts=True)
    return dict(zip(map(tuple, keys.T.tolist()), counts.tolist(), strict=True))


def test_the_22_objects_of_the_thesis_are_there():
    assert {family: len(texts) for family, texts in THESIS_OBJECTS.items()} == {
        "ellipse": 4,
        "flower": 10,
        "square": 4,
        "polygon": 4,
    }
    assert len(CASES) == 22


@pytest.mark.parametrize(("text", "count"), CASES)
def test_number_of_surface_points_is_that_of_the_thesis_within_one_percent(text, count):
    assert abs(len(surface_points(parse_object(text, SCENE), 0.1)) - count) <= 0.01 * count


@pytest.mark.parametrize("text", [text for text, _ in CASES])
def test_points_rise_in_angle_start_at_zero_and_lie_on_the_curve(text):
    shape = parse_object(text, SCENE)
    points = surface_points(shape, 0.1)
    assert points.angle[0] == 0.0
    assert (np.diff(points.angle) > 0).all()
    assert points.angle[-1] < TWO_PI
    np.testing.assert_allclose(points.radius, shape.radius(points.angle), rtol=1e-12)


@pytest.mark.parametrize("text", [text for text, _ in CASES if not text.startswith("square")])
def test_every_pixel_that_the_curve_visits_has_its_point_and_no_other_has(text):
    shape = parse_object(text, SCENE)
    visited = visited_pixels(shape, 0.1)
    have = set(pixels_of(surface_points(shape, 0.1)))
    # a corner clipped by less than 50 of 400 000 samples is a matter of rounding
    assert not {pixel for pixel, number in visited.items() if number > 50} - have
    missing_from_sampling = have - set(visited)
    assert len(missing_from_sampling) <= 2


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(3, 12), st.sampled_from([0.1, 0.23, 0.5]))
def test_one_point_per_visit_on_random_polygons(seed, n, h):
    """The sequence of pixels along a densely sampled curve, against the pixels of the points."""
    rng = np.random.default_rng(seed)
    polygon = Polygon.equally_spaced(tuple(rng.uniform(2.0, 8.0, n).tolist()))
    points = surface_points(polygon, h)
    phi = (np.arange(100_000) + 0.5) * (TWO_PI / 100_000)
    r = polygon.radius(phi)
    index = np.stack(
        [np.floor(r * np.cos(phi) / h + 0.5), np.floor(r * np.sin(phi) / h + 0.5)], axis=1
    )
    visits = 1 + int((np.diff(index, axis=0) != 0).any(axis=1).sum())
    # the first pixel is entered before φ = 0 and left again after it
    assert abs(len(points) - visits) <= 2 + 0.01 * visits
    walk = pixels_of(points, h)
    repeated = sum(a == b for a, b in zip(walk[1:], walk[:-1], strict=True))
    assert repeated <= 2 + 0.005 * len(walk)


@pytest.mark.parametrize(
    "text", ["ellipse:a=6,b=4", "flower:frequency=8,amplitude=2", "polygon:star"]
)
def test_each_point_is_in_the_middle_of_its_stretch(text):
    """Half way, in angle, between entering the pixel and leaving it."""
    shape = parse_object(text, SCENE)
    points = surface_points(shape, 0.1)
    for angle in points.angle[1::25]:
        own = float(shape.radius(angle))
        pixel = oracles.pixel_of(own * math.cos(angle), own * math.sin(angle), 0.1)

        def leaves(direction, pixel=pixel, angle=angle):
            step, reach = 1e-5, 0.0
            while True:
                phi = angle + direction * (reach + step)
                r = float(shape.radius(phi))
                if oracles.pixel_of(r * math.cos(phi), r * math.sin(phi), 0.1) != pixel:
                    return reach
                reach += step

        assert leaves(+1) == pytest.approx(leaves(-1), abs=2e-4)


@pytest.mark.parametrize("width", [4.1, 5.3, 7.9, 4.1000000001, 4.0999999999])
def test_square_with_an_edge_on_a_pixel_border_does_not_explode(width):
    """Half the width is an odd multiple of half a pixel: the sides run along pixel borders, up to
    rounding.
    """
    count = len(surface_points(Square(width), 0.1))
    around = 4 * round(width / 0.1)
    assert abs(count - around) <= 4 + 0.01 * around


@pytest.mark.parametrize("h", [0.05, 0.1, 0.2, 0.4])
def test_number_of_points_of_a_circle_is_its_l1_length_in_pixels(h):
    assert len(surface_points(Ellipse(5, 5), h)) == pytest.approx(8 * 5.0 / h, rel=0.02)


def test_finer_pixels_give_more_points():
    counts = [len(surface_points(Flower(3, 1.0, 5.0), h)) for h in (0.4, 0.2, 0.1, 0.05)]
    assert counts == sorted(counts)
    assert counts[-1] == pytest.approx(8 * counts[0], rel=0.05)
