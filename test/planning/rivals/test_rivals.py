"""What every rival promises: it works by its name like any planner, and sees nothing but what a
robot does.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from beliefs import wavy_belief, with_evidence
from views import circle

import nbv_planner
from nbv_bench.rivals.volumetric import GAINS
from nbv_planner.cli.show import planner_table
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings, recorded_config
from nbv_planner.episode.simulation import Simulation
from nbv_planner.episode.wiring import planner_named
from nbv_planner.planning.planners import planner_names
from nbv_planner.planning.planners.decision_settings import PLANNER_PLUGINS
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.settings import from_mapping, settings_of
from nbv_planner.thesis import TrueSurface
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

CHECKOUT = Path(nbv_planner.__file__).parents[1]
SCENE = Scene()
BELIEF = with_evidence(wavy_belief(3, size=200))
VARIANTS = [
    *({"planner": "volumetric", "volumetric.gain": gain} for gain in GAINS),
    {"planner": "frontier"},
    {"planner": "projection"},
    {"planner": "set_cover"},
    *({"planner": "design", "design.criterion": criterion} for criterion in "ADE"),
]
EVERY = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(v.values()))


def shot(view_angle: float, text: str = "polygon:star"):
    pose = CameraPose.from_polar(view_angle, SCENE.view_distance)
    return (
        SimulatedCamera(parse_object(text, SCENE), SCENE, SensorSettings(num_beams=61)).scan(
            pose, 1
        ),
        pose,
    )


def planner(variant, heard=(), truth=None, **settings):
    views = circle(ViewSpaceSettings(num_views=40, **settings))
    made = planner_named(
        from_mapping(PlannerSettings, {**variant, "target": "points"}), SCENE, views, truth
    )
    made.heard = tuple(heard)
    return made


def test_every_rival_is_tested_and_registered_like_any_planner():
    assert (
        {variant["planner"] for variant in VARIANTS}
        == set(PLANNER_PLUGINS.names)
        <= set(planner_names())
    )
    assert PLANNER_PLUGINS.broken == []
    for name in PLANNER_PLUGINS.names:
        assert f"{name:20}nbv_planner\n" in planner_table() + "\n"
        assert [n for n, *_ in settings_of(PlannerSettings) if n.startswith(f"{name}.")]


def test_the_document_says_of_every_rival_where_its_formula_is_from_and_which_test_checks_it():
    text = (CHECKOUT / "docs" / "explanation" / "rivals.md").read_text(encoding="utf-8")
    lines = text.partition("## Where each formula is from")[2].partition("\n## ")[0].splitlines()
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")
    ]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[0])} == {
        *GAINS,
        *PLANNER_PLUGINS.names,
        "uniform",
        "random",
    } - {"volumetric"}
    for _, _, origin, _, checked in rows:
        assert origin.startswith(("abstract", "memory", "textbook", "no paper"))
        for path in (tests := re.findall(r"`(test[\w/]+(?:\.py)?)`", checked)):
            assert (CHECKOUT / path if "/" in path else Path(__file__).parent / path).exists(), path
        assert tests


def test_a_record_holds_the_settings_of_its_own_rival_only():
    config = EpisodeConfig(planner=PlannerSettings(planner="design", sections={"design.grid": 64}))
    record = config.as_dict()["planner"]
    assert record["design.grid"] == 64
    assert not [name for name in record if name.startswith("volumetric")]
    assert recorded_config(config.as_dict()) == config


@EVERY
def test_the_true_object_changes_no_decision(variant):
    """Same scans and same belief, another object: the same ranking, to the last digit."""
    heard = [shot(0.0), shot(1.5)]
    visited = [
        CameraPose.from_polar(0.0, SCENE.view_distance),
        CameraPose.from_polar(1.5, SCENE.view_distance),
    ]
    answers = []
    for text in ("polygon:star", "ellipse:a=7,b=3"):
        points = surface_points(parse_object(text, SCENE), SCENE.pixel_size)
        made = planner(variant, heard, TrueSurface(points.angle, points.radius))
        answers.append(made.decide(BELIEF, current_view=visited[-1], visited=visited))
    assert answers[0].view == answers[1].view
    assert answers[0].runner_up == answers[1].runner_up or np.isnan(answers[0].runner_up)


@EVERY
def test_it_decides_before_the_first_scan_and_on_scans_that_met_nothing(variant):
    assert planner(variant).decide(BELIEF) is not None
    ranges = np.full(61, np.inf)
    empty = Scan(-0.3, 0.01, ranges, 0.05, 10.0), CameraPose.from_polar(0.0, SCENE.view_distance)
    nothing = (
        Scan(-0.3, 0.01, np.full(61, np.nan), 0.05, 10.0),
        CameraPose.from_polar(1.0, SCENE.view_distance),
    )
    made = planner(variant, [empty, nothing])
    visited = [
        CameraPose.from_polar(0.0, SCENE.view_distance),
        CameraPose.from_polar(1.0, SCENE.view_distance),
    ]
    decision = made.decide(BELIEF, current_view=visited[-1], visited=visited)
    assert min(abs(decision.view_angle - view.view_angle) for view in visited) > 0.0


@EVERY
def test_without_a_view_that_may_be_chosen_it_chooses_none(variant):
    made = planner(variant, [shot(0.0)])
    made.views.unreachable = dict.fromkeys(range(40), 100.0)
    assert made.decide(BELIEF, visited=[CameraPose.from_polar(0.0, SCENE.view_distance)]) is None


@EVERY
def test_a_simulated_episode_ends_and_is_repeated_to_the_digit(variant):
    chosen = from_mapping(PlannerSettings, {**variant, "target": "points"})
    config = EpisodeConfig(object="polygon:star", planner=chosen)
    config = dataclasses.replace(
        config,
        sensor=SensorSettings(num_beams=61, noise_std=0.2),
        termination=dataclasses.replace(config.termination, max_views=4),
        views=ViewSpaceSettings(num_views=40),
        mapper=dataclasses.replace(config.mapper, grid_size=200),
    )
    runs = []
    for _ in range(2):
        episode = Simulation(config)
        runs.append([record.angle for record in episode.run()])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(runs[0]) == 4
