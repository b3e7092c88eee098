"""Robots that do something wrong: each episode ends with the object seen, or says why not.

Robot, mapper and planner are three processes.
"""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from views import all_at, circle

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from scripted_robot import ACTION_TYPE, OBJECT, SCENE

from nbv_planner.episode.judge import EpisodeJudge, StarTruth
from nbv_planner.world.objects import parse_object, surface_points

SHARED = {"field_of_view": SCENE.field_of_view, "settle_time": 0.1}
MAPPER = {**SHARED, "grid_size": 200, "noise_std": 0.02, "scans_per_view": 2}
PLANNER = {
    **SHARED,
    "objective": "IOA",
    "certify": False,
    "num_views": 20,
    "max_views": 8,
    "stall_views": 0,
    "goal_timeout": 1.5,
    "run_info_nodes": "",
    "wait_for_start": False,
}
needs_an_action = pytest.mark.skipif(
    ACTION_TYPE is None, reason="neither nav2_msgs nor test_msgs is installed"
)

SEEN = {
    "overshoots": {"overshoot": 0.3},
    "drifts while it stands": {"drift": 0.2},
    "ignores one goal in five": {"ignores": 5},
    # As 30 s late would be for a goal_timeout of 21 s.
    "later than goal_timeout": {"late": 1.4, "goal_timeout": 1.0, "goal_retries": 2},
    "jumps in its localisation": {"jump": 0.5},
    "poses at 1 Hz": {"pose_rate": 1.0, "goal_timeout": 5.0},
    "upside-down lidar": {"upside_down": True},
}
# Conversions, matching and the core of the planner with a clock of the test meet the same in memory
# (test_conversions.py, mapping/test_scan_matching.py, planning/test_session.py); these run as
# processes before a release.
BEFORE_A_RELEASE = {
    "overshoots",
    "later than goal_timeout",
    "jumps in its localisation",
    "poses at 1 Hz",
    "upside-down lidar",
    "settles 3 cm and 2 degrees off",
    "settles 2 degrees off",
}


def cases(names, *more):
    """Parameters by name, those before a release marked so."""
    marks = {True: [pytest.mark.release], False: []}
    return [
        pytest.param(name, *more, marks=marks[name in BEFORE_A_RELEASE], id="-".join([name, *more]))
        for name in names
    ]


MISSED = {
    "settles 6 cm off": (
        {"off": 0.06},
        r"not reached: 0\.06 m / 0\.34° off, tolerance 0\.05 m / 1\.1°",
    ),
    "settles 3 cm and 2 degrees off": (
        {"off": 0.03, "turn": 0.035},
        r"not reached: 0\.03 m / 2\.\d° off, tolerance 0\.05 m / 1\.1°",
    ),
    "never sets out": (
        {"ignores": 1},
        r"not reached: [\d.]+ m / [\d.]+° off, tolerance 0\.05 m / 1\.1°",
    ),
}


@pytest.fixture
def episode(processes, tmp_path):
    """Return a function that runs an episode of a robot, a mapper and a planner; gives its end,
    views and surface.
    """

    def node(name: str, parameters: dict) -> None:
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump({name: {"ros__parameters": parameters}}))
        processes.start("scripted_robot", name, "--ros-args", "--params-file", str(file))

    def run(script: dict, mapper: dict | None = None, **planner) -> SimpleNamespace:
        processes.start("scripted_robot", json.dumps(script))
        node("surface_mapper", {**MAPPER, **(mapper or {})})
        node("nbv_planner", {**PLANNER, **planner})
        return processes.episode()

    return run


def assert_seen(run: SimpleNamespace) -> None:
    """At least 95 % of the true object were in view, and where something was hit the surface is
    right.
    """
    shape = parse_object(OBJECT, SCENE)
    space = circle(angles=np.linspace(0, 2 * math.pi, 100))
    judge = EpisodeJudge(StarTruth(surface_points(shape, SCENE.pixel_size), SCENE, shape), space)
    for view in all_at(run.views):
        judge.add_view(view, 0.0, 0.0, None)
    assert judge.coverage >= 0.95, run.end
    hit = run.belief.hits > 0
    assert np.abs(run.belief.mean - shape.radius(run.belief.angle))[hit].max() < 0.2


@pytest.mark.parametrize("name", cases(SEEN))
def test_the_object_is_seen_by_a_robot_that(episode, name):
    script = dict(SEEN[name])
    planner = {key: script.pop(key) for key in ("goal_timeout", "goal_retries") if key in script}
    run = episode(script, **planner)
    assert_seen(run)
    assert (int(run.end["unreached_views"]) > 0) >= ("ignores" in script)


@needs_an_action
def test_the_object_is_seen_by_a_robot_that_aborts_one_goal_in_five(episode):
    run = episode(
        {"ignores": 5, "action": True}, goal_backend="navigate_to_pose", goal_timeout=20.0
    )
    assert_seen(run)
    assert int(run.end["unreached_views"]) > 0


@pytest.mark.parametrize(
    ("name", "back_end"),
    [
        *cases(MISSED, "topic"),
        pytest.param("settles 6 cm off", "navigate_to_pose", marks=needs_an_action),
    ],
)
def test_no_reachable_view_is_the_end_with_a_robot_that(episode, name, back_end):
    """Passing through its goal it arrives for a moment, too short for as many scans as a view
    takes.
    """
    script, words = MISSED[name]
    run = episode(
        {**script, "action": back_end != "topic"},
        {"settle_time": 0.0, "scans_per_view": 20},
        settle_time=0.0,
        goal_backend=back_end,
        num_views=1,
        goal_timeout=0.5,
    )
    assert (run.end["reason"], run.end["views"], run.end["unreached_views"]) == (
        "NO_REACHABLE_VIEW",
        "0",
        "1",
    )
    assert run.end["detail"].startswith(
        "no candidate view may be chosen: 1 near a view not reached, or skipped; 1 "
    )
    assert re.search(words + ", given up after 1 retries$", run.end["detail"])


NEARLY = {
    "settles 6 cm off": (
        {"off": 0.06},
        r"position_tolerance: 0\.08, of planner and mapper, would accept",
    ),
    "settles 2 degrees off": (
        {"turn": 0.035},
        r"heading_tolerance: 0\.05, of planner and mapper, would accept",
    ),
}


@pytest.mark.parametrize("name", cases(NEARLY))
def test_after_three_misses_by_about_the_same_the_end_says_what_would_help_a_robot_that(
    episode, name
):
    script, words = NEARLY[name]
    run = episode({**script}, settle_time=0.3, goal_timeout=1.5)
    assert (run.end["reason"], run.end["views"], run.end["unreached_views"]) == (
        "NO_REACHABLE_VIEW",
        "0",
        "1",
    )
    assert re.search(
        f"goals were missed 3 times in a row by about the same, .*: {words}", run.end["detail"]
    )
