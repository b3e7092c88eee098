"""Node surface_mapper: the scans that count and no others, whatever else arrives and in whichever
order.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_world import (
    as_received,
    clockwise,
    header,
    malformed_poses,
    malformed_scans,
    pose_msg,
    view_pose,
)
from sensor_msgs.msg import LaserScan, PointCloud2
from std_msgs.msg import String
from std_srvs.srv import Trigger

from nbv_planner.clouds.cloud_fields import EVIDENCE_LAYOUT, OWN_LAYOUT, SURFACE_LAYOUT
from nbv_planner.clouds.sensor_messages import to_nanoseconds
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.model_checks import ModelChecks
from nbv_planner.surface.checks import CheckSettings, Level
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import SENSOR_NAMES, Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
CAMERA = SimulatedCamera(parse_object("polygon:star", SCENE), SCENE, SensorSettings(num_beams=31))
GRID = 100
PLAIN = {"grid_size": GRID, "robust": False}  # updates that depend on the scans alone
MS = 1_000_000
HERE, THERE = view_pose(1.0), view_pose(2.5)


def scan_at(pose: CameraPose, number: int = 0) -> Scan:
    return CAMERA.scan(pose, 1, number)


class Feed:
    """The camera's and the planner's side of the mapper's conversation."""

    def __init__(self, world, namespace: str = ""):
        self.world = world
        self.surfaces = world.listen(PointCloud2, namespace + "surface", qos.latched(100))
        self.send_scan = world.speaker(LaserScan, namespace + "scan")
        self.send_pose = world.speaker(PoseStamped, namespace + "camera_pose")
        self.send_goal = world.speaker(PoseStamped, namespace + "goal_pose")

    def scan(self, stamp: int, scan: Scan) -> None:
        self.send_scan(conversions.scan_to_msg(scan, header("camera", stamp)))

    def pose(self, stamp: int, pose: CameraPose) -> None:
        self.send_pose(pose_msg(pose, stamp))

    def goal(self, stamp: int, pose: CameraPose) -> None:
        self.send_goal(pose_msg(pose, stamp))

    def pair(self, stamp: int, pose: CameraPose, number: int = 0) -> None:
        """A scan and its pose."""
        self.scan(stamp, scan_at(pose, number))
        self.pose(stamp, pose)

    def surface(self, number: int) -> PointCloud2:
        """Wait until that many surfaces have come; gives the last."""
        self.world.spin_until(lambda: len(self.surfaces) >= number, f"surface {number}")
        assert len(self.surfaces) == number
        return self.surfaces[-1]


def surface_of(*taken: tuple[CameraPose, int], per_view: int = 1) -> bytes:
    """What the surface must hold, bit for bit, once these scans (pose, number) and no others have
    been mapped.

    The scans of one view are mapped together.
    """
    model, declared = (
        SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=GRID)),
        MeasurementSettings(),
    )
    mapping = ScanMapping(
        model, SCENE, declared, ModelChecks(SCENE, declared.noise, CheckSettings())
    )
    belief = mapping.belief()
    for view, first in enumerate(range(0, len(taken), per_view)):
        scans = [
            (scan_at(pose, number), as_received(pose))
            for pose, number in taken[first : first + per_view]
        ]
        mapping.add([MatchedScan(0, scan, pose, view) for scan, pose in scans], view - 1)
        belief = mapping.belief()
    return bytes(conversions.belief_to_msg(belief, header("object")).data)


def stamp_of(msg) -> int:
    return to_nanoseconds(msg.header.stamp)


def test_prior_is_published_once_a_scan_has_found_its_pose(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN)
    feed = Feed(world)
    feed.scan(10 * MS, scan_at(HERE))
    world.spin_until(lambda: "scan" not in world.diagnosis(mapper).message, "the scan to be heard")
    assert feed.surfaces == []
    feed.pose(10 * MS, HERE)
    prior = feed.surface(1)
    assert (stamp_of(prior), prior.header.frame_id) == (0, "object")
    assert bytes(prior.data) == surface_of()
    feed.pair(20 * MS, HERE)
    feed.pair(30 * MS, THERE)
    feed.goal(40 * MS, HERE)
    feed.pair(50 * MS, HERE)
    assert stamp_of(feed.surface(2)) == 50 * MS  # the prior has come once only


def test_what_was_learned_comes_with_the_stamp_of_its_surface(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, kernel_std=1.25)
    feed, infos = Feed(world), world.listen(String, "surface_info", qos.latched(100))
    feed.goal(40 * MS, HERE)
    feed.pair(50 * MS, HERE)
    last = feed.surface(2)
    world.spin_until(lambda: len(infos) == 2, "what was learned")
    prior, info = (info_from_text(msg.data) for msg in infos)
    assert [prior.stamp, info.stamp] == [stamp_of(one) for one in feed.surfaces]
    known = mapper.core.known.belief.checks
    assert [(check.name, check.level) for check in info.checks] == [
        (check.name, check.level) for check in known
    ]
    np.testing.assert_array_equal(
        [check.score for check in info.checks], [check.score for check in known]
    )
    assert info.checks
    layout = [*SURFACE_LAYOUT, *EVIDENCE_LAYOUT, *OWN_LAYOUT]
    # no settings in a column
    assert {field.name for field in last.fields} <= {name for name, _ in layout}
    assert (info.prior.kernel_std, info.noise_factor, info.scene) == (1.25, 1.0, None)
    assert info.sensor == {name: getattr(mapper.scene, name) for name in SENSOR_NAMES}
    late = world.listen(String, "surface_info", qos.latched())
    world.spin_until(lambda: late, "the latched one")
    assert late[0].data == infos[-1].data


def test_a_known_outline_goes_out_with_the_surface(world, tmp_path):
    file = tmp_path / "part.csv"
    file.write_text("x,y\n6000,0\n0,6000\n-6000,0\n0,-6000\n")
    mapper = world.start(SurfaceMapperNode, prior_outline=f"{file},unit=mm", grid_size=GRID)
    feed, infos = Feed(world), world.listen(String, "surface_info", qos.latched(100))
    feed.goal(40 * MS, HERE)
    feed.pair(50 * MS, HERE)
    feed.surface(2)
    world.spin_until(lambda: len(infos) == 2, "what was learned")
    known = [info_from_text(msg.data).outline for msg in infos]
    assert known[0].plain == known[1].plain == mapper.config.known_outline.plain
    assert known[0].radius[0] == pytest.approx(6.0, abs=1e-4)
    checks = {check.name: check for check in info_from_text(infos[-1].data).checks}
    assert checks["prior_outline"].level is Level.NOTED  # the star is no such square


def test_outlines_that_are_no_radius_go_out_with_a_surface_of_cells(world, tmp_path):
    file = tmp_path / "two.csv"
    file.write_text("x,y\n1,-3\n6,-3\n6,3\n1,3\n\n-1,-3\n-1,3\n-6,3\n-6,-3\n")
    mapper = world.start(SurfaceMapperNode, prior_outline=str(file), surface_model="volume")
    feed, infos = Feed(world), world.listen(String, "surface_info", qos.latched(100))
    feed.pair(10 * MS, HERE)
    feed.surface(1)
    world.spin_until(lambda: infos, "what was learned")
    known = info_from_text(infos[-1].data).cells.known
    assert known.plain == mapper.config.known_solid.plain
    assert len(known.loops) == 2


def test_the_mapper_goes_on_without_an_outline_that_is_none(world, tmp_path, capfd):
    file = tmp_path / "part.csv"
    file.write_text("x,y\n-4,-4\n4,4\n4,-4\n-4,4\n")
    world.start(SurfaceMapperNode, prior_outline=str(file), **PLAIN)
    feed = Feed(world)
    feed.pair(10 * MS, HERE)
    assert bytes(feed.surface(1).data) == surface_of()
    lines = capfd.readouterr().err.splitlines()
    (line,) = [line for line in lines if "continuing without it" in line]
    assert "crosses itself" in line


def test_the_outline_written_at_one_height_is_the_prior_at_the_next(world, tmp_path):
    """A lidar on a mast: the height of a pose changes nothing, the file of the cut below does."""
    world.start(
        SurfaceMapperNode,
        cli_args=["--ros-args", "-r", "__ns:=/lower"],
        outline_folder=str(tmp_path),
        **PLAIN,
    )
    feed = Feed(world, "lower/")
    feed.pair(10 * MS, HERE)
    feed.surface(1)
    assert world.call(Trigger, "lower/surface_mapper/write_outline").success
    raised = dataclasses.replace(HERE, height=0.25)
    surfaces = {}
    for name, file in (("plain", ""), ("upper", str(tmp_path / "outline.csv"))):
        mapper = world.start(
            SurfaceMapperNode,
            cli_args=["--ros-args", "-r", f"__ns:=/{name}"],
            prior_outline=file,
            **PLAIN,
        )
        above = Feed(world, f"{name}/")
        above.pair(10 * MS, raised)
        surfaces[name] = bytes(above.surface(1).data)
    assert surfaces["plain"] == bytes(feed.surfaces[-1].data) != surfaces["upper"]
    assert mapper.config.outline.prior_outline.endswith("outline.csv")  # it was none to refuse


def test_a_lidar_mounted_upside_down_gives_the_same_surface(world):
    beliefs = []
    for namespace, as_sent in (("upright/", lambda msg: msg), ("turned/", clockwise)):
        world.start(
            SurfaceMapperNode, cli_args=["--ros-args", "-r", f"__ns:=/{namespace[:-1]}"], **PLAIN
        )
        feed = Feed(world, namespace)
        feed.goal(5 * MS, HERE)
        feed.send_scan(as_sent(conversions.scan_to_msg(scan_at(HERE), header("camera", 10 * MS))))
        feed.pose(10 * MS, HERE)
        world.spin_until(
            lambda f=feed: f.surfaces and stamp_of(f.surfaces[-1]) == 10 * MS, "the surface"
        )
        beliefs.append(belief_from_msg(feed.surfaces[-1]))
    upright, turned = beliefs
    assert upright.hits.sum() > 5
    assert turned.hits.tolist() == upright.hits.tolist()
    for name in ("mean", "std", "lower", "upper"):
        assert getattr(turned, name) == pytest.approx(getattr(upright, name), abs=1e-4)


def test_exactly_the_scans_taken_at_the_goal_since_it_was_given_count(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, scans_per_view=3)
    feed = Feed(world)
    feed.pair(50 * MS, HERE, 0)  # at the goal, but before it was given
    feed.pair(99 * MS, HERE, 1)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, THERE, 2)  # on the way
    feed.pair(120 * MS, view_pose(1.02), 3)
    for number in (4, 5, 6, 7, 8):
        feed.pair(100 * MS + number * 10 * MS, HERE, number)
    after = feed.surface(2)
    assert bytes(after.data) == surface_of((HERE, 4), (HERE, 5), (HERE, 6), per_view=3)
    assert stamp_of(after) == 160 * MS
    feed.goal(200 * MS, THERE)
    for number in (0, 1, 2, 3):
        feed.pair(210 * MS + number * 10 * MS, THERE, number)
    last = feed.surface(3)
    taken = [(HERE, 4), (HERE, 5), (HERE, 6), (THERE, 0), (THERE, 1), (THERE, 2)]
    assert bytes(last.data) == surface_of(*taken, per_view=3)
    values = world.diagnosis(mapper).values
    assert values["views"] == "2"
    assert mapper.core.known.mapper.model.round == 3
    assert int(values["measurements"]) == len(mapper.core.known.mapper.model.measurements)
    assert float(values["update_milliseconds"]) > 0.0


def test_scans_of_one_view_are_one_round(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, scans_per_view=3)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    for number in (0, 1, 2):
        feed.pair(110 * MS + number * 10 * MS, HERE, number)
    feed.surface(2)
    assert mapper.core.known.mapper.model.round == 2


def test_a_kernel_without_markov_structure_is_mapped_by_the_dense_solution_and_says_so(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, kernel="rbf", periodisation="approximate")
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE, 0)
    feed.surface(2)
    assert world.diagnosis(mapper).values["solver"] == "dense"


def test_two_of_three_scans_are_not_mapped_yet(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, scans_per_view=3)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE, 0)
    feed.pair(120 * MS, HERE, 1)
    world.spin_until(lambda: mapper.core.matcher.matches == 2, "both scans")
    assert bytes(feed.surface(1).data) == surface_of()
    feed.pair(130 * MS, HERE, 2)
    assert bytes(feed.surface(2).data) == surface_of((HERE, 0), (HERE, 1), (HERE, 2), per_view=3)


@pytest.mark.parametrize("order", itertools.permutations(("scan", "pose", "goal")), ids="-".join)
def test_scan_pose_and_goal_may_come_in_any_order(world, order):
    world.start(SurfaceMapperNode, **PLAIN)
    feed = Feed(world)
    send = {
        "scan": lambda: feed.scan(110 * MS, scan_at(HERE)),
        "pose": lambda: feed.pose(110 * MS, HERE),
        "goal": lambda: feed.goal(100 * MS, HERE),
    }
    for kind in order:
        send[kind]()
        world.spin_some(8)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    assert bytes(feed.surfaces[-1].data) == surface_of((HERE, 0))


def test_the_same_goal_again_maps_nothing_twice(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE, 0)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    feed.goal(100 * MS, HERE)
    feed.pair(120 * MS, HERE, 1)
    world.spin_until(lambda: mapper.core.matcher.matches == 2, "the second scan")
    world.spin_some(5)
    assert bytes(feed.surfaces[-1].data) == surface_of((HERE, 0))


def test_scans_without_a_pose_of_their_time_are_counted(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, queue_size=2)
    feed = Feed(world)
    for number in range(3):
        feed.scan((10 + number) * MS, scan_at(HERE))
    world.spin_until(
        lambda: world.drops(mapper).get("scan.no_pose") == 1, "the scan that had to go"
    )
    feed.pose(500 * MS, HERE)
    world.spin_until(
        lambda: world.drops(mapper).get("scan.pose_too_far") == 2, "the scans without a pose"
    )
    assert feed.surfaces == []


def test_beams_left_out_are_counted_by_reason(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN)
    feed = Feed(world)
    scan = scan_at(HERE)
    scan.ranges[:6] = [float("nan"), float("-inf"), 0.0, -1.0, 9.9, 0.1]
    feed.goal(100 * MS, HERE)
    feed.scan(110 * MS, scan)
    feed.pose(110 * MS, HERE)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    drops = world.drops(mapper)
    assert (drops["beam.nan"], drops["beam.too_close"], drops["beam.not_positive"]) == (1, 1, 2)
    assert drops["beam.outside_bounds"] >= 1


def test_a_stream_of_malformed_messages_is_counted_by_reason_and_changes_no_bit_of_the_belief(
    world,
):
    mapper = world.start(SurfaceMapperNode, **PLAIN, camera_frame="camera", scans_per_view=2)
    feed = Feed(world)
    expected: dict[str, int] = {}

    def bad_stream(stamp: int) -> None:
        scan = conversions.scan_to_msg(scan_at(HERE, 9), header("camera", stamp))
        streams = (
            ("scan", feed.send_scan, malformed_scans(scan)),
            ("camera_pose", feed.send_pose, malformed_poses(pose_msg(THERE, stamp))),
            ("goal_pose", feed.send_goal, malformed_poses(pose_msg(THERE, stamp))),
        )
        for topic, send, messages in streams:
            for reason, msg in messages.values():
                key = f"{topic}.{reason}"
                expected[key] = expected.get(key, 0) + 1
                send(msg)
                world.spin_until(
                    lambda k=key: mapper.drops[k] == expected[k], f"the count of {key}"
                )

    bad_stream(5 * MS)
    feed.goal(100 * MS, HERE)
    bad_stream(105 * MS)
    feed.scan(110 * MS, scan_at(HERE, 0))
    bad_stream(110 * MS)  # the stamps of good ones, too
    feed.pose(110 * MS, HERE)
    feed.pair(120 * MS, HERE, 1)
    feed.surface(2)
    bad_stream(130 * MS)
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 0)
    feed.pair(220 * MS, THERE, 1)
    after = feed.surface(3)
    assert bytes(after.data) == surface_of((HERE, 0), (HERE, 1), (THERE, 0), (THERE, 1), per_view=2)
    counted = {
        reason: n for reason, n in world.drops(mapper).items() if not reason.startswith("beam.")
    }
    assert counted == expected
    assert set(counted) == {
        "scan.empty",
        "scan.wrong_length",
        "scan.increment",
        "scan.header_not_finite",
        "scan.range_limits",
        "scan.frame",
        "camera_pose.not_finite",
        "camera_pose.quaternion",
        "camera_pose.tilted",
        "camera_pose.frame",
        "goal_pose.not_finite",
        "goal_pose.quaternion",
        "goal_pose.tilted",
        "goal_pose.frame",
    }


def test_an_empty_camera_frame_takes_scans_of_the_frame_of_the_first_one(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, camera_frame="")
    feed = Feed(world)
    feed.send_scan(conversions.scan_to_msg(scan_at(HERE), header("lidar_7", 10 * MS)))
    feed.pose(10 * MS, HERE)
    assert bytes(feed.surface(1).data) == surface_of()
    world.spin_until(lambda: mapper.core.matcher.matches, "the pose of the first scan")
    feed.send_scan(conversions.scan_to_msg(scan_at(HERE), header("lidar_8", 20 * MS)))
    world.spin_until(
        lambda: world.drops(mapper).get("scan.frame"), "the refusal of another sensor's scan"
    )
    assert world.call(Trigger, "surface_mapper/reset").success
    feed.send_scan(conversions.scan_to_msg(scan_at(HERE), header("lidar_8", 30 * MS)))
    feed.pose(30 * MS, HERE)
    world.spin_until(lambda: mapper.core.matcher.matches, "the pose of another sensor's scan")
    feed.send_scan(conversions.scan_to_msg(scan_at(HERE), header("lidar_7", 40 * MS)))
    world.spin_until(
        lambda: world.drops(mapper)["scan.frame"] == 2, "the refusal of the first sensor's scan"
    )


def test_reset_forgets_everything_and_publishes_the_prior(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    feed.surfaces.clear()
    answer = world.call(Trigger, "surface_mapper/reset")
    assert (answer.success, answer.message) == (True, "all measurements discarded")
    prior = feed.surface(1)
    assert bytes(prior.data) == surface_of()
    assert stamp_of(prior) == 0  # a planner that waits at a goal does not take it for the view
    values = world.diagnosis(mapper).values
    assert (values["measurements"], values["views"]) == ("0", "0")
    feed.goal(200 * MS, THERE)
    feed.pair(210 * MS, THERE, 3)
    assert bytes(feed.surface(2).data) == surface_of((THERE, 3))


def test_diagnostics_warn_and_name_the_missing_inputs(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, input_timeout=0.2)
    feed = Feed(world)
    world.spin_until(lambda: world.diagnosis(mapper).level == DiagnosticStatus.WARN, "the warning")
    assert (
        world.diagnosis(mapper).message
        == "waiting for /scan (sensor_msgs/msg/LaserScan; best effort, volatile): 1 publishes it,"
        " nothing usable received yet; /camera_pose (geometry_msgs/msg/PoseStamped; reliable,"
        " volatile): 1 publishes it, nothing usable received yet"
    )
    feed.scan(10 * MS, scan_at(HERE))
    world.spin_until(lambda: "/scan" not in world.diagnosis(mapper).message, "the scan to be heard")
    feed.pose(10 * MS, HERE)
    world.spin_until(
        lambda: "nothing usable received yet" not in world.diagnosis(mapper).message,
        "the pose to be heard",
    )
    lost = (
        "/scan (sensor_msgs/msg/LaserScan; best effort, volatile): 1 publishes it, nothing usable"
        " for more than 0.2"
    )
    world.spin_until(lambda: lost in world.diagnosis(mapper).message, "the scans to be missed")
    assert world.diagnosis(mapper).level == DiagnosticStatus.WARN


def test_malformed_scans_alone_do_not_count_as_an_input(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, input_timeout=0.2)
    feed = Feed(world)
    scan = conversions.scan_to_msg(scan_at(HERE), header("camera", 0))
    feed.send_scan(malformed_scans(scan)["no ranges"][1])
    world.spin_until(lambda: mapper.drops, "the drop")
    world.spin_until(lambda: world.diagnosis(mapper).level == DiagnosticStatus.WARN, "the warning")
    found = world.diagnosis(mapper)
    assert found.values["dropped.scan.empty"] == "1"
    assert (
        "/scan (sensor_msgs/msg/LaserScan; best effort, volatile): 1 publishes it, nothing usable"
        in found.message
    )


def test_diagnostics_are_ok_while_scans_and_poses_come(world):
    mapper = world.start(SurfaceMapperNode, **PLAIN, input_timeout=1000.0)
    feed = Feed(world)
    feed.pair(10 * MS, HERE)
    feed.surface(1)
    found = world.diagnosis(mapper)
    assert (found.level, found.message) == (DiagnosticStatus.OK, "mapping")


def test_the_newest_surface_reaches_a_late_subscriber_alone(world):
    world.start(SurfaceMapperNode, **PLAIN)
    feed = Feed(world)
    feed.goal(100 * MS, HERE)
    feed.pair(110 * MS, HERE)
    world.spin_until(
        lambda: feed.surfaces and stamp_of(feed.surfaces[-1]) == 110 * MS, "the surface"
    )
    late = world.listen(PointCloud2, "surface", qos.latched())
    world.spin_until(lambda: late, "the latched surface")
    world.spin_some()
    assert [stamp_of(msg) for msg in late] == [110 * MS]
    assert bytes(late[0].data) == surface_of((HERE, 0))


def test_scans_of_a_best_effort_driver_are_heard(world):
    world.start(SurfaceMapperNode, **PLAIN)
    feed = Feed(world)
    send = world.speaker(LaserScan, "scan", qos.sensor_data())
    send(conversions.scan_to_msg(scan_at(HERE), header("camera", 10 * MS)))
    feed.pose(10 * MS, HERE)
    assert bytes(feed.surface(1).data) == surface_of()


def test_topics_follow_namespace_and_remapping(world):
    arguments = ["--ros-args", "-r", "__ns:=/cell", "-r", "scan:=lidar/front"]
    mapper = world.start(SurfaceMapperNode, cli_args=arguments, **PLAIN)
    found = world.diagnosis(mapper).message
    assert (
        "/cell/lidar/front (sensor_msgs/msg/LaserScan; best effort, volatile): nobody publishes it"
        in found
    )
    assert "/cell/camera_pose" in found
    assert "/cell/surface" in {publisher.topic_name for publisher in mapper.publishers}
