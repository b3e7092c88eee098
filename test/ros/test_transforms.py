"""Camera poses out of real transforms, in the class and in both nodes; skipped without tf2_ros."""

from __future__ import annotations

import math

import pytest
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip(
    "tf2_ros", reason="tf2_ros is not on PyPI: these tests run where ROS 2 is installed"
)

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, TransformStamped
from ros_world import header, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from nbv_planner.clouds.sensor_messages import pose_from_msg, space_pose_from_msg, to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import status_values
from nbv_planner.errors import InputRejectedError, SettingError
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.planning.view_space.viewpoints import on_sphere
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.transforms import TransformPoses
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

MS = 1_000_000
START = 1_000_000 * MS
SHAPE = parse_object("ellipse:a=6,b=4", Scene())
CAMERA = SimulatedCamera(SHAPE, Scene(), SensorSettings(num_beams=31, noise_std=0.0))
OBJECT_IN_MAP = CameraPose(3.0, -2.0, 0.9)
LASER_ON_BASE = CameraPose(0.3, 0.1, -0.4)


def link(
    parent: str, child: str, pose: CameraPose, stamp: int = 0, height: float = 0.0
) -> TransformStamped:
    transform = TransformStamped(header=header(parent, stamp), child_frame_id=child)
    transform.transform.translation.x, transform.transform.translation.y = pose.x, pose.y
    transform.transform.translation.z = height
    transform.transform.rotation.z, transform.transform.rotation.w = (
        math.sin(pose.yaw / 2),
        math.cos(pose.yaw / 2),
    )
    return transform


class Tree:
    """Publishes map -> object and base -> laser once, and map -> base whenever the camera is said
    to be somewhere.
    """

    def __init__(self, world) -> None:
        static = world.speaker(TFMessage, "/tf_static", qos.latched(10))
        static(
            TFMessage(
                transforms=[
                    link("map", "object", OBJECT_IN_MAP),
                    link("base", "laser", LASER_ON_BASE, height=0.4),
                ]
            )
        )
        self._send = world.speaker(TFMessage, "/tf")

    def stands(self, stamp: int, camera: CameraPose) -> None:
        base = OBJECT_IN_MAP.then(camera).then(LASER_ON_BASE.inverse())
        self._send(TFMessage(transforms=[link("map", "base", base, stamp)]))


def close(found: CameraPose, expected: CameraPose) -> bool:
    turn = abs(math.remainder(found.yaw - expected.yaw, 2 * math.pi))
    return math.hypot(found.x - expected.x, found.y - expected.y) < 1e-6 and turn < 1e-6


@pytest.fixture
def poses(world):
    return TransformPoses(world.peer, "object", tolerance=0.05, gap=0.5)


def test_the_pose_is_looked_up_through_the_chain_at_the_stamp(world, poses):
    tree = Tree(world)
    assert poses.at(START, "laser") is None
    tree.stands(START, CameraPose(8.0, 1.0, 3.0))
    world.spin_until(lambda: poses.latest("laser"), "the transform")
    assert poses.latest("laser")[0] == START
    assert close(poses.at(START, "laser"), CameraPose(8.0, 1.0, 3.0))
    assert poses.at(START + 50 * MS, "laser") is None
    tree.stands(START + 100 * MS, CameraPose(7.0, 2.0, 3.2))
    world.spin_until(lambda: poses.latest("laser")[0] > START, "the second transform")
    assert close(poses.at(START + 100 * MS, "laser"), CameraPose(7.0, 2.0, 3.2))
    between = poses.at(START + 50 * MS, "laser")
    assert between.yaw == pytest.approx(3.1, abs=1e-6)
    # The base goes straight on, the laser on it does not quite.
    assert (between.x, between.y) == pytest.approx((7.5, 1.5), abs=0.01)


def test_what_lies_too_far_from_the_transforms_is_refused(world, poses):
    tree = Tree(world)
    for stamp in (0, 100, 700):
        tree.stands(START + stamp * MS, view_pose(0.1))
        world.spin_until(
            lambda s=stamp: (poses.latest("laser") or (0,))[0] == START + s * MS, "the transform"
        )
    for stamp, reason in ((-51, "pose_too_far"), (300, "pose_gap")):
        with pytest.raises(InputRejectedError) as caught:
            poses.at(START + stamp * MS, "laser")
        assert caught.value.reason == reason
    assert close(poses.at(START - 50 * MS, "laser"), view_pose(0.1))
    assert close(poses.at(START + 50 * MS, "laser"), view_pose(0.1))


def test_a_frame_that_nobody_knows_has_no_pose_and_one_that_never_moves_has_it_always(world, poses):
    static = world.speaker(TFMessage, "/tf_static", qos.latched(10))
    static(TFMessage(transforms=[link("object", "post", view_pose(1.0))]))
    world.spin_until(lambda: poses.latest("post"), "the transform")
    assert poses.latest("post")[0] == 0
    assert close(poses.at(START, "post"), view_pose(1.0))
    assert poses.at(START, "nowhere") is None
    assert poses.at(START, "/bad name") is None


def test_a_frame_that_leans_out_of_the_plane_is_refused(world, poses):
    static = world.speaker(TFMessage, "/tf_static", qos.latched(10))
    optical = link("object", "optical", view_pose(1.0))
    rotation = optical.transform.rotation
    rotation.x, rotation.y, rotation.z, rotation.w = -0.5, 0.5, -0.5, 0.5
    static(TFMessage(transforms=[optical]))
    with pytest.raises(InputRejectedError, match="tilted"):
        world.spin_until(lambda: poses.at(START, "optical"), "the transform")


def test_in_space_an_optical_frame_may_lean_as_it_likes(world):
    poses = TransformPoses(world.peer, "object", read=space_pose_from_msg)
    camera = on_sphere(5, 2.0)[1]
    transform = link("object", "eye_optical", camera, height=camera.height)
    transform.transform.rotation = conversions.pose_to_msg(camera, header("")).pose.orientation
    world.speaker(TFMessage, "/tf_static", qos.latched(10))(TFMessage(transforms=[transform]))
    world.spin_until(lambda: poses.latest("eye_optical"), "the transform")
    found = poses.at(START, "eye_optical")
    assert found.offset(camera) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_the_mapper_waits_for_the_transform_maps_and_tells_the_pose(world):
    mapper = world.start(
        SurfaceMapperNode,
        pose_source="tf",
        camera_frame="laser",
        integrate="always",
        grid_size=360,
        noise_std=0.01,
    )
    tree = Tree(world)
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    poses = world.listen(PoseStamped, "camera_pose")
    send = world.speaker(LaserScan, "scan")
    camera = view_pose(0.7)
    tree.stands(START, camera)
    send(conversions.scan_to_msg(CAMERA.scan(camera, 1), header("laser", START + 30 * MS)))
    world.spin_some()
    assert surfaces == []
    tree.stands(START + 60 * MS, camera)
    world.spin_until(lambda: surfaces, "the surface")
    belief = belief_from_msg(surfaces[-1])
    seen = belief.hits > 0
    assert seen.sum() > 5
    assert abs(belief.mean - SHAPE.radius(belief.angle))[seen].max() < 0.03
    world.spin_until(lambda: poses, "the pose")
    assert to_nanoseconds(poses[0].header.stamp) == START + 30 * MS
    assert close(pose_from_msg(poses[0]), camera)
    assert "dropped" not in " ".join(world.diagnosis(mapper).values)


def test_scans_without_a_transform_are_dropped_and_counted(world):
    mapper = world.start(
        SurfaceMapperNode, pose_source="tf", camera_frame="", grid_size=100, pose_timeout=1.0
    )
    Tree(world).stands(START, view_pose(0.0))
    send = world.speaker(LaserScan, "scan")
    scan = CAMERA.scan(view_pose(0.0), 1)
    for frame, stamp in (("nowhere", 0), ("laser", -200), ("nowhere", 1001)):
        send(conversions.scan_to_msg(scan, header(frame, START + stamp * MS)))
    world.spin_until(lambda: len(world.drops(mapper)) == 2, "the drops")
    assert world.drops(mapper) == {"scan.no_pose": 1, "scan.pose_too_far": 1}


def test_the_planner_takes_its_pose_from_transforms_and_sees_the_arrival(world):
    planner = world.start(
        NbvPlannerNode,
        pose_source="tf",
        camera_frame="laser",
        objective="U",
        certify=False,
        num_views=20,
        goal_subscribers=1,
    )
    tree = Tree(world)
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(10))
    goals = world.listen(PoseStamped, "goal_pose")
    surface = world.mapper()
    surface(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))
    world.spin_until(lambda: statuses, "a status")
    world.spin_some()
    assert goals == []
    assert status_values(statuses[-1])["state"] == "WAITING"
    now = world.peer.get_clock().now().nanoseconds
    tree.stands(now, view_pose(0.0))
    world.spin_until(lambda: goals, "the first goal")
    goal = pose_from_msg(goals[0])
    tree.stands(world.peer.get_clock().now().nanoseconds, goal)
    world.spin_until(lambda: planner.core.state.value == "MEASURING", "the arrival")


BASED = {"pose_source": "tf", "camera_frame": "laser", "base_frame": "base"}


def test_the_planner_looks_up_where_the_camera_is_on_its_base_and_sends_that(world):
    planner = world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=20, goal_subscribers=1, **BASED
    )
    tree = Tree(world)
    goals = world.listen(PoseStamped, "goal_pose")
    world.mapper()(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))
    tree.stands(world.peer.get_clock().now().nanoseconds, view_pose(0.0))
    world.spin_until(lambda: goals, "the first goal")
    camera = pose_from_msg(goals[0]).then(LASER_ON_BASE)
    assert close(camera, view_pose(camera.view_angle))
    found = [getattr(planner.poses, name) for name in ("mount_x", "mount_y", "mount_yaw")]
    assert [planner.get_parameter(name).value for name in ("mount_x", "mount_y", "mount_yaw")] == [
        0.0,
        0.0,
        0.0,
    ]
    assert found == pytest.approx([LASER_ON_BASE.x, LASER_ON_BASE.y, LASER_ON_BASE.yaw])
    tree.stands(world.peer.get_clock().now().nanoseconds, camera)
    world.spin_until(lambda: planner.core.state.value == "MEASURING", "the arrival")


def test_the_planner_waits_for_the_mount_and_says_so(world):
    based = {**BASED, "base_frame": "hull"}
    world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=20, goal_subscribers=1, **based
    )
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(10))
    goals = world.listen(PoseStamped, "goal_pose")
    tree = Tree(world)
    world.mapper()(conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0)))
    tree.stands(world.peer.get_clock().now().nanoseconds, view_pose(0.0))
    world.spin_some(50)
    assert goals == []
    assert "transforms from laser to object and hull" in statuses[-1].message


def test_the_mapper_counts_scans_at_a_goal_of_the_base_that_came_before_the_transforms(world):
    world.start(SurfaceMapperNode, grid_size=360, noise_std=0.01, **BASED)
    infos = world.listen(String, "surface_info", qos.latched())
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    poses = world.listen(PoseStamped, "camera_pose")
    goal, send = world.speaker(PoseStamped, "goal_pose"), world.speaker(LaserScan, "scan")
    camera = view_pose(0.7)
    base = camera.then(LASER_ON_BASE.inverse())
    goal(conversions.pose_to_msg(base, header("object", START)))
    world.spin_some()
    tree = Tree(world)
    for stamp in (0, 60):
        tree.stands(START + stamp * MS, camera)
    send(conversions.scan_to_msg(CAMERA.scan(camera, 1), header("laser", START + 30 * MS)))
    world.spin_until(
        lambda: surfaces and to_nanoseconds(surfaces[-1].header.stamp) == START + 30 * MS,
        "the view",
    )
    assert close(pose_from_msg(poses[-1]), base)
    world.spin_until(lambda: infos, "what was learned")
    assert info_from_text(infos[-1].data).mount == pytest.approx(
        (LASER_ON_BASE.x, LASER_ON_BASE.y, LASER_ON_BASE.yaw)
    )


def test_a_base_frame_needs_transforms(world):
    with pytest.raises(
        SettingError, match=r"base_frame: 'base' is looked up with pose_source tf only"
    ):
        world.start(SurfaceMapperNode, base_frame="base")


def test_the_transforms_may_have_other_names(world):
    """As of robots in a namespace; tf2's own names are absolute."""
    rules = ["--ros-args", "-r", "/tf:=/rover/tf", "-r", "/tf_static:=/rover/tf_static"]
    mapper = world.start(
        SurfaceMapperNode,
        pose_source="tf",
        integrate="always",
        grid_size=100,
        camera_frame="laser",
        cli_args=rules,
    )
    static = world.speaker(TFMessage, "/rover/tf_static", qos.latched(10))
    static(
        TFMessage(
            transforms=[link("map", "object", OBJECT_IN_MAP), link("base", "laser", LASER_ON_BASE)]
        )
    )
    moving, send = world.speaker(TFMessage, "/rover/tf"), world.speaker(LaserScan, "scan")
    surfaces = world.listen(PointCloud2, "surface", qos.latched(100))
    base = OBJECT_IN_MAP.then(view_pose(0.7)).then(LASER_ON_BASE.inverse())
    for stamp in (0, 60):
        moving(TFMessage(transforms=[link("map", "base", base, START + stamp * MS)]))
    send(conversions.scan_to_msg(CAMERA.scan(view_pose(0.7), 1), header("laser", START + 30 * MS)))
    world.spin_until(
        lambda: surfaces and to_nanoseconds(surfaces[-1].header.stamp) == START + 30 * MS,
        "the scan",
    )
    names = {
        topic for topic, _ in mapper.get_subscriber_names_and_types_by_node("surface_mapper", "/")
    }
    assert {"/rover/tf", "/rover/tf_static"} <= names
    assert not {"/tf", "/tf_static"} & names
