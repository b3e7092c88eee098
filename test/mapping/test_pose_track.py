"""The pose at the time of a scan: between the two poses around it, whatever order they came in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import InputRejectedError
from nbv_planner.mapping.arrival import PoseTrack
from nbv_planner.world.pose import CameraPose

MS = 1_000_000
SECOND = 1000 * MS


def track(*, size: int = 40, tolerance: int = 50 * MS, gap: int = 500 * MS) -> PoseTrack:
    return PoseTrack(size, tolerance, gap)


def steady(stamp: int) -> CameraPose:
    """Pose at `stamp` of a camera that moves straight on and turns evenly, several turns a
    second.
    """
    t = stamp / SECOND
    return CameraPose(
        2.0 + 0.3 * t, -1.0 - 0.7 * t, math.remainder(20.0 * t, 2 * math.pi), height=0.2 * t
    )


def turn(yaw: float, other: float) -> float:
    return abs(math.remainder(yaw - other, 2 * math.pi))


@given(
    st.lists(st.integers(0, 10), min_size=2, max_size=30, unique=True).flatmap(
        lambda slots: st.tuples(
            st.permutations(slots), st.integers(min(slots) * 100, max(slots) * 100)
        )
    )
)
def test_an_even_motion_is_found_again_whatever_the_order_of_the_poses(case):
    slots, scan = case
    poses = track(gap=2 * SECOND)
    for slot in slots:
        poses.add(slot * 100 * MS, steady(slot * 100 * MS))
    stamp = scan * MS
    earlier = max(slot for slot in slots if slot * 100 <= scan)
    later = min(slot for slot in slots if slot * 100 >= scan)
    found = poses.at(stamp)
    assert found is not None
    expected = steady(stamp)
    assert (found.x, found.y, found.height) == pytest.approx(
        (expected.x, expected.y, expected.height)
    )
    if later - earlier <= 1:  # two radians at most: the shorter way is the way it took
        assert turn(found.yaw, steady(stamp).yaw) < 1e-9


@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(0, 1))
def test_the_heading_turns_the_shorter_way(first, second, part):
    poses = track()
    poses.add(0, CameraPose(0.0, 0.0, first))
    poses.add(100 * MS, CameraPose(0.0, 0.0, second))
    stamp = round(part * 100) * MS
    found = poses.at(stamp)
    assert found is not None
    way = turn(second, first)
    assert turn(found.yaw, first) == pytest.approx(way * stamp / (100 * MS), abs=1e-9)


def test_an_exact_pose_is_given_as_it_is():
    poses = track()
    for stamp in (0, 100, 200):
        poses.add(stamp * MS, steady(stamp * MS))
    assert poses.at(100 * MS) == steady(100 * MS)


def test_a_pose_that_is_yet_to_come_is_waited_for():
    poses = track()
    assert poses.at(10) is None
    poses.add(100 * MS, steady(0))
    assert poses.at(100 * MS + 1) is None


@pytest.mark.parametrize(
    ("stamp", "gap", "reason"),
    [
        (49 * MS, 500 * MS, "pose_too_far"),
        (300 * MS, 399 * MS, "pose_gap"),
        (300 * MS, 400 * MS, None),
        (50 * MS, 0, None),
        (149 * MS, 0, None),
        (300 * MS, 0, "pose_gap"),
    ],
)
def test_what_is_too_far_is_refused_with_a_reason(stamp, gap, reason):
    poses = track(gap=gap)
    poses.add(100 * MS, steady(100 * MS))
    poses.add(500 * MS, steady(500 * MS))
    if reason is None:
        assert poses.at(stamp) is not None
        return
    with pytest.raises(InputRejectedError) as caught:
        poses.at(stamp)
    assert caught.value.reason == reason


def test_only_so_many_poses_are_kept():
    poses = track(size=3)
    for stamp in range(100):
        poses.add(stamp * 100 * MS, steady(stamp))
    assert poses.at(9750 * MS) is not None
    with pytest.raises(InputRejectedError, match="first pose"):
        poses.at(9600 * MS)


def test_a_clock_that_has_jumped_back_begins_anew():
    poses = track()
    poses.add(10 * SECOND, steady(0))
    poses.add(9 * SECOND - 1, CameraPose(7.0, 0.0, 0.0))
    assert poses.at(9 * SECOND) is None
    assert poses.at(9 * SECOND - 1) == CameraPose(7.0, 0.0, 0.0)


def test_a_pose_sent_twice_counts_as_it_was_sent_last():
    poses = track()
    poses.add(5, steady(0))
    poses.add(5, steady(SECOND))
    assert poses.at(5) == steady(SECOND)


def test_the_poses_of_a_time_begin_with_the_one_that_held_when_it_began():
    poses = track(size=4)
    for stamp in (100, 200, 300):
        poses.add(stamp * MS, steady(stamp * MS))
    assert poses.during(99 * MS, 300 * MS) == []
    assert poses.during(100 * MS, 250 * MS) == [
        (stamp * MS, steady(stamp * MS)) for stamp in (100, 200)
    ]
    assert poses.during(250 * MS, 260 * MS) == [(200 * MS, steady(200 * MS))]
    poses.add(400 * MS, steady(400 * MS))
    # full: it may have forgotten some
    assert poses.during(0, 100 * MS) == [(100 * MS, steady(100 * MS))]
    assert poses.latest() == (400 * MS, steady(400 * MS))
