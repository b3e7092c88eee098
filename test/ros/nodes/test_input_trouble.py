"""What is wrong with the mapper's inputs is said where people look: its log, /diagnostics, and the
planner's status.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_world import header, pose_msg
from sensor_msgs.msg import LaserScan
from test_nbv_planner import ENDLESS
from test_surface_mapper import HERE, PLAIN, scan_at

from nbv_planner.episode.messages import INPUT_TROUBLE
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.world.scan import Scan

SECOND = 1_000_000_000


class Lidar:
    """Sends a scan and a pose when it is asked to, at most 20 times a second, by clocks that may be
    off by seconds.
    """

    def __init__(self, world) -> None:
        self.now = lambda: world.peer.get_clock().now().nanoseconds
        self.send_scan, self.send_pose = (
            world.speaker(LaserScan, "scan"),
            world.speaker(PoseStamped, "camera_pose"),
        )
        self.scans = self.poses = 0.0
        self._sent = 0
        self.frame = "camera"
        self.scan: Scan | None = scan_at(HERE)

    def send(self) -> None:
        now = self.now()
        if now - self._sent < SECOND // 20:
            return
        self._sent = now
        self.send_pose(pose_msg(HERE, now + round(self.poses * SECOND)))
        if self.scan is not None:
            self.send_at(now + round(self.scans * SECOND))

    def send_at(self, stamp: int) -> None:
        self.send_scan(conversions.scan_to_msg(self.scan, header(self.frame, stamp)))


@pytest.fixture
def system(world):
    """Mapper and planner, and a lidar whose scans find their poses."""
    mapper = world.start(SurfaceMapperNode, **PLAIN, input_timeout=1.0, camera_frame="camera")
    planner = world.start(NbvPlannerNode, **ENDLESS, goal_subscribers=1)
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status")
    return SimpleNamespace(
        world=world, mapper=mapper, planner=planner, lidar=Lidar(world), statuses=statuses
    )


def said(system, *words: str) -> DiagnosticStatus:
    """The planner's status, once it holds these words."""

    def found() -> DiagnosticStatus | None:
        system.lidar.send()
        last = system.statuses[-1] if system.statuses else None
        return last if last and all(word in last.message for word in words) else None

    return system.world.spin_until(found, f"the status to say {words}")


@pytest.mark.parametrize(
    ("kind", "off", "begin"),
    [("scans", 1000.0, "from the start"), ("poses", -1000.0, "in the middle")],
)
def test_stamps_of_another_clock_are_named_in_log_diagnostics_and_the_planners_status(
    system, capfd, kind, off, begin
):
    if begin == "in the middle":
        said(system, "to view 1")
    setattr(system.lidar, kind, off)
    words = (
        f"the {kind} have another clock",
        "s apart, the clock of this node says",
        "scans dropped (scan.",
    )
    status = said(system, "surface_mapper: ", *words)
    assert status.level == DiagnosticStatus.WARN
    diagnosis = system.world.diagnosis(system.mapper)
    assert diagnosis.level == DiagnosticStatus.WARN
    assert all(word in diagnosis.message for word in words)
    assert INPUT_TROUBLE in diagnosis.values
    log = capfd.readouterr().err
    assert "dropped (scan." in log
    assert words[0] in log
    setattr(system.lidar, kind, 0.0)
    system.world.spin_until(
        lambda: system.lidar.send() or "another clock" not in system.statuses[-1].message,
        "the trouble to end",
    )


def test_a_lidar_that_is_lost_is_named_in_the_planners_status_until_it_is_back(system):
    said(system, "to view 1")
    system.lidar.scan = None
    words = "surface_mapper: waiting for /scan (sensor_msgs/msg/LaserScan"
    status = said(system, words, "nothing usable for more than 1 s")
    assert (status.level, status.message.partition(";")[0]) == (DiagnosticStatus.WARN, "to view 1")
    system.lidar.scan = scan_at(HERE)
    system.world.spin_until(
        lambda: system.lidar.send() or "/scan" not in system.statuses[-1].message,
        "the lidar to be back",
    )


def test_scans_that_cannot_be_used_are_named_with_the_reason_in_the_planners_status(system):
    system.lidar.frame = "elsewhere"
    said(
        system,
        "surface_mapper: waiting for /scan",
        "nothing usable received yet, the last one: ",
        "'elsewhere'",
    )


def test_a_mapper_that_was_deactivated_is_named_in_the_planners_status(system):
    said(system, "to view 1")
    system.mapper.trigger_deactivate()
    said(system, "surface_mapper: inactive: waiting for the transition activate")


def test_poses_that_come_too_rarely_are_named(system):
    now = system.lidar.now()
    for number in range(40):
        stamp = now + number * SECOND // 10
        if number % 10 == 0:
            system.lidar.send_pose(pose_msg(HERE, stamp))
        system.lidar.send_at(stamp)
    system.lidar.send = lambda: None
    said(
        system,
        "scans dropped (scan.pose_gap): the poses around the scan are 1000 ms apart, pose_gap is"
        " 500 ms",
    )
