"""Errors of the camera's pose and what they do to the hits, against Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import PoseCovariance, angle_difference, cartesian_to_polar
from nbv_planner.mapping.arrival import PoseTrack
from nbv_planner.mapping.scans import MeasurementSettings, scan_to_hits
from nbv_planner.star2d.measurements import Measurements, polar
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

SCENE = Scene()
ROOTS = st.lists(st.floats(-1.0, 1.0), min_size=9, max_size=9).map(
    lambda values: np.reshape(values, (3, 3))
)


def covariance_of(root: np.ndarray, scale: float) -> PoseCovariance:
    c = scale**2 * root @ root.T
    return PoseCovariance(c[0, 0], c[0, 1], c[1, 1], c[0, 2], c[1, 2], c[2, 2])


def hit_of(pose: CameraPose, distance: float, bearing: float) -> Measurements:
    scan = Scan(bearing, 0.1, np.array([distance]), 0.05, 10.0)
    wide = MeasurementSettings(radius_margin=100.0)
    return polar(scan_to_hits(scan, pose, SCENE, wide).hits)


@settings(max_examples=25, deadline=None)
@given(
    ROOTS,
    st.floats(0.0, 6.2),
    st.floats(2.0, 7.0),
    st.floats(-0.3, 0.3),
    st.floats(-1.0, 1.0),
    st.floats(-2.0, 2.0),
)
def test_the_variance_of_the_radius_at_fixed_angle_is_that_of_moved_cameras(
    root, view, distance, bearing, turn, slope
):
    scale, count = 1e-3, 20_000
    at = CameraPose.from_polar(view, 10.0)
    pose = CameraPose(at.x, at.y, at.yaw + 0.2 * turn, covariance_of(root, scale))
    hit = hit_of(pose, distance, bearing)
    errors = scale * np.random.default_rng(1).standard_normal((count, 3)) @ root.T
    direction = pose.yaw + errors[:, 2] + bearing
    angle, radius = cartesian_to_polar(
        pose.x + errors[:, 0] + distance * np.cos(direction),
        pose.y + errors[:, 1] + distance * np.sin(direction),
    )
    # How far each lies outside a surface of this relative slope through the hit.
    outside = radius - hit.radius * (1.0 + slope * angle_difference(angle, hit.angle))
    expected = float(hit.pose_variance(np.array([slope]))[0])
    assert np.var(outside) == pytest.approx(expected, rel=0.06, abs=1e-3 * scale**2)


def test_a_pose_without_covariance_spreads_nothing_and_one_with_it_widens_the_noise():
    sure = CameraPose.from_polar(0.0, 10.0)
    unsure = CameraPose(sure.x, sure.y, sure.yaw, PoseCovariance(0.09, 0.0, 0.0, 0.0, 0.0, 0.0))
    flat = np.zeros(1)
    assert hit_of(sure, 5.0, 0.0).radial_std(flat)[0] == pytest.approx(0.2)
    assert hit_of(unsure, 5.0, 0.0).radial_std(flat)[0] == pytest.approx(math.hypot(0.2, 0.3))


def test_a_turn_of_the_camera_matters_where_the_surface_is_steep():
    sure = CameraPose.from_polar(0.0, 10.0)
    unsure = CameraPose(sure.x, sure.y, sure.yaw, PoseCovariance(0.0, 0.0, 0.0, 0.0, 0.0, 0.04))
    hit = hit_of(unsure, 5.0, 0.0)
    assert hit.pose_variance(np.zeros(1))[0] == pytest.approx(0.0, abs=1e-12)
    assert hit.pose_variance(np.full(1, 2.0))[0] == pytest.approx(4.0 * 25.0 * 0.04)


@pytest.mark.parametrize(
    "values",
    [
        (math.nan, 0.0, 1.0, 0.0, 0.0, 1.0),
        (math.inf, 0.0, 1.0, 0.0, 0.0, 1.0),
        (-1.0, 0.0, 1.0, 0.0, 0.0, 1.0),
        (1.0, 2.0, 1.0, 0.0, 0.0, 1.0),
        (1.0, 0.0, 1.0, 0.0, 5.0, 1.0),
    ],
)
def test_what_is_no_covariance_is_refused(values):
    with pytest.raises(InputRejectedError) as refused:
        PoseCovariance(*values)
    assert refused.value.reason == "covariance"


def test_no_error_at_all_is_a_covariance():
    assert (PoseCovariance(0.0, 0.0, 0.0, 0.0, 0.0, 0.0).matrix == 0.0).all()


@settings(max_examples=15, deadline=None)
@given(ROOTS, st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_a_camera_on_a_lever_has_the_errors_of_moved_carriers(root, yaw, x, y):
    scale, count = 1e-3, 20_000
    carrier, mount = CameraPose(1.0, -2.0, yaw, covariance_of(root, scale)), CameraPose(x, y, 0.4)
    errors = scale * np.random.default_rng(2).standard_normal((count, 3)) @ root.T
    moved = [
        CameraPose(1.0 + dx, -2.0 + dy, yaw + turn).then(mount) for dx, dy, turn in errors[:4000]
    ]
    sample = np.cov(np.array([[pose.x, pose.y, pose.yaw] for pose in moved]).T)
    expected = carrier.then(mount).covariance.matrix
    np.testing.assert_allclose(sample, expected, atol=0.1 * np.abs(expected).max() + 1e-12)


def test_the_covariance_between_two_poses_is_between_theirs():
    first, second = (
        PoseCovariance(1.0, 0.2, 2.0, 0.1, 0.0, 3.0),
        PoseCovariance(3.0, 0.0, 2.0, 0.3, 0.0, 1.0),
    )
    track = PoseTrack(5, 0, 10)
    track.add(0, CameraPose(0.0, 0.0, 0.0, first))
    track.add(10, CameraPose(1.0, 0.0, 0.0, second))
    middle = track.at(5).covariance
    np.testing.assert_allclose(middle.matrix, 0.5 * (first.matrix + second.matrix))
    track.add(20, CameraPose(1.0, 0.0, 0.0))
    assert track.at(15).covariance is None
