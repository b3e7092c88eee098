"""The polar functions of the true shapes."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.world.objects import NAMED_POLYGONS, Ellipse, Flower, Polygon, Spline, Square

TWO_PI = 2 * math.pi
ANGLES = np.linspace(-7.0, 14.0, 1001)
SHAPES = [
    Ellipse(6, 4),
    Ellipse(5, 5),
    Flower(5, 1.0, 5.0),
    Flower(1, 2.0, 5.0),
    Square(8),
    *NAMED_POLYGONS.values(),
    Spline((0.3, 1.0, 2.5, 4.0, 5.5), (4.0, 5.0, 6.0, 5.5, 4.5)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_every_shape_is_periodic_positive_continuous_and_broadcasts(shape):
    radius = shape.radius(ANGLES)
    assert radius.shape == ANGLES.shape
    assert (radius > 0).all()
    np.testing.assert_allclose(shape.radius(ANGLES + TWO_PI), radius, rtol=1e-9)
    np.testing.assert_allclose(shape.radius(ANGLES - 3 * TWO_PI), radius, rtol=1e-9)
    np.testing.assert_allclose(shape.radius(TWO_PI - 1e-9), shape.radius(0.0), atol=1e-6)
    np.testing.assert_allclose(shape.radius(-1e-17), shape.radius(0.0))
    assert np.abs(np.diff(shape.radius(np.linspace(0, TWO_PI, 100_001)))).max() < 5e-3
    assert np.shape(shape.radius(np.zeros((2, 3)))) == (2, 3)
    assert np.shape(shape.radius(1.0)) == ()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_corners_are_where_the_slope_jumps_and_nowhere_else(shape):
    corners = shape.corners()
    assert ((corners >= 0) & (corners < TWO_PI)).all()
    assert (np.diff(corners) > 0).all()
    grid = np.linspace(0.0, TWO_PI, 4000, endpoint=False) + 1e-4
    step = 1e-5
    bend = (
        np.abs(shape.radius(grid + step) - 2 * shape.radius(grid) + shape.radius(grid - step))
        / step
    )
    # 4 2 4 lie on one line
    straight = [5 * math.pi / 3] if shape == NAMED_POLYGONS["convex"] else []
    for angle in corners:
        if any(abs(angle - a) < 1e-9 for a in straight):
            continue
        jump = (
            abs(
                float(
                    shape.radius(angle + step)
                    - 2 * shape.radius(angle)
                    + shape.radius(angle - step)
                )
            )
            / step
        )
        assert jump > 0.05
    far = np.array(
        [min([abs(oracles.signed(a - c)) for c in corners] or [9.0]) > 2 * step for a in grid]
    )
    assert bend[far].max() < 0.05


@given(st.floats(0, TWO_PI))
def test_ellipse_points_fulfil_its_equation(phi):
    r = float(Ellipse(a=6.0, b=4.0).radius(phi))
    assert (r * math.cos(phi) / 6.0) ** 2 + (r * math.sin(phi) / 4.0) ** 2 == pytest.approx(1.0)


@given(st.floats(-7, 7), st.integers(1, 9), st.floats(0.0, 3.0))
def test_flower_is_a_cosine_around_its_mean(phi, n, a):
    assert float(Flower(n, a, 5.0).radius(phi)) == pytest.approx(
        5.0 + a * math.cos(n * phi), abs=1e-9
    )


@given(st.floats(0, TWO_PI), st.sampled_from([4.0, 8.0]))
def test_square_points_lie_on_its_sides(phi, width):
    r = float(Square(width).radius(phi))
    assert max(abs(r * math.cos(phi)), abs(r * math.sin(phi))) == pytest.approx(width / 2)


def test_square_has_its_corners_on_the_diagonals():
    np.testing.assert_allclose(Square(4.0).corners(), math.pi / 4 + np.arange(4) * math.pi / 2)
    np.testing.assert_allclose(Square(4.0).radius(Square(4.0).corners()), 2 * math.sqrt(2))


@pytest.mark.parametrize(
    ("name", "radii"),
    [
        ("diamond", (3, 4, 6, 4)),
        ("convex", (4, 8, 6, 8, 4, 2)),
        ("concave", (5, 8, 4, 3, 8, 7, 7, 5, 3, 7)),
        ("star", (5, 8, 4, 6, 2, 7, 4, 7, 2, 8)),
    ],
)
def test_named_polygons_have_the_vertices_of_the_thesis(name, radii):
    polygon = NAMED_POLYGONS[name]
    np.testing.assert_allclose(
        polygon.corners(), np.arange(len(radii)) * TWO_PI / len(radii), atol=1e-12
    )
    np.testing.assert_allclose(polygon.radius(polygon.corners()), radii)
    assert polygon == Polygon.equally_spaced(tuple(map(float, radii)))


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(3, 40), st.floats(0.0, TWO_PI))
def test_polygon_edges_are_straight(seed, n, phi):
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(0.5, 1.0, n)
    angles = np.cumsum(gaps) / gaps.sum() * TWO_PI - 0.5 * TWO_PI * gaps[0] / gaps.sum()
    radii = rng.uniform(1.0, 8.0, n)
    polygon = Polygon(tuple(angles.tolist()), tuple(radii.tolist()))
    vertices = [(r * math.cos(a), r * math.sin(a)) for a, r in zip(angles, radii, strict=True)]
    assert float(polygon.radius(phi)) == pytest.approx(
        oracles.first_crossing(vertices, 0.0, 0.0, phi), rel=1e-9
    )


def test_spline_goes_through_its_points_and_is_smooth_across_zero():
    angles, radii = (0.3, 1.0, 2.5, 4.0, 5.5), (4.0, 5.0, 6.0, 5.5, 4.5)
    spline = Spline(angles, radii)
    np.testing.assert_allclose(spline.radius(angles), radii, rtol=1e-12)
    assert len(spline.corners()) == 0
    for where in (0.0, 0.3, 2.5):
        h = 1e-4
        left = (spline.radius(where) - spline.radius(where - h)) / h
        right = (spline.radius(where + h) - spline.radius(where)) / h
        assert float(left) == pytest.approx(float(right), abs=0.01)


def test_spline_through_a_circle_is_the_circle():
    angles = tuple((np.arange(12) * TWO_PI / 12).tolist())
    np.testing.assert_allclose(Spline(angles, (5.0,) * 12).radius(ANGLES), 5.0)


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: Ellipse(0.0, 4.0), "a"),
        (lambda: Ellipse(6.0, -1.0), "b"),
        (lambda: Flower(0), "frequency"),
        (lambda: Flower(2.5), "frequency"),
        (lambda: Flower(2, -1.0), "amplitude"),
        (lambda: Square(0.0), "width"),
        (lambda: Square(math.nan), "width"),
    ],
)
def test_shape_parameters_outside_their_range_are_refused(build, word):
    with pytest.raises(SettingError, match=word):
        build()
