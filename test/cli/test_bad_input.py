"""Bad input: one line on stderr that says what is allowed, exit code 2, nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import command
import pytest
from programs import main

CONTOURS = {
    "loop.csv": "x,y\n4,0\n3,3\n3.5,1\n-4,0\n0,-4\n",
    "outside.csv": "phi,r\n0,4\n1.5,9\n3,4\n4.5,4\n",
    "inside.csv": "x,y\n3,0\n0,1\n-3,0\n0,-3\n",
    "nan.csv": "x,y\n4,0\n0,nan\n-4,0\n0,-4\n",
    "header.csv": "a,b\n4,0\n0,4\n-4,0\n",
    "words.csv": "x,y\n4,0\nzero,4\n-4,0\n",
}
"""Each is wrong in one way."""


def node(name: str, **values) -> str:
    return (
        f"{name}: {{ros__parameters:"
        f" {{{', '.join(f'{key}: {value}' for key, value in values.items())}}}}}\n"
    )


FILES = {
    "key.yaml": node("nbv_planner", max_viws=3),
    "section.yaml": node("nbv_plannr", max_views=3),
    "range.yaml": node("surface_mapper", grid_size=-5),
    "type.yaml": node("depth_camera", num_beams="many"),
    "syntax.yaml": "nbv_planner: {ros__parameters: [\n",
    "flat.yaml": "nbv_planner: {max_views: 3}\n",
    "list.yaml": "- 1\n",
    "empty.yaml": "",
    "camera.yaml": node("/**", view_distance=8.0),
    "narrow.yaml": node("/**", field_of_view=0.0),
    "wide.yaml": node("/**", field_of_view=3.2),
    "pi.yaml": node("/**", field_of_view=3.141592653589793),
    "blind.yaml": node("depth_camera", num_beams=0),
    "prior.yaml": node("surface_mapper", prior_mean=9.0),
    "views.yaml": node("nbv_planner", num_views=10),
    "arcs.yaml": node("nbv_planner", allowed_arcs="[0.0]"),
    "two.yaml": node("depth_camera", radius_max=7.0),
    "shared.yaml": node("/**", num_beems=3),
    "nan.yaml": node("depth_camera", noise_std=".nan"),
}

CASES = [
    # options, words of the message
    (
        ["--object", "file:loop.csv", "--set", "surface_model=radius"],
        ["loop.csv", "line 3", "star-shaped"],
    ),
    (["--object", "spline:loop.csv"], ["loop.csv", "star-shaped"]),
    (["--object", "file:outside.csv"], ["outside.csv", "radius 8.", "[2, 8] m", "radius_max"]),
    (["--object", "file:inside.csv"], ["inside.csv", "radius 1.", "[2, 8] m", "radius_min"]),
    (["--object", "file:nan.csv"], ["nan.csv", "line 3", "finite"]),
    (["--object", "file:header.csv"], ["header.csv", "a,b", "x,y", "phi,r"]),
    (["--object", "file:words.csv"], ["words.csv", "line 3", "two numbers"]),
    (["--object", "file:nowhere.csv"], ["nowhere.csv", "No such file"]),
    (
        ["--object", "cube"],
        ["cube", "ellipse:", "flower:", "square:", "polygon:", "file:", "spline:"],
    ),
    (["--object", "polygon:cube"], ["cube", "concave, convex, diamond, star"]),
    (["--object", "ellipse:a=6,c=4"], ["'c'", "a, b"]),
    (["--object", "ellipse:a=9,b=4"], ["9", "[2, 8] m"]),
    (["--object", "ellipse:a=6,b=four"], ["four", "number"]),
    (["--objective", "XYZ"], ["XYZ", "known: ", "CSW, ", "I, IOA, ", "OSM, ", "U, UP"]),
    (["--planner", "best"], ["best", "greedy", "two_phase", "uniform", "random"]),
    (["--seed", "-1"], ["seed", "-1", ">= 0"]),
    (["--set", "first_candidate=100"], ["first_candidate", "100", "< 100", "num_views"]),
    (["--set", "first_candidate=-2"], ["first_candidate", "-2", ">= -1"]),
    (
        ["--params-file", "views.yaml", "--set", "first_candidate=10"],
        ["first_candidate", "10", "num_views"],
    ),
    (["--params-file", "camera.yaml"], ["view_distance", "8.0", "> radius_max", "8.0"]),
    (
        ["--params-file", "narrow.yaml"],
        ["narrow.yaml", "/**", "field_of_view", "0.0", ">= 0.0001", "< 3.14159"],
    ),
    (["--params-file", "wide.yaml"], ["wide.yaml", "field_of_view", "3.2", "< 3.14159"]),
    (["--params-file", "pi.yaml"], ["pi.yaml", "field_of_view", "< 3.14159"]),
    (["--params-file", "blind.yaml"], ["blind.yaml", "depth_camera", "num_beams", "0", ">= 2"]),
    (
        ["--params-file", "key.yaml"],
        ["key.yaml", "nbv_planner", "max_viws", "did you mean max_views?"],
    ),
    (
        ["--params-file", "section.yaml"],
        ["nbv_plannr", "/**, depth_camera, ", "did you mean nbv_planner?"],
    ),
    (["--params-file", "range.yaml"], ["range.yaml", "surface_mapper", "grid_size", "-5", ">="]),
    (["--params-file", "type.yaml"], ["type.yaml", "depth_camera", "num_beams", "many", "integer"]),
    (["--params-file", "syntax.yaml"], ["syntax.yaml", "line"]),
    (["--params-file", "flat.yaml"], ["flat.yaml", "nbv_planner", "ros__parameters"]),
    (["--params-file", "list.yaml"], ["list.yaml", "mapping"]),
    (["--params-file", "empty.yaml"], ["empty.yaml", "mapping"]),
    (["--params-file", "nowhere.yaml"], ["nowhere.yaml", "No such file"]),
    (["--params-file", "prior.yaml"], ["prior_mean", "9.0", "[2, 8] m"]),
    (["--params-file", "arcs.yaml"], ["allowed_arcs", "pairs"]),
    (
        ["--params-file", "two.yaml"],
        ["depth_camera", "surface_mapper", "radius_max: 7.0 m", "the same"],
    ),
    (
        ["--params-file", "shared.yaml"],
        ["shared.yaml, line 1: /**", "'num_beems'", "parameters.md", "did you mean num_beams?"],
    ),
    (
        ["--set", "max_viws=3"],
        ["--set max_viws=3: ", "'max_viws'", "parameters.md", "did you mean max_views?"],
    ),
    (
        ["--set", "mapper.noise_std=1"],
        ["unknown node 'mapper'", "known: depth_camera, nbv_planner, surface_mapper"],
    ),
    (
        ["--set", "nbv_planner.num_beams=9"],
        ["--set nbv_planner.num_beams=9", "unknown parameter 'num_beams'"],
    ),
    (["--set", "num_beams=many"], ["--set num_beams=many: num_beams: 'many'", "integer"]),
    (["--set", "num_beams=1"], ["--set num_beams=1: num_beams: 1 is out of range", ">= 2"]),
    (
        ["--set", "depth_camera.radius_max=7"],
        ["depth_camera", "surface_mapper", "radius_max: 7.0 m", "the same"],
    ),
    (["--set", "allowed_arcs=[0,"], ["--set allowed_arcs=[0,: ", "expected the node content"]),
    (["--set", "max_views"], ["--set: 'max_views' must be NAME=VALUE"]),
    (["--params-file", "nan.yaml"], ["nan.yaml", "noise_std", "nan", "finite"]),
]


@pytest.fixture
def filled(here):
    """Return the folder to work in, with the bad files in it."""
    for name, text in (CONTOURS | FILES).items():
        (here / name).write_text(text)
    return here


def everything(folder: Path) -> dict[str, bytes | None]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in folder.rglob("*")
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--object", "file:t/none.csv"],
        ["experiment", "t/none.yaml", "--out", "out"],
        ["report", "t/none"],
        ["bag", "replay", "t/none"],
        ["analyze", "t/none", "--out", "out"],
        ["bag", "reindex", "t/none", "--out", "out"],
        ["report", "t/none", "t/other"],
        ["bag", "reindex", ".", "--out", "out"],
        ["bag", "reindex", "words.csv", "--out", "t/none"],
        ["view", "--web", "--host", "no such host"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_opened_is_said_without_python_words(filled, capsys, arguments):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert not [word for word in ("Errno", "Error(", "PosixPath") if word in said], said


def refused(arguments: list[str], folder: Path, capsys) -> str:
    """Run a command that must be refused without a trace; gives its one line."""
    before = everything(folder)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert everything(folder) == before
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"nbv-planner {arguments[0]}: error: ")
    return said.err


@pytest.mark.parametrize("subcommand", ["simulate", "demo"])
@pytest.mark.parametrize(
    ("options", "words"), CASES, ids=[" ".join(options) for options, _ in CASES]
)
def test_bad_input_is_refused_in_one_line_and_leaves_nothing(
    filled, capsys, subcommand, options, words
):
    """`demo` refuses before it looks for ROS, so that this holds on every machine."""
    line = refused([subcommand, *options, "--out", "out"], filled, capsys)
    if subcommand == "demo" and "first_candidate" in options[-1]:
        words = ["first_candidate is not a parameter any more: Python API only, PlannerSettings."]
    assert [word for word in words if word not in line] == [], line


def test_demo_has_no_use_for_the_omniscient_objective(here, capsys):
    line = refused(["demo", "--objective", "OSM", "--out", "out"], here, capsys)
    assert "OSM" in line
    assert "simulate" in line


def test_results_folder_that_exists_is_kept(here, capsys):
    (here / "out").mkdir()
    (here / "out" / "episode.json").write_text("{}")
    assert "--force" in refused(["simulate", "--out", "out"], here, capsys)


@pytest.mark.parametrize("content", ["thesis.tex", "episode.json/x"])
def test_force_never_replaces_a_folder_that_holds_something_else(here, capsys, content):
    file = here / "out" / content
    file.parent.mkdir(parents=True)
    file.write_text("precious")
    assert "not a results folder" in refused(["simulate", "--out", "out", "--force"], here, capsys)


def test_force_never_replaces_a_file(here, capsys):
    (here / "out").write_text("precious")
    assert "choose another" in refused(["simulate", "--out", "out", "--force"], here, capsys)


@pytest.mark.parametrize("out", ["file/out", "file/deeper/out", "x" * 300])
def test_folder_that_cannot_be_written(here, capsys, out):
    """A place below a file: no one can write there, whoever runs the tests."""
    (here / "file").touch()
    assert "cannot write" in refused(["simulate", "--out", out], here, capsys)


@pytest.mark.parametrize("out", [".", ""])
def test_current_folder_is_no_place_for_results(here, capsys, out):
    """It could not be replaced as a whole."""
    assert "current folder" in refused(["simulate", "--out", out], here, capsys)


def test_as_a_process_it_is_the_same(filled):
    before = everything(filled)
    done = subprocess.run(
        [sys.executable, "-m", "nbv_planner.cli.main", "simulate", "--params-file", "key.yaml"],
        cwd=filled,
        env=command.environment(),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "max_viws" in done.stderr
    assert everything(filled) == before


def test_simulated_time_in_the_file_is_said_to_be_ignored(tmp_path, capsys):
    file = tmp_path / "p.yaml"
    file.write_text(
        "nbv_planner: {ros__parameters: {use_sim_time: true, max_views: 1, num_views: 8}}\n"
    )
    assert main(["simulate", "--params-file", str(file), "--out", str(tmp_path / "out")]) == 0
    assert (
        f"note: {file}: use_sim_time is ignored; time is the machine's" in capsys.readouterr().err
    )
