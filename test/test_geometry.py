"""Angles, camera frame, rays and pixels against elementary geometry."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nbv_planner.geometry import (
    TWO_PI,
    angle_difference,
    cartesian_to_polar,
    pixel_index,
    polar_to_cartesian,
    repeated,
    world_to_camera,
    wrap_angle,
)
from nbv_planner.thesis.intervals import camera_ray

any_angle = st.floats(-50.0, 50.0)
circle_angle = st.floats(0.0, TWO_PI, exclude_max=True)


def camera_to_world(bearing, distance, view_angle, view_distance):
    """Polar (angle, radius) of the point at `bearing` and range `distance`: the inverse of
    world_to_camera.
    """
    x = view_distance - np.asarray(distance) * np.cos(bearing)
    y = np.asarray(distance) * np.sin(bearing)
    return wrap_angle(np.asarray(view_angle) - np.arctan2(y, x)), np.hypot(x, y)


@given(any_angle)
@example(-1e-17)
@example(-5e-324)
@example(TWO_PI)
@example(-TWO_PI)
@example(np.nextafter(TWO_PI, 0.0))
def test_wrapped_angle_is_in_the_half_open_circle_and_points_the_same_way(angle):
    wrapped = float(wrap_angle(angle))
    assert 0.0 <= wrapped < TWO_PI
    assert abs(oracles.signed(wrapped - angle)) < 1e-13


@pytest.mark.parametrize("tiny", [-1e-17, -1e-300, -5e-324])
def test_tiny_negative_angle_wraps_to_zero_not_to_two_pi(tiny):
    assert float(wrap_angle(tiny)) == 0.0


def test_wrap_broadcasts_over_arrays():
    np.testing.assert_allclose(
        wrap_angle([[-0.1, 0.0], [TWO_PI, 7.0]]), [[TWO_PI - 0.1, 0.0], [0.0, 7.0 - TWO_PI]]
    )


@given(any_angle, any_angle)
@example(math.pi, 0.0)
@example(-math.pi, 0.0)
@example(0.0, math.pi)
@example(TWO_PI - 1e-9, 0.0)
def test_angle_difference_is_the_short_way_round(angle, reference):
    difference = float(angle_difference(angle, reference))
    assert -math.pi <= difference < math.pi
    assert abs(oracles.signed(reference + difference - angle)) < 1e-12


def test_angle_difference_across_zero_has_the_sign_of_the_turn():
    assert float(angle_difference(0.1, TWO_PI - 0.1)) == pytest.approx(0.2)
    assert float(angle_difference(TWO_PI - 0.1, 0.1)) == pytest.approx(-0.2)


@given(circle_angle, st.floats(0.01, 100.0))
def test_polar_and_cartesian_are_inverse(angle, radius):
    x, y = polar_to_cartesian(angle, radius)
    back_angle, back_radius = cartesian_to_polar(x, y)
    assert 0.0 <= float(back_angle) < TWO_PI
    assert float(back_radius) == pytest.approx(radius, rel=1e-14)
    assert abs(oracles.signed(float(back_angle) - angle)) < 1e-13


def test_point_just_below_the_x_axis_has_an_angle_inside_the_circle():
    angle, _ = cartesian_to_polar(5.0, -1e-320)
    assert float(angle) == 0.0


@given(circle_angle, st.floats(0.1, 9.9), any_angle, st.floats(10.0, 20.0))
def test_world_to_camera_equals_shifting_and_rotating(angle, radius, view, distance):
    bearing, reach = world_to_camera(angle, radius, view, distance)
    expected_bearing, expected_reach = oracles.camera_polar(angle, radius, view, distance)
    assert float(reach) == pytest.approx(expected_reach, abs=1e-12)
    assert float(bearing) == pytest.approx(expected_bearing, abs=1e-12)


@given(circle_angle, st.floats(0.1, 9.9), any_angle, st.floats(10.0, 20.0))
@example(0.0, 5.0, TWO_PI - 0.01, 10.0)
@example(TWO_PI - 1e-12, 5.0, 0.01, 10.0)
@example(3.0, 9.9, 0.0, 10.0)  # behind the centre
def test_world_camera_world_round_trip(angle, radius, view, distance):
    back_angle, back_radius = camera_to_world(
        *world_to_camera(angle, radius, view, distance), view, distance
    )
    assert 0.0 <= float(back_angle) < TWO_PI
    assert float(back_radius) == pytest.approx(radius, abs=1e-11)
    assert abs(oracles.signed(float(back_angle) - angle)) < 1e-11 / min(radius, 1.0)


@given(st.floats(-1.5, 1.5), st.floats(0.01, 9.9), any_angle, st.floats(10.0, 20.0))
def test_camera_world_camera_round_trip(bearing, distance, view, circle):
    back_bearing, back_distance = world_to_camera(
        *camera_to_world(bearing, distance, view, circle), view, circle
    )
    assert float(back_distance) == pytest.approx(distance, abs=1e-11)
    assert float(back_bearing) == pytest.approx(bearing, abs=1e-11 / min(distance, 1.0))


@pytest.mark.parametrize("view", [0.0, 0.05, 1.0, math.pi, TWO_PI - 0.05])
def test_rising_bearing_sweeps_a_falling_polar_angle_and_back(view):
    angle, _ = camera_to_world(np.linspace(-0.2, 0.2, 41), 5.0, view, 10.0)
    assert np.all(angle_difference(angle[1:], angle[:-1]) < 0.0)
    bearing, _ = world_to_camera(view + np.linspace(-0.3, 0.3, 41), 5.0, view, 10.0)
    assert np.all(np.diff(bearing) < 0.0)


def test_what_lies_left_of_the_line_of_sight_has_a_positive_bearing():
    # From (10, 0) looking along -x, left is -y: a polar angle just below 2π.
    bearing, _ = world_to_camera(TWO_PI - 0.2, 5.0, 0.0, 10.0)
    assert float(bearing) > 0.0
    angle, _ = camera_to_world(0.1, 6.0, 0.0, 10.0)
    assert math.pi < float(angle) < TWO_PI


def test_point_beyond_the_centre_keeps_its_own_angle():
    """`arctan` instead of `atan2` would turn it by π (range_max cos(fov/2) > view_distance)."""
    angle, radius = camera_to_world(0.0, 13.0, 0.5, 10.0)
    assert float(angle) == pytest.approx(0.5 + math.pi)
    assert float(radius) == pytest.approx(3.0)


@given(any_angle, st.floats(-1.4, 1.4), st.floats(-1.5, 1.5))
def test_ray_meets_the_half_line_where_two_intersecting_lines_do(view, bearing, offset):
    # The half-line is crossed in front of the camera if the angles at centre and camera leave room
    # for a triangle.
    assume(abs(bearing) > 1e-6)
    delta = -math.copysign(abs(offset), bearing)
    assume(abs(delta) > 1e-6)
    assume(abs(delta) + abs(bearing) < math.pi - 1e-3)
    radius = float(camera_ray(view + delta, view, bearing, 10.0))
    assert radius == pytest.approx(oracles.line_radius(view + delta, view, bearing, 10.0), rel=1e-6)
    seen_at, _ = oracles.camera_polar(view + delta, radius, view, 10.0)
    assert seen_at == pytest.approx(bearing, abs=1e-9)


@given(any_angle, st.floats(-1.5, 1.5))
@example(0.0, 0.0)
@example(0.3, 1e-300)
@example(0.3, -1e-17)
def test_ray_starts_at_the_camera(view, bearing):
    assert float(camera_ray(view, view, bearing, 10.0)) == pytest.approx(10.0)


@pytest.mark.parametrize("bearing", [1e-3, 1e-8, 1e-12, 1e-16, 1e-300])
def test_ray_stays_finite_and_positive_as_the_bearing_goes_to_zero(bearing):
    delta = np.array([-0.5, -0.1, -1e-3])
    radius = camera_ray(delta, 0.0, bearing, 10.0)
    assert np.all(np.isfinite(radius))
    np.testing.assert_allclose(
        radius, 10.0 * math.sin(bearing) / np.sin(bearing - delta), rtol=1e-9, atol=1e-300
    )
    np.testing.assert_allclose(camera_ray(-delta, 0.0, -bearing, 10.0), radius, rtol=1e-12)


def test_ray_along_the_line_of_sight_is_never_nan():
    assert not np.isnan(camera_ray(np.linspace(0.0, TWO_PI, 100), 0.0, 0.0, 10.0)).any()


def test_ray_that_does_not_cross_the_half_line_is_infinite():
    assert float(camera_ray(0.3, 0.0, 0.2, 10.0)) == math.inf  # a left ray runs to falling angles
    assert float(camera_ray(-0.3, 0.0, -0.2, 10.0)) == math.inf


@given(st.lists(st.integers(0, 4), max_size=6))
def test_repeated_things_stand_one_behind_the_other_and_are_counted(number):
    which, nth = repeated(np.array(number, dtype=np.intp))
    pairs = [(thing, before) for thing, times in enumerate(number) for before in range(times)]
    assert list(zip(which.tolist(), nth.tolist(), strict=True)) == pairs


@given(st.integers(-200, 200), st.integers(-200, 200), st.sampled_from([0.05, 0.1, 0.25, 1.0]))
def test_pixels_are_centred_on_multiples_of_their_size(i, j, size):
    for dx, dy in ((0.0, 0.0), (0.49, 0.49), (-0.49, 0.49), (0.49, -0.49), (-0.49, -0.49)):
        column, row = pixel_index((i + dx) * size, (j + dy) * size, size)
        assert (int(column), int(row)) == (i, j)


@given(st.integers(-100, 100), st.lists(st.floats(-1e-13, 1e-13), min_size=2, max_size=8))
def test_rounding_does_not_move_points_on_a_pixel_edge_to_different_pixels(i, errors):
    edge = (i + 0.5) * 0.1
    columns, _ = pixel_index(edge + np.array(errors), 0.0, 0.1)
    assert len(set(columns.tolist())) == 1
