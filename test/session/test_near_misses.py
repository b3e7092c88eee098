"""A robot that never quite arrives: three misses by about the same small amount, in memory with a
clock of its own.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "planning"))

from test_session import SECOND, band, feed, ready

from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.session import events
from nbv_planner.session.state import Miss, in_a_row, reach_of
from nbv_planner.world.pose import CameraPose


def pose_off(
    target: CameraPose, ahead: float = 0.0, left: float = 0.0, turn: float = 0.0
) -> CameraPose:
    """A pose that is off a target by so much in the target's own frame."""
    return target.then(CameraPose(ahead, left, turn))


def drive(run, seconds: int, off, period: float = 1.0, start: float = 0.0) -> float:
    """Let the camera stand `off` each goal, a pose each `period`; returns the time at the end, or
    of the episode's.
    """
    now = start
    while now < start + seconds and run.episode.termination is None:
        now += period
        target = run.episode.target
        if target is not None:
            run.inputs.pose, run.inputs.pose_stamp = off(target.pose), round(now * SECOND)
        events.update(run, round(now * SECOND))
    return now


SHORT = {
    "position": (
        lambda pose: pose_off(pose, -0.06),
        "position_tolerance: 0.08, of planner and mapper",
    ),
    "heading": (
        lambda pose: pose_off(pose, turn=0.03),
        "heading_tolerance: 0.04, of planner and mapper",
    ),
    "both": (
        lambda pose: pose_off(pose, 0.1, turn=-0.05),
        "position_tolerance: 0.2, heading_tolerance: 0.07, of",
    ),
}


@pytest.mark.parametrize("name", SHORT)
def test_an_episode_of_a_robot_that_never_quite_arrives_ends_within_five_minutes_with_the_remedy(
    name,
):
    off, remedy = SHORT[name]
    run = ready()
    assert drive(run, 3600, off) < 300.0
    ended = run.episode.termination
    assert ended.reason is TerminationReason.NO_REACHABLE_VIEW
    assert "goals were missed 3 times in a row by about the same" in ended.detail
    assert f": {remedy}" in ended.detail
    assert ended.figures["position_reach"] >= ended.figures["miss_distance"]


def test_an_offset_that_is_the_same_in_the_frame_of_the_camera_tells_of_its_mount():
    run = ready()
    drive(run, 3600, lambda pose: pose_off(pose, 0.02, 0.06))
    assert (
        "always 0.02 m ahead and 0.06 m to the left: check mount_x"
        in run.episode.termination.detail
    )


def test_an_offset_that_is_the_same_on_the_ground_does_not():
    run = ready()
    drive(run, 3600, lambda pose: CameraPose(pose.x + 0.06, pose.y, pose.yaw))
    assert "position_tolerance: 0.08" in run.episode.termination.detail
    assert "mount" not in run.episode.termination.detail


def test_poses_that_come_too_rarely_to_see_the_camera_stand_are_named():
    run = ready(goal_retries=0, arrival={"settle_time": 0.5})
    drive(run, 3600, lambda pose: pose, period=70.0)
    detail = run.episode.termination.detail
    assert "its poses come 70 s apart, too rarely to see it stand" in detail
    assert "settle_time (0.5 s)" in detail


def test_misses_that_are_far_or_not_alike_or_of_one_goal_alone_have_no_remedy():
    for settings, offs in (
        ({}, (3.0, 3.0, 3.0)),
        ({}, (0.06, 0.15, 0.06, 0.15)),
        ({"goal_retries": 20}, (0.06,)),
    ):
        run, number = ready(**settings), [0]

        def off(pose, offs=offs, run=run, number=number):
            number[0] += run.episode.sent == run.inputs.pose_stamp - SECOND
            return pose_off(pose, offs[number[0] % len(offs)])

        drive(run, 700, off)
        assert run.episode.termination is None
        assert run.episode.remedy == ""
        assert run.episode.last_miss is not None


def test_a_view_that_counts_ends_the_row():
    run = ready(goal_timeout=5.0)
    now = drive(run, 14, SHORT["position"][0])
    assert len(run.episode.near) == 2
    now = drive(run, 1, lambda pose: pose, start=now)
    feed(run, belief=band(math.pi), belief_stamp=round(now * SECOND))
    events.update(run, round(now * SECOND))
    assert (len(run.episode.visited), run.episode.near) == (1, ())


@given(st.lists(st.tuples(st.floats(0.051, 0.2), st.floats(0.021, 0.08)), min_size=1, max_size=5))
def test_the_reach_accepts_every_miss_and_is_of_one_digit(offs):
    misses = tuple(Miss(1, distance, turn, ArrivalSettings(), 0, 1) for distance, turn in offs)
    distance, turn = reach_of(misses)
    assert distance >= max(off[0] for off in offs)
    assert turn >= max(off[1] for off in offs)
    assert float(f"{distance:.1g}") == distance
    assert set(in_a_row(misses)) <= set(misses)
