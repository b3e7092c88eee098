"""What the nodes write to the log: what goes wrong and when it is over, how the episode ended, and
nothing else.
"""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

import numpy as np
from beliefs import belief_of, wavy_belief, with_evidence
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_world import pose_msg, view_pose
from test_nbv_planner import ENDLESS, SMALL, Robot
from test_surface_mapper import GRID, HERE, MS, Feed, scan_at, stamp_of

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.episode.messages import status_values
from nbv_planner.ros.core import node, qos
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.session import events
from nbv_planner.surface.checks import Check, Level
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan


class Logged:
    """Everything that the nodes log, as a terminal shows it."""

    def __init__(self, world, capfd) -> None:
        self.world, self._capfd, self._text = world, capfd, ""

    def lines(self, level: str, text: str = "") -> list[str]:
        self._text += self._capfd.readouterr().err
        found = re.findall(rf"^\[{level}\] \[[0-9.]+\] \[\w+\]: (.*)$", self._text, re.MULTILINE)
        return [line for line in found if text in line]

    def line(self, level: str, text: str) -> str:
        """Wait for a line; gives the last."""
        return self.world.spin_until(lambda: self.lines(level, text), f"{level} {text!r}")[-1]


@pytest.fixture
def logged(world, capfd) -> Logged:
    return Logged(world, capfd)


# --- warnings


def test_a_status_that_warns_is_logged_once_and_its_end_too(world, logged):
    planner = world.start(NbvPlannerNode, **SMALL, input_timeout=0.2)
    logged.line("WARN", "nothing for more than 0.2 s")
    for _ in range(5):
        planner.publish_diagnostics()
    Robot(world).begin()
    logged.line("INFO", "no more warnings")
    for text in ("/surface", "/camera_pose"):
        assert len(logged.lines("WARN", text)) == len(set(logged.lines("WARN", text)))


def test_a_warning_that_lasts_is_repeated(world, logged, monkeypatch):
    monkeypatch.setattr(node, "_STATUS_PERIOD", 0.5)
    world.start(NbvPlannerNode, **SMALL, input_timeout=0.2)
    world.spin_until(
        lambda: len(logged.lines("WARN", "nothing for more than 0.2 s")) >= 2, "the repetition"
    )


def test_a_warning_that_lasts_from_view_to_view_is_not_a_line_for_each(world, logged):
    world.peer.create_publisher(PoseStamped, "camera_pose", qos.sensor_data())
    planner = world.start(NbvPlannerNode, **SMALL, max_views=5, stall_views=0)
    world.spin_until(lambda: planner.inputs.problems("camera_pose"), "the mismatch to be found")
    robot = Robot(world, drives=False).begin()
    for number in range(1, 6):
        robot.goal(number)
        robot.arrive()
        world.diagnosis(planner)
        robot.map()
    robot.status("DONE")
    told = logged.lines("WARN", "with incompatible quality of service")
    assert len([line for line in told if not line.startswith(("/peer", "waiting for /"))]) == 1


def test_a_failed_episode_is_an_error(world, logged):
    planner = world.start(NbvPlannerNode, **SMALL)
    events.fail(planner.core, "the decision failed")
    planner.advance()
    logged.line("ERROR", "FAILED: the decision failed")


def test_whoever_waits_for_start_does_not_warn(world, logged):
    planner = world.start(NbvPlannerNode, **SMALL, wait_for_start=True, input_timeout=1.0)
    robot = Robot(world).begin()
    world.peer.create_timer(0.05, lambda: robot.send_pose(pose_msg(view_pose(0.0), robot.now())))
    world.spin_until(lambda: planner.core.overdue(planner.now_ns()), "the time to pass")
    found = world.diagnosis(planner)
    assert (found.level, found.message) == (DiagnosticStatus.OK, "waiting for the service ~/start")
    assert logged.lines("WARN") == []


def test_an_episode_in_which_all_goes_well_logs_no_warning(world, logged):
    world.start(NbvPlannerNode, **SMALL, max_views=3, stall_views=0, input_timeout=1000.0)
    robot = Robot(world).begin()
    robot.status("DONE")
    logged.line("INFO", "DONE: MAX_VIEWS")
    assert [status.level for status in robot.statuses] == [DiagnosticStatus.OK] * len(
        robot.statuses
    )
    assert logged.lines("WARN") == []


def test_a_mapper_that_has_fallen_silent_is_told_though_its_publisher_is_still_there(world, logged):
    """The middleware notices only after 20 seconds that a process was killed."""
    planner = world.start(NbvPlannerNode, **ENDLESS, input_timeout=1.0)
    mapper = world.start(SurfaceMapperNode, grid_size=GRID)
    world.spin_until(
        lambda: math.isfinite(planner.inputs.values()["input.mapper.age"]), "the mapper to be heard"
    )
    world.executor.remove_node(mapper)
    silent = "/diagnostics of surface_mapper: nothing usable for more than 3 s"
    logged.line("WARN", silent)
    assert [publisher for publisher in mapper.publishers if publisher.topic_name == "/surface"]
    world.executor.add_node(mapper)
    world.spin_until(
        lambda: silent not in world.diagnosis(planner).message, "the mapper to be heard again"
    )


# --- checks of the model


GOOD = Check("overlap", 0.5, 5.0, Level.GOOD)
FAILED = Check("overlap", 7.25, 5.0, Level.FAILED)
DOUBT = (
    "views do not fit together: displaced by 7.2 standard deviations (limit 5.0): check the poses"
)


def test_a_check_is_told_by_the_planner_when_it_begins_to_fail_and_when_it_is_good_again(
    world, logged
):
    planner = world.start(NbvPlannerNode, **ENDLESS)
    levels = [GOOD, FAILED, dataclasses.replace(FAILED, score=8.5), GOOD]
    robot = Robot(
        world,
        drives=False,
        belief=lambda views: dataclasses.replace(
            wavy_belief(views, size=200), checks=(levels[views - 1],)
        ),
    ).begin()
    for number in range(1, 4):
        robot.goal(number)
        robot.arrive()
        robot.map()
    robot.goal(4)
    found = world.diagnosis(planner)
    assert found.level == DiagnosticStatus.WARN
    assert "displaced by 8.5 standard" in found.message
    told = next(status for status in robot.statuses if DOUBT in status.message)
    assert told.level == DiagnosticStatus.WARN
    assert len(logged.lines("WARN", "views do not fit together")) == 1
    robot.arrive()
    robot.map()
    robot.goal(5)
    assert world.diagnosis(planner).level == DiagnosticStatus.OK
    logged.line("INFO", "no more warnings")


def test_an_end_in_doubt_is_a_warning_and_any_other_end_names_the_failed_checks(world, logged):
    narrow = dataclasses.replace(belief_of(5.0, 5.1, size=200, hits=1), checks=(FAILED,))
    ends = {
        "DOUBTFUL: BAND_NARROW": {"band_tolerance": 0.7},
        "MAX_VIEWS: 1 views": {"max_views": 1},
    }
    for end, settings in ends.items():
        planner = world.start(NbvPlannerNode, **{**ENDLESS, **settings})
        robot = Robot(world, belief=lambda _: narrow).begin()
        robot.status("DONE")
        assert robot.statuses[-1].level == world.diagnosis(planner).level == DiagnosticStatus.WARN
        assert robot.statuses[-1].message.startswith(end)
        assert robot.statuses[-1].message.count(DOUBT) == 1
        logged.line("WARN", end)
        world.end(planner)


def test_a_check_is_told_by_the_mapper_when_it_begins_to_fail_and_when_it_is_good_again(
    world, logged
):
    """Scans without a return make the sensor look dead, until one has returns."""
    mapper = world.start(SurfaceMapperNode, grid_size=GRID)
    feed = Feed(world)
    blind = dataclasses.replace(scan_at(HERE), ranges=np.full(31, np.nan))
    for number in (1, 2, 3):
        feed.goal(1000 * number * MS, HERE)
        feed.scan((1000 * number + 1) * MS, blind)
        feed.pose((1000 * number + 1) * MS, HERE)
        world.spin_until(lambda n=number: mapper.core.known.progress.views == n, "the view")
    assert world.diagnosis(mapper).level == DiagnosticStatus.WARN
    assert len(logged.lines("WARN", "check the driver")) == 1
    feed.goal(5000 * MS, HERE)
    feed.pair(5001 * MS, HERE)
    world.spin_until(lambda: mapper.core.known.progress.views == 4, "the view")
    assert world.diagnosis(mapper).level == DiagnosticStatus.OK
    logged.line("INFO", "no more warnings")


# --- goals that are not reached


def test_a_goal_that_is_not_reached_is_told_with_its_distance_and_when_it_is_given_up(
    world, logged
):
    planner = world.start(NbvPlannerNode, **ENDLESS, goal_timeout=1.0, goal_retries=1)
    robot = Robot(world, drives=False).begin()
    goal = pose_from_msg(robot.goal(1))
    robot.send_pose(pose_msg(CameraPose(goal.x + 0.06, goal.y, goal.yaw + 0.007), robot.now()))
    missed = "not reached: 0.06 m / 0.4° off, tolerance 0.05 m / 1.1°, "
    words = f"to view 1; {missed}retry 1 of 1"
    status = world.spin_until(
        lambda: next((s for s in robot.statuses if s.message == words), None), "the miss"
    )
    assert status.level == DiagnosticStatus.WARN
    assert status_values(status)["last_miss"] == f"{missed}retry 1 of 1"
    logged.line("WARN", words)
    assert missed in world.diagnosis(planner).message
    logged.line(
        "WARN", f"view 1 {missed}given up after 1 retries; left out, with its neighbours, for 300 s"
    )
    robot.goal(3)
    robot.arrive()
    robot.map()
    robot.goal(4)
    assert len(logged.lines("WARN", "given up")) == 1


# --- beams


def seen_from(scan: Scan, world, *, stamp: int = 110 * MS, pose: CameraPose = HERE) -> None:
    """Have a mapper map one scan at a goal."""
    feed = Feed(world)
    feed.goal(100 * MS, pose)
    feed.scan(stamp, scan)
    feed.pose(stamp, pose)
    world.spin_until(lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == stamp, "the surface")
    world.spin_some(5)


def test_what_every_lidar_has_is_counted_and_not_warned_about(world, logged):
    """Beams without a return, beyond the object, and beyond the greatest range."""
    mapper, scan = (
        world.start(SurfaceMapperNode, grid_size=GRID, input_timeout=1000.0),
        scan_at(HERE),
    )
    scan.ranges[:5] = [math.nan, math.inf, 0.0, 9.9, 29.0]
    scan.ranges[-1] = math.nan
    seen_from(scan, world)
    assert world.drops(mapper)["beam.nan"] == 2
    assert logged.lines("WARN") == []


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        (lambda r: np.full_like(r, np.nan), "no beam has met the surface; left out: 31 nan"),
        (lambda r: np.full_like(r, np.inf), "no beam has met the surface; left out: none"),
        (
            lambda r: np.where(np.arange(len(r)) == len(r) // 2, 9.5, r),
            "1 beams end within 1 m of the centre",
        ),
    ],
    ids=["all NaN", "all without a return", "in the object"],
)
def test_a_view_of_nothing_and_beams_that_end_in_the_object_are_warned_about(
    world, logged, ranges, words
):
    world.start(SurfaceMapperNode, grid_size=GRID)
    scan = scan_at(HERE)
    scan.ranges[:] = ranges(scan.ranges)
    seen_from(scan, world)
    assert logged.line("WARN", "beam").startswith(words)


# --- the summary


def test_the_end_is_summed_up_in_a_line(world, logged):
    world.start(NbvPlannerNode, **SMALL, max_views=2, stall_views=0)
    robot = Robot(world).begin()
    done = robot.status("DONE")
    line = logged.line("INFO", "DONE: MAX_VIEWS: 2 views taken; 2 views, ")
    assert f"coverage {float(done['coverage_estimate']):.1%} by the width of the band" in line
    turn = math.remainder(robot.goal_angle(2) - robot.goal_angle(1), 2 * math.pi)
    assert f"{abs(turn) * 10.0:.1f} m between the views" in line
    assert re.search(r", \d+\.\d s, ", line)
    assert line.endswith(
        "not saved: ~/save needs the parameter state_file, that of the mapper map_file"
    )
    assert len(logged.lines("INFO", "DONE")) == 1


def test_with_the_certificate_every_number_of_the_coverage_is_its_mean(world, logged):
    world.start(
        NbvPlannerNode,
        **{**ENDLESS, "certify": True, "target_coverage": 0.02},
    )
    measured = with_evidence(belief_of(4.0, 6.0, size=200, hits=1))
    robot = Robot(world, belief=lambda _: measured).begin(measured)
    done = robot.status("DONE")
    assert done["coverage_estimate"] == done["coverage_mean"]
    mean, lower, upper = (float(done[f"coverage_{name}"]) for name in ("mean", "lower", "upper"))
    words = f"{mean:.1%} (95%: {100 * lower:.0f} to {100 * upper:.0f})"
    logged.line("INFO", f"1 views, coverage {words} of the outline within ")


def test_a_planner_that_is_ended_says_that_the_episode_is_not_finished(world, logged, tmp_path):
    file = str(tmp_path / "state.zip")
    planner = world.start(NbvPlannerNode, **ENDLESS, state_file=file)
    robot = Robot(world, drives=False).begin()
    robot.goal(1)
    world.end(planner)
    line = logged.line("INFO", "the episode is not finished (MOVING): 0 views, ")
    assert line.endswith(f"saved to {file}")


def test_a_finished_episode_is_not_summed_up_again(world, logged):
    planner = world.start(NbvPlannerNode, **{**ENDLESS, "max_views": 1})
    Robot(world).begin().status("DONE")
    world.end(planner)
    world.spin_some()
    assert logged.lines("INFO", "not finished") == []


def test_a_pose_that_comes_for_the_first_time_is_not_missing(world):
    planner = world.start(NbvPlannerNode, **SMALL, input_timeout=1000.0)
    robot = Robot(world)
    robot.send_pose(pose_msg(view_pose(0.0), robot.now()))
    world.spin_until(lambda: planner.core.inputs.pose and robot.statuses, "the pose and a status")
    world.spin_some(5)
    values = [status_values(status) for status in robot.statuses]
    assert {value["state"] for value in values} == {"WAITING"}
    assert {status.level for status in robot.statuses} == {DiagnosticStatus.OK}
