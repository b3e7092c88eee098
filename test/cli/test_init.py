"""`nbv-planner init`: what it writes runs without a change, and what does not fit together is
refused before.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import sys

import pytest
import yaml

from nbv_planner.cli.init import PROMPTS, SETUPS, nodes_for, shipped_file
from nbv_planner.cli.main import main
from nbv_planner.episode.parameter_files import lay_over, load_parameters
from nbv_planner.episode.parameters import config_from_parameters, derived
from nbv_planner.episode.solid.solid_settings import SOLID_NODES, SolidConfig
from nbv_planner.settings import settings_of

BRACKET = "x,y\n40,-30\n40,20\n0,50\n-40,20\n-40,-30\n"
OPTIONS = {
    "simulation": ["--radius-max", "0.1", "--object", "file:bracket.csv,unit=mm"],
    "robot": [
        "--radius-max",
        "0.4",
        "--noise-std",
        "0.005",
        "--pose-source",
        "tf",
        "--camera-frame",
        "lidar",
        "--base-frame",
        "base_link",
        "--scan-source",
        "multi_echo",
    ],
    "nav2": ["--radius-max", "1.5", "--range-max", "8"],
    "turntable": [
        "--radius-max",
        "0.05",
        "--view-distance",
        "0.3",
        "--field-of-view",
        "50",
        "--range-max",
        "0.5",
        "--position-tolerance",
        "0.002",
    ],
    "simulator": ["--radius-max", "12", "--num-views", "60"],
    "solid": ["--radius-max", "0.2", "--object", "solid:bracket"],
    "arm": [
        "--radius-max",
        "0.08",
        "--view-distance",
        "0.3",
        "--camera-frame",
        "camera_optical",
        "--table-height",
        "-0.075",
    ],
}


ARM = ["--for", "arm", *OPTIONS["arm"]]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "bracket.csv").write_text(BRACKET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", SETUPS)
def test_the_file_is_an_overlay_that_nodes_and_simulation_take(kind, folder, capsys):
    assert main(["init", "mine.yaml", "--for", kind, *OPTIONS[kind]]) == 0
    text = (folder / "mine.yaml").read_text(encoding="utf-8")
    ((section, content),) = yaml.safe_load(text).items()
    given = [option[2:].replace("-", "_") for option in OPTIONS[kind][::2]]
    assert (section, list(content["ros__parameters"])[: len(given)]) == ("/**", given)
    nodes = nodes_for(kind)
    parameters = load_parameters(shipped_file(kind), nodes=nodes)
    lay_over(parameters, load_parameters("mine.yaml", nodes=nodes))
    configured = SolidConfig.of if nodes is SOLID_NODES else config_from_parameters
    assert configured(parameters).scene.radius_max == float(OPTIONS[kind][1])
    said = capsys.readouterr().out
    assert "not given, so derived: " in said
    launch = "planner" if kind == "robot" else kind
    launched = f"ros2 launch nbv_planner {launch}.launch.py params_file:=mine.yaml"
    by_hand = "ros2 run nbv_planner surface_mapper --ros-args --params-file mine.yaml"
    assert (by_hand if kind == "arm" else launched) in said
    simulated = kind in ("simulation", "solid")
    assert ("nbv-planner simulate --params-file mine.yaml" in said) == simulated
    assert all(len(line) <= 120 for line in text.splitlines())


def test_any_text_and_any_number_is_read_back_as_it_was_given(folder):
    name = 'a "big" one\\2.csv'
    (folder / name).write_text(BRACKET, encoding="utf-8")
    options = ["--object", f"file:{name},unit=mm", "--radius-max", "0.1", "--noise-std", "5e-05"]
    assert main(["init", "mine.yaml", "--for", "simulation", *options]) == 0
    found = yaml.safe_load((folder / "mine.yaml").read_bytes())["/**"]["ros__parameters"]
    assert [found[one] for one in ("radius_max", "noise_std", "object")] == [
        0.1,
        5e-05,
        f"file:{name},unit=mm",
    ]


@pytest.mark.parametrize("kind", [kind for kind in SETUPS if kind != "arm"])
def test_nodes_that_are_started_by_hand_have_the_same_values_as_those_of_the_launch_file(
    kind, folder
):
    """The launch file lays it over the shipped one; who starts a node by hand gives this file
    alone.
    """
    assert main(["init", "mine.yaml", "--for", kind, *OPTIONS[kind]]) == 0
    nodes = nodes_for(kind)
    launched, alone = (
        load_parameters(file, nodes=nodes) for file in (shipped_file(kind), "mine.yaml")
    )
    lay_over(launched, alone)
    for node in ("surface_mapper", "nbv_planner"):
        default = {name: value for cls in nodes[node] for name, value, _ in settings_of(cls)}
        values = (
            {**default, **derived(one, nodes[node]), **one} for one in (launched[node], alone[node])
        )
        assert next(values) == next(values)
    assert {**alone["nbv_planner"]}.get("wait_for_start", True) is (
        kind not in ("simulation", "simulator", "solid")
    )


@pytest.mark.parametrize(
    ("options", "parameter", "value", "doubted"),
    [
        (["--radius-max", "1.8"], "radius_max", 1.8, False),
        (["--radius-max", "1800"], "radius_max", 1800.0, True),
        (["--radius-max", "1800 mm"], "radius_max", 1.8, False),
        (["--radius-max", "180cm"], "radius_max", 1.8, False),
        (
            ["--radius-max", "1", "--heading-tolerance", "2"],
            "heading_tolerance",
            0.034906585,
            False,
        ),
        (
            ["--radius-max", "1", "--heading-tolerance", "0.02"],
            "heading_tolerance",
            0.000349066,
            True,
        ),
        (
            ["--radius-max", "1", "--heading-tolerance", "0.02 rad"],
            "heading_tolerance",
            0.02,
            False,
        ),
        (["--radius-max", "1", "--field-of-view", "0.61"], "field_of_view", 0.010646508, True),
        (["--radius-max", "1", "--field-of-view", "35deg"], "field_of_view", 0.610865238, False),
    ],
)
def test_a_number_in_another_unit_is_taken_with_it_and_doubted_without(
    options, parameter, value, doubted, capsys
):
    assert main(["init", "mine.yaml", *options]) == 0
    assert load_parameters("mine.yaml")["nbv_planner"][parameter] == value
    said = capsys.readouterr().err
    assert (f"note: {parameter}: {options[-1]} is taken for" in said, bool(said)) == (
        doubted,
        doubted,
    )


def test_a_resolution_too_fine_for_claims_is_said(folder, capsys):
    assert main(["init", "mine.yaml", *ARM, "--completeness-tau", "1 mm"]) == 0
    assert "completeness_tau: 0.001 m is less than " in capsys.readouterr().out
    assert main(["init", "mine.yaml", *ARM, "--completeness-tau", "8 mm", "--force"]) == 0
    assert "is less than" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["solid", "arm"])
def test_the_file_for_a_solid_is_simulated(kind, folder, capsys):
    assert main(["init", "mine.yaml", "--for", kind, *OPTIONS[kind]]) == 0
    words = ["--no-figures", "--set", "max_views=1", "--object", "solid:bracket", "--out", "out"]
    words += ["--set", "shapes=4"]
    assert main(["simulate", "--params-file", "mine.yaml", *words]) == 0
    record = json.loads((folder / "out" / "episode.json").read_text(encoding="utf-8"))
    assert record["config"]["scene"]["radius_max"] == float(OPTIONS[kind][1])


def test_the_file_for_a_simulation_is_simulated(folder, capsys):
    assert main(["init", "mine.yaml", "--for", "simulation", *OPTIONS["simulation"]]) == 0
    assert main(["simulate", "--params-file", "mine.yaml", "--no-figures", "--out", "out"]) == 0
    assert "95 % after" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["letter:C", "two_boxes"])
def test_the_file_for_an_object_that_is_not_star_shaped_is_simulated(text, folder):
    options = ["--for", "simulation", "--radius-max", "8", "--object", text]
    assert main(["init", "mine.yaml", *options]) == 0
    words = ["--no-figures", "--set", "max_views=1", "--out", "out"]
    assert main(["simulate", "--params-file", "mine.yaml", *words]) == 0
    record = json.loads((folder / "out" / "episode.json").read_text(encoding="utf-8"))
    assert record["config"]["object"] == text
    assert record["views"][0]["coverage"] > 0.1


@pytest.mark.parametrize(
    ("text", "radius"),
    [("file:bracket.csv,unit=mm", "0.1"), ("ellipse:a=12,b=7", "12")],
    ids=["0.1 m", "12 m"],
)
def test_two_options_are_enough_for_an_object_of_any_size(text, radius, folder):
    arguments = ["--object", text, "--set", f"radius_max={radius}", "--no-figures", "--out", "out"]
    assert main(["simulate", *arguments]) == 0
    record = json.loads((folder / "out" / "episode.json").read_text(encoding="utf-8"))
    assert record["views"][-1]["completeness"] >= 0.95


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["--radius-max is needed", "greatest distance"]),
        (["--radius-max", "big"], ["radius_max: 'big' is not a number of m, cm, mm"]),
        (["--radius-max", "5 deg"], ["radius_max: '5 deg' is not a number of m, cm, mm"]),
        (["--radius-max", "mm"], ["radius_max: 'mm' is not a number"]),
        (["--radius-max", "nan"], ["radius_max: nan is not a finite number"]),
        (["--radius-max", "-1"], ["radius_max: -1.0 is out of range", ">= 1e-05"]),
        (["--radius-max", "1", "--num-views", "2.5"], ["num_views: '2.5' is not a whole number"]),
        (
            ["--radius-max", "1", "--view-distance", "0.5"],
            ["view_distance: 0.5 puts the camera inside"],
        ),
        (
            ["--radius-max", "1", "--position-tolerance", "0.5", "--heading-tolerance", "30"],
            ["position_tolerance: 0.5 m", "num_views <"],
        ),
        (["--radius-max", "1", "--noise-std", "0.9"], ["noise_std: 0.9 m is out of proportion"]),
        (
            ["--radius-max", "1", "--object", "star"],
            ["--object is only for simulation, solid, not robot"],
        ),
        (["--radius-max", "1", "--for", "drone"], ["unknown kind 'drone'", "nav2"]),
        (["--radius-max", "1", "--for", "simulation"], ["--object is needed", "file:contour.csv"]),
        (
            ["--radius-max", "1", "--field-of-view", "200"],
            ["field_of_view", "200 degrees were given"],
        ),
        (["--radius-max", "1", "--pose-source", "tf"], ["--camera-frame is needed"]),
        (["--radius-max", "1", "--base-frame", "base_link"], ["--pose-source tf only"]),
        (
            ["--radius-max", "1", "--pose-source", "gps"],
            ["pose_source: 'gps' is not known; must be one of topic, tf"],
        ),
        (ARM[:4], ["--table-height is needed", "in the frame of the object"]),
        ([*ARM, "--radius-max", "0.2"], ["view_distance: 0.3 m must be >= 0.4, range_min and"]),
        ([*ARM, "--view-space", "list"], ["view_file: goes with view_space list"]),
        ([*ARM, "--horizontal-field", "200"], ["horizontal_field", "200 degrees were given"]),
        ([*ARM, "--scan-source", "echoes"], ["--scan-source is only for robot"]),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(options, words, folder, capsys):
    assert main(["init", "mine.yaml", *options]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert not (folder / "mine.yaml").exists()


def test_an_older_file_is_kept_unless_forced(folder, capsys):
    (folder / "nbv.yaml").write_text("old", encoding="utf-8")
    assert main(["init", "--radius-max", "1"]) == 2
    assert "nbv.yaml exists; --force replaces it" in capsys.readouterr().err
    assert (folder / "nbv.yaml").read_text(encoding="utf-8") == "old"
    assert main(["init", "--radius-max", "1", "--force"]) == 0
    assert main(["init", "--radius-max", "1", "--force", "."]) == 2
    assert ". is a folder" in capsys.readouterr().err
    assert main(["init", "none/such.yaml", "--radius-max", "1"]) == 2
    assert "cannot write" in capsys.readouterr().err


def on_a_terminal(folder, answers: list[str], *options: str, code: int = 0) -> str:
    """What `init` says to somebody who types these answers, then Ctrl-D."""
    ours, theirs = pty.openpty()
    os.write(ours, ("\n".join(answers) + "\n\x04").encode())
    with (
        open(theirs) as typed,
        open(theirs, "w", closefd=False) as shown,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, stream in (("stdin", typed), ("stdout", shown), ("stderr", shown)):
            patch.setattr(sys, name, stream)
        ended = main(["init", *options])
    said = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody has it any more
        while more := os.read(ours, 65536):
            said += more
    os.close(ours)
    assert ended == code, said
    return said.decode()


def test_questions_that_are_not_answered_to_the_end_write_nothing_and_lose_nothing(folder, capsys):
    said = on_a_terminal(folder, ["robot", "0.4", "", "0.9"], code=2)
    assert "not all questions were answered" in said
    again = (
        "continue with: nbv-planner init nbv.yaml --for robot --radius-max 0.4 --view-distance 0.9"
    )
    assert again in said.replace("\r\n", "")
    assert not (folder / "nbv.yaml").exists()
    assert main(again.split()[3:]) == 0
    assert load_parameters("nbv.yaml")["nbv_planner"]["view_distance"] == 0.9


def test_on_a_terminal_it_asks_and_asks_again(folder):
    """As somebody types it: a wrong answer is asked for again, an empty one takes the default."""
    said = on_a_terminal(
        folder, ["robto", "turntable", "", "large", "0.05", "", "0.3", *[""] * len(PROMPTS)]
    )
    assert "one of simulation, robot" in said
    assert "'large' is not a number" in said
    shared = load_parameters("nbv.yaml")["surface_mapper"]
    assert (shared["radius_max"], shared["view_distance"]) == (0.05, 0.3)


def test_answers_that_do_not_fit_together_are_asked_for_again_and_the_others_are_kept(folder):
    """The camera inside the object, said after the last question; then its distance alone is asked
    for.
    """
    first = ["2", "", "1.5", "", "", "0.02", *[""] * 8]
    said = on_a_terminal(folder, [*first, "", "6"], "--for", "robot")  # radius_max is kept
    assert "view_distance: 1.5 puts the camera inside the object's bound" in said
    assert (
        said.count("greatest distance of the object's surface")
        == said.count("distance of the camera")
        == 2
    )
    assert said.count("standard deviation of a range") == 1
    found = load_parameters("nbv.yaml")["surface_mapper"]
    assert [found[name] for name in ("radius_max", "view_distance", "noise_std")] == [
        2.0,
        6.0,
        0.02,
    ]


def test_the_questions_show_what_holds_without_an_answer(folder):
    said = on_a_terminal(folder, ["2", *[""] * 14], "--for", "robot")
    for words in (
        "from the centre, m [0.5 m]",
        "camera from the centre, m [2.5 m]",
        "do not state it [from the scans]",
        "deviation of a range, m [0.05 m]",
        "matches the goal, degrees [1.146 deg]",
        "of candidate views [100]",
        "or tf [topic]",
        "[none]",
    ):
        assert words in said, words


def test_a_doubtful_answer_is_asked_for_again_and_kept_by_enter(folder):
    said = on_a_terminal(
        folder, ["1800", "1.8", *[""] * 6, "0.02", "", *[""] * 8], "--for", "robot"
    )
    assert (
        "radius_max: 1800 is taken for 1800 m; give the unit to be clear: 1800 m or 1800 cm or"
        " 1800 mm" in said
    )
    found = load_parameters("nbv.yaml")["nbv_planner"]
    assert (found["radius_max"], found["heading_tolerance"]) == (1.8, 0.000349066)
