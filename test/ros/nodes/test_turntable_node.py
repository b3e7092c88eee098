"""Node turntable: joint angles in, camera poses out; goals in, commands out; and a whole episode
with it.
"""

from __future__ import annotations

import math

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_world import NAN, header, pose_msg, view_pose
from sensor_msgs.msg import JointState, LaserScan, PointCloud2
from std_msgs.msg import Float64MultiArray

from nbv_planner.clouds.sensor_messages import pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import status_values
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.ros.nodes.turntable import TurntableNode
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera


def joints(
    position: list[float], name: tuple[str, ...] = ("turntable_joint",), stamp: int = 0
) -> JointState:
    return JointState(header=header("", stamp), name=list(name), position=position)


def test_the_pose_follows_the_joint_and_the_command_the_goal(world):
    node = world.start(TurntableNode)
    poses = world.listen(PoseStamped, "camera_pose")
    commands = world.listen(Float64MultiArray, "joint_command")
    turn, goal = world.speaker(JointState, "joint_states"), world.speaker(PoseStamped, "goal_pose")
    goal(pose_msg(view_pose(1.0)))
    world.spin_until(
        lambda: world.drops(node) == {"goal_pose.no_joint": 1}, "the goal to be dropped"
    )
    turn(joints([7.0, 0.5], ("another", "turntable_joint"), stamp=123))
    world.spin_until(lambda: poses, "the pose")
    assert to_nanoseconds(poses[0].header.stamp) == 123
    assert poses[0].header.frame_id == "object"
    pose = pose_from_msg(poses[0])
    # the object turns to the left, the camera to the right
    assert pose.view_angle == pytest.approx(2 * math.pi - 0.5)
    goal(pose_msg(view_pose(1.0)))
    world.spin_until(lambda: commands, "the command")
    assert list(commands[0].data) == pytest.approx([-1.0])
    assert float(world.diagnosis(node).values["joint_angle"]) == 0.5


def test_what_cannot_be_used_is_dropped_and_counted(world):
    node = world.start(TurntableNode, joint_min=-0.5, joint_max=0.5)
    poses = world.listen(PoseStamped, "camera_pose")
    commands = world.listen(Float64MultiArray, "joint_command")
    turn, goal = world.speaker(JointState, "joint_states"), world.speaker(PoseStamped, "goal_pose")
    turn(joints([1.0], ("another",)))
    turn(joints([NAN]))
    turn(joints([]))
    turn(joints([0.0]))
    world.spin_until(lambda: poses, "the pose")
    goal(pose_msg(view_pose(1.0)))
    goal(pose_msg(view_pose(1.0), frame="map"))
    expected = {
        "joint_states.not_finite": 1,
        "joint_states.wrong_length": 1,
        "goal_pose.joint_limits": 1,
        "goal_pose.frame": 1,
    }
    world.spin_until(lambda: world.drops(node) == expected, "the drops")
    assert (len(poses), commands) == (1, [])


class Table:
    """The table's drive and the fixed sensor before it, which casts beams on the object as it has
    been turned.
    """

    def __init__(self, world, shape, scene):
        self.world, self.angle = world, 0.0
        self.camera = SimulatedCamera(shape, scene, SensorSettings(num_beams=61, noise_std=0.0))
        self.distance = scene.view_distance
        world.peer.create_subscription(
            Float64MultiArray, "joint_command", self.on_command, qos.reliable()
        )
        self.turned = world.speaker(JointState, "joint_states")
        self.scanned = world.speaker(LaserScan, "scan")

    def on_command(self, msg: Float64MultiArray) -> None:
        self.angle = msg.data[0]
        self.tell()

    def tell(self) -> None:
        stamp = self.world.peer.get_clock().now().nanoseconds
        self.turned(joints([self.angle], stamp=stamp))
        scan = self.camera.scan(CameraPose.from_polar(-self.angle, self.distance), 0)
        self.scanned(conversions.scan_to_msg(scan, header("sensor", stamp)))


def test_an_object_on_a_table_is_reconstructed(world):
    scene = Scene()
    shape = parse_object("ellipse:a=6,b=4", scene)
    world.start(TurntableNode)
    world.start(SurfaceMapperNode, camera_frame="sensor", grid_size=360, noise_std=0.02)
    world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=36, stall_views=0, return_home=True
    )
    surfaces = world.listen(PointCloud2, "surface", qos.latched(50))
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
    table = Table(world, shape, scene)

    world.peer.create_timer(0.05, table.tell)

    def done() -> dict[str, str] | None:
        values = status_values(statuses[-1]) if statuses else {}
        return values if values.get("state") == "DONE" else None

    ended = world.spin_until(done, "the end of the episode")
    assert ended["reason"] == "BAND_NARROW"
    assert ended["detail"].endswith("back at the home view")
    assert math.remainder(table.angle, 2 * math.pi) == pytest.approx(0.0, abs=1e-6)
    belief = belief_from_msg(surfaces[-1])
    assert abs(belief.mean - shape.radius(belief.angle)).max() < 0.2
