"""The recipes of examples/, run as they stand with robots of another make: whole episodes of
separate processes.
"""

from __future__ import annotations

import dataclasses
import math
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from other_robots import ELLIPSE, MOUNT, SIDE
from std_msgs.msg import String

from nbv_planner.episode.judge import EpisodeJudge, StarTruth
from nbv_planner.episode.run_info import parameters_from_msg
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.planning.view_space import CircleViewSpace, ViewSpaceSettings
from nbv_planner.ros.core import qos
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose

EXAMPLES = Path(__file__).parents[2] / "examples"
RECIPES = ("lidar_robot", "depth_camera_robot")
needs_tf = pytest.mark.skipif(
    find_spec("tf2_ros") is None or find_spec("tf2_msgs") is None,
    reason="tf2_ros and tf2_msgs are not on PyPI: this runs where ROS 2 is installed",
)


def renamed(recipe: str) -> list[str]:
    """Remapping rules of the launch command of the README."""
    text = (EXAMPLES / recipe / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ros2 launch (?:.*\\\n)*.*$", text, re.MULTILINE)
    assert f"params_file:=examples/{recipe}/params.yaml" in command
    rules = re.findall(r"(\w+)_topic:=(\S+)", command)
    return [
        word
        for old, new in rules
        for word in ("-r", f"{'/' if old.startswith('tf') else ''}{old}:={new}")
    ]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_fifteen_lines_at_most_and_says_nothing_of_the_sensors_field_and_range(recipe):
    text = (EXAMPLES / recipe / "params.yaml").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 15
    given = yaml.safe_load(text)["/**"]["ros__parameters"]
    assert not {"field_of_view", "range_min", "range_max", "mount_x", "mount_y", "mount_yaw"} & set(
        given
    )


@pytest.fixture
def episode(world, processes):
    """Return a function that runs an episode of a robot with the nodes of a recipe; gives what can
    be judged.
    """
    infos = world.listen(String, "run_info", qos.latched(10))
    learned = world.listen(String, "surface_info", qos.latched(10))

    def run(recipe: str, robot: str, nodes: tuple[str, ...], *more: str) -> Judged:
        file = EXAMPLES / recipe / "params.yaml"
        processes.start("other_robots", robot)
        arguments = ["--ros-args", "--params-file", str(file), *renamed(recipe), *more]
        for name in nodes:  # the planner of a recipe waits for ~/start, as that of a robot does
            now = ["-p", "wait_for_start:=false"] if name == "nbv_planner" else []
            processes.start("nbv_planner.ros.executables", name, *arguments, *now)
        found = processes.episode()
        parameters = world.spin_until(
            lambda: next(
                (p for p in map(parameters_from_msg, infos[-1:]) if "surface_mapper" in p.nodes),
                None,
            ),
            "the parameters",
        )
        known = world.spin_until(
            lambda: learned and info_from_text(learned[-1].data), "what was learned"
        )
        return Judged(found.end, found.views, found.belief, parameters, known)

    return run


class Judged:
    """An episode, its parameters, and what the mapper has learned."""

    def __init__(self, end, views, belief, parameters, known) -> None:
        self.end, self.views, self.belief = end, views, belief
        self.scene = dataclasses.replace(parameters.config().scene, **known.sensor)
        self.mount = known.mount

    def assert_seen(self, text: str, error: float) -> None:
        """The object was in view, 95 % of it at least, and where something was hit the surface is
        right.
        """
        assert self.end["reason"] in ("COVERED", "BAND_NARROW"), self.end
        shape = parse_object(text, self.scene)
        distance = self.scene.view_distance
        space = CircleViewSpace(
            ViewSpaceSettings(), distance, angles=np.linspace(0, 2 * math.pi, 100)
        )
        judge = EpisodeJudge(
            StarTruth(surface_points(shape, self.scene.pixel_size), self.scene, shape), space
        )
        for angle in self.views:
            judge.add_view(CameraPose.from_polar(angle, distance), 0.0, 0.0, None)
        assert judge.coverage >= 0.95, self.end
        hit = self.belief.hits > 0
        sectors = np.histogram(self.belief.angle[hit], np.linspace(0.0, 2.0 * math.pi, 61))[0]
        assert (sectors > 0).mean() >= 0.95
        off = np.abs(self.belief.mean - shape.radius(self.belief.angle))[hit]
        assert np.median(off) < 0.5 * error
        assert np.quantile(off, 0.95) < error


PLANNING = ("surface_mapper", "nbv_planner")
X, Y, YAW = MOUNT
AS_TOPIC = [
    "-r",
    "camera_pose:=/rover/where",
    "-p",
    "pose_source:=topic",
    "-p",
    "base_frame:=''",
    "-p",
    f"mount_x:={X}",
    "-p",
    f"mount_y:={Y}",
    "-p",
    f"mount_yaw:={YAW}",
]


def assert_lidar(run: Judged) -> None:
    run.assert_seen(f"ellipse:a={ELLIPSE[0]},b={ELLIPSE[1]}", 0.03)
    assert run.scene.field_of_view == pytest.approx(2 * math.asin(0.8 / 1.5), abs=1e-5)
    assert run.scene.range_max == pytest.approx(1.5 + 0.8)
    assert run.scene.range_min == pytest.approx(0.15)
    assert run.mount == pytest.approx(MOUNT, abs=1e-6)


@needs_tf
def test_a_robot_that_tells_its_pose_by_transforms_with_a_lidar_that_turns_clockwise(episode):
    assert_lidar(episode("lidar_robot", "lidar_tf", PLANNING))


def test_the_same_robot_telling_the_pose_of_its_base(episode):
    assert_lidar(episode("lidar_robot", "lidar", PLANNING, *AS_TOPIC))


def test_a_robot_with_a_depth_camera(episode):
    run = episode("depth_camera_robot", "depth", ("scan_maker", *PLANNING))
    run.assert_seen(f"square:width={SIDE}", 0.015)
    assert run.scene.field_of_view == pytest.approx(2 * math.asin(0.4 / 0.9), abs=1e-5)
    assert run.scene.range_max == pytest.approx(0.9)  # no image says how far its camera sees
