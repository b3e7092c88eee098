"""Poses, scans, and surface measurements from a scan."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import InputRejectedError, NbvPlannerError, SettingError
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.measurements import PolarRays, polar
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

SCENE = Scene()
ASSUMED = MeasurementSettings(noise_std=0.2)
FRONT = CameraPose.from_polar(0.0, 10.0)


def scan_of(ranges, *, angle_min=-0.1, increment=0.05, range_min=0.05, range_max=10.0) -> Scan:
    return Scan(angle_min, increment, np.array(ranges, dtype=float), range_min, range_max)


def one_beam(value, *, pose=FRONT, settings=ASSUMED, scene=SCENE, **header):
    return scan_to_hits(scan_of([value], angle_min=0.0, **header), pose, scene, settings)


@given(st.floats(-10.0, 10.0), st.floats(8.5, 30.0))
def test_pose_on_the_view_circle_looks_at_the_centre(view, distance):
    pose = CameraPose.from_polar(view, distance)
    assert (pose.x, pose.y) == pytest.approx((distance * math.cos(view), distance * math.sin(view)))
    x, y = pose.to_camera(0.0, 0.0)
    assert (float(x), float(y)) == pytest.approx((distance, 0.0), abs=1e-9)
    assert (pose.view_angle, pose.distance, pose.turn) == (view, distance, 0.0)
    seen = CameraPose(pose.x, pose.y, pose.yaw)
    assert 0.0 <= seen.view_angle < 2 * math.pi
    assert abs(oracles.signed(seen.view_angle - view)) < 1e-12


@given(
    st.floats(-20, 20), st.floats(-20, 20), st.floats(-7, 7), st.floats(-3, 3), st.floats(0.01, 20)
)
def test_any_pose_world_camera_round_trip(x, y, yaw, bearing, distance):
    pose = CameraPose(x, y, yaw)
    world = pose.to_world(bearing, distance)
    expected = (x + distance * math.cos(yaw + bearing), y + distance * math.sin(yaw + bearing))
    assert (float(world[0]), float(world[1])) == pytest.approx(expected, abs=1e-11)
    x_c, y_c = pose.to_camera(*world)
    assert math.hypot(x_c, y_c) == pytest.approx(distance, abs=1e-11)
    assert abs(oracles.signed(math.atan2(y_c, x_c) - bearing)) < 1e-11 / min(distance, 1.0)


@given(st.floats(0, 6.28), st.floats(2, 8), st.floats(0, 6.28))
def test_pose_on_the_circle_sees_what_the_circle_formula_says(phi, r, view):
    x_c, y_c = CameraPose.from_polar(view, 10.0).to_camera(r * math.cos(phi), r * math.sin(phi))
    bearing, distance = oracles.camera_polar(phi, r, view, 10.0)
    assert (math.atan2(y_c, x_c), math.hypot(x_c, y_c)) == pytest.approx(
        (bearing, distance), abs=1e-10
    )


def test_bearings_follow_from_first_beam_and_increment():
    np.testing.assert_allclose(scan_of([1.0, 2.0, 3.0]).bearings, [-0.1, -0.05, 0.0])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"ranges": np.empty(0)}, "no ranges"),
        ({"angle_increment": 0.0}, "angle_increment"),
        ({"angle_increment": -0.01}, "angle_increment"),
        ({"angle_increment": math.nan}, "angle_increment"),
        ({"angle_increment": math.inf}, "angle_increment"),
        ({"angle_min": math.nan}, "angle_min"),
        ({"angle_min": -math.inf}, "angle_min"),
        ({"range_min": math.nan}, "nan"),
        ({"range_max": math.nan}, "nan"),
        ({"range_min": -1.0}, "range_min"),
        ({"range_max": 0.0}, "range_max"),
        ({"range_min": 5.0, "range_max": 5.0}, "range_m"),
        ({"ranges": np.ones((2, 3))}, "range"),
    ],
)
def test_scan_with_a_bad_header_is_rejected_with_a_reason(values, word):
    good = {
        "angle_min": -0.1,
        "angle_increment": 0.05,
        "ranges": np.ones(3),
        "range_min": 0.05,
        "range_max": 10.0,
    }
    Scan(**good)
    with pytest.raises(InputRejectedError) as caught:
        Scan(**{**good, **values})
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.reason
    assert " " not in caught.value.reason
    assert isinstance(caught.value, NbvPlannerError)


def poses_near_the_circle():
    return st.tuples(st.floats(9.0, 12.0), st.floats(0.0, 2 * math.pi), st.floats(-0.3, 0.3)).map(
        lambda p: CameraPose(p[0] * math.cos(p[1]), p[0] * math.sin(p[1]), p[1] + math.pi + p[2])
    )


@given(poses_near_the_circle(), st.lists(st.floats(0.5, 9.9), min_size=1, max_size=30))
def test_each_return_becomes_the_point_it_hit_whatever_the_pose(pose, ranges):
    scan = scan_of(ranges, angle_min=-0.3, increment=0.02)
    expected = []
    for k, distance in enumerate(ranges):
        direction = pose.yaw - 0.3 + 0.02 * k
        x, y = pose.x + distance * math.cos(direction), pose.y + distance * math.sin(direction)
        if 1.0 <= math.hypot(x, y) <= 9.0:
            expected.append((math.atan2(y, x), math.hypot(x, y)))
    result = scan_to_hits(scan, pose, SCENE, ASSUMED)
    assert len(result.hits) == len(expected)
    assert sum(result.dropped.values()) == len(ranges) - len(expected)
    for (phi, r), angle, radius in zip(
        expected, polar(result.hits).angle, polar(result.hits).radius, strict=True
    ):
        assert radius == pytest.approx(r, abs=1e-9)
        assert abs(oracles.signed(angle - phi)) < 1e-9


@given(
    poses_near_the_circle(),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=40),
)
def test_whatever_the_ranges_nothing_raises_every_beam_is_accounted_for_and_no_nan_comes_out(
    pose, ranges
):
    result = scan_to_hits(scan_of(ranges, angle_min=-0.4, increment=0.02), pose, SCENE, ASSUMED)
    data = polar(result.hits)
    misses = sum(value == math.inf for value in ranges)
    assert len(data) + misses + sum(result.dropped.values()) == len(ranges)
    assert np.isfinite(data.angle).all()
    assert np.isfinite(data.std).all()
    assert ((data.radius >= 1.0 - 1e-9) & (data.radius <= 9.0 + 1e-9)).all()
    assert len(result.free.length) >= len(data) + misses
    assert set(result.dropped) <= {"nan", "too_close", "not_positive", "too_far", "outside_bounds"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "nan"),
        (-math.inf, "too_close"),
        (0.04, "too_close"),
        (0.0, "not_positive"),
        (-0.0, "not_positive"),
        (-3.0, "not_positive"),
        (10.001, "too_far"),
        (1e300, "too_far"),
        (0.5, "outside_bounds"),  # radius 9.5 > 8 + 1
        (9.5, "inside_bounds"),  # radius 0.5 < 2 - 1
    ],
)
def test_each_beam_left_out_is_counted_under_its_reason(value, reason):
    result = one_beam(value)
    assert len(result.hits) == 0
    assert result.free.of_hit.all()
    assert {k: v for k, v in result.dropped.items() if v} == {reason: 1}


@pytest.mark.parametrize(("value", "radius"), [(1.0, 9.0), (9.0, 1.0)])
def test_a_radius_exactly_on_the_margin_counts(value, radius):
    np.testing.assert_allclose(polar(one_beam(value).hits).radius, [radius])


def test_margin_and_gates_are_settings():
    wide = MeasurementSettings(radius_margin=1.9)
    assert len(one_beam(0.5, settings=wide).hits) == 1
    assert len(one_beam(9.95, settings=MeasurementSettings(radius_margin=0.0)).hits) == 0
    assert len(one_beam(5.0).hits) == 1
    assert {k: v for k, v in one_beam(5.0, range_max=4.0).dropped.items() if v} == {"too_far": 1}
    assert {k: v for k, v in one_beam(5.0, range_min=6.0).dropped.items() if v} == {"too_close": 1}


def test_the_scene_gates_hold_also_where_the_sensor_claims_more():
    """A foreign sensor may announce a longer range than the planner's cone reaches."""
    far = Scene(range_max=6.0)
    result = one_beam(7.0, scene=far, range_max=30.0)
    assert len(result.hits) == 0
    assert {k: v for k, v in result.dropped.items() if v} == {"too_far": 1}


def test_a_miss_is_kept_as_free_space_evidence_with_its_bearing():
    result = scan_to_hits(scan_of([5.0, math.inf, 5.0, math.inf]), FRONT, SCENE, ASSUMED)
    np.testing.assert_allclose(PolarRays.of(result.free).misses.bearing, [-0.05, 0.05])
    assert len(result.hits) == 2
    assert sum(result.dropped.values()) == 0


@given(
    poses_near_the_circle(), st.floats(1.5, 8.0), st.floats(-0.3, 0.3), st.sampled_from([0.0, 0.05])
)
def test_std_is_at_least_the_range_noise_projected_on_the_radial_direction(
    pose, distance, bearing, per_metre
):
    settings = MeasurementSettings(noise_std=0.2, noise_std_per_metre=per_metre)
    scan = scan_of([distance], angle_min=bearing)
    data = polar(scan_to_hits(scan, pose, SCENE, settings).hits)
    if len(data) == 0:
        return
    noise = 0.2 + per_metre * distance
    direction = pose.yaw + bearing
    cosine = abs(math.cos(data.angle[0] - direction))
    assert data.std[0] >= noise * cosine - 1e-12


def test_std_grows_with_range_where_the_noise_does():
    settings = MeasurementSettings(noise_std=0.1, noise_std_per_metre=0.02)
    data = scan_to_hits(
        scan_of([3.0, 6.0], angle_min=0.0, increment=1e-9), FRONT, SCENE, settings
    ).hits
    np.testing.assert_allclose(data.sigma, [0.16, 0.22])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"noise_std": 0.0}, "noise_std"),
        ({"noise_std_per_metre": -1.0}, "per_metre"),
        ({"radius_margin": -1.0}, "margin"),
    ],
)
def test_measurement_settings_outside_their_range_are_refused(values, word):
    with pytest.raises(SettingError, match=word):
        MeasurementSettings(**values)
