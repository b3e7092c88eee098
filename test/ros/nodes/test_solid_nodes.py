"""The nodes in space: what they take, what they count as dropped, and the whole loop over DDS."""

from __future__ import annotations

import array
import csv
import math
import time

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from geometry_msgs.msg import Pose, PoseArray, PoseStamped
from programs import main
from ros_world import bent, header
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String
from std_srvs.srv import Trigger

from nbv_planner.bags.reader import Bag, decode
from nbv_planner.bags.writer import BagWriter
from nbv_planner.clouds.sensor_messages import (
    depth_from_msg,
    space_pose_from_msg,
    to_nanoseconds,
)
from nbv_planner.clouds.surface_messages import surface_from_msg
from nbv_planner.episode.log import READERS_IN_SPACE
from nbv_planner.episode.messages import RECORDED_IN_SPACE
from nbv_planner.episode.parameter_files import load_parameters, set_parameters, shared_file
from nbv_planner.episode.solid.solid_episode import SolidEpisode, SolidJudge
from nbv_planner.episode.solid.solid_results import row_of
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.planning.view_space.viewpoints import looking, on_sphere
from nbv_planner.ros import executables
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.running import separate_context
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.recorder import BagRecorder
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.ros.nodes.solid_camera import SolidCamera, info_to_msg
from nbv_planner.ros.nodes.solid_mapper import SolidMapper
from nbv_planner.ros.nodes.solid_planner import SolidPlanner
from nbv_planner.ros.watched_episode import SolidMonitor
from nbv_planner.volume.bodies.depth_sensor import DepthSensor, SimulatedDepthCamera
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.world.scan import RangeNoise

SCENE = {"radius_max": 0.25, "columns": 32, "rows": 24, "range_max": 2.0}
SMALL = ["num_views=24", "max_views=3", "columns=32", "rows=24"]


def pose_msg(pose, stamp):
    return conversions.pose_to_msg(pose, header("object", stamp))


@pytest.fixture
def camera(world):
    node = world.start(SolidCamera, object="solid:box", scan_rate=5.0, **SCENE)
    return node, world.listen(Image, "image"), world.listen(CameraInfo, "camera_info")


def test_regions_with_heights_are_what_the_planner_counts_by(world, tmp_path):
    there = tmp_path / "part.yaml"
    there.write_text("regions:\n  - {arc: [0, 360], weight: 1, height: [0, 9]}\n")
    planner = world.start(SolidPlanner, region_file=str(there), **IDLE)
    regions = planner.core.planner.expected.target.regions
    assert regions.weights(np.array([[0.0, 0.1, 0.1], [0.0, 0.1, -0.1]])).tolist() == [1.0, 0.0]
    assert planner.core.monitor.regions is regions


def test_a_pose_in_space_is_that_of_the_optical_frame_in_messages():
    for pose in on_sphere(9, 2.0):
        msg = pose_msg(pose, 5)
        found = space_pose_from_msg(msg)
        assert found.offset(pose) == pytest.approx((0.0, 0.0), abs=1e-7)
        q = msg.pose.orientation
        ahead = 2.0 * np.array(
            [q.x * q.z + q.w * q.y, q.y * q.z - q.w * q.x, 0.5 - q.x**2 - q.y**2]
        )
        assert ahead == pytest.approx(np.array([-pose.x, -pose.y, -pose.height]) / 2.0, abs=1e-9)


def test_the_camera_looks_from_its_goal(world, camera):
    node, images, infos = camera
    poses = world.listen(PoseStamped, "camera_pose")
    goal = looking(np.array([[0.0, -0.4, 0.1]]), np.zeros(3))[0]
    world.speaker(PoseStamped, "goal_pose")(pose_msg(goal, 77))
    world.spin_until(lambda: node.view_number == 1 and images and infos, "an image from the goal")
    world.spin_until(
        lambda: poses and space_pose_from_msg(poses[-1]).offset(goal)[0] < 1e-9, "its pose"
    )
    count = len(images)
    world.spin_until(lambda: len(images) > count, "an image from there")
    depth = depth_from_msg(images[-1])
    assert depth.shape == (24, 32)
    # the box is 0.1 m deep on this side, 2.5 times its half side of 0.4 radii
    assert np.nanmin(depth[10:14, 14:18]) == pytest.approx(0.4 - 0.1, abs=0.03)
    assert np.isinf(depth[0]).all()
    assert infos[-1].k[0] == pytest.approx(15.5 / math.tan(0.5 * math.radians(60.0)))


def test_the_mapper_maps_what_was_seen_at_the_goal_and_counts_the_rest(world, camera):
    _, images, infos = camera
    node = world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **SCENE)
    surfaces = world.listen(PointCloud2, "surface", qos.latched(10))
    texts = world.listen(String, "surface_info", qos.latched(10))
    world.spin_until(lambda: surfaces and texts, "the prior")
    assert to_nanoseconds(surfaces[0].header.stamp) == 0
    goal = looking(np.array([[0.0, -0.4, 0.1]]), np.zeros(3))[0]
    send_goal = world.speaker(PoseStamped, "goal_pose")
    send_goal(pose_msg(goal, node.now_ns()))
    world.spin_until(lambda: len(surfaces) > 1 and len(texts) > 1, "the surface of the view")
    surface = info_from_text(texts[-1].data).applied(surface_from_msg(surfaces[-1]))
    assert surface.form.dimension == 3
    assert surface.count == node.core.known.mapper.model.count > 20
    assert np.median(surface.cells.hits.mean[:, 1]) == pytest.approx(-0.1, abs=0.005)
    world.spin_until(lambda: images and infos, "an image")
    send = world.speaker(Image, "image")
    for wrong in ({"encoding": "rgb8"}, {"width": 7}, {"step": 1}):
        send(bent(images[-1], **wrong))
    send(bent(images[-1], header=header("elsewhere", 1)))
    pose = pose_msg(goal, 5)
    pose.pose.orientation.w = math.nan
    send_goal(pose)
    expected = {"image.encoding", "image.camera_info", "image.layout", "image.frame"}
    expected |= {"goal_pose.not_finite"}
    world.spin_until(lambda: expected <= set(world.drops(node)), "all to be counted")


def test_poses_that_are_none_and_images_without_a_calibration_are_counted_and_nothing_is_mapped(
    world,
):
    node = world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **SCENE)
    inputs, good = node.incoming, looking(np.array([[0.0, -0.4, 0.1]]), np.zeros(3))[0]
    image = world.speaker(Image, "image")
    image(depth_msg(np.full((24, 32), 0.3), False))
    poses = world.speaker(PoseStamped, "camera_pose")
    poses(conversions.pose_to_msg(good, header("elsewhere", 10)))
    for values in ({"x": math.nan}, {"w": math.nan}, {"x": 0.0, "y": 0.0, "z": 0.0, "w": 0.0}):
        msg = pose_msg(good, 10)
        part = msg.pose.orientation if "w" in values else msg.pose.position
        for name, value in values.items():
            setattr(part, name, value)
        poses(msg)
    expected = {"image.no_camera_info": 1, "camera_pose.frame": 1}
    expected |= {"camera_pose.not_finite": 2, "camera_pose.quaternion": 1}
    world.spin_until(lambda: world.drops(node) == expected, "all to be counted")
    none = info_to_msg(DepthSensor(columns=32, rows=24), header("eye", 20))
    none.k[0] = none.p[0] = 0.0
    world.speaker(CameraInfo, "camera_info")(none)
    world.spin_until(lambda: inputs._reader._camera is not None, "a calibration that is none")
    image(depth_msg(np.full((24, 32), 0.3), False))
    expected["image.camera_info"] = 1
    world.spin_until(lambda: world.drops(node) == expected, "the image to be counted")
    assert node.core.known.progress.views == 0


def test_the_mesh_that_is_known_goes_out_with_the_surface_and_one_that_is_none_does_not(
    world, camera, capfd
):
    texts = world.listen(String, "surface_info", qos.latched(10))
    given = {"prior_outline": "solid:box", "prior_upright": True}
    node = world.start(SolidMapper, settle_time=0.0, **given, **SCENE)
    world.spin_until(lambda: texts, "the prior")
    known = info_from_text(texts[-1].data).cells.known
    assert known.upright
    assert np.array_equal(known.grid, node.core.known.mapper.model.surface.form.known.grid)
    world.end(node)
    texts.clear()
    node = world.start(SolidMapper, settle_time=0.0, prior_outline="none.stl", **SCENE)
    world.spin_until(lambda: texts, "the prior without")
    assert node.core.known.mapper.model.surface.form.known is None
    assert "none.stl" in capfd.readouterr().err
    assert info_from_text(texts[-1].data).cells.prior is None


def test_the_mapper_takes_clouds_and_millimetres(world):
    node = world.start(SolidMapper, depth_source="point_cloud", settle_time=0.0, **SCENE)
    empty = PointCloud2(header=header("eye", 1), height=1, width=0)
    world.speaker(PointCloud2, "points")(empty)
    world.spin_until(lambda: world.drops(node) == {"points.layout": 1}, "it to be counted")
    millimetres = Image(
        header=header("eye", 1),
        width=2,
        height=1,
        encoding="16UC1",
        step=4,
        data=array.array("B", np.array([0, 1500], "<u2").tobytes()),
    )
    assert depth_from_msg(millimetres).tolist() == [[0.0, 1.5]]


def test_the_planner_sends_poses_and_ranks_all_that_may_be_chosen(world, camera):
    world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **SCENE)
    planner = world.start(
        SolidPlanner,
        wait_for_start=False,
        goal_subscribers=2,
        num_views=20,
        certify=False,
        max_views=2,
        planner="greedy",
        settle_time=0.0,
        **SCENE,
    )
    ranked = world.listen(PoseArray, "nbv_planner/ranked_views", qos.latched(10))
    goals = world.listen(PoseStamped, "goal_pose", qos.reliable())
    world.spin_until(lambda: planner.core.episode.termination, "the end")
    assert planner.core.episode.termination.reason.value == "MAX_VIEWS"
    assert len({str(goal.pose) for goal in goals}) == 2
    world.spin_until(lambda: len(ranked) == 2, "both lists")
    assert [len(one.poses) for one in ranked] == [20, 19]
    for goal, poses in zip(goals, ranked, strict=False):
        first = PoseStamped(pose=poses.poses[0])
        assert space_pose_from_msg(first).offset(space_pose_from_msg(goal))[0] < 1e-9
        assert poses.header.frame_id == "object"


def test_a_folder_that_cannot_be_written_is_said_and_another_one_has_the_surface(
    world, camera, tmp_path
):
    (tmp_path / "file").write_text("")
    goal = pose_msg(looking(np.array([[0.0, -0.4, 0.1]]), np.zeros(3))[0], 5)
    for folder, good in (("file", False), ("out", True)):
        node = world.start(
            SolidMapper,
            settle_time=0.0,
            scans_per_view=1,
            outline_folder=str(tmp_path / folder),
            **SCENE,
        )
        goal.header.stamp = conversions.to_stamp(node.now_ns())
        world.speaker(PoseStamped, "goal_pose")(goal)
        world.spin_until(lambda node=node: node.core.known.mapper.model.count, "the surface")
        answer = world.call(Trigger, "surface_mapper/write_outline")
        assert answer.success is good, answer.message
        assert "outline_folder" in answer.message or good
        world.end(node)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"points.ply", "surface.stl", "surface.ply"}


def test_a_planner_that_was_killed_goes_on_with_its_views(world, camera, tmp_path):
    world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **SCENE)
    settings = {
        "wait_for_start": False,
        "num_views": 20,
        "certify": False,
        "planner": "greedy",
        "settle_time": 0.0,
        "state_file": str(tmp_path / "session.jsonl"),
        **SCENE,
    }
    first = world.start(SolidPlanner, max_views=2, **settings)
    world.spin_until(lambda: first.core.episode.termination, "the end of the first")
    taken = first.core.episode.visited
    world.end(first)
    second = world.start(SolidPlanner, max_views=3, **settings)
    assert second.core.episode.visited == taken
    assert second.core.episode.visited[0].attitude is not None


@pytest.mark.parametrize(
    ("words", "space"),
    [
        (["-p", "dimension:=3"], True),
        (["-p", "depth_camera:dimension:=3"], True),
        (["--params-file", "FILE"], True),
        (["--params-file", "missing.yaml"], False),
        (["-p", "radius_max:=3.0"], False),
    ],
)
def test_the_dimension_of_the_parameters_chooses_the_node(monkeypatch, tmp_path, words, space):
    file = tmp_path / "solid.yaml"
    file.write_text("/**:\n  ros__parameters: {dimension: 3}\n")
    words = [str(file) if word == "FILE" else word for word in words]
    monkeypatch.setattr("sys.argv", ["depth_camera", "--ros-args", *words])
    assert executables.is_in_space("depth_camera") is space
    assert not executables.is_in_space("turntable")


def assert_same_views(rows, others):
    for one, other in zip(rows, others, strict=True):
        for name in ("x", "y", "z", "qx", "qw"):
            assert float(one[name]) == pytest.approx(float(other[name]), abs=1e-6)
        assert float(one["completeness"]) == pytest.approx(float(other["completeness"]), abs=0.01)
        assert float(one["estimated"]) == pytest.approx(float(other["estimated"]), abs=0.02)


@pytest.mark.release
def test_three_processes_take_the_views_that_one_process_takes(tmp_path, capsys):
    """As the nodes do in one process, below."""
    settings = [word for one in SMALL for word in ("--set", one)]
    rows = {}
    for command in ("simulate", "demo"):
        out = tmp_path / command
        words = [command, "--object", "solid:box", "--planner", "greedy", "--no-figures"]
        words += ["--record", "--respawn"] if command == "demo" else []
        assert main([*words, "--out", str(out), *settings]) == 0
        rows[command] = list(csv.DictReader((out / "views.csv").open()))
    assert "ended: MAX_VIEWS" in capsys.readouterr().out
    assert len(rows["demo"]) == 3
    assert_same_views(rows["simulate"], rows["demo"])
    bag = str(tmp_path / "demo" / "bag")
    assert main(["bag", "replay", bag, "--planner", "random", "--set", "planner_seed=5"]) == 0
    assert "decisions would have been different" in capsys.readouterr().out


def test_three_nodes_take_the_views_of_a_simulation_and_their_bag_gives_the_same_again(
    world, tmp_path, capsys
):
    parameters = load_parameters(shared_file("config/space/solid.yaml"), nodes=SOLID_NODES)
    changes = [*SMALL, "object=solid:box", "planner=greedy", "wait_for_start=true"]
    set_parameters(parameters, changes, ros=True, nodes=SOLID_NODES)
    config = SolidConfig.of(parameters)
    simulated = [row_of(view) for view in SolidEpisode(config).run()]
    taken, bag = [], tmp_path / "bag"
    with BagWriter(bag) as writer, separate_context(world.domain) as executor:
        for create, name in zip((SolidCamera, SolidMapper, SolidPlanner), SOLID_NODES, strict=True):
            world.start(create, **parameters[name])
        executor.add_node(BagRecorder(writer, RECORDED_IN_SPACE))
        monitor = SolidMonitor(SolidJudge(config), taken.append)
        executor.add_node(monitor)

        def ended() -> bool:
            executor.spin_once(timeout_sec=0.0)
            monitor.start_when_ready()
            known = monitor.log.parameters
            return monitor.complete and known is not None and set(known.nodes) >= set(SOLID_NODES)

        world.spin_until(ended, "the end of the episode")
        end = time.monotonic() + 1.0  # the recorder may have heard less than the monitor
        while time.monotonic() < end:
            executor.spin_once(timeout_sec=0.02)
    assert monitor.termination.reason.value == "MAX_VIEWS"
    rows = [row_of(view) for view in taken]
    assert len(rows) == 3
    assert_same_views(simulated, rows)
    replayed_and_analysed(bag, tmp_path, rows, capsys)
    watched_without_a_surface(bag, config, rows)


def watched_without_a_surface(bag, config, views):
    """A surface that the next one has replaced before it was received keeps nobody waiting."""
    taken = []
    with separate_context(free_domain_id()):
        monitor = SolidMonitor(SolidJudge(config), taken.append)
        surfaces = 0
        for message in Bag(bag).messages(lambda topic: topic.name[1:] in READERS_IN_SPACE):
            name = message.topic.name[1:]
            surfaces += name == "surface"
            if name != "surface" or surfaces != 3:  # the prior, and that of the first view
                monitor._on_message(name, decode(message))
        assert monitor.complete
        monitor.destroy_node()
    assert [one.pose.x for one in taken] == pytest.approx([float(row["x"]) for row in views])
    seen = [one.completeness for one in taken]
    assert seen[1] == seen[2] > seen[0]


def replayed_and_analysed(bag, folder, views, capsys):
    """The bag of an episode gives the same decisions and views again, and a page with pictures."""
    assert main(["bag", "replay", str(bag)]) == 0
    assert "all 3 decisions are the same" in capsys.readouterr().out
    out = folder / "analysis"
    assert main(["analyze", str(bag), "--out", str(out)]) == 0
    assert "ended: MAX_VIEWS" in capsys.readouterr().out
    again = list(csv.DictReader((out / "views.csv").open()))
    for one, other in zip(views, again, strict=True):
        for name in ("x", "z", "qx", "completeness", "estimated", "utility", "travelled"):
            assert float(one[name]) == pytest.approx(float(other[name]), abs=1e-9), name
    page = (out / "analysis.html").read_text(encoding="utf-8")
    assert page.count("<img") == 2
    assert "true object" not in page
    assert (out / "figures" / "reconstruction.png").stat().st_size > 10_000
    assert main(["report", str(bag), str(bag), "--out", str(folder / "report")]) != 0
    assert "is of a solid in space" in capsys.readouterr().err


def test_a_mapper_that_was_killed_goes_on_with_its_views(world, camera, tmp_path):
    settings = {
        "settle_time": 0.0,
        "scans_per_view": 1,
        "map_file": str(tmp_path / "map.jsonl"),
        **SCENE,
    }
    first = world.start(SolidMapper, **settings)
    goal = pose_msg(looking(np.array([[0.0, -0.4, 0.1]]), np.zeros(3))[0], first.now_ns())
    world.speaker(PoseStamped, "goal_pose")(goal)
    world.spin_until(lambda: first.core.known.progress.views == 1, "a view")
    before = first.core.known.mapper.model.surface
    world.end(first)
    second = world.start(SolidMapper, **settings)
    assert second.core.known.progress.views == 1
    after = second.core.known.mapper.model.surface
    assert (after.cells.state == before.cells.state).all()
    assert (after.cells.hits.mean == before.cells.hits.mean).all()
    surfaces = world.listen(PointCloud2, "surface", qos.latched(10))
    world.spin_until(lambda: surfaces, "its surface again")
    assert len(surface_from_msg(surfaces[-1]).key) == len(after.cells.hits.key)


IDLE = {"wait_for_start": True, "certify": False, "planner": "greedy", "settle_time": 0.0, **SCENE}


def listed(poses, *bad):
    return PoseArray(
        header=header("object"), poses=[pose_msg(one, 0).pose for one in poses] + [*bad]
    )


def test_poses_by_message_are_the_candidates_and_one_that_is_skipped_is_left_out(world, camera):
    world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **SCENE)
    planner = world.start(SolidPlanner, goal_subscribers=2, max_views=2, **IDLE)
    given = list(on_sphere(5, 0.45))
    inside, tilted = pose_msg(on_sphere(1, 0.2)[0], 0).pose, Pose()
    tilted.orientation.w = 0.0
    world.speaker(PoseArray, "nbv_planner/view_poses")(listed(given, inside, tilted))
    world.spin_until(lambda: len(planner.core.planner.views.candidates) == 5, "the candidates")
    assert world.drops(planner) == {"~/view_poses.inside": 1, "~/view_poses.quaternion": 1}
    ranked = world.listen(PoseArray, "nbv_planner/ranked_views", qos.latched(10))
    assert world.call(Trigger, "nbv_planner/start").success
    world.spin_until(lambda: ranked, "the first list")
    # an arm that cannot plan to the first says so, and takes what comes then
    assert world.call(Trigger, "nbv_planner/skip_view").success
    world.spin_until(lambda: planner.core.episode.termination, "the end")
    world.spin_until(lambda: len(ranked) >= 3, "all lists")
    first = space_pose_from_msg(PoseStamped(pose=ranked[0].poses[0]))
    later = [space_pose_from_msg(PoseStamped(pose=one)) for msg in ranked[1:] for one in msg.poses]
    assert len(ranked[0].poses) == 5
    assert min(pose.offset(first)[0] for pose in later) > 0.1
    for pose in later:
        assert min(pose.offset(one)[0] for one in given) < 1e-6


def test_a_list_during_an_episode_or_without_poses_changes_nothing(world, camera):
    world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **SCENE)
    planner = world.start(SolidPlanner, goal_subscribers=2, num_views=7, **IDLE)
    send = world.speaker(PoseArray, "nbv_planner/view_poses")
    send(listed([]))
    world.spin_until(lambda: world.drops(planner) == {"~/view_poses.refused": 1}, "its refusal")
    assert world.call(Trigger, "nbv_planner/start").success
    world.spin_until(lambda: planner.core.episode.goal, "a goal")
    send(listed(on_sphere(5, 0.45)))
    world.spin_until(lambda: world.drops(planner) == {"~/view_poses.refused": 2}, "another one")
    assert len(planner.core.planner.views.candidates) == 7


def test_a_planner_that_was_killed_goes_on_with_the_poses_of_its_list(world, camera, tmp_path):
    world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **SCENE)
    more = {"state_file": str(tmp_path / "session.jsonl"), "goal_subscribers": 2, "max_views": 9}
    planner = world.start(SolidPlanner, **more, **IDLE)
    world.speaker(PoseArray, "nbv_planner/view_poses")(listed(on_sphere(11, 0.45)))
    world.spin_until(lambda: len(planner.core.planner.views.candidates) == 11, "the candidates")
    assert world.call(Trigger, "nbv_planner/start").success
    world.spin_until(lambda: planner.core.episode.visited, "a view")
    world.end(planner)
    other = world.start(SolidPlanner, **more, **IDLE)
    np.testing.assert_allclose(
        other.core.planner.views.candidates.position, on_sphere(11, 0.45).position, atol=1e-9
    )


def depth_msg(depth, millimetres):
    """A depth image, metres, as it is or in millimetres."""
    values = np.nan_to_num(1e3 * depth, posinf=0.0).round().astype("<u2")
    return Image(
        header=header("eye", 20),
        height=depth.shape[0],
        width=depth.shape[1],
        encoding="16UC1" if millimetres else "32FC1",
        step=(2 if millimetres else 4) * depth.shape[1],
        data=array.array("B", (values if millimetres else depth.astype("<f4")).tobytes()),
    )


@pytest.mark.parametrize("millimetres", [False, True])
def test_a_large_image_is_thinned_0_and_nan_are_unknown_and_the_table_is_no_object(
    world, millimetres
):
    sensor = DepthSensor(columns=320, rows=240, range_max=2.0)
    camera = SimulatedDepthCamera(solid_named("box", 0.25), sensor, RangeNoise(0.0, 1e-6))
    pose = looking(np.array([[0.1, -0.4, 0.1]]), np.zeros(3))
    scan = camera.scan(pose.position[0], pose.rotation[0], np.random.default_rng(0))
    depth = (scan.ranges * scan.directions[:, 0]).reshape(240, 320)
    depth[:, :160] = 0.0 if millimetres else np.nan
    box = [-1.0, -1.0, -1.0, 0.08, 1.0, 1.0]
    more = {"table_height": -0.02, "crop_box": box, **SCENE}
    node = world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **more)
    inputs = node.incoming
    inputs.on_goal(pose_msg(pose[0], 10))
    for stamp in (10, 30):
        inputs.on_pose(pose_msg(pose[0], stamp))
    node.incoming._reader.take("camera_info", info_to_msg(sensor, header("eye", 20)))
    inputs.on_scan(depth_msg(depth, millimetres))
    world.spin_until(lambda: node.core.known.progress.views == 1, "the view")
    drops = world.drops(node)
    # 32 x 24 beams, of which the left half, and with millimetres those without a return, are 0
    assert drops["beam.nan"] >= 16 * 24
    assert (drops["beam.nan"] == 16 * 24) is not millimetres
    assert drops["beam.outside_bounds"] > 0  # what lies below the table
    hits = node.core.known.mapper.model.surface.cells.hits.mean
    assert len(hits) > 30
    assert hits[:, 2].min() > -0.02
    assert 0.05 < hits[:, 0].max() < 0.08
    # in the object frame, whose y axis the camera looks along: no hit is left of the line of sight
    local = (hits - pose.position[0]) @ pose.rotation[0]
    assert local[:, 1].max() < 0.002
    assert np.median(hits[:, 1]) == pytest.approx(-0.1, abs=0.003)
