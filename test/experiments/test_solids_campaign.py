"""The campaign of solids: who knows the object needs the fewest views, and the table says so."""

from __future__ import annotations

import dataclasses

import pytest

from campaigns.running import as_csv, columns_of
from campaigns.solids_command import (
    PLANNERS,
    ROWS_FILE,
    SCENARIOS,
    SETS,
    SolidCase,
    SolidRow,
    run_case,
    summary,
)
from nbv_planner.volume.bodies.families import function_named


def test_halves_are_apart_and_are_solids():
    assert not set(SETS["tuning"]) & set(SETS["test"])
    for text in (*SETS["tuning"], *SETS["test"]):
        function_named(text)
    for scenario in SCENARIOS:
        assert SolidCase("box", scenario, "rollout").config().planner.planner == "rollout"


@pytest.mark.slow
def test_knowing_the_object_takes_fewer_views_than_an_even_design():
    rows = {planner: run_case(SolidCase("mug", "close", planner)) for planner in ("knows", "even")}
    assert 3 <= rows["knows"].views < rows["even"].views <= 40
    assert min(row.complete for row in rows.values()) >= 0.95


def test_the_summary_has_ratios_and_what_did_not_end():
    rows = [
        SolidRow(text, "close", planner, views, 0.9 if views > 40 else 0.96, 0.5, "")
        for text in ("box", "mug", "chair", "torus")
        for planner, views in (("knows", 5), ("even", 10), ("greedy", 6), ("random", 41))
    ]
    assert "over knows 1.20 [1.20, 1.20], over even 0.60" in summary(rows, "greedy")
    assert "4 not ended" in summary(rows, "random")


def test_finished_runs_are_kept(tmp_path, capsys):
    from campaigns.__main__ import main

    rows = [
        SolidRow(text, scenario, planner, 7, 0.96, 0.5, "COVERED")
        for text in SETS["tuning"]
        for scenario in SCENARIOS
        for planner in PLANNERS
    ]
    text = as_csv(columns_of(SolidRow), map(dataclasses.asdict, rows))
    (tmp_path / ROWS_FILE).write_text(text)
    assert main(["solids", "--half", "tuning", "--out", str(tmp_path), "--workers", "1"]) == 0
    said = capsys.readouterr().out.strip().splitlines()
    assert len(said) == len(SCENARIOS) * len(PLANNERS) + 1
    assert all("7.00 views" in line for line in said[:-1])
    assert said[-1].startswith("claimed in ")
