"""Sensors: the cone, what a scan's header describes, and one of another kind in camera, mapper and
objectives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from views import circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import polar
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_visibility import visible_cells
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import ConeSensor, RangeNoise, Scan
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.world.visibility import observe

VIEW = CameraPose.from_polar(0.4, 10.0)


@dataclass(frozen=True)
class Oblique(ConeSensor):
    """The noise grows with the incidence, and a miss tells nothing."""

    misses_are_free = False

    def range_std(self, noise, distance, incidence):
        return noise.std(distance) / np.maximum(np.cos(incidence), 0.05)


class LeftScene(Scene):
    """Sees further to the left than to the right."""

    sensor = Oblique(bearing_min=-0.1, bearing_max=0.3, range_min=0.2, range_max=9.0)


LEFT = LeftScene()


def bearings(points, view: CameraPose) -> np.ndarray:
    x, y = view.to_camera(
        points.radius * np.cos(points.angle), points.radius * np.sin(points.angle)
    )
    return np.arctan2(y, x)


def test_the_sensor_of_a_scene_is_its_cone():
    scene = Scene(field_of_view=0.5, range_min=0.3, range_max=7.0)
    assert scene.sensor == ConeSensor(-0.25, 0.25, 0.3, 7.0)
    assert scene.sensor.misses_are_free
    assert scene.in_cone([0.0, 0.25, -0.25], [7.0, 1.0, 1.0]).all()
    assert not scene.in_cone([0.26, -0.26, 0.0], [1.0, 1.0, 7.1]).any()


def test_noise_has_one_law_with_the_numbers_of_camera_and_mapper():
    distance, incidence = np.array([1.0, 4.0]), np.array([0.0, 1.2])
    for settings in (SensorSettings, MeasurementSettings):
        noise = settings(noise_std=0.1, noise_std_per_metre=0.02).noise
        assert noise == RangeNoise(0.1, 0.02)
        np.testing.assert_allclose(
            Scene().sensor.range_std(noise, distance, incidence), [0.12, 0.18]
        )


@pytest.mark.parametrize(("first", "last"), [(-0.3, 0.3), (-0.1, 0.3), (0.2, 0.2)])
def test_the_field_of_view_reaches_from_the_first_bearing_to_the_last(first, last):
    sensor = ConeSensor(first, last, 0.4, 12.0)
    assert sensor.in_field([first, last]).all()
    assert not sensor.in_field([first - 1e-6, last + 1e-6]).any()


@pytest.mark.parametrize("field", [(-0.1, 0.3), (-0.3, 0.05), (0.05, 0.3)])
def test_a_view_sees_what_lies_between_the_bearings_of_its_sensor(field):
    class Aside(Scene):
        sensor = ConeSensor(*field, 0.05, 10.0)

    points = surface_points(parse_object("polygon:star", Scene()), 0.1)
    for angle in (0.4, 2.9, 6.0):
        view = CameraPose.from_polar(angle, 10.0)
        wide = observe(points.angle, points.radius, [angle], Scene(field_of_view=2.0))[0]
        at = bearings(points, view)
        expected = wide & (at >= field[0]) & (at <= field[1])
        np.testing.assert_array_equal(
            observe(points.angle, points.radius, [angle], Aside())[0], expected
        )
        turned = observe(
            points.angle,
            points.radius,
            Poses.of([CameraPose.from_polar(angle, 10.0, 0.05)]),
            Aside(),
        )[0]
        np.testing.assert_array_equal(
            turned, wide & (at - 0.05 >= field[0]) & (at - 0.05 <= field[1])
        )


def test_drawn_shapes_are_seen_by_the_same_sensor():
    angle = np.arange(720) * (2.0 * math.pi / 720)
    radius = parse_object("ellipse:a=6,b=4", LEFT).radius(angle)
    seen = visible_cells(
        Shapes(angle, radius[None]), Poses.on_circle([0.4, 3.0], LEFT.view_distance), LEFT
    )[0]
    expected = observe(angle, radius, [0.4, 3.0], LEFT)
    assert np.mean(seen != expected) < 0.01
    assert np.mean(seen & (np.sin(angle - np.array([[0.4], [3.0]])) > 0.0)) < np.mean(seen) / 3.0


def test_the_camera_has_the_field_of_view_and_the_noise_of_the_sensor():
    shape, pose = parse_object("ellipse:a=6,b=4", LEFT), VIEW
    camera = SimulatedCamera(shape, LEFT, SensorSettings(noise_std=0.01, num_beams=41))
    exact = SimulatedCamera(shape, LEFT, SensorSettings(noise_std=0.0, num_beams=41)).scan(pose, 1)
    assert (exact.bearings[0], exact.bearings[-1]) == pytest.approx((-0.1, 0.3))
    assert (exact.range_min, exact.range_max) == pytest.approx((0.2, 9.0))
    errors = np.stack([camera.scan(pose, 1, number).ranges - exact.ranges for number in range(400)])
    met = np.isfinite(errors).all(axis=0)
    x, y = pose.to_world(exact.bearings[met], exact.ranges[met])
    normal = np.arctan2(y / 16.0, x / 36.0)  # gradient of x²/36 + y²/16
    incidence = np.abs(np.angle(np.exp(1j * (pose.yaw + exact.bearings[met] + math.pi - normal))))
    np.testing.assert_allclose(
        errors[:, met].std(axis=0), 0.01 / np.maximum(np.cos(incidence), 0.05), rtol=0.2
    )
    assert np.ptp(incidence) > 0.3


def test_the_mapper_assumes_the_noise_of_the_sensor_and_learns_nothing_from_a_miss():
    scan = Scan(-0.1, 0.1, np.array([5.0, 5.0, 5.0, 5.0, np.inf]), 0.05, 20.0)
    settings = MeasurementSettings(noise_std=0.1)
    found = scan_to_hits(scan, VIEW, LEFT, settings)
    assert (found.dropped, int((~found.free.of_hit).sum()), int(found.free.of_hit.sum())) == (
        {"no_return": 1},
        0,
        4,
    )
    assert len(found.free.length) == 4
    tilt = np.abs(np.abs(polar(found.hits).tilt) - math.pi)
    np.testing.assert_allclose(found.hits.sigma, 0.1 / np.cos(tilt))
    np.testing.assert_allclose(found.free.length, 5.0 - 0.3 / np.cos(tilt))
    plain = scan_to_hits(scan, VIEW, Scene(), settings)
    assert (plain.dropped, int(plain.free.of_hit.sum()), len(plain.free.length)) == ({}, 4, 5)


@pytest.mark.parametrize("objective", ["IOA", "I", "CSW"])
def test_an_episode_runs_with_the_other_sensor(objective):
    space, shape = circle(), parse_object("ellipse:a=6,b=4", LEFT)
    planner = planner_named(PlannerSettings(planner="greedy", objective=objective), LEFT, space)
    camera = SimulatedCamera(shape, LEFT, SensorSettings(noise_std=0.02))
    mapper, visited = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=400)), []
    for number in range(1, 15):
        decision = planner.decide(mapper.belief(), visited=visited)
        visited.append(decision.view)
        pose = decision.view
        found = scan_to_hits(
            camera.scan(pose, number), pose, LEFT, MeasurementSettings(noise_std=0.02)
        )
        mapper.take(found.hits, [found.free])
    belief = mapper.belief()
    assert np.abs(belief.mean - shape.radius(belief.angle)).mean() < 0.15


def test_ioa_counts_no_pixel_outside_of_the_field_of_view():
    """The same band is worth less where a part of the cone is cut away, and nothing where all of it
    is.
    """

    class Narrow(Scene):
        sensor = ConeSensor(-0.02, 0.3, 0.05, 10.0)

    belief = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=400)).belief()
    views = np.array([0.3, 2.0])
    whole = OBJECTIVES["IOA"].values(belief, Scene(field_of_view=0.6), views)
    part = OBJECTIVES["IOA"].values(belief, Narrow(), views)
    assert (part < 0.7 * whole).all()
    assert (part > 0.4 * whole).all()
