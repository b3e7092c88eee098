"""Edges of what is densely measured, and the views they propose."""

from __future__ import annotations

import numpy as np
import pytest

from nbv_bench.rivals.frontier import frontier_points, measured_points, proposals
from nbv_planner.geometry import angle_difference
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE, RADIUS, DENSE = Scene(), 0.5, 10


def arc(first: float, last: float, spacing: float = 0.01, radius: float = 5.0):
    angle = np.arange(first, last, spacing)
    points = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return points, 2.0 * points


@pytest.mark.parametrize("first", [0.0, 2.0, 5.5])
def test_of_an_arc_only_its_ends_are_edges(first):
    """Within half a disc of either end, and nowhere between."""
    points, _ = frontier_points(*arc(first, first + 1.5), RADIUS, DENSE)
    angle = np.arctan2(points[:, 1], points[:, 0])
    from_ends = np.minimum(
        np.abs(angle_difference(angle, first)), np.abs(angle_difference(angle, first + 1.49))
    )
    assert len(points) >= 2
    assert 5.0 * from_ends.max() <= RADIUS


def test_a_closed_contour_and_sparse_points_have_none():
    assert len(frontier_points(*arc(0.0, 2.0 * np.pi), RADIUS, DENSE)[0]) == 0
    # two points in a disc
    assert len(frontier_points(*arc(0.0, 1.5, spacing=0.1), RADIUS, DENSE)[0]) == 0
    assert len(frontier_points(np.empty((0, 2)), np.empty((0, 2)), RADIUS, DENSE)[0]) == 0


def test_normals_are_orthogonal_to_the_surface_and_look_at_the_camera_that_measured_it():
    points, normals = frontier_points(*arc(1.0, 2.5), RADIUS, DENSE)
    assert len(points) >= 2
    np.testing.assert_allclose((points / 5.0 * normals).sum(axis=1), 1.0, atol=0.01)
    points, _ = arc(1.0, 2.5)
    inside, inward = frontier_points(points, 0.5 * points, RADIUS, DENSE)
    assert len(inside) >= 2
    np.testing.assert_allclose((inside / 5.0 * inward).sum(axis=1), -1.0, atol=0.01)


def test_proposals_lie_on_the_view_circle_along_the_normal():
    points, normals = np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [0.6, 0.8]])
    found = proposals(points, normals, 10.0)
    np.testing.assert_allclose(np.hypot(*found.T), 10.0)
    along = (found - points) / np.hypot(*(found - points).T)[:, None]
    np.testing.assert_allclose(along, normals)


def test_points_are_where_the_beams_met_the_object():
    pose = CameraPose.from_polar(0.7, SCENE.view_distance)
    scan = SimulatedCamera(
        parse_object("ellipse:a=5,b=5", SCENE), SCENE, SensorSettings(noise_std=0.0)
    ).scan(pose, 1)
    points, cameras = measured_points([scan, scan], [pose, pose], 10.0)
    np.testing.assert_allclose(np.hypot(*points.T), 5.0, atol=1e-3)
    assert len(points) == len(cameras) == 2 * np.isfinite(scan.ranges).sum()
    np.testing.assert_allclose(cameras, np.full(cameras.shape, (pose.x, pose.y)))
