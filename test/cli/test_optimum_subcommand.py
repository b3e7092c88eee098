"""`nbv-bench optimum`: tables, files, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import scipy.optimize
from programs import main

needs_milp = pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)
FEW = ["--objects", "square:width=4", "polygon:diamond", "--workers", "1", "--cache", "cache"]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


@needs_milp
def test_tables_files_and_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["optimum", *FEW, "--candidates", "20,36", "--out", "out"]) == 0
    said = capsys.readouterr()
    assert (tmp_path / "out" / "optimum.md").read_text() == said.out
    content = json.loads((tmp_path / "out" / "optimum.json").read_text())
    lines = [
        cells(line) for line in said.out.splitlines() if re.match(r"\| (square|polygon):", line)
    ]
    assert len(lines) == len(content["rows"]) == 4
    for line, row in zip(lines, content["rows"], strict=True):
        assert line[0] == row["object"]
        assert line[1] == str(row["surface_points"])
        assert line[2] == str(row["views_95"] or "N/A")
        assert line[4].split()[0] == str(len(row["best_coverage"]))
        assert line[5] == str(len(row["greedy_coverage"]))
        ratios = [g / b for g, b in zip(row["greedy_coverage"], row["best_coverage"], strict=False)]
        assert float(line[6]) == pytest.approx(min(ratios), abs=5e-4)
    assert [row["candidates"] for row in content["rows"]] == [20, 20, 36, 36]
    assert said.out.count("proved for 2 of 2 objects") == 2
    assert said.err.count("2 of 2 optima") == 2
    assert "scipy" in content["versions"]
    assert {path.name for path in tmp_path.iterdir()} == {"out", "cache"}


@needs_milp
def test_figures_in_the_documentation_are_those_of_the_command(tmp_path, monkeypatch, capsys):
    """Three of the 22 objects; the document says how to compute all."""
    written = (Path(__file__).parents[2] / "docs" / "results" / "optimum.md").read_text(
        encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    objects = ["flower:frequency=2,amplitude=3", "square:width=6", "polygon:star"]
    assert main(["optimum", "--objects", *objects, "--workers", "1", "--cache", "cache"]) == 0
    for said, documented in zip(
        capsys.readouterr().out.split("360 candidate views"), halves(written), strict=True
    ):
        rows = [
            line
            for line in said.splitlines()
            if line.startswith(tuple(f"| {name} |" for name in objects))
        ]
        assert len(rows) == 3
        assert set(rows) <= set(documented.splitlines())


@needs_milp
@pytest.mark.parametrize(
    ("options", "section"),
    [(["--poses", "annulus"], "## Free poses"), (["--time"], "## Least time")],
)
def test_poses_and_times_in_the_documentation_are_those_of_the_command(
    tmp_path, monkeypatch, capsys, options, section
):
    written = (Path(__file__).parents[2] / "docs" / "results" / "optimum.md").read_text(
        encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    objects = ["square:width=6", "polygon:star"]
    assert (
        main(["optimum", "--objects", *objects, "--workers", "1", "--candidates", "100", *options])
        == 0
    )
    said = capsys.readouterr().out.splitlines()
    rows = [line for line in said if line.startswith(tuple(f"| {name} |" for name in objects))]
    assert len(rows) == 2
    assert set(rows) <= set(written.split(section)[1].splitlines())


def halves(text):
    """The tables for 100 and for 360 candidates."""
    first, second = text.split("### 100 candidate views")[1].split("### 360 candidate views")
    return first, second


@needs_milp
def test_objects_that_the_candidates_cannot_see_whole_are_marked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["optimum", *FEW, "--candidates", "1"]) == 0
    said = capsys.readouterr().out
    (line,) = (cells(line) for line in said.splitlines() if line.startswith("| square:width=4"))
    assert line[1:4] == ["160", "N/A", "N/A"]
    assert re.fullmatch(r"1 \(of the \d+ that can be seen\)", line[4])
    assert line[5:] == ["1", "1.000"]


@needs_milp
@pytest.mark.parametrize(
    ("options", "name", "methods"),
    [
        (
            ["--poses", "annulus", "--set", "annulus_angles=12"],
            "poses",
            ["circle, greedy", "circle, least", "poses, greedy", "poses, least"],
        ),
        (
            ["--time", "--speed", "0.5,2", "--dwell", "1"],
            "time",
            [
                f"{speed} m/s, {method}"
                for speed in ("0.5", "2")
                for method in ("sweep", "greedy", "least")
            ],
        ),
        (
            ["--time", "--speed", "1", "--poses", "annulus", "--set", "annulus_angles=12"],
            "time",
            ["1 m/s, sweep", "1 m/s, greedy", "1 m/s, least", "1 m/s, poses"],
        ),
    ],
)
def test_poses_and_time_have_a_table_of_means_and_one_of_objects(
    tmp_path, monkeypatch, capsys, options, name, methods
):
    monkeypatch.chdir(tmp_path)
    assert main(["optimum", *FEW, "--candidates", "20,36", *options, "--out", "out"]) == 0
    assert (tmp_path / "out" / "optimum.md").read_text() == capsys.readouterr().out
    rows = json.loads((tmp_path / "out" / "optimum.json").read_text())["rows"]
    assert len(rows) == 4
    for number, count in enumerate((20, 36)):
        own = rows[2 * number : 2 * number + 2]
        with (tmp_path / "out" / f"{name}_{count}.csv").open() as file:
            means = list(csv.DictReader(file))
        assert [line["method"] for line in means] == methods
        for line in means:
            costs = [row["costs"][line["method"]] for row in own]
            mean = sum(cost["cost"] for cost in costs) / 2
            assert float(line["views" if name == "poses" else "seconds"]) == pytest.approx(mean)
            if "greedy" in line["method"] or "sweep" in line["method"]:
                assert line["proved"] == line["bound"] == ""
            else:
                assert float(line["bound"]) == pytest.approx(
                    sum(cost["bound"] for cost in costs) / 2
                )
                assert line["proved"] == ("2" if "least" in line["method"] else "0")
        with (tmp_path / "out" / f"{name}_{count}_objects.csv").open() as file:
            assert [line["object"] for line in csv.DictReader(file)] == FEW[1:3]


@needs_milp
def test_poses_of_a_file_that_see_too_little_count_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poses.csv").write_text("x,y,yaw\n10,0,3.14159\n0,10,-1.5708\n")
    options = ["--candidates", "20", "--poses", "file", "--set", "view_file=poses.csv"]
    assert main(["optimum", *FEW, *options]) == 0
    said = capsys.readouterr().out
    assert [
        line
        for line in said.splitlines()
        if line.startswith("| poses, least | N/A | N/A | N/A | 0 |")
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--objects", "square:width=4", "cube"], ["cube", "ellipse:", "flower:"]),
        (["--objects", "square:side=4"], ["side", "width"]),
        (["--objects", "square:width=20"], ["radius", "[2, 8] m"]),
        (["--candidates", "0"], ["--candidates", "0", ">= 1"]),
        (["--candidates", "100,-5"], ["--candidates", "-5", ">= 1"]),
        (["--candidates", "100001"], ["100001", "<= 100000"]),
        (["--candidates", "many"], ["many", "whole number"]),
        (["--candidates", ""], ["--candidates", "whole number"]),
        (["--candidates", "3.5"], ["3.5", "whole number"]),
        (["--workers", "0"], ["--workers", "0", ">= 1"]),
        (["--time-limit", "0"], ["--time-limit", "> 0"]),
        (["--time-limit", "nan"], ["--time-limit", "nan", "> 0"]),
        (["--poses", "ring"], ["--poses", "ring", "annulus", "file"]),
        (["--poses", "file"], ["view_file", "view_space"]),
        (["--poses", "annulus", "--set", "annulus_radius=3"], ["annulus_radius", "annulus_radii"]),
        (["--poses", "annulus", "--set", "annulus_min=7"], ["annulus_min", "7", "radius_max"]),
        (["--poses", "annulus", "--set", "revisit_radius=0"], ["--set", "revisit_radius"]),
        (["--set", "annulus_radii=3"], ["--set", "annulus_radii=3", "--poses"]),
        (["--time", "--speed", "0"], ["--speed", "> 0"]),
        (["--time", "--dwell", "-1"], ["--dwell", "> 0"]),
        (["--out", "."], ["current folder"]),
        (["--out", "file"], ["file", "not a folder"]),
    ],
)
def test_what_is_not_allowed_is_refused_in_one_line(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["optimum", "--cache", "cache", *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert all(word in said.err for word in words)
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


def test_old_scipy_is_named_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(scipy.optimize, "milp", raising=False)
    assert main(["optimum", *FEW, "--candidates", "20", "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "needs scipy >= 1.9" in said.err
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []
