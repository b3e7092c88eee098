"""What the mapper takes for granted is checked: the pose, the centre, one surface at each angle."""

from __future__ import annotations

import dataclasses
import math
from functools import reduce

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from nbv_planner.camera import CameraPose, MeasurementSettings, Scan, scan_to_measurements
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.objects import parse_object
from nbv_planner.ray_casting import Contour, cast_beams
from nbv_planner.robust.beams import Beams
from nbv_planner.robust.checks.centre import centre_offset, centroid
from nbv_planner.robust.checks.pose_bias import estimated_bias, pose_bias, pose_misfit
from nbv_planner.robust.checks.report import model_report, refusal
from nbv_planner.robust.checks.second_surface import second_surface
from nbv_planner.robust.checks.settings import CheckSettings
from nbv_planner.robust.crossing import Linearised, linearised
from nbv_planner.robust.mapper import RobustMapper
from nbv_planner.robust.settings import RobustSettings
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.surface import MapperSettings, Measurements, SurfaceMapper, uniform_grid

SCENE, ASSUMED = Scene(), MeasurementSettings()
KERNEL = KernelSettings().build()
VIEWS = np.arange(16) * (2.0 * math.pi / 16)
STAR = parse_object("polygon:star", SCENE)


def scanned(shape, view: float, number: int, **sensor):
    pose = CameraPose.on_view_circle(view, SCENE.view_distance)
    scan = SimulatedCamera(shape, SCENE, SensorSettings(**sensor)).scan(pose, number)
    return scan_to_measurements(scan, pose, SCENE, ASSUMED)


def filled(data) -> RobustMapper:
    """All scans in one fit, as views of their own."""
    mapper = RobustMapper(KERNEL, MapperSettings(grid_size=400), RobustSettings(robust=True))
    mapper.add(reduce(Measurements.joined, (one.measurements for one in data)), free=[one.free for one in data])
    for _ in data[1:]:
        mapper.add(Measurements.empty())
    return mapper


def mapped(shape=STAR, **sensor) -> RobustMapper:
    return filled([scanned(shape, view, number, **sensor) for number, view in enumerate(VIEWS)])


@pytest.mark.parametrize("components", [2, 3])
def test_the_step_is_generalised_least_squares_with_the_dense_covariance(components):
    rng = np.random.default_rng(3)
    n, grid = 40, uniform_grid(4000)
    angle = np.sort(rng.uniform(0.0, 2.0 * math.pi, n))
    hits = Measurements(
        angle, rng.uniform(3.0, 7.0, n), np.full(n, 0.2), rng.uniform(2.5, 3.7, n), rng.uniform(2.0, 7.0, n),
        rng.uniform(-0.3, 0.3, n),
    )
    slope = rng.uniform(-1.0, 1.0, n)
    data = Linearised(hits.angle, hits.radius, hits.std, slope, hits.radius)
    beams = Beams(hits, np.arange(n), np.arange(n))
    got = pose_bias(KERNEL, grid, 5.0, beams, data, hits.std, components)
    # Displacements by moving the camera in Cartesian coordinates.
    yaw = hits.angle + hits.tilt - hits.bearing
    outward = np.stack([np.cos(angle), np.sin(angle)]) - slope * np.stack([-np.sin(angle), np.cos(angle)])
    beam = hits.distance * np.stack([np.cos(angle + hits.tilt), np.sin(angle + hits.tilt)])
    moves = [
        np.stack([np.cos(yaw), np.sin(yaw)]), np.stack([-np.sin(yaw), np.cos(yaw)]), np.stack([-beam[1], beam[0]])
    ]
    design = -np.stack([(move * outward).sum(axis=0) for move in moves[:components]], axis=1)
    lag = cdist(angle[:, np.newaxis], angle[:, np.newaxis])
    inverse = np.linalg.inv(KERNEL(lag) + 0.04 * np.eye(n))
    covariance = np.linalg.inv(design.T @ inverse @ design)
    np.testing.assert_allclose(got.covariance, covariance, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(got.estimate, covariance @ design.T @ inverse @ (hits.radius - 5.0), atol=5e-3)


def test_displaced_beams_are_those_of_a_displaced_camera():
    data = scanned(STAR, 0.4, 0).measurements
    beams = Beams(data, np.zeros(len(data), dtype=int), np.zeros(len(data), dtype=int))
    at = CameraPose.on_view_circle(0.4, SCENE.view_distance)
    there = at.then(CameraPose(0.3, -0.2, 0.0))
    moved = beams.displaced(0.3, -0.2)
    x, y = there.to_world(data.bearing, data.distance)
    np.testing.assert_allclose(moved.hits.radius, np.hypot(x, y))
    np.testing.assert_allclose(np.cos(moved.direction), np.cos(beams.direction))


def test_a_bias_of_the_pose_is_reported_with_its_size_and_none_is_not():
    biased = mapped(pose_bias_y=0.05, pose_bias_yaw=math.radians(1.0))
    report = model_report(biased, CheckSettings())
    assert report.values["misfit"] > 1.5 * CheckSettings().misfit_limit
    assert len(report.warnings) == 1
    assert "misfit" in report.warnings[0]
    # A turn by 1° is an offset of 17.5 cm at 10 m.
    assert report.values["bias_left"] == pytest.approx(0.05 + 10.0 * math.radians(1.0), abs=0.06)
    fine = model_report(mapped(), CheckSettings())
    assert fine.values["misfit"] < 3.0
    assert fine.warnings == ()


def test_the_score_does_not_depend_on_outliers():
    clean, dirty = (pose_misfit(mapped(outlier_probability=part)).score for part in (0.0, 0.1))
    assert dirty < 3.0
    assert clean < 3.0


def test_a_shift_of_the_sensor_ahead_is_told_from_one_to_the_left():
    """After a few steps most of it has been found; the surface gives the rest back later."""
    ahead, left = estimated_bias(mapped(parse_object("square:width=4", SCENE), pose_bias_x=0.3)).estimate
    assert 0.15 < ahead < 0.35
    assert abs(left) < 0.05


def test_the_misfit_waits_for_enough_views_and_can_be_switched_off():
    mapper = mapped(pose_bias_yaw=0.03)
    assert "misfit" not in model_report(mapper, CheckSettings(misfit_views=17)).values
    assert "misfit" not in model_report(mapper, CheckSettings(misfit_limit=0.0)).values


def test_the_centroid_of_a_circle_beside_the_centre_is_its_centre():
    grid, (x, y), radius = uniform_grid(2000), (0.7, -0.4), 3.0
    across = x * np.sin(grid) - y * np.cos(grid)
    contour = x * np.cos(grid) + y * np.sin(grid) + np.sqrt(radius**2 - across**2)
    np.testing.assert_allclose(centroid(grid, contour), [x, y], atol=1e-5)
    both = np.append(grid, 2.0 * math.pi)  # the thesis's grid
    np.testing.assert_allclose(centroid(both, np.append(contour, contour[0])), [x, y], atol=1e-5)
    np.testing.assert_allclose(centroid(grid, np.stack([contour, contour])), [[x, y]] * 2, atol=1e-5)


def test_the_offset_of_the_centre_is_reported_with_its_uncertainty():
    shape = parse_object("flower:frequency=1,amplitude=2", SCENE)
    mapper, grid = mapped(shape), uniform_grid(2000)
    offset, truth = centre_offset(mapper), centroid(grid, shape.radius(grid))
    assert math.hypot(offset.x - truth[0], offset.y - truth[1]) < 4.0 * offset.std
    assert offset.std < 0.05
    assert model_report(mapper, CheckSettings()).warnings == ()
    warning = model_report(mapper, CheckSettings(centre_offset_limit=1.0)).warnings[0]
    assert "centroid" in warning
    assert f"{offset.x:.2f}" in warning


def test_before_the_object_has_been_seen_the_centre_is_unsure_and_nobody_warns():
    mapper = filled([scanned(parse_object("flower:frequency=1,amplitude=2", SCENE), 0.0, 0)])
    assert centre_offset(mapper).std > 0.2
    assert model_report(mapper, CheckSettings(centre_offset_limit=1.5)).warnings == ()


def beside_the_centre():
    """Scans of a disc that does not hold the stated centre: near and far side at the same angles."""
    angle = np.arange(720) * (2.0 * math.pi / 720)
    disc, data = Contour(4.5 + 2.0 * np.cos(angle), 2.0 * np.sin(angle)), []
    bearings, wide = np.linspace(-0.6, 0.6, 121), Scene(range_max=18.0, field_of_view=1.2)
    for number, view in enumerate(VIEWS):
        pose = CameraPose.on_view_circle(view, SCENE.view_distance)
        noise = 0.1 * np.random.default_rng(number).standard_normal(len(bearings))
        scan = Scan(float(bearings[0]), 0.01, cast_beams(disc, pose, bearings) + noise, 0.05, 18.0)
        data.append(scan_to_measurements(scan, pose, wide, ASSUMED))
    return data


def test_an_object_beside_its_stated_centre_is_refused_with_the_reason():
    mapper = RobustMapper(KERNEL, MapperSettings(grid_size=400), RobustSettings(robust=True))
    for one in beside_the_centre():
        mapper.add(one.measurements, free=[one.free])
    words = refusal(mapper, CheckSettings())
    assert "not star-shaped around its stated centre" in words
    assert words == model_report(mapper, CheckSettings()).refusal
    assert refusal(mapper, CheckSettings(second_surface_limit=0.0)) == ""


@pytest.mark.parametrize("text", ["polygon:star", "flower:frequency=8,amplitude=2", "square:width=10"])
def test_objects_with_one_surface_are_not_refused(text):
    assert second_surface(mapped(parse_object(text, SCENE), outlier_probability=0.1)) < 0.05


def test_a_plain_mapper_and_an_empty_one_report_nothing():
    plain = SurfaceMapper(KERNEL, MapperSettings(grid_size=100))
    empty = RobustMapper(KERNEL, MapperSettings(grid_size=100), RobustSettings(robust=True))
    for mapper in (plain, empty):
        assert model_report(mapper, CheckSettings()).values == {}
        assert refusal(mapper, CheckSettings()) == ""


def test_beams_of_unknown_range_take_no_part_in_the_misfit():
    mapper = mapped()
    known = pose_misfit(mapper).estimate
    strange = dataclasses.replace(mapper.beams.hits, distance=None)
    mapper.add(dataclasses.replace(strange, radius=strange.radius + 1.0), same_view=True)
    data = linearised(mapper.beams, mapper.grid, mapper.belief().mean, along=True, incidence=0.0)
    assert len(data.angle) == 2 * len(strange)
    assert np.isfinite(pose_misfit(mapper).estimate).all()
    assert np.isfinite(known).all()
