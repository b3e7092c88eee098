"""The observation function against the published walk, point by point; one point per pixel of a
contour.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import pytest
from beliefs import wavy_belief
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbv_planner.world.objects import THESIS_OBJECTS, parse_object, surface_points
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import bearing_extent, discretise, observe, sightings

SCENE = Scene()
TWO_PI = 2 * math.pi


def walked(angle, radius, view, scene=SCENE, limit=None) -> set[int]:
    reach = scene.range_max if limit is None else limit
    return oracles.observed(
        list(map(float, angle)),
        list(map(float, radius)),
        view,
        scene.view_distance,
        scene.field_of_view,
        reach,
    )


def seen(angle, radius, view, scene=SCENE) -> set[int]:
    return set(
        np.flatnonzero(observe(np.asarray(angle), np.asarray(radius), [view], scene)[0]).tolist()
    )


@pytest.mark.parametrize("text", [text for family in THESIS_OBJECTS.values() for text in family])
def test_observed_points_of_the_thesis_objects_are_those_of_the_walk(text):
    coarse = surface_points(parse_object(text, SCENE), 0.25)
    views = [0.0, 0.013, 1.0, 2.4, math.pi, 4.4, TWO_PI - 0.01, TWO_PI]
    got = observe(coarse.angle, coarse.radius, views, SCENE)
    for row, view in zip(got, views, strict=True):
        assert set(np.flatnonzero(row).tolist()) == walked(coarse.angle, coarse.radius, view)


@settings(max_examples=300)
@given(
    st.integers(0, 2**32),
    st.integers(3, 120),
    st.floats(-7.0, 14.0),
    st.sampled_from([0.2, 0.61, 2.0, 3.0]),
)
@example(0, 50, 0.0, 0.61)
def test_observed_points_of_random_contours_are_those_of_the_walk(seed, n, view, fov):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0.0, TWO_PI, n))
    radius = rng.uniform(2.0, 8.0, n) if seed % 2 else 5.0 + 2.0 * np.sin(7 * angle)
    for reach in (6.0, 10.0, 25.0):
        scene = Scene(field_of_view=fov, range_max=reach)
        assert seen(angle, radius, view, scene) == walked(angle, radius, view, scene)


@given(st.integers(0, 2**32), st.floats(0.0, TWO_PI))
def test_without_the_range_limit_points_beyond_the_greatest_range_count(seed, view):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0.0, TWO_PI, 80))
    radius = 4.0 + 2.0 * np.cos(3 * angle + 1.0)
    short = dataclasses.replace(SCENE, range_max=5.0)
    found = sightings(angle, radius, [view], short, limit_range=False)
    assert set(found.point.tolist()) == walked(angle, radius, view, limit=math.inf)


def test_every_point_of_a_circle_inside_the_cone_and_before_its_horizon_is_seen():
    angle = np.arange(3600) * (TWO_PI / 3600)
    scene = Scene(field_of_view=math.radians(70), range_max=20.0)
    got = seen(angle, np.full(3600, 5.0), 0.0, scene)
    horizon = math.acos(5.0 / 10.0)
    expected = {k for k in range(3600) if abs(oracles.signed(float(angle[k]))) < horizon}
    assert len(got ^ expected) <= 4  # where the line of sight touches the circle


def test_a_bulge_hides_what_lies_behind_it_but_not_what_lies_before_it():
    angle = np.arange(720) * (TWO_PI / 720)
    radius = np.where((angle > 0.1) & (angle < 0.15), 7.5, 4.0)
    got = seen(angle, radius, 0.0)
    assert any(angle[k] < 0.1 for k in got)
    assert any(0.1 < angle[k] < 0.15 for k in got)
    shadow = math.atan2(7.5 * math.sin(0.14), 10.0 - 7.5 * math.cos(0.14))
    behind = [k for k in got if 0.15 < angle[k] < math.pi]
    assert all(abs(oracles.camera_polar(angle[k], 4.0, 0.0, 10.0)[0]) > shadow for k in behind)


def test_views_at_zero_and_at_two_pi_see_the_same():
    star = surface_points(parse_object("polygon:star", SCENE), 0.1)
    rows = observe(star.angle, star.radius, [0.0, TWO_PI, -TWO_PI], SCENE)
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])
    assert rows[0].any()
    assert rows.shape == (3, len(star))


@given(st.floats(0.0, TWO_PI), st.floats(0.0, TWO_PI))
def test_turning_object_and_camera_together_changes_little(view, turn):
    """The walk has no preferred direction: only ties and points on the cone's edge may differ."""
    angle = np.arange(500) * (TWO_PI / 500)
    radius = 5.0 + np.sin(3 * angle) + 0.5 * np.cos(5 * angle)
    turned = (angle + turn) % TWO_PI
    order = np.argsort(turned)
    plain = observe(angle, radius, [view], SCENE)[0].sum()
    rotated = observe(turned[order], radius[order], [view + turn], SCENE)[0].sum()
    assert abs(int(plain) - int(rotated)) <= 4


@given(st.integers(0, 2**32), st.floats(0.0, TWO_PI))
def test_mirrored_object_is_seen_mirrored(seed, view):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0.01, TWO_PI - 0.01, 60))
    radius = rng.uniform(3.0, 7.0, 60)
    plain = seen(angle, radius, view)
    mirrored = seen((TWO_PI - angle)[::-1], radius[::-1], TWO_PI - view)
    assert {59 - k for k in mirrored} == plain


@pytest.mark.parametrize("h", [0.1, 0.3])
def test_discretised_bound_has_one_point_in_every_pixel(h):
    belief = wavy_belief(7, size=1000)
    x, y = belief.lower * np.cos(belief.angle), belief.lower * np.sin(belief.angle)
    pixels = [oracles.pixel_of(float(a), float(b), h) for a, b in zip(x, y, strict=True)]
    chosen = discretise(belief.angle, belief.lower, h)
    assert (np.diff(chosen) > 0).all()
    assert {pixels[k] for k in chosen} == set(pixels)
    assert len(chosen) == len(set(pixels))
    assert chosen.tolist() == sorted(oracles.one_per_pixel(belief.angle, belief.lower, h))


@pytest.mark.parametrize("greatest", [4.0, 9.0, 9.5, 12.0])
@given(st.integers(0, 2**32))
def test_bearing_extent_is_that_of_each_point_to_the_last_bit(greatest, seed):
    """Also with points in the centre, behind it, and on or beyond the view circle."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0.0, 2 * np.pi, 60))
    radius = greatest * rng.choice([rng.uniform(-0.2, 1.0, 60), np.ones(60), np.zeros(60)])
    views = rng.uniform(0.0, 2 * np.pi, 25)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    lowest, highest = bearing_extent(angle, radius, views, 10.0)
    for view, low, high in zip(views, lowest, highest, strict=True):
        ahead = 10.0 - (np.cos(view) * x + np.sin(view) * y)
        aside = np.sin(view) * x - np.cos(view) * y
        sideways = np.where(aside < 0.0, -np.pi / 2, np.pi / 2)
        bearing = np.where(
            ahead > 0.0, np.arctan(aside / np.where(ahead > 0.0, ahead, 1.0)), sideways
        )
        assert (low, high) == (bearing.min(), bearing.max())
