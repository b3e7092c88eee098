"""The campaign of solids: who knows the object needs the fewest views, and the table says so."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

from campaigns.running import as_csv, columns_of
from campaigns.solids_command import (
    PLANNERS,
    ROWS_FILE,
    SCENARIOS,
    SETS,
    SolidCase,
    SolidRow,
    _blind,
    _farthest,
    meshes_in,
    run_case,
    summary,
    table_of,
)
from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.errors import SettingError
from nbv_planner.planning.view_space.viewpoints import on_sphere, with_aims
from nbv_planner.volume.bodies.families import function_named


def test_halves_are_apart_and_are_solids():
    assert not set(SETS["tuning"]) & set(SETS["test"])
    for text in (*SETS["tuning"], *SETS["test"]):
        function_named(text)
    for scenario in SCENARIOS:
        assert SolidCase("box", scenario, "rollout").config().planner.planner == "rollout"


@pytest.mark.slow
def test_knowing_the_object_takes_fewer_views_than_an_even_design_even_after_a_blind_view():
    planners = ("knows", "informed", "even")
    rows = {planner: run_case(SolidCase("mug", "close", planner)) for planner in planners}
    assert 3 <= rows["knows"].views <= rows["informed"].views < rows["even"].views <= 40


def test_a_blind_view_is_the_same_whatever_the_object():
    cases = [SolidCase(text, "arm", "informed") for text in ("mug", "chair")]
    assert len({_blind(SolidEpisode(case.config())) for case in cases}) == 1


def test_the_summary_has_ratios_and_what_did_not_end():
    rows = [
        SolidRow(text, "close", planner, views, 40, 0.9 if views > 40 else 0.96, 0.5, "")
        for text in ("box", "mug", "chair", "torus")
        for planner, views in (("knows", 5), ("even", 10), ("greedy", 6), ("random", 41))
    ]
    assert "over knows 1.20 [1.20, 1.20], over even 0.60" in summary(rows, "greedy")
    assert "4 not ended" in summary(rows, "random")


def test_finished_runs_are_kept(tmp_path, capsys):
    from campaigns.__main__ import main

    rows = [
        SolidRow(text, scenario, planner, 7, 9, 0.96, 0.5, "COVERED")
        for text in SETS["tuning"]
        for scenario in SCENARIOS
        for planner in PLANNERS
    ]
    text = as_csv(columns_of(SolidRow), map(dataclasses.asdict, rows))
    (tmp_path / ROWS_FILE).write_text(text)
    assert main(["solids", "--half", "tuning", "--out", str(tmp_path), "--workers", "1"]) == 0
    said = capsys.readouterr().out.strip().splitlines()
    # in each scenario the planners, thin walls, others, claims
    assert len(said) == len(SCENARIOS) * (len(PLANNERS) + 3)
    claims = [line for line in said if "claimed in" in line]
    assert claims == [
        f"{name}: claimed in 7 of 7 episodes, true in 7; 2.0 views after 95 %" for name in SCENARIOS
    ]
    assert sum(line.startswith("thin: ") for line in said) == len(SCENARIOS)
    assert all("7.00 views" in line for line in said if line not in claims)


def test_meshes_of_a_folder_are_every_other_file_and_thin_ones_are_told_apart(tmp_path):
    for name in ("ball.ply", "chair_model.ply", "hammer.stl", "note.txt"):
        (tmp_path / name).touch()
    halves = [meshes_in(str(tmp_path), half) for half in ("tuning", "test")]
    assert [[Path(one).name for one in half] for half in halves] == [
        ["ball.ply", "hammer.stl"],
        ["chair_model.ply"],
    ]
    rows = [
        SolidRow(text, "close", planner, views, views, 0.96, 0.5, "")
        for text, thin in ((halves[0][0], 0), (halves[0][1], 4), (halves[1][0], 4))
        for planner, views in (("rollout", 6 + thin), ("knows", 5), ("rear_side", 8))
    ]
    said = list(table_of(rows))
    assert "over rear_side 1.08" in said[0]
    assert said[3].startswith("thin: close, rollout: 2 objects, 10.00 views, over knows 2.00")
    (tmp_path / "ball.ply").unlink()
    (tmp_path / "hammer.stl").unlink()
    with pytest.raises(SettingError, match="holds 1 meshes, must be at least 2"):
        meshes_in(str(tmp_path), "test")


def test_an_even_design_that_aims_aside_takes_the_farthest_place_or_aim_next():
    poses = with_aims(on_sphere(6, 1.9), 0.3, 1.0)
    first = list(itertools.islice(_farthest(poses), 7))
    assert len({tuple(poses.position[number]) for number in first[:6]}) == 6
    assert first[0] == 0
