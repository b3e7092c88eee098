"""The verbs that run no episode, and the help."""

from __future__ import annotations

import re

import pytest

import nbv_planner
from nbv_planner.cli import thesis_table
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


@pytest.mark.parametrize("options", [["--workers", "0"], ["--workers", "-3"]])
def test_thesis_table_refuses_what_it_cannot_do(capsys, options):
    assert main(["thesis-table", *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert all(word in said.err for word in (*options, ">= 1"))


def test_thesis_table_puts_ours_beside_the_published_figures(capsys, monkeypatch):
    """Two objects instead of 22: the whole table is the command in the README."""
    monkeypatch.setattr(thesis_table, "thesis_objects", lambda: ["ellipse:a=5,b=5", "square:width=4"])
    assert main(["thesis-table", "--workers", "1"]) == 0
    said = capsys.readouterr()
    rows = [line for line in said.out.splitlines() if line.startswith("|")]
    assert [row.split("|")[1].strip() for row in rows[2:7]] == ["CSW", "IOA", "I", "U", "UP"]
    assert "(127 %)" in rows[2]
    assert "(11.63)" in rows[2]
    assert re.search(r"\b(\d+) of \1 episodes", said.err)


def test_parameter_tables_are_printed(capsys):
    tables = pytest.importorskip("nbv_planner.cli.parameter_tables")
    assert main(["parameters"]) == 0
    assert capsys.readouterr().out.strip() == tables.parameter_tables().strip()


def test_thesis_table_takes_other_planners_and_leaves_out_what_is_not_published(capsys, monkeypatch):
    monkeypatch.setattr(thesis_table, "thesis_objects", lambda: ["square:width=4"])
    assert main(["thesis-table", "--workers", "1", "--planners", "C,U"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")][2:]
    assert [row.split("|")[1].strip() for row in rows] == ["C", "U"]
    assert "(" not in rows[0]
    assert "(11.91)" in rows[1]


def test_thesis_table_lists_the_planners_it_knows(capsys):
    assert main(["thesis-table", "--planners", "U,best"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert all(word in said for word in ("best", "CS-U", "IOA", "UP"))
