"""The turntable in MuJoCo: images and poses fit together whatever the joints do, goals are reached
by the nearest way, and its one command reconstructs the part with the real nodes.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("mujoco", reason="MuJoCo is not installed (pip install '.[mujoco]')")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "mujoco"))

import table_run
from scipy.spatial.transform import Rotation
from table import TICK, WORLD, Table, joints_for

from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.geometry import of_optical
from nbv_planner.volume.bodies.casting import cast

EXAMPLE = WORLD.parent
SETTINGS = SolidConfig.of(table_run.parameters_of(EXAMPLE / "part.stl"))
SIGHT = SETTINGS.sensor


def driven(turn: float, tilt: float) -> Table:
    """The table after it has been asked for these angles for two seconds."""
    table = Table(WORLD)
    table.drive((turn, tilt), 2.0)
    return table


@pytest.mark.parametrize("joints", [(0.0, 0.3), (2.0, 1.0), (-4.0, 0.6)])
def test_images_are_those_that_beams_from_the_published_pose_measure(joints):
    """Through the mesh of the judge: frames, optics and mesh are those of the simulation."""
    table = driven(*joints)
    assert table.joints == pytest.approx(joints, abs=0.02)
    position, quaternion = table.pose()
    rotation = of_optical(quaternion[None])[0]
    np.testing.assert_allclose(
        rotation,
        Rotation.from_quat(quaternion).as_matrix() @ [[0, -1, 0], [0, 0, -1], [1, 0, 0]],
        atol=1e-9,
    )
    beams = SIGHT.directions
    away, _ = cast(table_run.part(), position, beams @ rotation.T)
    depth = table.depth().reshape(-1)
    points = position + (depth / beams[:, 0])[:, None] * (beams @ rotation.T)
    hit = np.isfinite(depth) & np.isfinite(away)
    assert (hit & (points[:, 2] > -0.09)).sum() > 200
    off = np.sort(np.abs(away[hit] * beams[hit, 0] - depth[hit]))
    assert off[: -len(off) // 20].max() < 5e-4, "but for pixels at an edge"
    plate = np.isfinite(depth) & ~np.isfinite(away)
    assert np.median(points[plate, 2]) == pytest.approx(-0.092, abs=1e-4)


def test_the_camera_goes_to_each_candidate_by_less_than_half_a_turn():
    table = Table(WORLD)
    for pose in list(SETTINGS.views.poses(0.3, 0.125))[::17]:
        before = table.joints[0]
        turn, tilt = joints_for((pose.x, pose.y, pose.height), before)
        assert abs(turn - before) <= math.pi + 1e-9
        table.drive((turn, tilt), 3.0)
        place = table.pose()[0]
        away = math.dist(place, (pose.x, pose.y, pose.height))
        assert away < 0.006, "position_tolerance of table.yaml"


def test_a_tick_moves_the_motors_and_no_angle_jumps():
    table = Table(WORLD)
    for _ in range(10):
        before = table.joints
        table.drive((0.5, 0.5), TICK)
        assert max(abs(a - b) for a, b in zip(table.joints, before, strict=True)) < 0.2
    assert 0.0 < table.joints[0] < 0.5


def test_one_command_covers_the_part_with_the_real_nodes(tmp_path):
    out = tmp_path / "run"
    words = [sys.executable, str(EXAMPLE / "table_run.py"), "--out", str(out), "--no-figures"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((out / "episode.json").read_text())
    assert record["termination"]["reason"] == "COVERED"
    assert record["completeness"] >= 0.95
    assert 4 <= record["views"] <= 40
    with (out / "views.csv").open(newline="") as lines:
        assert len(list(csv.DictReader(lines))) == record["views"]
    assert (out / "surface.stl").stat().st_size > 10_000
