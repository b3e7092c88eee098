"""The program as a whole: its help, names that are wrong or old, and what it loads."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest
from command import environment
from programs import main

import nbv_planner
from nbv_bench.cli import main as study
from nbv_planner.cli import main as robot
from nbv_planner.cli.main import SUBCOMMANDS
from nbv_planner.cli.options import add_namespace

LOADED = """
import sys
from nbv_planner.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""
THREADS = """
import os, sys

class Numpy:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("BLAS threads:", os.environ.get("OPENBLAS_NUM_THREADS"))

sys.meta_path.insert(0, Numpy())
from nbv_planner.cli.main import main
main(["show", "objectives"])
"""


def run_python(code: str, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=environment(**extra),
    )


def shown_help(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--help"])
    assert caught.value.code == 0
    return capsys.readouterr().out


def refusal(capsys, arguments: list[str]) -> str:
    """Run a command that must be refused in one line, and return the line."""
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == f"nbv-planner {nbv_planner.__version__}"


def test_help_lists_the_subcommands_by_purpose(capsys):
    said = shown_help(capsys).splitlines()
    groups = {group: said.index(f"{group}:") for group in ("run", "operate", "look", "record")}
    assert list(groups.values()) == sorted(groups.values())
    assert said[groups["look"] + 1].split()[0] == "view"
    listed = [
        line.strip().partition("  ")[0] for line in said[groups["run"] :] if line.startswith("  ")
    ]
    assert listed == list(SUBCOMMANDS)
    assert len({name.partition(" ")[0] for name in listed}) <= 10
    assert max(map(len, said)) <= 100


def test_help_loads_neither_numpy_nor_the_subcommands():
    loaded = run_python(LOADED, "--help").stderr.split()
    assert "nbv_planner.cli.main" in loaded
    assert not {"numpy", "scipy", "matplotlib", "rclpy"} & set(loaded)
    assert len([name for name in loaded if name.startswith("nbv_planner")]) < 10


def test_a_subcommand_loads_no_other():
    loaded = run_python(LOADED, "show", "objectives").stderr.split()
    shared = {"main", "options", "output"}
    assert {
        name.rpartition(".")[2] for name in loaded if name.startswith("nbv_planner.cli.")
    } - shared == {"show"}


def test_linear_algebra_has_one_thread_whatever_the_environment_says():
    assert run_python(THREADS, OPENBLAS_NUM_THREADS="7").stdout.splitlines()[0] == "BLAS threads: 1"


@pytest.mark.parametrize("name", [*SUBCOMMANDS, *study.SUBCOMMANDS])
def test_every_subcommand_explains_itself(capsys, name):
    program = "nbv-planner" if name in SUBCOMMANDS else "nbv-bench"
    assert shown_help(capsys, *name.split()).startswith(f"usage: {program} {name} ")


@pytest.mark.parametrize("name", study.SUBCOMMANDS)
def test_what_a_paper_needs_says_where_it_went(capsys, name):
    assert robot.main([name, "x"]) == 2
    said = f"nbv-planner {name}: error: no longer a subcommand; use nbv-bench {name}\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("name", ["demo", "simulate"])
def test_help_of_an_episode_names_all_that_can_be_chosen(capsys, name):
    said = " ".join(shown_help(capsys, name).split())
    for word in (
        "IOA",
        "ellipse:a=6,b=4",
        "square:width=8",
        "file:contour.csv",
        "spline:contour.csv",
        "star",
        "greedy",
        "--seed",
        "--out DIR",
        "--force",
        "--params-file F",
        "--no-figures",
        "--set NAME=VALUE",
    ):
        assert word in said


def test_help_of_a_group_lists_its_subcommands(capsys):
    with pytest.raises(SystemExit):
        main(["bag", "--help"])
    said = capsys.readouterr().out
    assert "bag replay" in said
    assert "simulate" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["name a subcommand: demo, simulate, ", "--help"]),
        (
            ["simulat"],
            ["nbv-planner: error: unknown subcommand 'simulat'", "did you mean simulate?"],
        ),
        (
            ["xyz"],
            [
                "unknown subcommand 'xyz'",
                "known: analyze, bag record, bag reindex, bag replay, check, ",
            ],
        ),
        (["bag"], ["name a subcommand: bag record, bag replay, bag reindex"]),
        (["episode", "stat"], ["unknown subcommand 'stat'", "known: episode pause, "]),
        (["--versoin"], ["unknown option '--versoin'", "did you mean --version?"]),
        (
            ["simulate", "--sed", "1"],
            ["nbv-planner simulate: error: unknown option '--sed'", "did you mean --seed?"],
        ),
        (["simulate", "--plannr=greedy"], ["unknown option '--plannr'", "did you mean --planner?"]),
        (["simulate", "star"], ["unexpected argument 'star'"]),
        (["simulate", "--seed", "one"], ["--seed", "'one'"]),
        (
            ["simulate", "--protocol", "thesus"],
            ["--protocol: unknown protocol 'thesus'", "did you mean thesis?"],
        ),
        (["simulate", "--planner", "gredy"], ["unknown planner 'gredy'", "did you mean greedy?"]),
        (["simulate", "--objective", "ioa"], ["unknown objective 'ioa'", "did you mean IOA?"]),
        (
            ["simulate", "--object", "elipse:a=6,b=4"],
            ["unknown object", "did you mean ellipse:a=6,b=4?"],
        ),
        (["simulate", "--object", "stra"], ["unknown object 'stra'", "did you mean star?"]),
        (
            ["bag", "record", "--storage", "mcab"],
            ["--storage: unknown storage 'mcab'", "did you mean mcap?"],
        ),
        (["experiment", "thesis"], ["--out", "nbv-bench experiment --help"]),
        (["experiment", "thesi", "--out", "a"], ["'thesi'", "did you mean thesis?"]),
        (["show", "objective"], ["unknown list 'objective'", "did you mean objectives?"]),
        (["show"], ["required: objectives|planners|parameters"]),
    ],
)
def test_wrong_command_line_is_refused_in_one_line_that_says_what_may_have_been_meant(
    here, capsys, arguments, words
):
    line = refusal(capsys, arguments)
    assert [word for word in words if word not in line] == [], line
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["replay", "nothing"], ["bag", "replay", "nothing"]),
        (["start", "--timeout", "x"], ["episode", "start", "--timeout", "x"]),
    ],
)
def test_old_names_still_work_and_say_the_new_ones(capsys, old, new):
    assert main(old) == main(new) == 2
    note, *said = capsys.readouterr().err.splitlines()
    assert note == f"note: {old[0]} is now {' '.join(new[:2])}"
    assert said[0] == said[1]


def test_objectives_are_listed_with_what_is_known(capsys):
    assert main(["show", "objectives"]) == 0
    lines = capsys.readouterr().out.splitlines()
    needs_the_object = {line.split()[0]: " yes " in line for line in lines[2:]}
    assert (
        needs_the_object.items()
        >= {
            "U": False,
            "UP": False,
            "CSW": False,
            "I": False,
            "IOA": False,
            "OSM": True,
        }.items()
    )


def test_parameter_tables_are_printed(capsys):
    from nbv_planner.cli.show import parameter_tables

    assert main(["show", "parameters"]) == 0
    assert capsys.readouterr().out.strip() == parameter_tables().strip()


@pytest.mark.parametrize("name", ["", "/", "arm", "/arm", "/arm/left"])
def test_namespaces_are_taken_as_launch_files_write_them(name):
    parser = argparse.ArgumentParser()
    add_namespace(parser)
    assert parser.parse_args(["--namespace", name]).namespace == name
