"""Types and qualities of service that do not fit are found, said on both sides, and forgotten when
they are gone.
"""

from __future__ import annotations

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from beliefs import wavy_belief
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rcl_interfaces.msg import Log
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, qos_check_compatible
from ros_world import World, header, parameter_list, pose_msg, view_pose
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import LaserScan, PointCloud2
from simulated_bags import info_of
from std_msgs.msg import String

from nbv_planner.ros.core import qos
from nbv_planner.ros.core.graph import qos_text, type_name, unmet
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode

PROFILES = {"reliable": qos.reliable(), "latched": qos.latched(), "sensor data": qos.sensor_data()}
SMALL = {
    "objective": "U",
    "certify": False,
    "num_views": 20,
    "max_views": 0,
    "stall_views": 0,
    "band_tolerance": 0.01,
}


@pytest.fixture
def robot(world):
    """A process of its own on the same domain: types may differ between processes only."""
    with World(world.domain) as other:
        yield other


@pytest.mark.parametrize("offered", PROFILES)
@pytest.mark.parametrize("requested", PROFILES)
def test_unmet_policies_are_those_of_the_middleware(offered, requested):
    found = unmet(PROFILES[offered], PROFILES[requested])
    compatible, _ = qos_check_compatible(PROFILES[offered], PROFILES[requested])
    assert bool(found) is (compatible == QoSCompatibility.ERROR)


def test_policies_are_named_with_both_sides():
    assert unmet(qos.sensor_data(), qos.latched()) == [
        "RELIABILITY (offered best effort, requested reliable)",
        "DURABILITY (offered volatile, requested transient local)",
    ]
    assert qos_text(qos.latched()) == "reliable, transient local"
    assert type_name(LaserScan) == "sensor_msgs/msg/LaserScan"


def test_a_wrong_type_is_named(world, robot):
    mapper = world.start(SurfaceMapperNode, grid_size=100)
    publisher = robot.peer.create_publisher(String, "scan", 10)
    problem = (
        "/peer publishes /scan as std_msgs/msg/String, this node has sensor_msgs/msg/LaserScan"
    )
    world.spin_until(
        lambda: problem in world.diagnosis(mapper).message, "the wrong type to be told"
    )
    found = world.diagnosis(mapper)
    assert found.level == DiagnosticStatus.WARN
    assert (
        f"waiting for /scan (sensor_msgs/msg/LaserScan; best effort, volatile): {problem}"
        in found.message
    )
    robot.peer.destroy_publisher(publisher)
    world.spin_until(
        lambda: problem not in world.diagnosis(mapper).message, "the problem to be gone"
    )


def test_a_quality_of_service_that_does_not_fit_is_named_in_status_and_log(world):
    # what was logged before this was heard, too
    logged = world.listen(Log, "/rosout", qos.latched(100))
    # A name of its own: rcl gives nodes of one name in a process one publisher of logs, that of the
    # first still alive.
    planner = world.start(NbvPlannerNode, cli_args=["--ros-args", "-r", "__node:=alone"], **SMALL)
    statuses = world.listen(DiagnosticStatus, "alone/status", qos.latched(100))
    publisher = world.peer.create_publisher(PoseStamped, "camera_pose", qos.sensor_data())
    problem = (
        "/peer publishes /camera_pose with incompatible quality of service: "
        "RELIABILITY (offered best effort, requested reliable)"
    )
    world.spin_until(lambda: statuses and problem in statuses[-1].message, "the status to say so")
    assert statuses[-1].level == DiagnosticStatus.WARN
    assert problem in world.diagnosis(planner).message
    world.spin_until(lambda: [log.msg for log in logged if log.msg == problem], "the log to say so")
    world.peer.destroy_publisher(publisher)
    world.spin_until(lambda: problem not in statuses[-1].message, "the problem to be gone")
    world.spin_until(
        lambda: [log.msg for log in logged if log.msg == f"resolved: {problem}"],
        "the log to say so",
    )
    assert [log.msg for log in logged].count(problem) == 1


def test_a_subscriber_that_asks_for_more_than_is_offered_is_named(world):
    camera = world.start(DepthCamera, num_beams=21)
    world.peer.create_subscription(LaserScan, "scan", lambda _: None, qos.latched())
    problem = (
        "/peer subscribes to /scan with incompatible quality of service: "
        "DURABILITY (offered volatile, requested transient local)"
    )
    world.spin_until(lambda: problem in world.diagnosis(camera).message, "the problem to be told")
    assert world.diagnosis(camera).level == DiagnosticStatus.WARN


@pytest.mark.parametrize("cls", [DepthCamera, SurfaceMapperNode, NbvPlannerNode])
def test_among_themselves_the_nodes_fit(world, cls):
    for other in (DepthCamera, SurfaceMapperNode, NbvPlannerNode):
        node = world.start(other)
        if other is cls:
            watched = node
    world.spin_some()
    watched.look_around()
    assert watched.inputs.problems() == []


# --- several publishers


class Second:
    """A node in a process of its own that publishes poses beside the peer's."""

    def __init__(self, robot: World, name: str) -> None:
        self._robot = robot
        self._node = Node(name, context=robot.context, use_global_arguments=False)
        publisher = self._node.create_publisher(PoseStamped, "camera_pose", qos.reliable(100))
        robot.spin_until(publisher.get_subscription_count, "the subscriber of poses")
        self.publish = publisher.publish

    def destroy(self) -> None:
        self._node.destroy_node()


def one_pose(stamp: int) -> PoseStamped:
    return pose_msg(view_pose(0.0), stamp)


def poses_taken(mapper) -> int:
    return len(mapper.core.matcher._track._poses)


def test_publishers_of_two_names_are_not_merged_until_one_is_left(world, robot):
    mapper = world.start(SurfaceMapperNode, grid_size=100)
    send = world.speaker(PoseStamped, "camera_pose")
    send(one_pose(1))
    world.spin_until(lambda: poses_taken(mapper) == 1, "the pose of the only one")
    player = Second(robot, "rosbag2_player")
    words = "/camera_pose is published by /peer and /rosbag2_player"
    world.spin_until(lambda: words in world.diagnosis(mapper).message, "both to be named")
    assert world.diagnosis(mapper).level == DiagnosticStatus.WARN
    send(one_pose(2))
    player.publish(one_pose(2))
    world.spin_until(
        lambda: world.drops(mapper).get("camera_pose.several_publishers") == 2, "the drops"
    )
    assert poses_taken(mapper) == 1
    player.destroy()
    world.spin_until(
        lambda: words not in world.diagnosis(mapper).message, "the second one to be gone"
    )
    send(one_pose(3))
    world.spin_until(lambda: poses_taken(mapper) == 2, "the pose of the one that is left")


INPUTS_OF_ONE_SOURCE = [
    *((SurfaceMapperNode, topic) for topic in ("scan", "camera_pose", "goal_pose")),
    *((NbvPlannerNode, topic) for topic in ("surface", "camera_pose")),
    (DepthCamera, "goal_pose"),
]
KINDS = {
    "scan": LaserScan,
    "camera_pose": PoseStamped,
    "goal_pose": PoseStamped,
    "surface": PointCloud2,
}


@pytest.mark.parametrize(("cls", "topic"), INPUTS_OF_ONE_SOURCE)
def test_every_input_that_two_nodes_publish_is_refused_with_both_names(world, robot, cls, topic):
    node = world.start(cls)
    send = world.speaker(KINDS[topic], topic, qos.latched())
    robot.speaker(KINDS[topic], topic, qos.latched())
    other = robot._add(Node("other", context=robot.context, use_global_arguments=False))
    other.create_publisher(KINDS[topic], topic, qos.latched())
    words = f"/{topic} is published by /other and /peer"
    world.spin_until(lambda: words in world.diagnosis(node).message, "both to be named")
    assert world.diagnosis(node).level == DiagnosticStatus.WARN
    send(KINDS[topic]())
    reason = f"{topic}.several_publishers"
    world.spin_until(lambda: world.drops(node).get(reason) == 1, "the drop")


def test_two_launches_of_the_same_names_are_told_apart_by_their_numbers(world, robot):
    mapper = world.start(SurfaceMapperNode, grid_size=100)
    send = world.speaker(PoseStamped, "camera_pose")
    second = None
    for number in range(1, 25):
        if number == 5:
            second = Second(robot, "peer")
        (second.publish if second and number % 2 else send)(one_pose(number))
        world.spin_until(
            lambda n=number: poses_taken(mapper) + mapper.drops.total() == n, f"pose {number}"
        )
    # number 7, of the second one, falls again
    assert mapper.drops == {"camera_pose.several_publishers": 24 - 6}
    words = "/camera_pose is published by 2 nodes that are all called /peer"
    world.spin_until(lambda: words in world.diagnosis(mapper).message, "both to be named")
    second.destroy()
    world.spin_until(
        lambda: words not in world.diagnosis(mapper).message, "the second one to be gone"
    )


def test_a_node_started_again_is_one_source_although_its_old_publisher_is_still_listed(
    world, robot
):
    mapper = world.start(SurfaceMapperNode, grid_size=100, queue_size=100)
    send = world.speaker(PoseStamped, "camera_pose")
    for number in range(1, 25):
        if number == 5:
            send = Second(robot, "peer").publish
        send(one_pose(number))
        world.spin_until(lambda n=number: poses_taken(mapper) == n, f"pose {number}")
    (poses,) = [one for one in mapper.subscriptions if one.topic_name == "/camera_pose"]
    world.spin_until(lambda: poses.get_publisher_count() == 2, "both publishers")


@pytest.mark.parametrize("cls", [DepthCamera, SurfaceMapperNode, NbvPlannerNode])
def test_a_second_node_of_the_same_full_name_is_told(world, robot, cls):
    parameters = {"namespace": "arm", "parameter_overrides": parameter_list({"autostart": False})}
    first = world._add(cls(context=world.context, **parameters))
    robot._add(cls(context=robot.context, **parameters))
    words = f"another node is also called {first.get_fully_qualified_name()}"
    # not at once: one that has ended is listed for a moment
    assert words not in world.diagnosis(first).message
    world.spin_until(lambda: words in world.diagnosis(first).message, "the second one to be told")
    assert world.diagnosis(first).level == DiagnosticStatus.WARN


# --- heartbeats


def test_diagnostics_show_age_and_rate_of_every_input(world):
    mapper = world.start(SurfaceMapperNode, grid_size=100)
    camera = world.start(DepthCamera, num_beams=21, scan_rate=50.0)
    world.spin_until(
        lambda: float(world.diagnosis(mapper).values["input.scan.rate"]) > 1.0, "a rate"
    )
    values = world.diagnosis(mapper).values
    assert float(values["input.camera_pose.rate"]) > 1.0
    assert 0.0 <= float(values["input.scan.age"]) < 5.0
    assert float(values["input.goal_pose.age"]) == float("inf")
    assert set(world.diagnosis(camera).values) >= {"input.goal_pose.age", "input.goal_pose.rate"}


class Partners:
    """Mapper and robot of a planner, who can fall silent or go."""

    def __init__(self, world) -> None:
        self.world = world
        self.statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
        self.ears = [
            world.peer.create_subscription(PoseStamped, "goal_pose", lambda _: None, qos.reliable())
            for _ in range(2)
        ]
        self.send_pose = world.speaker(PoseStamped, "camera_pose")
        self.mapper = world.peer.create_publisher(PointCloud2, "surface", qos.latched())
        self.info = world.peer.create_publisher(String, "surface_info", qos.latched())
        belief = wavy_belief(0, size=200)
        self.info.publish(String(data=info_of(belief, 0).text))
        self.mapper.publish(conversions.belief_to_msg(belief, header("object", 0)))

    def pose(self) -> None:
        self.send_pose(pose_msg(view_pose(0.0), self.world.peer.get_clock().now().nanoseconds))

    def says(
        self, *texts: str, level: bytes = DiagnosticStatus.WARN, not_text: str = "nothing of this"
    ) -> None:
        def found() -> bool:
            last = self.statuses[-1]
            return (
                last.level == level
                and all(text in last.message for text in texts)
                and not_text not in last.message
            )

        self.world.spin_until(lambda: self.statuses and found(), f"the status {texts}")


def test_a_pose_that_is_lost_on_the_way_is_told_and_comes_back(world):
    world.start(NbvPlannerNode, **SMALL, input_timeout=0.3)
    partners = Partners(world)
    partners.pose()
    partners.says("to view 1", "/camera_pose", "1 publishes it, nothing usable for more than 0.3 s")
    world.peer.create_timer(0.05, partners.pose)
    partners.says("to view 1", level=DiagnosticStatus.OK)


def test_a_timeout_changed_at_run_time_counts(world):
    planner = world.start(NbvPlannerNode, **SMALL, input_timeout=1000.0)
    partners = Partners(world)
    partners.pose()
    partners.says("to view 1", level=DiagnosticStatus.OK)
    assert world.set_parameters(planner, input_timeout=0.2)[0].successful
    partners.says("to view 1", "/camera_pose", "nothing usable for more than 0.2 s")


def test_a_mapper_that_has_gone_is_told(world):
    world.start(NbvPlannerNode, **SMALL, input_timeout=1000.0)
    partners = Partners(world)
    partners.pose()
    partners.says("to view 1", level=DiagnosticStatus.OK)
    world.peer.destroy_publisher(partners.mapper)
    partners.says("to view 1", "/surface", "its publisher is gone")
    world.peer.create_publisher(PointCloud2, "surface", qos.latched())
    partners.says("to view 1", level=DiagnosticStatus.OK)


def test_a_robot_that_no_longer_listens_is_told(world):
    world.start(NbvPlannerNode, **SMALL, input_timeout=1000.0)
    partners = Partners(world)
    partners.pose()
    partners.says("to view 1", level=DiagnosticStatus.OK)
    world.peer.destroy_subscription(partners.ears.pop())
    partners.says("to view 1", "/goal_pose", "1 of 2 subscribers (mapper and robot)")


# --- the time of a simulation


@pytest.mark.parametrize("cls", [DepthCamera, SurfaceMapperNode, NbvPlannerNode])
def test_a_simulation_without_time_is_told_and_recovers(world, cls):
    node = world.start(cls, use_sim_time=True)
    words = "/clock (rosgraph_msgs/msg/Clock): use_sim_time is set, but no time has been received"
    diagnoses = world._diagnoses

    def said() -> bool:
        return bool(diagnoses) and words in diagnoses[-1][1].message

    world.spin_until(said, "the missing time to be told, by itself")
    assert diagnoses[-1][1].level == DiagnosticStatus.WARN
    tick = world.speaker(Clock, "/clock")
    tick(Clock(clock=conversions.to_stamp(1_000_000_000)))
    world.spin_until(lambda: node.now_ns() > 0 and not said(), "the time to come")
