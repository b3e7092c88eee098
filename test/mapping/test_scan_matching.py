"""Scans find the pose of their time, and count only if taken at the goal (without ROS)."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings, ScanMatcher
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan

MS = 1_000_000
GOAL = CameraPose.from_polar(1.0, 10.0)
ELSEWHERE = CameraPose.from_polar(2.0, 10.0)


def scan_number(k: int) -> Scan:
    return Scan(-0.1, 0.1, np.array([float(k), 5.0, 5.0]), 0.05, 10.0)


def matcher(**settings) -> ScanMatcher:
    return ScanMatcher(
        MatchingSettings(**{"scans_per_view": 1, **settings}), ArrivalSettings(settle_time=0.0)
    )


def numbers(taken) -> list[int]:
    return [int(match.scan.ranges[0]) for match in taken]


@pytest.mark.parametrize(
    ("pose", "there"),
    [
        (GOAL, True),
        (CameraPose(GOAL.x + 0.04, GOAL.y, GOAL.yaw), True),
        (CameraPose(GOAL.x + 0.06, GOAL.y, GOAL.yaw), False),
        (CameraPose(GOAL.x, GOAL.y, GOAL.yaw + 0.019), True),
        (CameraPose(GOAL.x, GOAL.y, GOAL.yaw - 0.021), False),
        (CameraPose(GOAL.x, GOAL.y, GOAL.yaw + 4 * math.pi), True),
        (ELSEWHERE, False),
    ],
)
def test_arrival_looks_at_position_and_heading(pose, there):
    assert ArrivalSettings().reached(pose, GOAL) is there


def test_scan_taken_at_the_goal_is_handed_out_once_with_its_pose():
    match = matcher()
    match.set_goal(0, GOAL)
    match.add_scan(10 * MS, scan_number(1))
    assert match.take() == []
    match.add_pose(12 * MS, GOAL)
    (taken,) = match.take()
    assert (taken.stamp, taken.pose) == (10 * MS, GOAL)
    match.add_scan(20 * MS, scan_number(2))
    match.add_pose(20 * MS, GOAL)
    assert match.take() == []


@given(st.permutations(["goal", "scan", "pose"]))
def test_scan_pose_and_goal_may_arrive_in_any_order(order):
    match = matcher()
    for what in order:
        if what == "goal":
            match.set_goal(5 * MS, GOAL)
        elif what == "scan":
            match.add_scan(10 * MS, scan_number(1))
        else:
            match.add_pose(10 * MS, GOAL)
    assert numbers(match.take()) == [1]


def test_scan_before_the_goal_was_given_or_away_from_it_does_not_count():
    match = matcher()
    match.set_goal(100 * MS, GOAL)
    for stamp, pose in ((90, GOAL), (110, ELSEWHERE), (120, GOAL)):
        match.add_scan(stamp * MS, scan_number(stamp))
        match.add_pose(stamp * MS, pose)
    assert numbers(match.take()) == [120]


def test_each_scan_gets_the_pose_between_the_two_around_it():
    match = matcher(integrate="always")
    match.add_pose(80 * MS, CameraPose(1.0, 2.0, 6.2))
    match.add_scan(100 * MS, scan_number(1))
    assert match.match() == []
    match.add_pose(120 * MS, CameraPose(3.0, 1.0, 0.1))
    (taken,) = match.take()
    assert (taken.pose.x, taken.pose.y) == pytest.approx((2.0, 1.5))
    assert math.remainder(taken.pose.yaw, 2 * math.pi) == pytest.approx(
        (6.2 - 2 * math.pi + 0.1) / 2
    )
    assert match.matches == 1


def test_each_scan_gets_the_rate_of_the_pose_at_its_time():
    """Averaged over a quarter of a second, the heading the shorter way round; 0 where too little is
    known.
    """
    match = matcher(integrate="always")
    for step in range(11):
        match.add_pose(50 * step * MS, CameraPose(0.02 * step, -0.01 * step, 3.1 + 0.01 * step))
        match.add_scan((50 * step + 20) * MS, scan_number(step))
    first, *_, last = match.take()
    assert first.rate == (0.0, 0.0, 0.0)
    assert last.rate == pytest.approx((0.4, -0.2, 0.2))


def test_a_camera_that_counts_as_standing_at_its_goal_has_no_rate_however_it_came_there():
    match = matcher()
    match.set_goal(0, GOAL)
    for step in range(5):
        match.add_pose(step * 10 * MS, CameraPose(GOAL.x + 4.0 - step, GOAL.y, GOAL.yaw))
    match.add_scan(45 * MS, scan_number(1))
    match.add_pose(50 * MS, GOAL)
    assert [one.rate for one in match.take()] == [(0.0, 0.0, 0.0)]


def test_the_rate_of_rare_poses_and_of_a_standing_camera_is_zero():
    match = matcher(integrate="always", pose_gap=0.1)
    for stamp in (0, 2000, 2050):
        match.add_pose(stamp * MS, CameraPose(1e-3 * stamp, 0.0, 0.0))
    match.add_scan(2050 * MS, scan_number(1))
    for stamp in range(3000, 3500, 50):
        match.add_pose(stamp * MS, CameraPose(9.0, 0.0, 0.0))
    match.add_scan(3400 * MS, scan_number(2))
    assert [one.rate for one in match.take()] == [(0.0, 0.0, 0.0)] * 2


def test_without_interpolation_each_scan_gets_the_pose_nearest_in_time():
    match = matcher(pose_gap=0.0)
    match.set_goal(0, GOAL)
    match.add_pose(80 * MS, ELSEWHERE)
    match.add_scan(100 * MS, scan_number(1))
    match.add_pose(105 * MS, GOAL)
    (taken,) = match.take()
    assert taken.pose == GOAL


def test_scan_between_poses_too_far_apart_is_dropped_and_counted():
    match = matcher(pose_gap=0.5, integrate="always")
    match.add_pose(0, GOAL)
    match.add_scan(200 * MS, scan_number(1))
    match.add_pose(501 * MS, GOAL)
    assert match.take() == []
    assert match.drops.numbers == {"scan.pose_gap": 1}


def test_scan_whose_pose_never_comes_is_dropped_when_later_scans_say_so():
    match = matcher(pose_timeout=1.0)
    for stamp in (100, 600, 1101):
        match.add_scan(stamp * MS, scan_number(stamp))
    assert match.drops.numbers == {"scan.no_pose": 1}
    match.add_pose(1101 * MS, GOAL)
    assert match.drops.numbers == {"scan.no_pose": 1, "scan.pose_too_far": 1}
    assert match.matches == 1


def test_a_scan_that_waits_holds_up_no_later_one():
    """As after a clock that has jumped back, or with transforms of several frames."""

    class OneFrame:
        def at(self, stamp: int, frame: str) -> CameraPose | None:
            return GOAL if frame == "left" else None

        def during(self, first: int, last: int, frame: str) -> list[tuple[int, CameraPose]]:
            return []

    settings = MatchingSettings(integrate="always", scans_per_view=1)
    match = ScanMatcher(settings, ArrivalSettings(settle_time=0.0), OneFrame())
    assert match.add_scan(10 * MS, scan_number(1), "right") == []
    assert numbers(match.add_scan(20 * MS, scan_number(2), "left")) == [2]
    assert numbers(match.take()) == [2]


def test_after_a_jump_back_of_the_clock_scans_are_matched_again():
    match = matcher(integrate="always")
    far = 1000_000 * MS
    match.add_pose(far, GOAL)
    match.add_scan(far + MS, scan_number(1))
    for stamp in (10, 20, 30):
        match.add_scan(stamp * MS, scan_number(stamp))
        match.add_pose(stamp * MS, ELSEWHERE)
    assert numbers(match.take()) == [20, 30]  # the first came before any pose of its time
    assert match.drops.numbers == {"scan.no_pose": 1, "scan.pose_too_far": 1}


def test_scan_without_a_pose_near_in_time_is_dropped_and_counted():
    match = matcher(pose_tolerance=0.05)
    match.set_goal(0, GOAL)
    match.add_scan(100 * MS, scan_number(1))
    match.add_pose(151 * MS, GOAL)
    assert match.take() == []
    assert match.drops.numbers == {"scan.pose_too_far": 1}


def test_pose_exactly_at_the_tolerance_matches():
    match = matcher(pose_tolerance=0.05)
    match.set_goal(0, GOAL)
    match.add_scan(100 * MS, scan_number(1))
    match.add_pose(150 * MS, GOAL)
    assert numbers(match.take()) == [1]


def test_scans_that_wait_too_long_for_a_pose_are_dropped_oldest_first():
    match = matcher(queue_size=3)
    match.set_goal(0, GOAL)
    for k in range(1, 6):
        match.add_scan(k * MS, scan_number(k))
    assert match.drops.numbers == {"scan.no_pose": 2}
    match.add_pose(5 * MS, GOAL)
    assert numbers(match.take()) == [3]


def test_all_scans_of_a_view_are_handed_out_together_and_in_order():
    match = matcher(scans_per_view=3)
    match.set_goal(0, GOAL)
    for k in range(1, 6):
        assert match.take() == []
        match.add_scan(10 * k * MS, scan_number(k))
        match.add_pose(10 * k * MS, GOAL)
        if k == 3:
            break
    assert numbers(match.take()) == [1, 2, 3]
    assert match.take() == []


def test_the_same_goal_again_changes_nothing_and_a_new_one_at_the_same_place_starts_over():
    match = matcher()
    match.set_goal(1, GOAL)
    match.add_scan(10 * MS, scan_number(1))
    match.add_pose(10 * MS, GOAL)
    assert numbers(match.take()) == [1]
    match.set_goal(1, GOAL)
    match.add_scan(20 * MS, scan_number(2))
    match.add_pose(20 * MS, GOAL)
    assert match.take() == []
    match.set_goal(25 * MS, GOAL)
    assert match.take() == []
    match.add_scan(30 * MS, scan_number(3))
    match.add_pose(30 * MS, GOAL)
    assert numbers(match.take()) == [3]


def test_reset_forgets_scans_poses_and_goal():
    match = matcher()
    match.set_goal(0, GOAL)
    match.add_scan(10 * MS, scan_number(1))
    match.reset()
    match.add_pose(10 * MS, GOAL)
    assert match.take() == []
    match.set_goal(5 * MS, GOAL)
    assert match.take() == []


@pytest.mark.parametrize(
    "values",
    [
        {"integrate": "never"},
        {"pose_gap": -0.1},
        {"pose_timeout": 0.0},
        {"scans_per_view": 0},
        {"pose_tolerance": -0.1},
        {"queue_size": 0},
        {"scans_per_view": 41},
        {"scans_per_view": 6, "queue_size": 5},
    ],
)
def test_matching_settings_outside_their_range_are_refused(values):
    with pytest.raises(SettingError, match=next(iter(values))):
        MatchingSettings(**values)


def test_always_takes_every_scan_once_wherever_the_camera_is():
    match = matcher(integrate="always", scans_per_view=3)
    for stamp, pose in ((10, GOAL), (20, ELSEWHERE)):
        match.add_scan(stamp * MS, scan_number(stamp))
        match.add_pose(stamp * MS, pose)
    assert numbers(match.take()) == [10, 20]
    assert match.take() == []
    match.set_goal(5 * MS, GOAL)
    match.set_goal(5 * MS, GOAL)
    match.add_scan(30 * MS, scan_number(30))
    assert match.take() == []
    match.add_pose(30 * MS, ELSEWHERE)
    (taken,) = match.take()
    assert (numbers([taken]), taken.view) == ([30], 1)


def shown(match: ScanMatcher, *stamps: int, pose: CameraPose = GOAL) -> None:
    """Scans and poses at some times, milliseconds."""
    for stamp in stamps:
        match.add_scan(stamp * MS, scan_number(stamp))
        match.add_pose(stamp * MS, pose)


def test_a_camera_that_left_its_goal_is_scanned_again_on_its_return():
    match = matcher()
    match.set_goal(0, GOAL)
    shown(match, 10, 20)
    assert numbers(match.take()) == [10]
    shown(match, 30)
    assert match.take() == []
    match.add_pose(40 * MS, ELSEWHERE)
    assert match.take() == []
    shown(match, 39)  # late
    shown(match, 50)
    (taken,) = match.take()
    assert (numbers([taken]), taken.view) == ([50], 1)
    shown(match, 60)
    assert match.take() == []


def test_a_matcher_that_was_restored_scans_again_on_the_return_too():
    match, other = matcher(), matcher()
    match.set_goal(0, GOAL)
    shown(match, 10)
    match.take()
    other.restore(match.state())
    shown(other, 20)
    assert other.take() == []
    other.add_pose(30 * MS, ELSEWHERE)
    other.take()
    shown(other, 40)
    assert numbers(other.take()) == [40]


def test_scans_count_once_the_camera_has_stood_at_its_goal_for_settle_time():
    match = ScanMatcher(MatchingSettings(scans_per_view=2), ArrivalSettings(settle_time=0.1))
    match.set_goal(0, GOAL)
    shown(match, 50, 149)
    shown(match, 160, pose=ELSEWHERE)
    shown(match, 200, 250, 299)
    assert match.take() == []
    shown(match, 300, 310)
    assert numbers(match.take()) == [300, 310]


def test_a_camera_that_drives_through_its_goal_gives_no_scan_that_has_to_settle():
    match = ScanMatcher(MatchingSettings(scans_per_view=1), ArrivalSettings(settle_time=0.1))
    match.set_goal(0, GOAL)
    # 1 m/s: within the tolerances for 0.1 s, less than twice 0.05 m
    for stamp in range(0, 400, 20):
        shown(match, stamp, pose=CameraPose(GOAL.x, GOAL.y + (stamp - 190) / 1000, GOAL.yaw))
        assert match.take() == []


def test_settling_needs_no_more_poses_than_there_are():
    match = ScanMatcher(
        MatchingSettings(queue_size=3, scans_per_view=1), ArrivalSettings(settle_time=10.0)
    )
    match.set_goal(0, GOAL)
    shown(match, *range(0, 1001))
    assert numbers(match.take()) == [999]


def drive(match: ScanMatcher, poses, scans) -> list[int]:
    """Poses every 20 ms from `poses(seconds)`, a scan between two of them at each of `scans` (ms);
    what is taken.
    """
    for stamp in range(0, 2000, 20):
        match.add_pose(stamp * MS, poses(stamp / 1000.0))
        for number in scans:
            if stamp < number <= stamp + 20:
                match.add_scan(number * MS, scan_number(number))
    return numbers(match.take())


def creeping(speed: float, turn: float = 0.0):
    """Through the goal at 1 s, within the tolerances for longer than that; from then on it
    stands.
    """

    def pose(seconds: float) -> CameraPose:
        off = max(1.0 - seconds, 0.0)
        return CameraPose(GOAL.x - speed * off, GOAL.y, GOAL.yaw - turn * off)

    return pose


SCANS = (610, 890, 1130, 1290, 1610)


@pytest.mark.parametrize(
    ("poses", "gate", "counted"),
    [
        (creeping(0.05), {}, 610),
        (creeping(0.0, 0.019), {}, 610),
        (creeping(0.08), {}, 890),
        (creeping(0.08), {"settle_time": 0.6}, 1130),
    ],
)
def test_scans_count_once_the_camera_has_settled(poses, gate, counted):
    settings = ArrivalSettings(position_tolerance=0.05, heading_tolerance=0.02, **gate)
    match = ScanMatcher(MatchingSettings(scans_per_view=1), settings)
    match.set_goal(0, GOAL)
    assert drive(match, poses, SCANS) == [counted]


def streamed(
    match: ScanMatcher,
    *,
    seconds: float = 10.0,
    scans=0.0,
    poses=0.0,
    begin: float = 0.0,
    rate=20.0,
) -> str:
    """Scans at 10 Hz and poses at a `rate`, their clocks off by seconds, all before `begin` by the
    right one.

    Returns what the matcher has to say at the end; the clock here says 5000 s and more.
    """
    for tick in range(round(100 * seconds)):
        now = 5000.0 + 0.01 * tick
        off = tick >= 100 * begin
        if tick % round(100 / rate) == 0:
            match.add_pose(round((now + off * poses) * 1000) * MS, GOAL)
        if tick % 10 == 5:
            match.add_scan(round((now + off * scans) * 1000) * MS, scan_number(tick))
    return match.drops.trouble(round(now * 1000) * MS)


@pytest.mark.parametrize("begin", [0.0, 5.0])  # from the start, or in the middle
@pytest.mark.parametrize("off", [1000.0, -1000.0, 30.0, -30.0])
@pytest.mark.parametrize("kind", ["scans", "poses"])
def test_stamps_of_another_clock_are_named_with_both_and_their_difference(kind, off, begin):
    match = matcher()
    said = streamed(match, begin=begin, **{kind: off})
    assert said.startswith("20 of the last 20 scans dropped (scan.")
    number = r"(\d+\.\d{3}) s"
    found = re.search(
        f"the scans are stamped {number}, the poses are stamped {number}, {number} apart, "
        f"the clock of this node says 5009.990 s: the {kind} have another clock$",
        said,
    )
    scan, pose, apart = map(float, found.groups())
    right = {"scans": 5010.0, "poses": 5010.0, kind: 5010.0 + off}
    assert (scan, pose, apart) == pytest.approx((right["scans"], right["poses"], abs(off)), abs=0.2)
    assert match.drops.numbers.total() > 25
    assert match.drops.numbers.keys() == match.drops.details.keys()


def test_poses_that_come_too_rarely_to_interpolate_are_named():
    said = streamed(matcher(), rate=1.0)
    words = (
        "scans dropped (scan.pose_gap): the poses around the scan are 1000 ms apart, pose_gap is"
        " 500 ms"
    )
    assert words in said


def test_scans_that_find_their_poses_are_no_trouble_nor_are_a_few_that_do_not():
    match = matcher()
    assert streamed(match) == ""
    assert streamed(match, seconds=0.5, scans=1000.0) == ""
    few = matcher()
    for number in range(4):
        few.add_scan(number * 3000 * MS, scan_number(number))
    assert few.drops.numbers.total() == 3
    assert few.drops.trouble(0) == ""


def test_trouble_ends_with_the_clock_that_is_set_right():
    match = matcher()
    assert streamed(match, scans=1000.0)
    assert streamed(match, seconds=20.0) == ""


def test_poses_that_have_stopped_are_not_taken_for_another_clock():
    match = matcher()
    match.add_pose(0, GOAL)
    for number in range(60):
        match.add_scan(number * 500 * MS, scan_number(number))
    assert match.drops.trouble(30_000 * MS).endswith("apart; no newer pose comes")


class Source:
    """Poses of a frame that leans, or that no transform leads to."""

    def __init__(self, error: InputRejectedError | None) -> None:
        self.error = error

    def at(self, stamp: int, frame: str) -> None:
        if self.error:
            raise self.error

    def latest(self, frame: str) -> None:
        self.at(0, frame)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "(scan.no_pose): no pose is known, no pose as new as it came within 2000 ms"),
        (InputRejectedError("tilted", "it leans"), "(scan.tilted): no pose is known, it leans"),
    ],
)
def test_transforms_that_are_missing_or_lean_are_named(error, words):
    match = ScanMatcher(MatchingSettings(), ArrivalSettings(), Source(error))
    for number in range(60):
        match.add_scan(number * 500 * MS, scan_number(number), "laser")
    assert words in match.drops.trouble(0)
