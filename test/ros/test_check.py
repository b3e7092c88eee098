"""`nbv-planner check`: what it collects of running nodes, and the whole command on real
processes.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from geometry_msgs.msg import PoseStamped
from ros_world import bent, header, pose_msg, view_pose
from sensor_msgs.msg import LaserScan

from nbv_planner.cli.main import main
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.report.preflight import Outcome, checks_of
from nbv_planner.ros.io import conversions
from nbv_planner.ros.io.listener import SystemListener
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.solid_camera import SolidCamera
from nbv_planner.ros.nodes.solid_mapper import SolidMapper
from nbv_planner.ros.nodes.solid_planner import SolidPlanner
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.ros.solid_check import space_checks_of
from nbv_planner.world.objects import parse_object
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

HERE = view_pose(1.0)
SCAN = SimulatedCamera(
    parse_object("polygon:star", Scene()), Scene(), SensorSettings(num_beams=31)
).scan(HERE, 1)


def listener(world, given=None) -> SystemListener:
    node = SystemListener(given, context=world.context, use_global_arguments=False)
    return world._add(node)


def failed(rows) -> set[str]:
    return {row.name for row in rows if row.outcome is Outcome.FAIL}


def test_running_nodes_pass(world):
    world.start(DepthCamera, num_beams=31)
    world.start(SurfaceMapperNode, grid_size=100)
    world.start(NbvPlannerNode, wait_for_start=True, planner="greedy")
    check = listener(world)

    def all_parameters():
        known = check.system.parameters
        return known and {"surface_mapper", "nbv_planner"} <= set(known.nodes)

    world.spin_until(all_parameters, "run_info")
    check.open_topics()
    world.spin_until(
        lambda: len(check.system.scans) > 10 and len(check.system.poses) > 10, "scans and poses"
    )
    world.spin_until(lambda: len(check.system.nodes) >= 3, "diagnostics")
    check.count()
    rows = checks_of(check.system, check.system.parameters)
    assert failed(rows) == set()
    names = {row.name: row for row in rows}
    assert names["beams on the object"].outcome is Outcome.PASS
    assert names["scans with a pose"].outcome is Outcome.PASS
    assert names["subscribers of goal_pose"].outcome is Outcome.PASS


def test_unusable_messages_wrong_frames_and_old_stamps_are_found(world):
    check = listener(world, RunParameters({"nbv_planner": {"wait_for_start": True}}))
    check.open_topics()
    send_scan, send_pose = (
        world.speaker(LaserScan, "scan"),
        world.speaker(PoseStamped, "camera_pose"),
    )
    for number in range(5):
        send_scan(bent(conversions.scan_to_msg(SCAN, header("camera", number)), ranges=[]))
        send_pose(pose_msg(HERE, number, frame="map"))
    world.spin_until(
        lambda: len(check.system.poses) == 5 and check.system.refused.get("scan"), "the messages"
    )
    check.count()
    rows = {row.name: row for row in checks_of(check.system, RunParameters({}))}
    assert rows["unusable scan"].outcome is Outcome.FAIL
    assert "empty: the scan has no ranges" in rows["unusable scan"].measured
    assert (rows["frame of camera_pose"].measured, rows["frame of camera_pose"].asked) == (
        "map",
        "object",
    )
    assert rows["age of camera_pose"].outcome is Outcome.FAIL
    assert rows["publishers of scan"].measured == "1"


def test_the_command_finds_nothing_where_no_node_runs(capsys, ros_environment):
    assert main(["check", "--domain", str(free_domain_id()), "--seconds", "1"]) == 1
    found = capsys.readouterr().out
    assert re.search(r"^FAIL +publishers of scan +0 +1$", found, re.MULTILINE), found


def test_running_nodes_in_space_pass_and_a_wrong_unit_is_found(world):
    given = {"radius_max": 0.25, "columns": 32, "rows": 24, "range_max": 2.0}
    camera = world.start(SolidCamera, object="solid:box", scan_rate=10.0, **given)
    world.start(SolidMapper, settle_time=0.0, scans_per_view=1, **given)
    world.start(SolidPlanner, wait_for_start=True, num_views=20, certify=False, **given)
    check = listener(world)

    def all_parameters():
        known = check.system.parameters
        return known and {"surface_mapper", "nbv_planner"} <= set(known.nodes)

    world.spin_until(all_parameters, "run_info")
    check.open_topics()
    system = check.system
    world.spin_until(lambda: len(system.scans) > 10 and len(system.poses) > 10, "images and poses")
    world.spin_until(lambda: len(system.nodes) >= 3, "diagnostics")
    check.count()
    rows = {row.name: row for row in space_checks_of(system, system.parameters)}
    assert failed(rows.values()) == set()
    for name in ("beams on the object", "valid beams", "scans with a pose"):
        assert rows[name].outcome is Outcome.PASS, rows[name]
    assert rows["publishers of camera_info"].outcome is Outcome.PASS
    assert rows["distance of the camera"].outcome is Outcome.PASS
    assert rows["spread of the poses"].outcome is Outcome.PASS
    # a driver that sends metres as if they were millimetres
    system.scans = [
        (stamp, age, frame, dataclasses.replace(scan, ranges=scan.ranges * 1e-3))
        for stamp, age, frame, scan in system.scans
    ]
    wrong = {row.name: row for row in space_checks_of(system, system.parameters)}
    assert failed(wrong.values()) == {"beams on the object"}
    assert "16UC1" in wrong["beams on the object"].advice
    assert camera.view_number == 0
