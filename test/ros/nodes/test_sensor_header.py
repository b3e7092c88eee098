"""Field of view and range not given come from the headers of the scans; the planner has them from
the mapper.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.lifecycle import TransitionCallbackReturn
from ros_world import bent, header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan, PointCloud2
from simulated_bags import info_of
from std_msgs.msg import String

from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.episode.run_info import parameters_from_msg
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions, planner_inputs
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.world.scan import RangeNoise, Scan
from nbv_planner.world.scene import Scene

MS = 1_000_000
NAMES = ("field_of_view", "range_min", "range_max")
BELIEF = wavy_belief(0, size=200)
SURFACE = conversions.belief_to_msg(BELIEF, header("object"))


def scan_msg(half: float = 0.45, *, stamp: int = 10, **fields) -> LaserScan:
    scan = Scan(-half, half / 50, np.full(101, 5.0), 0.2, 14.0)
    return bent(conversions.scan_to_msg(scan, header("camera", stamp * MS)), **fields)


def values(node) -> list[float]:
    """The sensor that the node uses: what it has learned is no parameter."""
    return [getattr(node.scene, name) for name in NAMES]


def parameters(node) -> list[float]:
    return [node.get_parameter(name).value for name in NAMES]


@pytest.fixture
def mapper(world):
    """Return a function that starts a mapper, has it map scans at one pose, and gives it with what
    it says then.
    """

    def start(*scans: LaserScan, **parameters):
        node = world.start(SurfaceMapperNode, grid_size=100, **parameters)
        infos = world.listen(String, "surface_info", qos.latched(10))
        pose, scan = world.speaker(PoseStamped, "camera_pose"), world.speaker(LaserScan, "scan")
        for stamp in (0, 100):
            pose(pose_msg(view_pose(0.3), stamp * MS))
        for msg in scans:
            scan(msg)
        world.spin_until(lambda: infos, "what was learned")
        return node, lambda: info_from_text(infos[-1].data).sensor

    return start


def test_the_mapper_has_the_sensor_of_the_first_scan_and_says_so(world, mapper, capfd):
    node, sensor = mapper(scan_msg(), scan_msg(0.3, stamp=20))
    assert values(node) == pytest.approx([0.9, 0.2, 14.0])
    assert sensor() == dict(zip(NAMES, values(node), strict=True))
    assert parameters(node) == [Scene().field_of_view, 0.05, 10.0]
    assert node.scene == Scene(field_of_view=0.9, range_min=0.2, range_max=14.0)
    words = (
        "not given, so taken from the scans: field_of_view 0.9 rad, range_min 0.2 m, range_max 14 m"
    )
    assert words in capfd.readouterr().err
    results = world.set_parameters(node, field_of_view=0.5)
    assert not results[0].successful


def test_a_later_header_that_sees_more_widens_and_one_that_sees_less_does_not(mapper):
    node, sensor = mapper(
        scan_msg(0.2, range_max=3.69), scan_msg(0.3, stamp=20, range_max=9.0, range_min=0.1)
    )
    assert values(node) == pytest.approx([0.6, 0.1, 9.0])
    assert sensor()["range_max"] == 9.0
    node.incoming.on_scan(scan_msg(0.25, stamp=30, range_max=5.0))
    assert values(node) == pytest.approx([0.6, 0.1, 9.0])


def test_what_was_given_is_not_widened(mapper):
    node, _ = mapper(
        scan_msg(0.2, range_max=3.69), scan_msg(0.3, stamp=20, range_max=14.0), range_max=9.0
    )
    assert values(node) == pytest.approx([0.6, 0.2, 9.0])


def test_headers_that_change_from_scan_to_scan_are_said_once(mapper, capfd):
    node, _ = mapper(scan_msg(stamp=10, range_max=4.0))
    for n in range(2, 10):
        node.incoming.on_scan(scan_msg(stamp=10 * n, range_max=3.0 + n))
    assert capfd.readouterr().err.count("the headers of the scans change from one to the next") == 1
    assert node.figures()["header_changes"] == 8
    assert values(node)[2] == 12.0


def test_a_map_that_is_restored_keeps_what_the_headers_said(world, mapper, tmp_path):
    file = str(tmp_path / "map.jsonl")
    node, _ = mapper(scan_msg(0.3, range_max=9.0), map_file=file)
    world.end(node)
    again = world.start(SurfaceMapperNode, grid_size=100, map_file=file)
    assert values(again) == pytest.approx([0.6, 0.2, 9.0])
    assert again.scene.range_max == 9.0
    again.incoming.on_scan(scan_msg(0.2, stamp=200, range_max=3.69))
    assert values(again) == pytest.approx([0.6, 0.2, 9.0])


def test_returns_beyond_the_range_of_the_first_header_are_mapped(world):
    node = world.start(SurfaceMapperNode, grid_size=100, range_min=0.05)
    for number, far in enumerate((3.69, 9.0)):
        pose, stamp = view_pose(2.0 * number), (10 + 10 * number) * MS
        node.incoming.on_goal(pose_msg(pose, stamp))
        node.incoming.on_pose(pose_msg(pose, stamp))
        node.incoming.on_scan(
            scan_msg(stamp=stamp // MS, range_max=far, ranges=np.full(101, far - 1.0))
        )
        node.incoming.on_pose(pose_msg(pose, stamp + MS))
        world.spin_until(
            lambda number=number: node.core.known.progress.views == number + 1, "the view"
        )
    assert node.drops["beam.too_far"] == 0
    assert node.core.known.mapper.model.count > 0


def test_what_was_given_wins(mapper):
    node, sensor = mapper(scan_msg(), field_of_view=0.6, range_max=9.0)
    assert values(node) == pytest.approx([0.6, 0.2, 9.0])
    assert sensor()["range_max"] == 9.0


def test_what_the_header_does_not_tell_stays_and_is_named(mapper, capfd):
    node, _ = mapper(scan_msg(range_min=0.0, range_max=math.inf))
    assert values(node) == pytest.approx([0.9, 0.05, 10.0])
    assert (
        "the scans do not say, so these stay as they are: range_min 0.05, range_max 10\n"
        in capfd.readouterr().err
    )


def test_a_header_that_does_not_fit_what_was_given_is_left_out(mapper, capfd):
    node, _ = mapper(scan_msg(range_min=9.5), range_max=9.0)
    assert values(node) == pytest.approx([Scene().field_of_view, 0.05, 9.0])
    why = "left out, not given, so taken from the scans: range_min: 9.5 must be < 9.0 (range_max)"
    assert f"{why}\n" in capfd.readouterr().err


def test_a_lidar_that_sees_all_around_counts_as_a_cone_that_holds_the_object(mapper):
    node, _ = mapper(scan_msg(math.pi))
    assert values(node) == pytest.approx([2 * math.asin(0.8), 0.2, 14.0], rel=1e-5)


def test_a_clean_up_forgets_what_the_scans_said(mapper):
    node, _ = mapper(scan_msg())
    assert values(node)[0] == 0.9
    assert node.trigger_deactivate() == node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert values(node) == pytest.approx([Scene().field_of_view, 0.05, 10.0])


@pytest.mark.parametrize(
    ("given", "far", "expected"),
    [
        ({}, 12.0, [1.0, 0.3, 12.0]),
        ({"field_of_view": 0.7}, 12.0, [0.7, 0.3, 12.0]),
        ({}, 0.25, [Scene().field_of_view, 0.05, 10.0]),  # does not fit: nothing is taken
    ],
)
def test_the_planner_plans_with_the_sensor_of_the_mapper(world, given, far, expected):
    node = world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=20, goal_subscribers=1, **given
    )
    goals = world.listen(PoseStamped, "goal_pose")
    pose = world.speaker(PoseStamped, "camera_pose")
    send = world.mapper()
    pose(pose_msg(view_pose(0.3), 10 * MS))
    before = node.get_parameter("field_of_view").value
    send(SURFACE, sensor={"field_of_view": 1.0, "range_min": 0.3, "range_max": far})
    world.spin_until(lambda: goals, "the first goal")
    assert values(node) == pytest.approx(expected)
    assert node.get_parameter("field_of_view").value == before
    assert node.core.planner._scene == node.scene


@pytest.mark.parametrize(("given", "tau"), [({}, 0.15), ({"completeness_tau": 0.4}, 0.4)])
def test_the_resolution_follows_from_the_noise_that_the_mapper_declares(world, given, tau):
    node = world.start(
        NbvPlannerNode, objective="U", certify=False, num_views=20, goal_subscribers=1, **given
    )
    run_info = world.listen(String, "run_info", qos.latched())
    goals = world.listen(PoseStamped, "goal_pose")
    world.speaker(PoseStamped, "camera_pose")(pose_msg(view_pose(0.3), 10 * MS))
    world.mapper()(SURFACE, declared=RangeNoise(0.05, 0.01))
    world.spin_until(lambda: goals and run_info, "the first goal")
    settings = node.core.planner.settings
    assert settings.noise == RangeNoise(0.05, 0.01)
    assert settings.completeness_tau == pytest.approx(tau)
    recorded = parameters_from_msg(run_info[-1])
    mapper = {"noise_std": 0.05, "noise_std_per_metre": 0.01}
    nodes = {**recorded.nodes, "surface_mapper": mapper}
    again = dataclasses.replace(recorded, nodes=nodes).config().planner
    assert (again.noise, again.completeness_tau) == (settings.noise, settings.completeness_tau)


def test_a_surface_waits_for_what_is_said_of_it_in_either_order_and_no_text_is_dropped(world):
    node = world.start(NbvPlannerNode, objective="U", certify=False, num_views=20)
    statuses = world.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(10))
    say = world.speaker(String, "surface_info", qos.latched())
    send = world.speaker(PointCloud2, "surface", qos.latched())
    send(SURFACE)
    world.spin_until(
        lambda: statuses and "/surface_info (std_msgs/msg/String" in statuses[-1].message,
        "the status",
    )
    info = info_of(BELIEF, 0, sensor={"range_max": 12.0})
    for text, dropped in (("rubbish", True), (dataclasses.replace(info, stamp=1).text, False)):
        say(String(data=text))
        world.spin_until(
            lambda d=dropped: world.drops(node).get("surface_info.surface_info", 0) == 1 or not d,
            "it",
        )
        assert node.core.inputs.belief is None
    say(String(data=info.text))
    world.spin_until(lambda: node.core.inputs.belief, "the surface")
    assert values(node)[2] == 12.0
    send(conversions.belief_to_msg(BELIEF, header("object", 5 * MS)))
    world.spin_some()
    assert node.core.inputs.belief_stamp == 0
    say(String(data=dataclasses.replace(info, stamp=7 * MS).text))
    send(conversions.belief_to_msg(BELIEF, header("object", 7 * MS)))
    world.spin_until(lambda: node.core.inputs.belief_stamp == 7 * MS, "the surface after it")
    assert world.drops(node)["surface.no_info"] == 1


def test_a_surface_is_kept_until_the_text_of_it_comes_however_late(world, monkeypatch):
    """A lost message comes again with the next heartbeat of the middleware, after seconds."""
    monkeypatch.setattr(planner_inputs, "_INFO_PATIENCE", 0.0)
    node = world.start(
        NbvPlannerNode,
        objective="U",
        certify=False,
        num_views=20,
        goal_subscribers=1,
        input_timeout=2.0,
    )
    say = world.speaker(String, "surface_info", qos.latched())
    send = world.speaker(PointCloud2, "surface", qos.latched())
    pose = world.speaker(PoseStamped, "camera_pose")
    goals = world.listen(PoseStamped, "goal_pose")
    named = "has no surface_info with its stamp"
    say(String(data=info_of(BELIEF, 0).text))
    send(SURFACE)
    pose(pose_msg(view_pose(0.3), 10 * MS))
    world.spin_until(lambda: goals, "the first goal")
    goal = goals[-1]
    at = to_nanoseconds(goal.header.stamp) + MS
    goal.header.stamp = conversions.to_stamp(at)
    pose(goal)
    send(conversions.belief_to_msg(BELIEF, header("object", at)))
    world.spin_until(lambda: named in world.diagnosis(node).message, "the reason")
    assert not node.core.episode.visited
    say(String(data=info_of(BELIEF, at).text))
    world.spin_until(lambda: node.core.episode.visited, "the view")
    assert "surface.no_info" not in world.drops(node)
    assert named not in world.diagnosis(node).message


@pytest.mark.parametrize(("half", "named"), [(0.44, 0), (0.2, 1)])
def test_scans_of_a_view_that_cannot_be_averaged_are_named(world, capfd, half, named):
    node = world.start(SurfaceMapperNode, grid_size=100, scans_per_view=2)
    pose = view_pose(0.3)
    node.incoming.on_goal(pose_msg(pose, 10 * MS))
    for stamp, msg in ((10, scan_msg()), (20, scan_msg(half, stamp=20))):
        node.incoming.on_pose(pose_msg(pose, stamp * MS))
        node.incoming.on_scan(msg)
    world.spin_until(lambda: node.core.known.progress.views == 1, "the view")
    said = "1 scans of a view are not averaged with the others: their beams are elsewhere"
    assert capfd.readouterr().err.count(said) == named
