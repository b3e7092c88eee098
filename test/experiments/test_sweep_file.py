"""Reading sweeps: what the file says is what is run, and every mistake is refused with its line."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import pytest
import sweeps

from benchmarks.slope_tail import slope_tail
from nbv_bench.experiments.summary.sweep_report import comparison_notes
from nbv_bench.experiments.sweep_file import load_sweep
from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.errors import ConfigFileError
from nbv_planner.planning.objectives import OBJECTIVE_INFO, OMNISCIENT
from nbv_planner.planning.planners import PLANNERS as PLANNER_NAMES
from nbv_planner.world.objects import OBJECT_SETS

VARIANTS_ONLY = {
    "robust",
    "robust_parts",
    "covered",
    "covered_test",
    "covered_real",
    "covered_annulus",
    "time_22",
    "time_random_test",
}
"""Sweeps that compare variants of the mapper, or times, with each other, not planners with the
omniscient one.
"""
SHIPPED = sorted((Path(__file__).parents[2] / "config" / "experiments").glob("*.yaml"))


def test_sweep_is_as_the_file_says(tmp_path):
    sweep = sweeps.load(tmp_path)
    assert (sweep.name, sweep.protocols, sweep.seeds) == ("tiny", ("thesis", "sensor"), (3,))
    assert sweep.measures == ("episode",)
    assert sweep.objects == ("square:width=4", "ellipse:a=6,b=4")
    assert list(sweep.planners) == ["greedy_oracle", "random"]
    assert sweep.planners["random"] == PlannerSettings(planner="random", objective="U")
    assert (sweep.base.mapper.grid_size, sweep.base.views.num_views) == (60, 12)
    assert sweep.text == sweeps.TINY


def test_what_is_left_out_has_a_default(tmp_path):
    sweep = sweeps.load(tmp_path, "objects: thesis\nplanners: {U: {objective: U}}\n")
    assert (sweep.name, sweep.protocols, sweep.seeds, len(sweep.objects)) == (
        "tiny",
        ("thesis",),
        (0,),
        22,
    )


def test_seeds_are_a_count_or_a_list(tmp_path):
    text = "objects: [star]\nplanners: {U: {objective: U}}\nseeds: "
    assert sweeps.load(tmp_path, text + "3").seeds == (0, 1, 2)
    assert sweeps.load(tmp_path, text + "[7, 2]").seeds == (7, 2)


def test_arcs_are_lists(tmp_path):
    text = (
        "objects: [star]\nplanners: {U: {objective: U}}\nsettings: {views: {allowed_arcs: [0,"
        " 3.5]}}"
    )
    assert sweeps.load(tmp_path, text).base.views.allowed_arcs == (0.0, 3.5)


@pytest.mark.parametrize("name", OBJECT_SETS)
def test_objects_are_a_set_by_its_name(tmp_path, name):
    assert (
        sweeps.load(tmp_path, f"objects: {name}\nplanners: {{U: {{objective: U}}}}\n").objects
        == OBJECT_SETS[name]
    )


def test_sets_and_objects_can_stand_in_one_list(tmp_path):
    sweep = sweeps.load(tmp_path, "objects: [star, random_test]\nplanners: {U: {objective: U}}\n")
    assert sweep.objects == ("star", *OBJECT_SETS["random_test"])


LINES = {
    "name: []": ["line 3: name", "single value"],
    "nam: x": ["line 3: unknown key 'nam'", "measure, name, objects"],
    "objects: cube": ["line 3: objects", "given twice, first in line 1"],
    "protocols: thesis": ["line 3: protocols", "list"],
    "protocols: [thesis, real]": [
        "line 3: protocols: unknown protocol 'real'; known: sensor, thesis"
    ],
    "protocols:\n  - thesis\n  - thesis": [
        "line 5: protocols",
        "'thesis' is given twice, first in line 4",
    ],
    "seeds: 0": ["line 3: seeds", "0 is out of range", ">= 1"],
    "seeds: many": ["line 3: seeds", "'many'", "integer"],
    "seeds: 1.5": ["line 3: seeds", "1.5", "integer"],
    "seeds: 1e9": ["line 3: seeds", "integer"],
    "seeds: [1, -1]": ["line 3: seeds", "-1", ">= 0"],
    "seeds: [1, 1]": ["line 3: seeds", "1 is given twice"],
    "seeds: []": ["line 3: seeds", "at least one"],
    "measure: [sense]": ["line 3: measure: unknown measure 'sense'; known: ", "episode"],
    "settings:\n  sensr: {}": [
        "line 4: settings: unknown group 'sensr'; known: ",
        "mapper, ",
        "sensor, ",
    ],
    "settings:\n  sensor:\n    nois_std: 1": [
        "line 5: settings.sensor: unknown parameter 'nois_std'",
        "noise_std",
    ],
    "settings:\n  sensor:\n    noise_std: -1": ["line 5: settings.sensor: noise_std: -1.0", ">= 0"],
    "settings: {sensor: {noise_std: .nan}}": ["line 3: settings.sensor: noise_std", "finite"],
    "settings: {sensor: {num_beams: [1]}}": ["line 3: settings.sensor: num_beams", "integer"],
    "settings: {sensor: {seed: 1}}": ["line 3: settings.sensor.seed", "'seeds'"],
    "settings: {planner: {objective: U}}": ["line 3: settings.planner", "'planners'"],
    "settings: {object: star}": ["line 3: settings.object", "'objects'"],
    "settings: {protocol: sensor}": ["line 3: settings.protocol", "'protocols'"],
    "settings:\n  termination:\n    max_duration: 5": [
        "line 5: settings.termination.max_duration",
        "max_views",
    ],
    "settings: {thesis_tie_tolerance: 2}": ["line 3: settings: thesis_tie_tolerance: 2.0", "< 1"],
    "settings: {thesis_tie_tolerance: little}": [
        "line 3: settings: thesis_tie_tolerance",
        "number",
    ],
    "settings:\n  scene:\n    radius_min: 9": [
        "line 4: settings.scene: radius_min: 9.0 must be < 8.0 (radius_max)"
    ],
    "settings:\n  mapper: {prior_mean: 9}": ["line 3: settings: prior_mean: 9.0", "[2, 8]"],
    "settings: {views: {allowed_arcs: [1.0, 1.001]}}": [
        "line 2: planners.U",
        "allowed_arcs",
        "none",
    ],
}
"""What line 3 and those after it may not be; lines 1 and 2 are the objects and the planners."""


@pytest.mark.parametrize("text", LINES, ids=lambda text: text.replace("\n", " "))
def test_mistake_is_refused_with_its_line(tmp_path, text):
    refused(tmp_path, f"objects: [star]\nplanners: {{U: {{objective: U}}}}\n{text}\n", LINES[text])


PLANNERS = {
    "CSV: {objective: CSV}": ["line 3: planners.CSV: unknown objective 'CSV'; known: C, CS, CSN, "],
    "X:\n    planner: best": [
        "line 4: planners.X: unknown planner 'best'; known: design, frontier, greedy, "
    ],
    "X:\n    planner: two_phase\n    phase_one_objective: Q": [
        "line 5: planners.X: unknown objective 'Q'"
    ],
    "X: {planner: [greedy]}": ["line 3: planners.X.planner", "single value"],
    "X: U": ["line 3: planners.X", "mapping"],
    "X:": ["line 3: planners.X", "mapping"],
    "X: {objectiv: U}": ["line 3: planners.X: unknown parameter 'objectiv'", "objective"],
    "X: {objective: U, planner_seed: 1}": ["line 3: planners.X.planner_seed", "'seeds'"],
    "X:\n    planner: greedy\n    phase_one_objective: CS": [
        "line 5: planners.X: phase_one_objective has no effect with planner greedy, only with"
        " two_phase"
    ],
    "X: {objective: U, sweep_views: 4}": [
        "line 3: planners.X: sweep_views has no effect",
        "uniform",
    ],
    "X: {travel_weight: -1}": ["line 3: planners.X: travel_weight: -1.0", ">= 0"],
    "X: {first_candidate: 100}": ["line 3: planners.X: first_candidate: 100 must be < 100"],
    "X: {objective: I}\n  X: {objective: U}": [
        "line 4: planners.X",
        "given twice, first in line 3",
    ],
}


@pytest.mark.parametrize("text", PLANNERS, ids=lambda text: text.replace("\n", " "))
def test_planner_that_cannot_be_is_refused_with_its_line(tmp_path, text):
    refused(tmp_path, f"objects: [star]\nplanners:\n  {text}\n", PLANNERS[text])


OBJECTS = {
    "cube": [
        "line 2: objects",
        "'cube'",
        "set (thesis, random_tuning, random_test, real, slices_tuning,",
        "list",
    ],
    "\n  - random:flower:1\n  - random_tuning": [
        "line 4: objects",
        "flower:1' is given twice, first in line 3",
    ],
    "[random:flower]": ["line 2: objects: object 'random:flower': seed ''", "whole number"],
    "[]": ["line 2: objects", "at least one"],
    "3": ["line 2: objects", "3", "text"],
    "\n  - star\n  - cube": ["line 4: objects: unknown object 'cube'; known: ", "ellipse:"],
    "\n  - star\n  - ellipse:a=9,b=4": ["line 4: objects", "9", "[2, 8]"],
    "\n  - file:nowhere.csv": ["line 3: objects", "nowhere.csv", "No such file"],
    "\n  - star\n  - star": ["line 4: objects", "'star' is given twice, first in line 3"],
    "[{a: 1}]": ["line 2: objects", "single value"],
}


@pytest.mark.parametrize("text", OBJECTS, ids=lambda text: text.replace("\n", " "))
def test_object_that_cannot_be_is_refused_with_its_line(tmp_path, text):
    refused(tmp_path, f"planners: {{U: {{objective: U}}}}\nobjects: {text}\n", OBJECTS[text])


RADIUS_ALONE = {
    "settings: {search: {surface_model: radius}}": "protocols: [sensor]\nplanners: {R: {}}",
    "protocols: [thesis]": "planners: {R: {}}",
    "protocols: [sensor]": "planners: {R: {}, U: {planner: greedy, objective: U}}",
}


@pytest.mark.parametrize("text", RADIUS_ALONE)
def test_an_object_that_is_not_star_shaped_is_refused_at_once_where_a_case_needs_a_radius(
    tmp_path, text
):
    """Also one in a file, and where the first object, of which an episode is built, is fine."""
    drawn = tmp_path / "hook.csv"
    drawn.write_text("x,y\n-4,-4\n4,-4\n4,4\n-4,4\n-4,2\n2,2\n2,-2\n-4,-2\n", encoding="utf-8")
    cases = {"letter:C": "is not star-shaped", f"file:{drawn}": "there is no point from which all"}
    for shape, words in cases.items():
        refused(
            tmp_path,
            f"objects: [star, '{shape}']\n{RADIUS_ALONE[text]}\n{text}\n",
            ["line ", "planners.", shape.removeprefix("file:"), words],
        )
    free = "protocols: [sensor]\nplanners: {R: {planner: rollout, objective: EMC}}\n"
    assert len(sweeps.load(tmp_path, f"objects: [star, 'letter:C']\n{free}").objects) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("objects: [star]", ["'planners' is missing"]),
        ("planners: {U: {objective: U}}", ["'objects' is missing"]),
        ("objects: [star]\nplanners: {}", ["line 2: planners", "at least one planner"]),
        ("- star", ["line 1", "mapping"]),
        ("", ["mapping"]),
    ],
)
def test_incomplete_sweep_is_refused(tmp_path, text, words):
    refused(tmp_path, text, words)


def refused(folder: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigFileError) as caught:
        sweeps.load(folder, text)
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in ["tiny.yaml", *words] if word not in message] == [], message


def test_name_of_a_shipped_sweep_will_do_and_a_folder_of_that_name_is_no_hindrance(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis").mkdir()
    assert load_sweep("thesis").name == "thesis"
    sweeps.write(tmp_path, name="sensor")
    assert load_sweep("sensor").name == "tiny"  # a file goes first


@pytest.mark.parametrize("name", ["thesi", "thesi.yaml", "./thesis", "config/thesis.yaml"])
def test_sweep_that_is_nowhere(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    expected = ", ".join(path.stem for path in SHIPPED) if name == "thesi" else "No such file"
    with pytest.raises(ConfigFileError, match=expected):
        load_sweep(name)


def test_sweep_is_also_found_where_a_ros_workspace_has_installed_it(tmp_path, monkeypatch):
    place = tmp_path / "share" / "nbv_planner" / "config" / "experiments"
    place.mkdir(parents=True)
    sweeps.write(place, name="mine.yaml")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert load_sweep("mine").name == "tiny"


@functools.cache
def shipped(name):
    return load_sweep(name)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_sweeps_compare_what_they_count_or_are_about_the_claim_itself(path):
    said = comparison_notes(shipped(path.stem).as_dict())
    assert bool(said) == path.stem.startswith("covered")
    assert not said or "OSM" not in path.read_text(encoding="utf-8")


# Their objects are listed one by one.
OF_LISTED_OBJECTS = ("theory", "prior_known", "on_the_way")


@pytest.mark.parametrize(
    "path",
    [path for path in SHIPPED if path.stem not in OF_LISTED_OBJECTS],
    ids=lambda path: path.stem,
)
def test_shipped_sweep_runs_on_a_set_of_objects_and_says_how_to_run_it(path):
    sweep = shipped(path.stem)
    assert sweep.name == path.stem
    named = (
        path.stem.replace("_sensor", "") if path.stem.startswith(("random", "real")) else "thesis"
    )
    others = {
        "covered": "random_tuning",
        "covered_test": "random_test",
        "blind_first_view_test": "random_test",
        "random_test_effort": "random_test",
        "covered_real": "real",
        "refined_test": "random_test",
        "dwell_random_test": "random_test",
        "dwell_real": "real",
        "completeness_test": "random_test",
        "completeness_real": "real",
        "annulus_random_test": "random_test",
        "time_random_test": "random_test",
        "slices": "slices_test",
        "silhouettes": "silhouettes_test",
    }
    assert sweep.objects == OBJECT_SETS[others.get(path.stem, named)]
    omniscient = [
        label
        for label, planner in sweep.planners.items()
        if planner.used_objectives == (OMNISCIENT,) and planner.first_candidate < 0
    ]
    others = {"completeness": "points", "annulus": "annulus"}.get(path.stem.split("_")[0])
    more = [f"greedy_oracle, {others}"] if others else []
    assert omniscient == ([] if path.stem in VARIANTS_ONLY else ["greedy_oracle", *more])
    assert f"nbv-bench experiment {path.stem} " in path.read_text()


def test_shipped_sweeps_are_those_that_the_thesis_and_the_evaluation_ask_for():
    thesis, everything, sensor = (shipped(name) for name in ("thesis", "thesis_all", "sensor"))
    assert list(thesis.planners) == ["greedy_oracle", "CSW", "IOA", "I", "U", "UP", "CS-U"]
    assert thesis.planners["CS-U"].label == "CSN-U"
    assert (sensor.planners, sensor.protocols, len(sensor.seeds)) == (
        thesis.planners,
        ("sensor",),
        10,
    )
    until_t95 = dataclasses.replace(sensor.base, stop_at_coverage=FULL_ENOUGH)
    for name in ("random_tuning", "random_test", "real", "shapes"):
        exact, noisy = (shipped(name + suffix) for suffix in ("", "_sensor"))
        assert (exact.protocols, exact.base) == (thesis.protocols, thesis.base)
        assert (noisy.protocols, noisy.base, noisy.seeds) == (
            sensor.protocols,
            until_t95,
            sensor.seeds,
        )
        assert noisy.planners.items() >= thesis.planners.items()
        assert noisy.planners.items() >= exact.planners.items()
    greedy = {
        planner.objective for planner in everything.planners.values() if planner.planner == "greedy"
    }
    assert greedy == set(OBJECTIVE_INFO)
    assert {planner.planner for planner in everything.planners.values()} == set(PLANNER_NAMES)


def test_the_planners_of_the_shipped_sweep_with_a_known_prior_do_know_it():
    sweep = shipped("prior_known")
    kernel = sweep.base.kernel
    scale = f"length_scale={kernel.length_scale:g},kernel_std={kernel.kernel_std:g}"
    assert all(text.endswith(f",smoothness={kernel.smoothness},{scale}") for text in sweep.objects)
    known = [planner for label, planner in sweep.planners.items() if planner.shape_prior == "fixed"]
    assert [planner.label for planner in known] == ["EMC", "rollout", "rollout"]


@pytest.mark.parametrize("name", ["blind_first_view", "blind_first_view_test"])
def test_blind_first_views_are_spread_evenly_around_the_circle(name):
    sweep = shipped(name)
    assert [planner.first_candidate for planner in sweep.planners.values()] == [
        -1,
        *range(5, 100, 10),
    ]
    assert {planner.used_objectives for planner in sweep.planners.values()} == {(OMNISCIENT,)}


def test_shipped_theory_sweep_draws_its_surfaces_from_its_own_prior():
    sweep = shipped("theory")
    assert list(sweep.planners) == ["U", "CS", "CS-U"]
    assert sweep.measures == ("theory", "theory_seen")
    kernel, mapper = sweep.base.kernel, sweep.base.mapper
    prior = f",smoothness={kernel.smoothness},kernel_std={kernel.kernel_std:g}"
    assert all(text.startswith("prior:") and text.endswith(prior) for text in sweep.objects)
    slope = slope_tail(kernel.build())
    assert mapper.confidence == "schedule"
    assert (mapper.schedule_a, mapper.schedule_b) == pytest.approx(slope, rel=1e-3)
    assert mapper.schedule_a >= slope[0]
    assert mapper.schedule_b >= slope[1]


@pytest.mark.parametrize(
    "objects", ["ellipse:a=6,b=4", "star, ellipse:a=6, b=4", "flower:frequency=5,amplitude=1"]
)
def test_an_object_with_commas_that_is_not_quoted_is_told_to_be(tmp_path, objects):
    whole = objects.removeprefix("star, ").replace(" ", "")
    with pytest.raises(ConfigFileError) as caught:
        sweeps.load(tmp_path, f"objects: [{objects}]\nplanners: {{U: {{objective: U}}}}\n")
    assert f'line 1: objects: an object that holds a comma must be quoted: "{whole}"' in str(
        caught.value
    )
