"""Ranges linearised about a contour along their beams."""

from __future__ import annotations

import numpy as np
import pytest

from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.measurements import Beams, polar
from nbv_planner.star2d.robust_fit import linearised
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE, GRID = Scene(), uniform_grid(1000)
STEEP = parse_object("flower:frequency=5,amplitude=2", SCENE)


def beams_of(shape, view: float, *, noise: float, beams: int = 121, seed: int = 0) -> Beams:
    pose = CameraPose.from_polar(view, 10.0)
    sensor = SensorSettings(noise_std=noise, num_beams=beams, seed=seed)
    scan = SimulatedCamera(shape, SCENE, sensor).scan(pose, 1)
    hits = polar(
        scan_to_hits(scan, pose, SCENE, MeasurementSettings(noise_std=max(noise, 0.2))).hits
    )
    return Beams(hits, np.zeros(len(hits), dtype=int), np.ones(len(hits), dtype=int))


def bias_by_angle(shape, period: float, *, along: bool) -> np.ndarray:
    """Mean standardised residual against the true contour in bins over one period of it."""
    folded, residual = [], []
    for view in np.linspace(0.0, 6.2, 60):
        beams = beams_of(shape, view, noise=0.2, seed=int(100 * view))
        data = linearised(beams, GRID, shape.radius(GRID), along=along, incidence=0.0)
        folded.append(data.angle % period)
        residual.append((data.radius - data.mean) / data.std)
    place = (np.concatenate(folded) / period * 20).astype(int)
    return np.bincount(place, np.concatenate(residual)) / np.bincount(place)


@pytest.mark.parametrize(
    "text", ["ellipse:a=6,b=4", "flower:frequency=5,amplitude=2", "square:width=8"]
)
def test_exact_ranges_leave_nothing_on_the_true_contour(text):
    shape = parse_object(text, SCENE)
    data = linearised(
        beams_of(shape, 0.4, noise=0.0), GRID, shape.radius(GRID), along=True, incidence=0.0
    )
    assert np.quantile(np.abs(data.radius - data.mean), 0.98) < 0.01
    assert np.median(np.abs(data.radius - data.mean)) < 1e-3


def test_on_a_steep_surface_the_range_along_the_beam_is_less_biased_than_the_radius():
    along, at_angle = (
        bias_by_angle(STEEP, 2.0 * np.pi / 5, along=along) for along in (True, False)
    )
    assert np.sqrt(np.mean(along**2)) < 0.5 * np.sqrt(np.mean(at_angle**2))


def test_a_surface_further_out_is_measured_further_out_by_as_much():
    shape, shift = parse_object("ellipse:a=6,b=4", SCENE), 0.05
    data = linearised(
        beams_of(shape, 0.7, noise=0.0), GRID, shape.radius(GRID) - shift, along=True, incidence=0.0
    )
    assert np.median(data.radius - data.mean) == pytest.approx(shift, rel=0.03)


def test_a_beam_that_does_not_cross_the_contour_nearby_keeps_its_hit():
    beams = beams_of(STEEP, 0.0, noise=0.0)
    data = linearised(beams, GRID, np.full(len(GRID), 1.0), along=True, incidence=0.0)
    np.testing.assert_allclose(data.radius, beams.hits.radius)
    np.testing.assert_allclose(data.angle, beams.hits.angle)


def test_noise_grows_with_the_angle_of_incidence_if_it_is_told_to():
    shape = parse_object("ellipse:a=6,b=4", SCENE)
    beams = beams_of(shape, 0.7, noise=0.0)
    plain, oblique = (
        linearised(beams, GRID, shape.radius(GRID), along=True, incidence=k) for k in (0.0, 1.0)
    )
    x, y = beams.hits.points.T
    normal = np.arctan2(y / 4.0**2, x / 6.0**2)
    cos = np.abs(np.cos(beams.direction - normal))
    np.testing.assert_allclose(oblique.std / plain.std, 1.0 / cos, rtol=0.01)
    assert np.abs(normal - plain.angle).max() > 0.3
