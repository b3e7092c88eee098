"""The verbs that run no episode, and the help."""

from __future__ import annotations

import pytest

import nbv_planner
from nbv_planner.cli.main import main


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == f"nbv-planner {nbv_planner.__version__}"


@pytest.mark.parametrize("verb", ["demo", "simulate"])
def test_help_of_a_verb_names_all_that_can_be_chosen(capsys, verb):
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    for word in ("IOA", "ellipse:a=6,b=4", "square:width=8", "file:contour.csv", "spline:contour.csv", "star",
                 "greedy", "--seed", "--out DIR", "--force", "--params-file F", "--first-candidate N"):
        assert word in said


def test_objectives_are_listed_with_what_is_known(capsys):
    assert main(["objectives"]) == 0
    lines = capsys.readouterr().out.splitlines()
    needs_the_object = {line.split()[0]: " yes " in line for line in lines[2:]}
    assert needs_the_object.items() >= {
        "U": False, "UP": False, "CSW": False, "I": False, "IOA": False, "OSM": True,
    }.items()  # fmt: skip


def test_parameter_tables_are_printed(capsys):
    tables = pytest.importorskip("nbv_planner.cli.parameter_tables")
    assert main(["parameters"]) == 0
    assert capsys.readouterr().out.strip() == tables.parameter_tables().strip()
