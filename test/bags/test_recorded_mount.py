"""Recorded poses and goals of what carries the camera, read as those of the camera."""

from __future__ import annotations

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from nbv_planner.bags.recording import Recording
from nbv_planner.bags.replay.lane import Lane
from nbv_planner.bags.run_parameters import RunParameters
from nbv_planner.camera import CameraPose
from nbv_planner.camera_poses import PoseSettings
from nbv_planner.evaluation.recorded_decision import RecordedDecision
from nbv_planner.objects import parse_object
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SensorSettings, SimulatedCamera

MOUNT = {"mount_x": 0.4, "mount_y": -0.2, "mount_yaw": 1.2}
POSES = PoseSettings(**MOUNT)
MS = 1_000_000


def recording(parameters: RunParameters | None) -> Recording:
    return Recording(inventory=None, topics=None, parameters=parameters)


def test_a_pose_is_the_cameras_once_the_mount_is_known():
    base = CameraPose(8.0, 3.0, 0.5)
    assert recording(None).camera(base) == base
    assert recording(RunParameters({"surface_mapper": {"grid_size": 100}})).camera(base) == base
    assert recording(RunParameters({"surface_mapper": MOUNT})).camera(base) == POSES.camera(base)
    assert recording(RunParameters({"surface_mapper": {"mount_yaw": 99.0}})).camera(base) == base


def test_a_replay_maps_from_where_the_camera_was():
    shape = parse_object("ellipse:a=6,b=4", Scene())
    camera = CameraPose.on_view_circle(0.7, 10.0)
    scan = SimulatedCamera(shape, Scene(), SensorSettings(num_beams=31, noise_std=0.0)).scan(camera, 1)
    lane = Lane(RunParameters({"surface_mapper": {**MOUNT, "grid_size": 360, "noise_std": 0.01}, "nbv_planner": {}}))
    lane.send(RecordedDecision(1, 5 * MS, 0.7, 0.0, 0.0))
    lane.take(10 * MS, POSES.carrier(camera))
    update = lane.take(10 * MS, scan)
    seen = update.belief.hits > 0
    assert seen.sum() > 5
    assert abs(update.belief.mean - shape.radius(update.belief.angle))[seen].max() < 0.03
