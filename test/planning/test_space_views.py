"""Views in space: where they are, how long the way between them is, and lists of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.geometry import of_optical, optical
from nbv_planner.planning.motion import TimeSettings, trip_time
from nbv_planner.planning.view_space.space_views import (
    SpaceViews,
    SpaceViewSettings,
    space_poses_from,
)
from nbv_planner.planning.view_space.viewpoints import looking, on_sphere
from nbv_planner.world.pose import Poses


def placed(*places):
    return looking(np.array(places, dtype=float), np.zeros(3))


@given(st.integers(0, 39), st.integers(0, 39))
def test_ways_go_around_the_ball_and_are_shortest(first, second):
    views = SpaceViews(on_sphere(40, 2.0), 1.0)
    one, other = views.candidates[first], views.candidates[second]
    there = views.path_length(one, Poses.of([other]))[0]
    straight = np.linalg.norm(views.candidates.position[first] - views.candidates.position[second])
    assert there == pytest.approx(views.path_length(other, Poses.of([one]))[0], abs=1e-9)
    assert straight - 1e-9 <= there <= 0.5 * math.pi * straight + 1e-9
    assert views.nearest(one) == first


def test_a_way_through_the_ball_goes_around_it():
    views = SpaceViews(placed((2.0, 0.0, 0.0), (-2.0, 0.0, 0.0), (0.0, 0.0, 2.0)), 1.0)
    around = 2.0 * math.sqrt(3.0) + math.pi - 2.0 * math.acos(0.5)
    lengths = views.path_length(views.candidates[0], views.candidates)
    assert lengths.tolist() == pytest.approx([0.0, around, math.sqrt(8.0)])


def test_joints_go_at_once():
    settings = SpaceViewSettings(
        view_space="turntable", turns=4, tilts=3, elevation_min=0.0, elevation_max=1.0
    )
    views = SpaceViews.of(settings, 2.0, 1.0)
    assert len(views.candidates) == 12
    lengths = views.path_length(views.candidates[0], views.candidates)
    assert lengths[1] == pytest.approx(2.0 * math.pi / 2.0)
    assert lengths[4] == pytest.approx(2.0 * 0.5)
    assert lengths[6] == pytest.approx(2.0 * math.pi)


def test_a_hemisphere_has_nothing_below_its_centre_and_aims_go_aside():
    settings = SpaceViewSettings(view_space="hemisphere", num_views=20, aim_aside=0.3)
    poses = settings.poses(2.0, 1.0)
    assert len(poses) == 60
    assert (poses.position[:, 2] >= 0.0).all()
    aim = poses.position + 2.0 * poses.rotation[:, :, 0]
    assert np.linalg.norm(aim[:20], axis=1).max() < 1e-9
    assert np.linalg.norm(aim[20:], axis=1).min() > 0.2


def test_views_taken_are_left_out_and_others_from_their_place_are_not():
    settings = SpaceViewSettings(num_views=20, aim_aside=0.3)
    views = SpaceViews.of(settings, 2.0, 1.0)
    excluded = views.excluded(0.0, [views.candidates[3]], 0.1)
    assert np.flatnonzero(excluded).tolist() == [3]


def test_optical_frames_look_ahead_with_z_and_lists_are_read_back(tmp_path):
    poses = on_sphere(7, 2.0)
    quaternion = optical(poses.rotation)
    np.testing.assert_allclose(of_optical(quaternion), poses.rotation, atol=1e-12)
    rows = np.column_stack([poses.position, quaternion])
    file = tmp_path / "views.csv"
    lines = [",".join(f"{number:.9f}" for number in row) for row in rows]
    file.write_text("\n".join(["x,y,z,qx,qy,qz,qw", *lines]))
    found = space_poses_from(str(file))
    np.testing.assert_allclose(found.rotation, poses.rotation, atol=1e-6)
    file.write_text("\n".join(["x,y,z", *(line.rsplit(",", 4)[0] for line in lines)]))
    np.testing.assert_allclose(space_poses_from(str(file)).rotation, poses.rotation, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y,z", "has 0 poses"),
        ("x,y,z\n1,2", "line 2: must have the numbers x, y, z"),
        ("x,y,z\n1,2,nan", "line 2: is not a pose"),
        ("x,y,z,qx,qy,qz,qw\n1,2,3,0,0,0,0", "line 2: is not a pose"),
        ("x,y,z\n0.5,0,0", "pose 1 is 0.5 m from the centre"),
    ],
)
def test_a_wrong_list_ends_in_one_line(tmp_path, text, words):
    file = tmp_path / "views.csv"
    file.write_text(text)
    with pytest.raises(SettingError, match=words):
        SpaceViewSettings(view_space="list", view_file=str(file)).poses(2.0, 1.0)


def test_a_file_goes_with_a_list_alone():
    with pytest.raises(SettingError, match="view_file"):
        SpaceViewSettings(view_space="list")
    with pytest.raises(SettingError, match="elevation_min"):
        SpaceViewSettings(elevation_min=1.0, elevation_max=0.5)


def test_the_time_of_the_slower_joint_is_the_way_over_the_speed():
    """A tilt twice as fast as the table: 0.5 rad of it take as long as 0.25 rad of the table."""
    settings = SpaceViewSettings(
        view_space="turntable", turns=4, tilts=3, elevation_min=0.0, elevation_max=1.0, tilt_ratio=2
    )
    views = SpaceViews.of(settings, 2.0, 1.0)
    lengths = views.path_length(views.candidates[0], views.candidates)
    assert lengths[4] == pytest.approx(2.0 * 0.25)
    assert lengths[5] == pytest.approx(2.0 * math.pi / 2.0)
    timed = TimeSettings(linear_speed=0.5, turn_speed=100.0, dwell_time=0.0)
    seconds = trip_time(views, views.candidates[0], views.candidates, timed)
    assert seconds[4] == pytest.approx(1.0)


def test_an_arm_reaches_to_either_side_alone():
    poses = SpaceViewSettings(num_views=40, azimuth_max=1.0).poses(2.0, 1.0)
    assert len(poses) == 40
    azimuth = np.arctan2(poses.position[:, 1], poses.position[:, 0])
    assert np.abs(azimuth).max() <= 1.0 + 1e-9
    assert azimuth.min() < -0.8 < 0.8 < azimuth.max()
    spaced = np.linalg.norm(poses.position[:, None] - poses.position, axis=2) + 9.0 * np.eye(40)
    assert spaced.min() > 0.1
    table = SpaceViewSettings(view_space="turntable", turns=8, tilts=1, azimuth_max=1.0)
    assert len(table.poses(2.0, 1.0)) == 3


def numbers_of(poses):
    rows = np.column_stack([poses.position, optical(poses.rotation)])
    return tuple(rows.reshape(-1).tolist())


def test_poses_in_a_parameter_are_those_of_the_optical_frame():
    poses = on_sphere(6, 2.0)
    found = SpaceViewSettings(view_poses=numbers_of(poses)).poses(9.0, 1.0)
    np.testing.assert_allclose(found.position, poses.position, atol=1e-12)
    np.testing.assert_allclose(found.rotation, poses.rotation, atol=1e-12)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((), "has 0 numbers, must be 7 of each of 1 to 5000 poses"),
        ((1.0,) * 8, "has 8 numbers"),
        ((2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5), "pose 1 is not a pose"),
        ((2.0, 0.0, math.nan, 0.0, 0.0, 0.0, 1.0), "is not a finite number"),
    ],
)
def test_numbers_that_are_no_poses_are_refused(numbers, words):
    with pytest.raises(SettingError, match=words):
        SpaceViewSettings(view_poses=numbers)


def test_a_pose_where_the_object_may_be_is_refused():
    near = SpaceViewSettings(view_poses=numbers_of(on_sphere(2, 0.5)))
    with pytest.raises(SettingError, match=r"view_poses: pose 1 is 0\.5 m from the centre"):
        near.poses(9.0, 1.0)


def test_a_list_of_mappings_is_read_like_the_rows_of_a_table(tmp_path):
    file = tmp_path / "views.yaml"
    file.write_text("- {x: 2, y: 0, z: 0}\n- {x: 0, y: 3, z: 0}\n")
    assert space_poses_from(str(file)).position.tolist() == [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]]
    file.write_text("- 5\n")
    with pytest.raises(SettingError, match="line 1: must have the numbers x, y, z"):
        space_poses_from(str(file))
