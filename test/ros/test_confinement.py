"""No message makes a node open a file: paths are given at start, and texts in messages are no
paths.
"""

from __future__ import annotations

import sys

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from beliefs import wavy_belief
from geometry_msgs.msg import PoseStamped
from ros_world import header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan
from std_srvs.srv import Trigger

from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.world.scan import Scan

TRAVERSALS = (
    "../../secret",
    "/etc/passwd",
    "file:/etc/passwd",
    "~/.ssh/id_rsa",
    "$(touch secret)",
    "%n%s",
)


class Opened:
    """Paths that this process opens while it watches."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.watching = False
        sys.addaudithook(self._heard)  # there is no way to take it back

    def _heard(self, event: str, arguments: tuple) -> None:
        if str(arguments[:1]).endswith(".py',)"):  # rclpy's logger looks at the line that logs
            return
        if self.watching and event in (
            "open",
            "os.mkdir",
            "os.rename",
            "os.remove",
            "subprocess.Popen",
            "os.system",
        ):
            self.paths.append(str(arguments[0]))


OPENED = Opened()


@pytest.fixture
def opened():
    OPENED.paths.clear()
    OPENED.watching = True
    yield OPENED
    OPENED.watching = False


@pytest.mark.parametrize("stage", ["active", "unconfigured"])
@pytest.mark.parametrize(
    ("cls", "name"),
    [(SurfaceMapperNode, "map_file"), (NbvPlannerNode, "state_file"), (DepthCamera, "state_file")],
)
def test_a_path_cannot_be_set_by_a_message_whatever_the_stage(world, cls, name, stage):
    node = world.start(cls, autostart=stage == "active")
    for text in TRAVERSALS:
        (answer,) = world.set_parameters(node, **{name: text})
        assert not answer.successful
        assert "read-only" in answer.reason
    assert node.get_parameter(name).value == ""


@pytest.mark.parametrize(
    "text", ["file:/etc/passwd", "spline:../../secret.csv", " file:/etc/passwd"]
)
def test_an_object_out_of_a_file_cannot_be_set_by_a_message(world, text, opened):
    camera = world.start(DepthCamera, autostart=False)
    opened.paths.clear()
    (answer,) = world.set_parameters(camera, object=text)
    assert not answer.successful
    assert (
        answer.reason
        == "object: an object from a file can only be given at start, not by a message"
    )
    assert world.set_parameters(camera, object="ellipse:a=6,b=4")[0].successful
    assert opened.paths == []


def test_names_in_messages_are_no_paths(world, opened):
    mapper = world.start(SurfaceMapperNode, grid_size=100, camera_frame="")
    # Its run_info reads the versions.
    planner = world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=20, run_info_nodes=""
    )
    send_scan = world.speaker(LaserScan, "scan")
    send_pose = world.speaker(PoseStamped, "camera_pose")
    send_goal = world.speaker(PoseStamped, "goal_pose")
    send_surface = world.mapper()
    scan = Scan(-0.3, 0.01, [5.0] * 61, 0.05, 10.0)

    def everything(frame: str, number: int) -> None:
        send_scan(conversions.scan_to_msg(scan, header(frame, number)))
        send_pose(pose_msg(view_pose(0.0), number, frame))
        send_goal(pose_msg(view_pose(1.0), number, frame))
        send_surface(conversions.belief_to_msg(wavy_belief(0, size=100), header(frame, number)))

    everything("object", 1)
    world.spin_until(
        lambda: mapper.core.matcher.matches and planner.core.inputs.pose, "first messages"
    )
    for name in ("surface_mapper/save", "nbv_planner/save"):
        assert not world.call(Trigger, name).success
    opened.paths.clear()
    for number, frame in enumerate(TRAVERSALS, start=2):
        everything(frame, number)
    world.spin_until(lambda: planner.drops["camera_pose.frame"] == len(TRAVERSALS), "the refusals")
    for name in (
        "surface_mapper/save",
        "surface_mapper/load",
        "nbv_planner/save",
        "nbv_planner/load",
    ):
        answer = world.call(Trigger, name)
        assert not answer.success, answer.message
    assert opened.paths == []
