"""Sweeps: which cases they have, how the files are called, and how two sweeps differ."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from nbv_bench.experiments.sweep import Sweep, case_identities, first_difference, object_class
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.world.simulated_camera import SensorSettings

SWEEP = Sweep(
    name="x",
    objects=("square:width=4", "star"),
    protocols=("thesis", "sensor"),
    seeds=(5, 7),
    planners={
        "U": PlannerSettings(planner="greedy", objective="U"),
        "any": PlannerSettings(planner="random"),
    },
    base=EpisodeConfig(sensor=SensorSettings(num_beams=9)),
)


def test_cases_are_the_product_and_planners_change_fastest():
    named = [case.as_dict() for case in SWEEP.cases()]
    cases = [
        tuple(case[key] for key in ("protocol", "seed", "object", "planner")) for case in named
    ]
    assert len(cases) == len(set(cases)) == 16
    assert cases[:4] == [
        ("thesis", 5, shape, planner) for shape in SWEEP.objects for planner in SWEEP.planners
    ]


def test_seed_goes_to_the_sensor_and_to_the_random_planner_and_the_rest_is_kept():
    config = SWEEP.case("any", "star", "sensor", 7).config
    assert (config.object, config.protocol) == ("star", "sensor")
    assert config.sensor == SensorSettings(num_beams=9, seed=7)
    assert dataclasses.asdict(config.planner) == dataclasses.asdict(
        PlannerSettings(planner="random", planner_seed=7)
    )


def test_case_says_what_the_results_are_grouped_by():
    assert SWEEP.case("U", "star", "thesis", 5).as_dict() == {
        "planner": "U",
        "object": "star",
        "object_class": "polygon",
        "protocol": "thesis",
        "seed": 5,
    }


def test_cases_can_be_listed_from_the_plain_form():
    assert case_identities(SWEEP.as_dict()) == [case.as_dict() for case in SWEEP.cases()]


def test_file_names_are_plain_and_differ():
    sweep = dataclasses.replace(
        SWEEP,
        objects=("file:/a/b.csv", "file:/a_b.csv", "file:" + "x" * 300 + ".csv", "file:ü.csv"),
        planners={label: PlannerSettings() for label in ("a/b", "a b", "..", "A B")},
        measures=("episode", "other"),
    )
    slugs = [case.slug for case in sweep.cases()]
    assert len({slug.lower() for slug in slugs}) == len(slugs)
    assert all(
        re.fullmatch(r"[\w.-]{1,200}", slug, re.ASCII) and not slug.startswith(".")
        for slug in slugs
    )
    assert SWEEP.case("U", "square:width=4", "thesis", 5).slug.startswith(
        "U-square_width_4-thesis-seed5-"
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ellipse:a=6,b=4", "ellipse"),
        ("polygon:star", "polygon"),
        ("star", "polygon"),
        ("file:polygon.csv", "file"),
        ("prior:3", "prior"),
        ("random:flower:3", "random:flower"),
    ],
)
def test_class_of_an_object(text, name):
    assert object_class(text) == name


def test_plain_form_holds_every_setting_and_seeds_only_once():
    plain = SWEEP.as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert list(plain["planners"]) == ["U", "any"]
    assert plain["planners"]["U"]["tie_tolerance"] == PlannerSettings().tie_tolerance
    assert plain["settings"]["sensor"]["num_beams"] == 9
    text = json.dumps(plain)
    assert "planner_seed" not in text
    assert '"seed"' not in text
    assert plain["seeds"] == [5, 7]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, None),
        ({"text": "other comments"}, None),
        ({"seeds": (5, 8)}, "seeds.1 was 7, is 8"),
        ({"seeds": (5,)}, "seeds.1 is missing now"),
        ({"planners": {**SWEEP.planners, "I": PlannerSettings()}}, "planners.I is new"),
        (
            {"planners": {**SWEEP.planners, "U": PlannerSettings(planner="greedy")}},
            'planners.U.objective was "U", is "IOA"',
        ),
        ({"planners": dict(reversed(SWEEP.planners.items()))}, "planners has another order"),
        ({"base": EpisodeConfig()}, "settings.sensor.num_beams was 9, is 121"),
    ],
)
def test_first_difference_of_two_sweeps_is_named(change, text):
    assert first_difference(SWEEP.as_dict(), dataclasses.replace(SWEEP, **change).as_dict()) == text
