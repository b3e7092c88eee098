"""The kit with MuJoCo: its robot has wheels, contact and friction; its one command reconstructs
what stands there.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("mujoco", reason="MuJoCo is not installed (pip install '.[mujoco]')")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "mujoco"))

import mujoco
import run as kit  # of the example, as users start it
from robot import TICK, WORLD, Machine, command
from ros_world import World
from sensor_msgs.msg import CameraInfo, Image

from nbv_planner.episode.parameter_files import values_for
from nbv_planner.ros.node_processes import free_domain_id
from nbv_planner.settings import from_mapping
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene

EXAMPLE = WORLD.parent
VALUES = values_for(EXAMPLE / "params.yaml", "nbv_planner")
ROBOT = yaml.safe_load((EXAMPLE / "params.yaml").read_text())["mujoco_robot"]["ros__parameters"]
SCENE, POSES = from_mapping(Scene, VALUES), from_mapping(PoseSettings, VALUES)


def drive(
    machine: Machine, angle: float, seconds: float = 60.0
) -> list[tuple[float, float, float]]:
    """Drive to the view at an angle; returns the poses on the way, the last one at the goal."""
    carrier = POSES.carrier(CameraPose.from_polar(angle, SCENE.view_distance))
    goal, limits, speed = (
        (carrier.x, carrier.y, carrier.yaw),
        (ROBOT["speed"], ROBOT["acceleration"]),
        0.0,
    )
    poses = [machine.pose]
    while len(poses) * TICK < seconds:
        wanted, turn = command(machine.pose, goal, ROBOT["closed"], limits)
        speed = max(speed - limits[1] * TICK, min(speed + limits[1] * TICK, wanted))
        machine.drive(speed, turn, TICK)
        poses.append(machine.pose)
        off = math.remainder(goal[2] - poses[-1][2], 2.0 * math.pi)
        near = (
            math.dist(poses[-1][:2], goal[:2]) < VALUES["position_tolerance"] / 2
            and abs(off) < 0.02
        )
        if near and speed == wanted:
            return poses
    raise AssertionError(
        f"not at {angle:g} rad after {seconds:g} s: {poses[-1]} in place of {goal}"
    )


def exit_of(geom: str, model: mujoco.MjModel, angle: np.ndarray) -> np.ndarray:
    """Where rays from the origin leave an upright box or cylinder that holds it: computed, not
    cast.
    """
    which = model.geom(geom)
    turn = 2.0 * math.atan2(which.quat[3], which.quat[0])
    rotation = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    start = rotation @ -which.pos[:2]
    direction = rotation @ np.array([np.cos(angle), np.sin(angle)])
    if which.type == mujoco.mjtGeom.mjGEOM_BOX:
        assert np.all(np.abs(start) < which.size[:2]), "it does not hold the origin"
        walls = (np.sign(direction) * which.size[:2, None] - start[:, None]) / direction
        return walls.min(axis=0)
    assert math.hypot(*start) < which.size[0]
    along = start @ direction
    return -along + np.sqrt(along**2 - start @ start + which.size[0] ** 2)


def test_the_judge_measures_the_outline_that_the_parts_of_the_object_have():
    """Each part is convex and holds the origin, so their union is star-shaped: the farthest exit is
    the outline.
    """
    model = Machine(WORLD).model
    angle, radius = kit.outline(WORLD, 720).T
    names = [
        model.geom(number).name for number in np.flatnonzero(model.geom_group == kit.OBJECT_GROUP)
    ]
    assert len(names) == 4
    expected = np.max([exit_of(name, model, angle + 1e-9) for name in names], axis=0)
    assert radius == pytest.approx(expected, abs=1e-6)
    assert SCENE.radius_min < radius.min() < radius.max() < SCENE.radius_max


def test_the_lidar_measures_the_outline_from_where_it_is_mounted():
    machine = Machine(WORLD)
    ranges, _ = machine.sense()
    x, y, heading = machine.pose
    camera = POSES.camera(POSES.carrier(CameraPose.from_polar(0.0, SCENE.view_distance)))
    assert (camera.x, camera.y) == pytest.approx((2.0, 0.0))
    bearing = np.radians(np.linspace(-45.0, 45.0, len(ranges))) + heading + POSES.mount_yaw
    at_x = (
        x
        + POSES.mount_x * math.cos(heading)
        - POSES.mount_y * math.sin(heading)
        + ranges * np.cos(bearing)
    )
    at_y = (
        y
        + POSES.mount_x * math.sin(heading)
        + POSES.mount_y * math.cos(heading)
        + ranges * np.sin(bearing)
    )
    hits = np.hypot(at_x, at_y) < SCENE.radius_max
    angle, radius = kit.outline(WORLD).T
    expected = np.interp(np.arctan2(at_y, at_x)[hits], angle, radius, period=2.0 * math.pi)
    assert hits.sum() > 40
    assert np.hypot(at_x, at_y)[hits] == pytest.approx(expected, abs=0.005)


def test_the_depth_image_agrees_with_the_lidar_beside_it():
    """Upright surfaces are as deep in every row: depth along the axis, by the focal length that
    camera_info names.
    """
    machine = Machine(WORLD)
    ranges, depth = machine.sense()
    row = depth[depth.shape[0] // 2]
    bearing = np.arctan2(0.5 * (len(row) - 1) - np.arange(len(row)), machine.focal_length())
    beams = np.radians(np.linspace(-45.0, 45.0, len(ranges)))
    distance = row / np.cos(bearing)
    near = (distance < 5.8) & (np.abs(bearing) < beams[-1])
    expected = np.interp(bearing[near], beams, ranges)
    assert near.sum() > 80
    # but for edges, which fall between two beams
    assert np.mean(np.abs(distance[near] - expected) < 0.01) > 0.9


@pytest.mark.parametrize("angles", [(2.5, 5.0, 0.3), (3.5, 4.4, 3.5), (6.2, 0.1, 1.6)])
def test_the_robot_reaches_its_views_and_hits_nothing(angles):
    machine = Machine(WORLD)
    for angle in angles:
        poses = np.array(drive(machine, angle))
        speed = np.hypot(*np.diff(poses[:, :2], axis=0).T) / TICK
        assert speed.max() < 1.1 * ROBOT["speed"]
        assert speed[0] < 0.2 * ROBOT["speed"], "at full speed at once"
        off = np.hypot(poses[:, 0], poses[:, 1]) - math.hypot(2.0 - POSES.mount_y, POSES.mount_x)
        assert 1e-4 < np.abs(off).max() < 0.25
        from_closed = (np.arctan2(poses[:, 1], poses[:, 0]) - ROBOT["closed"]) % (2.0 * math.pi)
        assert np.abs(np.diff(from_closed)).max() < math.pi, "through the column"
    assert machine.collisions == 0


def test_a_collision_would_be_counted():
    machine = Machine(WORLD)
    for _ in range(200):
        machine.drive(0.6, 0.0, TICK)
    assert machine.collisions > 0
    assert machine.pose[1] < 3.5, "through the wall"


def test_views_before_the_column_are_blocked():
    column = np.hypot(*Machine(WORLD).model.geom("column").pos[:2])
    end, start = VALUES["allowed_arcs"]  # all but where it is
    assert column == pytest.approx(SCENE.view_distance, abs=0.01)
    assert start < ROBOT["closed"] < end
    machine = Machine(WORLD)
    for angle in (start, end):
        drive(machine, angle)
    assert machine.collisions == 0


def start_kit(folder: Path, domain: int, *words: str) -> subprocess.Popen[str]:
    """The one command, with its results in `folder`/run."""
    return subprocess.Popen(
        [
            sys.executable,
            str(EXAMPLE / "run.py"),
            "--domain",
            str(domain),
            "--out",
            "run",
            "--no-figures",
            *words,
        ],
        text=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(EXAMPLE.parents[1]), os.environ.get("PYTHONPATH", "")]
            ),
        },
    )


def test_the_object_is_reconstructed_in_simulated_physics(tmp_path):
    domain = free_domain_id()
    with World(domain) as world:
        process = start_kit(tmp_path, domain, "--speedup", "8")
        images, infos = (
            world.listen(Image, "depth/image_rect_raw"),
            world.listen(CameraInfo, "depth/camera_info"),
        )
        world.spin_until(lambda: (images and infos) or process.poll() is not None, "a depth image")
    printed, _ = process.communicate(timeout=240)
    assert process.returncode == 0, printed
    record = json.loads((tmp_path / "run" / "episode.json").read_text())
    assert record["termination"]["reason"] in ("BAND_NARROW", "COVERED"), printed
    assert record["metrics"]["rec"] >= 0.95
    assert len(record["views"]) <= 12
    last = record["views"][-1]
    assert last["rmse"] < 0.02
    assert last["iou"] > 0.95
    assert last["band_coverage"] > 0.9
    assert "0 steps in contact with anything but the floor" in printed
    image, info = images[0], infos[0]
    assert (image.width, image.height, image.encoding) == (info.width, info.height, "32FC1")
    assert len(image.data) == image.step * image.height
    assert image.header == info.header


def test_ctrl_c_ends_all_processes_of_the_kit(tmp_path):
    process = start_kit(tmp_path, free_domain_id())
    line = process.stdout.readline()
    pids = [int(pid) for pid in re.findall(r"(?:robot|mapper|planner) (\d+)", line)]
    assert len(pids) == 3, line
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    assert "ended: STOPPED, Ctrl-C" in printed
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
