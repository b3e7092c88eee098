"""IR-SIM, a simulator of others, drives mapper and planner over DDS: the example as it stands, in
three processes.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from views import all_at, circle

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("irsim", reason="IR-SIM is not installed (pip install '.[irsim]')")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_world import World
from sensor_msgs.msg import PointCloud2
from std_srvs.srv import Trigger

from nbv_planner.clouds.sensor_messages import pose_from_msg
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.judge import EpisodeJudge, StarTruth
from nbv_planner.episode.messages import status_values
from nbv_planner.ros.core import qos
from nbv_planner.ros.node_processes import free_domain_id, isolated_environment
from nbv_planner.settings import from_mapping
from nbv_planner.world.camera_mount import PoseSettings
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.scene import Scene

EXAMPLE = Path(__file__).parents[2] / "examples" / "irsim"
SHARED = yaml.safe_load((EXAMPLE / "params.yaml").read_text())["/**"]["ros__parameters"]
SCENE, POSES = from_mapping(Scene, SHARED), from_mapping(PoseSettings, SHARED)
STAR = parse_object("polygon:star", SCENE)
# Mapper, robot and this test receive the first goal, however busy the machine is.
HEARD = ["-p", "nbv_planner:wait_for_start:=true", "-p", "nbv_planner:goal_subscribers:=3"]
FAST = ["-p", "irsim_robot:speed:=5.0", "-p", "irsim_robot:speedup:=20.0"]


@pytest.fixture
def episode(tmp_path):
    """Return a graph in which the three processes of the example run."""
    domain = free_domain_id()
    environment = {**isolated_environment(domain), "ROS_LOG_DIR": str(tmp_path)}
    parameters = ["--ros-args", "--params-file", str(EXAMPLE / "params.yaml")]
    node = [sys.executable, "-m", "nbv_planner.ros.executables"]
    commands = [
        [sys.executable, str(EXAMPLE / "robot.py"), *parameters, *FAST],
        [*node, "surface_mapper", *parameters],
        [*node, "nbv_planner", *parameters, *HEARD],
    ]
    with World(domain) as world:
        processes = [
            subprocess.Popen(command, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL)
            for command in commands
        ]
        yield world
        for process in processes:
            process.send_signal(signal.SIGINT)
        codes = [process.wait(180) for process in processes]
    assert codes == [0, 0, 0]


def coverage(views: list[float]) -> float:
    """Fraction of the true surface points that these views have seen."""
    space = circle(angles=np.linspace(0, 2 * math.pi, 100))
    judge = EpisodeJudge(StarTruth(surface_points(STAR, SCENE.pixel_size), SCENE, STAR), space)
    for view in all_at(views):
        judge.add_view(view, 0.0, 0.0, None)
    return judge.coverage


def test_the_world_holds_the_star():
    world = yaml.safe_load((EXAMPLE / "world.yaml").read_text())
    (obstacle,) = world["obstacle"]
    x, y = np.array(obstacle["shape"]["vertices"]).T
    assert np.hypot(x, y) == pytest.approx(STAR.radius(np.arctan2(y, x)), abs=1e-5)
    assert len(x) == 10
    lidar = world["robot"][0]["sensors"][0]
    assert lidar["offset"] == [POSES.mount_x, POSES.mount_y, POSES.mount_yaw]


def test_the_star_is_reconstructed_from_scans_of_another_simulator(episode):
    goals = episode.listen(PoseStamped, "goal_pose")
    poses = episode.listen(PoseStamped, "camera_pose")
    surfaces = episode.listen(PointCloud2, "surface", qos.latched(10))
    statuses = episode.listen(DiagnosticStatus, "nbv_planner/status", qos.latched(100))
    episode.spin_until(lambda: surfaces and poses, "the prior")
    assert episode.call(Trigger, "nbv_planner/start").success

    def end() -> dict[str, str] | None:
        values = status_values(statuses[-1]) if statuses else {}
        return values if values.get("state") == "DONE" else None

    ended = episode.spin_until(end, "the end of the episode", timeout=240.0)
    assert ended["reason"] == "COVERED"
    views = [POSES.camera(pose_from_msg(goal)).view_angle for goal in goals]
    assert len(views) == int(ended["views"]) <= 25
    assert coverage(views) >= 0.9  # of the surface points: the target is the outline within 0.15 m
    belief = belief_from_msg(surfaces[-1])
    truth = STAR.radius(belief.angle)
    held = (truth >= belief.lower) & (truth <= belief.upper)
    assert held.mean() > 0.9
    assert np.median(np.abs(belief.mean - truth)) < 0.05
    # The robot is never exactly on its circle; the mapper goes by where it says it is.
    radius = math.hypot(goals[0].pose.position.x, goals[0].pose.position.y)
    off = [abs(math.hypot(pose.pose.position.x, pose.pose.position.y) - radius) for pose in poses]
    assert 0.005 < max(off) < 0.2
