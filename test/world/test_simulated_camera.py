"""The simulated depth camera: right ranges, honest noise, repeatable."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest

from nbv_planner.errors import SettingError
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.world.objects import THESIS_OBJECTS, Ellipse, parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera, sampled_contour

SCENE = Scene()
CIRCLE = Ellipse(a=5.0, b=5.0)
FRONT = CameraPose.from_polar(0.0, 10.0)
ALL_OBJECTS = [text for family in THESIS_OBJECTS.values() for text in family]


def camera(shape=CIRCLE, scene=SCENE, **settings) -> SimulatedCamera:
    return SimulatedCamera(shape, scene, SensorSettings(**settings))


def exact_circle_ranges(bearings, distance=10.0, radius=5.0) -> np.ndarray:
    """Nearer root of |c + s d| = radius."""
    across = distance * np.sin(bearings)
    inside = radius**2 - across**2
    return np.where(
        inside >= 0.0, distance * np.cos(bearings) - np.sqrt(np.maximum(inside, 0.0)), np.inf
    )


def test_beams_are_equally_spaced_over_the_whole_field_of_view_inclusive():
    scan = camera(num_beams=11).scan(FRONT, 0)
    half = SCENE.field_of_view / 2
    np.testing.assert_allclose(scan.bearings, np.linspace(-half, half, 11), atol=1e-7)
    assert (scan.range_min, scan.range_max) == pytest.approx((SCENE.range_min, SCENE.range_max))
    assert scan.ranges.shape == (11,)


def test_noise_free_ranges_of_a_circle_are_those_of_the_quadratic_formula():
    scan = camera(scene=Scene(field_of_view=math.radians(50)), noise_std=0.0, num_beams=101).scan(
        FRONT, 0
    )
    np.testing.assert_allclose(scan.ranges, exact_circle_ranges(scan.bearings), atol=1e-5)


def test_a_beam_with_a_width_has_the_range_of_the_nearest_surface_in_it():
    width, scene = 0.03, Scene(field_of_view=math.radians(70))
    scan = camera(scene=scene, noise_std=0.0, num_beams=101, beam_width=width).scan(FRONT, 0)
    aside = np.abs(scan.bearings)
    beside = aside >= width / 2
    nearest = exact_circle_ranges(aside - width / 2)
    # chords, met at a grazing angle
    np.testing.assert_allclose(scan.ranges[beside], nearest[beside], atol=1e-4)
    np.testing.assert_allclose(scan.ranges[~beside], 5.0, atol=1e-4)
    assert 0 < np.isfinite(nearest).sum() < len(nearest), "beams on the circle and beside it"


@pytest.mark.parametrize("text", ALL_OBJECTS)
def test_noise_free_returns_lie_on_the_object_and_nothing_lies_before_them(text):
    shape = parse_object(text, SCENE)
    for view in (0.0, 0.7, 3.3, 5.5):
        pose = CameraPose.from_polar(view, 10.0)
        scan = camera(shape, noise_std=0.0, num_beams=41).scan(pose, 0)
        for bearing, distance in zip(scan.bearings, scan.ranges, strict=True):
            along = np.linspace(0.0, min(distance, SCENE.range_max) - 0.02, 400)
            x, y = pose.to_world(bearing, along)
            free = np.hypot(x, y) - shape.radius(np.arctan2(y, x))
            assert free.min() > -2e-3, (view, bearing)
            if np.isfinite(distance):
                hit_x, hit_y = pose.to_world(bearing, distance)
                # an offset of the polyline is seen enlarged by grazing incidence: judge it across
                # the curve
                near = np.arctan2(hit_y, hit_x) + np.linspace(-2e-3, 2e-3, 201)
                r = shape.radius(near)
                assert np.hypot(r * np.cos(near) - hit_x, r * np.sin(near) - hit_y).min() < 3e-4


def test_same_seed_view_and_scan_give_the_same_bits_whatever_happened_before():
    settings = {"dropout_probability": 0.1, "outlier_probability": 0.1, "seed": 7}
    one, other = camera(**settings), camera(**settings)
    other.scan(FRONT, 0)
    other.scan(CameraPose.from_polar(1.0, 10.0), 1)
    np.testing.assert_array_equal(one.scan(FRONT, 5, 2).ranges, other.scan(FRONT, 5, 2).ranges)
    np.testing.assert_array_equal(one.scan(FRONT, 5, 2).ranges, other.scan(FRONT, 5, 2).ranges)


@pytest.mark.parametrize("changed", [{"seed": 8}, {"view": 6}, {"scan": 3}])
def test_other_seeds_views_and_scans_have_other_noise(changed):
    base = {"seed": 7, "view": 5, "scan": 2}

    def ranges(seed, view, scan):
        return camera(seed=seed).scan(FRONT, view, scan).ranges

    assert (ranges(**base) != ranges(**{**base, **changed})).all()


def test_the_same_camera_with_another_seed_is_one_set_up_with_it():
    first, fresh = camera(noise_std=0.2, seed=1), camera(noise_std=0.2, seed=9)
    for angle in (0.3, 2.0, 0.3):  # ranges of the first pose are known the second time
        pose = CameraPose.from_polar(angle, 10.0)
        known = first.scan(pose, 2)
        other = first.with_seed(9).scan(pose, 2)
        assert np.array_equal(other.ranges, fresh.scan(pose, 2).ranges)
        assert not np.array_equal(other.ranges, known.ranges)


def test_view_and_scan_numbers_are_not_interchangeable():
    same = camera(seed=1)
    assert (same.scan(FRONT, 1, 2).ranges != same.scan(FRONT, 2, 1).ranges).all()


def noise_sample(count=40, **settings) -> tuple[np.ndarray, np.ndarray]:
    """Errors and true ranges over many scans of the circle."""
    sensor = camera(num_beams=201, **settings)
    truth = exact_circle_ranges(sensor.scan(FRONT, 0).bearings)
    errors = np.array([sensor.scan(FRONT, k).ranges - truth for k in range(count)])
    return errors, np.broadcast_to(truth, errors.shape)


def test_noise_is_gaussian_with_the_given_standard_deviation_and_independent():
    errors, _ = noise_sample(noise_std=0.2)
    n = errors.size
    assert abs(errors.mean()) < 5 * 0.2 / math.sqrt(n)
    assert errors.std() == pytest.approx(0.2, rel=5 / math.sqrt(2 * n))
    assert np.mean(np.abs(errors) < 0.2) == pytest.approx(0.6827, abs=5 * 0.5 / math.sqrt(n))
    assert np.mean(np.abs(errors) < 0.4) == pytest.approx(0.9545, abs=5 * 0.21 / math.sqrt(n))
    neighbours = np.corrcoef(errors[:, 1:].ravel(), errors[:, :-1].ravel())[0, 1]
    successive = np.corrcoef(errors[1:].ravel(), errors[:-1].ravel())[0, 1]
    assert max(abs(neighbours), abs(successive)) < 5 / math.sqrt(n)


def test_noise_may_grow_with_range():
    errors, truth = noise_sample(noise_std=0.0, noise_std_per_metre=0.04)
    normalised = errors / (0.04 * truth)
    assert normalised.std() == pytest.approx(1.0, rel=5 / math.sqrt(2 * errors.size))
    mixed = noise_sample(noise_std=0.1, noise_std_per_metre=0.04)[0] / (0.1 + 0.04 * truth)
    assert mixed.std() == pytest.approx(1.0, rel=5 / math.sqrt(2 * errors.size))


def test_dropout_gives_nan_at_its_rate_and_leaves_the_other_beams_alone():
    plain = np.array([camera(seed=3).scan(FRONT, k).ranges for k in range(40)])
    dropped = np.array(
        [camera(seed=3, dropout_probability=0.25).scan(FRONT, k).ranges for k in range(40)]
    )
    lost = np.isnan(dropped)
    assert lost.mean() == pytest.approx(0.25, abs=5 * math.sqrt(0.25 * 0.75 / lost.size))
    np.testing.assert_array_equal(dropped[~lost], plain[~lost])
    assert np.isnan(camera(dropout_probability=1.0).scan(FRONT, 0).ranges).all()


def test_dropped_beams_are_dropped_by_the_mapper_as_nan_and_not_as_misses():
    scan = camera(dropout_probability=1.0, num_beams=9).scan(FRONT, 0)
    result = scan_to_hits(scan, FRONT, SCENE, MeasurementSettings())
    assert result.dropped["nan"] == 9
    assert result.free.of_hit.all()


def test_outliers_come_at_their_rate_and_are_spread_over_the_whole_range():
    errors, truth = noise_sample(noise_std=0.01, outlier_probability=0.3)
    wild = np.abs(errors) > 0.1
    # a uniformly random range lands within 0.1 m of the truth in 2 % of the cases
    assert wild.mean() == pytest.approx(0.3 * 0.98, abs=5 * 0.46 / math.sqrt(wild.size))
    ranges = (errors + truth)[wild]
    assert ((ranges >= SCENE.range_min) & (ranges <= SCENE.range_max)).all()
    counts, _ = np.histogram(ranges, bins=[0, 1, 2, 3, 4])
    assert counts.min() > 0.8 * counts.max()


def test_outliers_and_noise_are_put_on_returns_only():
    """A beam that met no surface stays a miss."""
    away = CameraPose(10.0, 0.0, 0.0)
    assert np.isposinf(camera(outlier_probability=1.0).scan(away, 0).ranges).all()


def test_beyond_the_greatest_range_is_no_return_and_below_the_least_is_too_close():
    far = camera(scene=Scene(range_max=4.5), noise_std=0.0).scan(FRONT, 0)
    assert np.isposinf(far.ranges).all()
    near = camera(scene=Scene(range_min=5.5), noise_std=0.0, num_beams=121).scan(FRONT, 0)
    exact = exact_circle_ranges(near.bearings)
    np.testing.assert_array_equal(np.isneginf(near.ranges), exact < 5.5)
    assert np.isneginf(near.ranges).any()
    assert np.isfinite(near.ranges).any()


def test_limits_hold_after_the_noise():
    scans = [
        camera(scene=Scene(range_min=4.9, range_max=5.1), noise_std=0.2).scan(FRONT, k).ranges
        for k in range(20)
    ]
    values = np.concatenate(scans)
    finite = values[np.isfinite(values)]
    assert ((finite >= 4.9) & (finite <= 5.1)).all()
    assert np.isneginf(values).any()
    assert np.isposinf(values).any()


def test_sampled_contour_goes_through_every_corner_of_a_polygon():
    star = parse_object("polygon:star", SCENE)
    contour = sampled_contour(star)
    for angle, radius in zip(star.angles, star.radii, strict=True):
        corner = (radius * math.cos(angle), radius * math.sin(angle))
        assert np.hypot(contour.x - corner[0], contour.y - corner[1]).min() < 1e-9
    order = np.unwrap(np.arctan2(contour.y, contour.x))
    assert (np.diff(order) > 0).all() or (np.diff(order) < 0).all()


def test_ranges_of_a_polygon_are_those_of_its_straight_edges():
    star = parse_object("polygon:star", SCENE)
    vertices = [
        (r * math.cos(a), r * math.sin(a)) for a, r in zip(star.angles, star.radii, strict=True)
    ]
    for view in np.linspace(0.0, 6.0, 9):
        pose = CameraPose.from_polar(float(view), 10.0)
        scan = camera(star, noise_std=0.0, num_beams=60).scan(pose, 0)
        exact = [
            oracles.first_crossing(vertices, pose.x, pose.y, pose.yaw + float(b))
            for b in scan.bearings
        ]
        expected = [d if d <= SCENE.range_max else math.inf for d in exact]
        np.testing.assert_allclose(scan.ranges, expected, atol=1e-9)


@pytest.mark.parametrize(
    "values",
    [
        {"num_beams": 0},
        {"num_beams": 1},
        {"noise_std": -0.1},
        {"dropout_probability": 1.1},
        {"outlier_probability": -0.1},
        {"seed": -1},
        {"seed": 1.5},
    ],
)
def test_sensor_settings_outside_their_range_are_refused(values):
    with pytest.raises(SettingError, match=next(iter(values))):
        SensorSettings(**values)


def test_a_biased_pose_gives_the_scan_of_the_place_where_the_sensor_really_is():
    told = CameraPose.from_polar(1.0, 10.0)
    forward, left, turn = 0.05, -0.03, math.radians(1.0)
    there = CameraPose(
        told.x + forward * math.cos(told.yaw) - left * math.sin(told.yaw),
        told.y + forward * math.sin(told.yaw) + left * math.cos(told.yaw),
        told.yaw + turn,
    )
    shape = parse_object("polygon:star", SCENE)
    biased = camera(shape, pose_bias_x=forward, pose_bias_y=left, pose_bias_yaw=turn).scan(told, 3)
    np.testing.assert_array_equal(biased.ranges, camera(shape).scan(there, 3).ranges)
    assert not np.array_equal(biased.ranges, camera(shape).scan(told, 3).ranges)
