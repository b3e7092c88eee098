"""Runs beside each other: means, and differences on the same objects and seeds only."""

from __future__ import annotations

import json
import math

import pytest
from tables import column

from nbv_bench.experiments.summary.runs import (
    ComparedRun,
    compared_episodes,
    compared_runs,
    paired_runs_table,
    runs_table,
    short_names,
)
from nbv_planner.errors import ResultsError
from nbv_planner.report.tables import MeanInterval


def run(label: str, figures: dict[tuple[str, int], float]) -> ComparedRun:
    return ComparedRun(
        label,
        compared_episodes(
            [
                {"object": name, "seed": seed, "curve": [0.5], "true": True, "T": value}
                for (name, seed), value in figures.items()
            ]
        ),
    )


FIRST = run("a", {("star", 0): 10.0, ("star", 1): 14.0, ("star", 2): 11.0, ("moon", 0): 5.0})
SECOND = run("b", {("star", 0): 8.0, ("star", 1): 11.0, ("star", 2): 7.0, ("sun", 0): 4.0})


def cell(table, name: str) -> MeanInterval:
    (value,) = column(table, name)
    return value


def test_differences_are_those_of_the_pairs():
    table = paired_runs_table([FIRST, SECOND])
    assert column(table, "pair") == ["a − b"]
    assert (column(table, "pairs"), column(table, "unpaired")) == ([3], [2])
    difference = cell(table, "T")
    assert difference.mean == pytest.approx((2.0 + 3.0 + 4.0) / 3.0)
    half = 4.30265 * math.sqrt(1.0 / 3.0)  # Student's t with two degrees of freedom
    assert difference.high - difference.mean == pytest.approx(half, rel=1e-3)
    assert cell(table, "T95").cases == 0
    assert math.isnan(cell(table, "T95").mean)


def test_runs_without_a_common_case_have_no_difference():
    table = paired_runs_table([FIRST, run("c", {("cube", 0): 1.0})])
    assert cell(table, "T").cases == 0
    assert "N/A" in table.to_markdown()


def test_many_runs_are_compared_with_the_first():
    runs = [run(str(number), {("star", 0): float(number)}) for number in range(12)]
    assert column(paired_runs_table(runs), "pair") == [f"0 − {number}" for number in range(1, 12)]
    assert len(paired_runs_table(runs[:4]).rows) == 6


def test_means_are_per_run():
    table = runs_table([FIRST, SECOND])
    means = [(35.0 / 3.0 + 5.0) / 2.0, (26.0 / 3.0 + 4.0) / 2.0]
    assert [value.mean for value in column(table, "T")] == pytest.approx(means)
    assert column(table, "coverage") == ["true", "true"]
    csv = table.to_csv().splitlines()
    assert len({line.count(",") for line in csv}) == 1


@pytest.mark.parametrize(
    "content", ["[]", "{", "{}", '{"views": 5, "metrics": {}}', '{"views": [{}], "metrics": {}}']
)
def test_an_episode_file_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "episode.json").write_text(content)
    with pytest.raises(ResultsError, match=r"episode\.json"):
        compared_runs(str(tmp_path), "run", lambda path: pytest.fail("no bag"))


def test_an_episode_folder_is_read(tmp_path):
    views = [{"coverage": 0.4, "travelled": 3.0}, {"coverage": 0.7, "travelled": 8.0}]
    record = {
        "config": {"object": "star"},
        "seed": 3,
        "views": views,
        "metrics": {"T": 2, "T95": None, "rec": 0.7},
    }
    (tmp_path / "episode.json").write_text(json.dumps(record))
    (found,) = compared_runs(str(tmp_path), "run", lambda path: pytest.fail("no bag"))
    (episode,) = found.episodes.to_dict("records")
    assert (episode["object"], episode["seed"], episode["curve"]) == ("star", 3, [0.4, 0.7])
    known = {
        name: value
        for name, value in episode.items()
        if isinstance(value, float) and not math.isnan(value)
    }
    assert known == {"T": 2.0, "rec": 0.7, "travelled": 8.0}


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["results/a/bag", "results/b/bag"], ["a/bag", "b/bag"]),
        (["results/a/bag/", "results/a"], ["a/bag", "a"]),
        (["/x/y/a", "/x/z"], ["y/a", "z"]),
        (["a", "b.mcap"], ["a", "b.mcap"]),
        (["results/a", "results/a"], ["a", "a"]),
    ],
)
def test_names_are_as_long_as_they_differ(paths, names):
    assert short_names(paths) == names
