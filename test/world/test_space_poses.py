"""Poses in space: as arrays and one by one, apart from each other, on the way, and in a journal."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from nbv_planner.files.plain_values import from_plain, to_plain
from nbv_planner.world.pose import CameraPose, Poses

NUMBERS = st.floats(-3.0, 3.0)
TURNS = st.tuples(NUMBERS, NUMBERS, NUMBERS)


def pose_at(place, turn):
    return CameraPose.in_space(place, Rotation.from_rotvec(turn).as_matrix())


@given(st.lists(st.tuples(TURNS, TURNS), min_size=1, max_size=4))
def test_poses_are_the_same_one_by_one_and_as_arrays(given_poses):
    rotations = np.stack([Rotation.from_rotvec(turn).as_matrix() for _, turn in given_poses])
    places = np.array([place for place, _ in given_poses]) + np.array([0.0, 0.0, 9.0])
    poses = Poses.of(
        [pose_at(place, turn) for place, (_, turn) in zip(places, given_poses, strict=True)]
    )
    assert poses.position.tolist() == places.tolist()
    np.testing.assert_allclose(poses.rotation, rotations, atol=1e-12)
    for index, one in enumerate(poses):
        assert one.offset(poses[index]) == pytest.approx((0.0, 0.0), abs=1e-7)
    assert poses.repeat(poses.chosen(slice(0, 1)))[0]
    assert not poses.repeat(Poses.of([])).any()


@given(TURNS, TURNS, st.floats(0.0, 1.0))
def test_a_pose_on_the_way_has_its_part_of_way_and_turn(one, other, part):
    start, end = pose_at(one, one[::-1]), pose_at(other, other[::-1])
    distance, turn = start.offset(end)
    assert distance == pytest.approx(math.dist(one, other))
    between = start.towards(end, part)
    if turn < math.pi - 1e-3:  # else it may turn the other way
        assert start.offset(between) == pytest.approx((part * distance, part * turn), abs=1e-6)


def test_the_line_of_sight_seen_from_above_is_the_yaw():
    for yaw in (-2.0, 0.3, 3.0):
        tilted = Rotation.from_euler("ZY", [yaw, 0.7]).as_matrix()
        assert CameraPose.in_space((1.0, 2.0, 3.0), tilted).yaw == pytest.approx(yaw)


def test_a_pose_in_space_is_kept_in_a_journal_to_the_last_bit():
    pose = pose_at((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert from_plain(CameraPose, json.loads(json.dumps(to_plain(pose)))) == pose


def test_a_pose_of_a_journal_from_before_there_was_space_lies_in_the_plane():
    written = to_plain(CameraPose(1.0, 2.0, 0.5))
    del written["attitude"]
    assert from_plain(CameraPose, written) == CameraPose(1.0, 2.0, 0.5)
