"""What free rays say about a star-shaped object, against rays cut one by one and against true
objects.
"""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.measurements import PolarRays, unseen_beyond
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera
from nbv_planner.world.visibility import observe

SCENE = Scene()
OBJECTS = [
    "ellipse:a=8,b=2",
    "flower:frequency=5,amplitude=2",
    "square:width=4",
    "polygon:star",
    "polygon:concave",
]


@given(
    st.lists(st.tuples(st.floats(-3.1, 3.1), st.floats(0.0, 14.0)), max_size=12),
    st.floats(-4.0, 7.0),
    st.floats(3.0, 12.0),
)
def test_the_bound_is_the_nearest_crossing_of_any_free_ray(rays, view, distance):
    rays = [(bearing, length) for bearing, length in rays if abs(bearing) > 1e-3]
    bearing, length = np.array(rays).reshape(-1, 2).T
    grid = uniform_grid(40) + 0.003
    bound = PolarRays(view, distance, bearing, length, np.zeros(len(bearing), dtype=bool)).bound(
        grid
    )
    for phi, found in zip(grid, bound, strict=True):
        crossed = []
        for beta, reach in rays:
            radius = oracles.line_radius(phi, view, beta, distance)
            alpha, d = oracles.camera_polar(phi, radius, view, distance)
            if radius > 0.0 and abs(alpha - beta) < 1e-6:  # ahead of the camera, not behind it
                crossed.append((radius, d - reach))
        if any(abs(beyond) < 1e-6 for _, beyond in crossed):
            continue  # the end of a ray exactly on the angle
        assert found == pytest.approx(
            min((r for r, beyond in crossed if beyond < 0.0), default=math.inf), rel=1e-6
        )


def test_a_ray_through_the_middle_bounds_at_its_end():
    bound = PolarRays(0.0, 10.0, np.array([0.0]), np.array([4.0]), np.array([False])).bound(
        uniform_grid(8)
    )
    np.testing.assert_allclose(bound, [6.0, *[np.inf] * 7])


@pytest.mark.parametrize("behind", [-math.pi, math.pi])
def test_a_ray_that_leads_away_bounds_nothing_nearer_than_the_camera(behind):
    """Of a lidar that sees all around, it may be the only one on its side."""
    bound = PolarRays(0.0, 10.0, np.array([behind]), np.array([4.0]), np.array([False])).bound(
        uniform_grid(8)
    )
    assert bound.min() >= 10.0


@pytest.mark.parametrize("text", OBJECTS)
def test_no_object_contradicts_what_its_observed_points_leave_free(text):
    """Up to the corners, which stick out between two points by less than a pixel."""
    shape, grid = parse_object(text, SCENE), uniform_grid(720)
    points = surface_points(shape, SCENE.pixel_size)
    bounded = 0
    for view in np.arange(60) * (2 * math.pi / 60):
        seen = observe(points.angle, points.radius, view, SCENE)[0]
        pose = CameraPose.from_polar(view, SCENE.view_distance)
        rays = unseen_beyond(points.angle[seen], points.radius[seen], pose, SCENE)
        bound = rays.bound(grid)
        assert (bound - shape.radius(grid)).min() > -SCENE.pixel_size
        bounded += np.isfinite(bound).sum()
    assert bounded > 0.05 * 60 * 720


@pytest.mark.parametrize("text", OBJECTS)
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_no_object_contradicts_the_beams_of_the_camera(text, noise):
    shape, grid = parse_object(text, SCENE), uniform_grid(720)
    camera = SimulatedCamera(shape, SCENE, SensorSettings(noise_std=noise))
    contradicted, misses = [], 0
    for number, view in enumerate(np.linspace(0.1, 6.0, 20)):
        pose = CameraPose.from_polar(view, SCENE.view_distance)
        scan = camera.scan(pose, view_number=number)
        found = scan_to_hits(scan, pose, SCENE, MeasurementSettings())
        bound = PolarRays.of(found.free).bound(grid)
        contradicted.append((bound < shape.radius(grid) - 1e-3).mean())
        missed = int(np.isposinf(scan.ranges).sum())
        misses += missed
        assert len(found.free.direction) == missed + len(found.hits)
    # Three standard deviations are exceeded by one beam in 740.
    assert np.mean(contradicted) <= (0.0 if noise == 0.0 else 0.01)
    # the others fill the cone
    assert (misses > 0) == (text in ("ellipse:a=8,b=2", "square:width=4"))


def test_without_the_rays_of_hits_those_of_misses_and_of_other_hits_stay():
    shape = parse_object("square:width=4", SCENE)
    pose = CameraPose.from_polar(0.3, SCENE.view_distance)
    scan = SimulatedCamera(shape, SCENE, SensorSettings(noise_std=0.0)).scan(pose, view_number=0)
    found = scan_to_hits(scan, pose, SCENE, MeasurementSettings())
    rays = PolarRays.of(found.free)
    assert rays.hits == len(found.hits)
    doubtful = np.zeros(rays.hits, dtype=bool)
    doubtful[[0, 5]] = True
    less = rays.without_hits(doubtful)
    assert less.hits == rays.hits - 2
    assert len(less.bearing) - less.hits == np.isposinf(scan.ranges).sum()
    gone = np.setdiff1d(rays.bearing, less.bearing)
    np.testing.assert_allclose(gone, np.sort(rays.bearing[rays.of_hit][doubtful]), atol=1e-9)
