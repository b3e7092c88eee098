"""Images and clouds as beams: where they point, what is unknown and what is free."""

from __future__ import annotations

import numpy as np
import pytest

from nbv_planner.errors import InputRejectedError
from nbv_planner.planning.view_space.viewpoints import looking
from nbv_planner.volume.bodies.depth_sensor import DepthSensor, SimulatedDepthCamera, seen_in
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.volume.bodies.thinned import depth_scan, of_object, point_scan
from nbv_planner.world.scan import Pinhole, RangeNoise

NOISE = RangeNoise(0.0, 0.004)
SENSOR = DepthSensor(columns=16, rows=12, range_max=4.0)
CAMERA = Pinhole(20.0, 20.0, 7.5, 5.5)


def pinhole_of(sensor):
    wide, high = sensor.half_tangents
    middle = 0.5 * (sensor.columns - 1), 0.5 * (sensor.rows - 1)
    return Pinhole(middle[0] / wide, middle[1] / high, *middle)


def test_an_image_of_the_sensors_own_size_is_what_the_sensor_measured():
    pose = looking(np.array([[0.9, -1.2, 0.8]]), np.zeros(3))
    camera = SimulatedDepthCamera(solid_named("mug", 1.0), SENSOR, NOISE)
    scan = camera.scan(pose.position[0], pose.rotation[0], np.random.default_rng(0))
    depth = (scan.ranges * scan.directions[:, 0]).reshape(12, 16)
    read = depth_scan(depth, pinhole_of(SENSOR), SENSOR)
    np.testing.assert_allclose(read.directions, SENSOR.directions, atol=1e-12)
    np.testing.assert_allclose(read.ranges, scan.ranges, rtol=1e-9)
    one, other = (seen_in(it, pose.position[0], pose.rotation[0], NOISE, 0) for it in (scan, read))
    np.testing.assert_allclose(one[0].points, other[0].points, atol=1e-9)


def test_what_a_camera_does_not_know_is_unknown_and_no_return_is_free():
    depth = np.full((12, 16), 2.0)
    depth[0, :4] = 0.0, np.nan, np.inf, -1.0
    scan = depth_scan(depth, CAMERA, SENSOR)
    hits, free = seen_in(scan, np.zeros(3), np.eye(3), NOISE, 0)
    assert len(hits) == 12 * 16 - 4
    assert len(free.length) == 12 * 16 - 3
    assert free.length[~free.of_hit].tolist() == [4.0]


def test_a_large_image_is_thinned_to_about_the_beams_of_the_sensor():
    scan = depth_scan(np.full((480, 640), 1.0), Pinhole(500.0, 500.0, 319.5, 239.5), SENSOR)
    assert len(scan.ranges) == 12 * 16
    assert scan.ranges * scan.directions[:, 0] == pytest.approx(np.ones(192))


def test_a_cloud_gives_the_places_of_its_points():
    rng = np.random.default_rng(0)
    points = rng.uniform(0.5, 1.0, (12 * 16, 3))
    points[3], points[4] = np.nan, 0.0
    scan = point_scan(points, 16, SENSOR)
    assert np.flatnonzero(np.isnan(scan.ranges)).tolist() == [3, 4]
    hits, free = seen_in(scan, np.zeros(3), np.eye(3), NOISE, 0)
    assert len(free.length) == len(points) - 2
    known = np.delete(points, [3, 4], axis=0)
    np.testing.assert_allclose(hits.points, known[:, [2, 0, 1]] * (1.0, -1.0, -1.0), atol=1e-12)
    assert len(point_scan(rng.uniform(1.0, 2.0, (100_000, 3)), 100_000, SENSOR).ranges) <= 192


@pytest.mark.parametrize("read", [lambda: point_scan(np.empty((0, 3)), 0, SENSOR)])
def test_a_cloud_without_points_is_refused(read):
    with pytest.raises(InputRejectedError, match="no point"):
        read()
    with pytest.raises(InputRejectedError, match="no pixel"):
        depth_scan(np.empty((0, 4)), CAMERA, SENSOR)


BOX = np.array([(-1e6, -0.3, -0.2), (1e6, 0.3, 1e6)])


def test_what_is_outside_of_the_box_or_far_away_is_no_part_of_the_object():
    depth = np.full((12, 16), 2.0)
    depth[:, 8:] = 3.5
    pose = looking(np.array([[2.0, 0.0, 0.0]]), np.zeros(3))
    hits, free = of_object(depth_scan(depth, CAMERA, SENSOR), pose, NOISE, 0, (1.0, BOX))
    assert 0 < len(hits) < 96
    assert np.linalg.norm(hits.points, axis=1).max() <= 1.0
    assert (hits.points > BOX[0]).all()
    assert (hits.points < BOX[1]).all()
    assert (np.abs(hits.points[:, 1:] / (0.3, 0.2)).max(axis=0) > 0.8).all()
    assert free.of_hit.sum() == len(hits)
    assert len(free.length) == 192
