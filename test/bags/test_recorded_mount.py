"""Recorded poses and goals of what carries the camera, read as those of the camera."""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from nbv_planner.bags.replay.replayer import Replayer
from nbv_planner.episode.log import EpisodeLog
from nbv_planner.episode.messages import RUN_INFO, RecordedDecision
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.errors import InputRejectedError
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

MOUNT = {"mount_x": 0.4, "mount_y": -0.2, "mount_yaw": 1.2}
POSES = PoseSettings(**MOUNT)
MS = 1_000_000


def log_with(parameters: RunParameters | None) -> EpisodeLog:
    log = EpisodeLog()
    if parameters is not None:
        with contextlib.suppress(InputRejectedError):
            log.add(RUN_INFO, parameters)
    return log


def test_a_pose_is_the_cameras_once_the_mount_is_known():
    base = CameraPose(8.0, 3.0, 0.5)
    assert log_with(None).camera(base) == base
    assert log_with(RunParameters({"surface_mapper": {"grid_size": 100}})).camera(base) == base
    assert log_with(RunParameters({"surface_mapper": MOUNT})).camera(base) == POSES.camera(base)
    assert log_with(RunParameters({"surface_mapper": {"mount_yaw": 99.0}})).camera(base) == base


def test_a_replay_maps_from_where_the_camera_was():
    shape = parse_object("ellipse:a=6,b=4", Scene())
    camera = CameraPose.from_polar(0.7, 10.0)
    scan = SimulatedCamera(shape, Scene(), SensorSettings(num_beams=31, noise_std=0.0)).scan(
        camera, 1
    )
    mapper = {**MOUNT, "grid_size": 360, "noise_std": 0.01, "settle_time": 0.0, "scans_per_view": 1}
    replayer = Replayer(RunParameters({"surface_mapper": mapper, "nbv_planner": {}}))
    replayer.receive(5 * MS, RecordedDecision(1, 5 * MS, 0.7, 0.0, 0.0))
    replayer.take(10 * MS, POSES.carrier(camera))
    update = replayer.take(10 * MS, scan)
    seen = update.belief.hits > 0
    assert seen.sum() > 5
    assert abs(update.belief.mean - shape.radius(update.belief.angle))[seen].max() < 0.03
