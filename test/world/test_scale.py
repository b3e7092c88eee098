"""Lengths that are not given follow from the scene: at any scale the same scene takes the same
views.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.parameters import (
    NODE_SETTINGS,
    EpisodeConfig,
    PlannerSettings,
    config_from_parameters,
)
from nbv_planner.episode.simulation import Simulation
from nbv_planner.settings import settings_of
from nbv_planner.world.scale import derived_text, proportion, scaled
from nbv_planner.world.scene import Scene, check_proportions

EVERY = list(dict.fromkeys(cls for classes in NODE_SETTINGS.values() for cls in classes))
LENGTHS = {name: default for cls in EVERY for name, default, meta in settings_of(cls) if meta.scale}
LEAST, MOST = next(
    (meta.minimum, meta.maximum) for name, _, meta in settings_of(Scene) if name == "radius_max"
)
SIZES = st.floats(-2.0, 3.0).map(lambda power: 10.0**power)
# Lengths that are the user's or the machine's own: they have no default, or belong to no scene.
FREE = {
    "radius_max",
    "rough_radius",
    "object_x",
    "object_y",
    "other_x",
    "other_y",
    "other_radius",
    "max_travel",
    "pose_bias_x",
    "pose_bias_y",
    "mount_x",
    "mount_y",
    "camera_y",
    "robot_radius",
    "seen_std",
    "look_every",
}


def at_scale(size: float, **more) -> EpisodeConfig:
    """The default scene, `size` times as large."""
    nodes = {node: {"radius_max": 8.0 * size, **more.get(node, {})} for node in NODE_SETTINGS}
    return config_from_parameters(
        nodes, object=more.get("object", "random:flower:17"), protocol="sensor"
    )


def test_without_anything_given_the_defaults_hold():
    assert scaled({}, EVERY) == LENGTHS


def test_every_length_of_a_setting_follows_from_the_scene_or_is_named_here():
    metres = {
        name for cls in EVERY for name, _, meta in settings_of(cls) if meta.unit in ("m", "m/rad")
    }
    assert metres - set(LENGTHS) == FREE & metres


@given(size=SIZES)
def test_all_lengths_grow_with_the_object(size):
    for name, value in scaled({"radius_max": 8.0 * size}, EVERY).items():
        before = LENGTHS[name] if isinstance(LENGTHS[name], tuple) else (LENGTHS[name],)
        now = value if isinstance(value, tuple) else (value,)
        assert now == pytest.approx([size * each for each in before], rel=1e-5)


@given(
    high=SIZES,
    low=st.floats(0.05, 0.95),
    far=st.floats(1.01, 5.0),
    noise=st.floats(0.0, 0.01),
)
def test_any_scene_gives_settings_in_proportion(high, low, far, noise):
    given_lengths = {"radius_max": high, "radius_min": low * high, "view_distance": far * high}
    nodes = {node: dict(given_lengths) for node in NODE_SETTINGS}
    nodes["surface_mapper"]["noise_std"] = max(1e-7, noise) * high
    config = config_from_parameters(nodes, object="square:width=1", protocol="sensor")
    check_proportions(
        config.scene, config.kernel, config.measurement, config.planner, config.termination
    )
    assert config.scene.radius_min < config.mapper.prior_mean < config.scene.radius_max


def test_what_is_given_stays():
    mine = {"radius_max": 0.1, "pixel_size": 0.001, "noise_std": 0.02}
    found = scaled(mine, EVERY)
    assert not set(found) & set(mine)
    assert found["view_distance"] == 0.125
    assert found["radius_margin"] == 0.06, (
        "three times the noise, which is more than a sixth of the span"
    )
    assert found["range_offset_std"] == 0.008, "0.4 of the noise"


def test_the_resolution_is_what_noise_and_pixels_allow():
    assert PlannerSettings().completeness_tau == scaled({}, EVERY)["completeness_tau"] == 0.3
    planner = NODE_SETTINGS["nbv_planner"]
    assert (
        scaled({"noise_std": 0.02, "radius_max": 2.0}, planner)["completeness_tau"] == 0.02 + 0.025
    )
    assert scaled({"noise_std": 0.0}, planner)["completeness_tau"] == 0.1
    assert "completeness_tau" not in scaled({"noise_std": 0.02, "completeness_tau": 1.0}, planner)
    found = config_from_parameters(
        {node: {"radius_max": 0.8} for node in NODE_SETTINGS}, object="square:width=1"
    )
    assert (
        found.planner.completeness_tau
        == found.measurement.noise_std + found.scene.pixel_size
        == 0.03
    )
    words = derived_text(scaled({"noise_std": 0.05}, planner), planner)
    assert "completeness_tau 0.15 m" in words


@pytest.mark.parametrize("wrong", ["large", True, None, -1.0, 0.0, math.inf, math.nan, [1.0]])
def test_what_is_no_length_is_left_to_the_checks_of_the_settings(wrong):
    assert scaled({"radius_max": wrong}, EVERY) == {**LENGTHS}


@pytest.mark.parametrize(
    ("given_names", "planner"),
    [({"objective": "U"}, "greedy"), ({"phase_one_objective": "CS"}, "two_phase"), ({}, "rollout")],
)
def test_an_objective_alone_chooses_its_planner(given_names, planner):
    assert at_scale(1.0, nbv_planner=given_names).planner.planner == planner


def test_the_words_name_each_value_with_its_unit():
    words = derived_text(scaled({"radius_max": 0.1}, [Scene]), [Scene])
    assert words.startswith("not given, so derived: radius_min 0.025 m, view_distance 0.125 m")
    assert (
        derived_text({"planner": "greedy"}, [PlannerSettings])
        == "not given, so derived: planner greedy"
    )


def test_the_proportion_is_that_of_the_defaults():
    meta = {name: (default, meta) for name, default, meta in settings_of(Scene)}
    assert proportion(*meta["pixel_size"]) == "0.0125 radius_max"


# Ranges have the 24 bits of a LaserScan, which are others at another scale: what differs by less is
# equal.
PLANNERS = [
    {"objective": "U", "tie_tolerance": 1e-4},
    {"planner": "rollout", "shapes": 8, "deadline": 600.0},
]


def views_of(config: EpisodeConfig) -> list[float]:
    return [round(view.angle, 6) for view in Simulation(config).run()]


@pytest.mark.parametrize("text", ["random:flower:17", "prior:3"])
@pytest.mark.parametrize("planner", PLANNERS, ids=["U", "rollout"])
def test_the_same_scene_takes_the_same_views_at_every_scale(text, planner):
    """The least and the greatest object that are allowed: between them less can go wrong."""
    sizes = [LEAST / 8.0, MOST / 8.0]
    first, *others = (
        views_of(at_scale(size, object=text, nbv_planner={**planner, "max_views": 6}))
        for size in [1.0, *sizes]
    )
    assert all(views == first for views in others)
    assert len(first) > 4
