"""`nbv-planner analyze`, `replay`, `report` of several runs and `reindex`, from the command line to
files.
"""

from __future__ import annotations

import dataclasses
import json
import zlib

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from programs import main
from recorded import CONFIG, finished, later, messages, write
from simulated_bags import node_parameters

from nbv_bench.experiments.summary.runs import short_names
from nbv_planner.bags.reader import Bag
from nbv_planner.episode.parameter_files import dump_parameters
from nbv_planner.episode.parameters import NODE_SETTINGS, PlannerSettings
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.surface.checks import KINDS
from nbv_planner.world.objects.true_outlines import parse_outlines

SIMULATION, _ = finished()


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    return str(write(tmp_path_factory.mktemp("bags") / "run", messages()))


def test_analyze_writes_tables_record_page_and_no_pictures_if_not_wanted(here, bag, capsys):
    assert main(["analyze", bag, "--out", "out", "--no-figures"]) == 0
    written = {
        str(path.relative_to(here / "out")) for path in (here / "out").rglob("*") if path.is_file()
    }
    assert {"analysis.html", "analysis.json", "episode.json", "views.csv", "beliefs.npz"} <= written
    assert {"outline.csv", "outline.geojson", "outline.dxf"} <= written
    assert {
        "tables/views.csv",
        "tables/views.md",
        "tables/summary.csv",
        "tables/time_by_phase.csv",
    } <= written
    assert not any(name.endswith((".png", ".gif")) for name in written)
    metrics = json.loads((here / "out" / "episode.json").read_text())["metrics"]
    assert metrics == SIMULATION.judge.metrics()
    content = json.loads((here / "out" / "analysis.json").read_text())
    assert content["coverage"] == "true"
    assert [row["check"] for row in content["tables"]["checks"]] == [
        kind.name
        for kind in KINDS
        if kind.name not in ("any_outline", "thin_walls", "prior_outline")
    ]
    assert "Checks of the model" in (here / "out" / "analysis.html").read_text(encoding="utf-8")
    assert [row["coverage"] for row in content["tables"]["views"]] == [
        v.coverage for v in SIMULATION.judge.views
    ]
    said = capsys.readouterr()
    assert "ended: MAX_VIEWS" in said.out
    assert "MB of run" in said.err  # progress


def test_analyze_draws_pictures_and_puts_everything_into_one_page(here, bag):
    pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
    assert main(["analyze", bag, "--out", "out"]) == 0
    figures = {path.name for path in (here / "out" / "figures").iterdir()}
    names = ("reconstruction", "coverage", "accuracy", "calibration")
    assert figures == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    page = (here / "out" / "analysis.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 5
    assert "data:image/gif;base64" in page
    assert "<script" not in page
    assert 'src="http' not in page


def test_analyze_compares_with_the_outline_that_the_object_should_have(here, bag, capsys):
    angle = 2.0 * np.pi / 400 * np.arange(400)
    radius = SIMULATION.judge.truth.shape.radius(angle)
    corners = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    np.savetxt("part.csv", corners, delimiter=",", header="x,y", comments="")
    options = ["--nominal", "part.csv", "--tolerance", "5", "--place", "placed"]
    assert main(["analyze", bag, "--out", "out", *options]) == 0
    assert "PASS at 5 m, as far as it was seen" in capsys.readouterr().out
    assert (here / "out" / "deviation.csv").exists()
    assert (here / "out" / "figures" / "deviation.png").exists()
    page = (here / "out" / "analysis.html").read_text(encoding="utf-8")
    assert "PASS at 5 m, as far as it was seen" in page
    assert main(["analyze", bag, "--out", "other", "--nominal", "none.csv"]) == 2
    assert "nominal: " in capsys.readouterr().err


def test_analyze_takes_cells_home_and_draws_them(here, capsys):
    config = dataclasses.replace(
        CONFIG,
        planner=PlannerSettings(),
        search=SearchSettings(surface_model="volume"),
        termination=TerminationSettings(max_views=2),
    )
    write(here / "cells", messages(config))
    assert main(["analyze", "cells", "--out", "out"]) == 0
    said = capsys.readouterr().out
    assert "points, " in said
    assert "standard deviation" in said
    files = {path.name for path in (here / "out").rglob("*")}
    assert {"outline.csv", "outline.dxf", "outline.geojson", "reconstruction.gif"} <= files
    (largest, *_) = parse_outlines("file:out/outline.csv", config.scene).loops
    simulation, _ = finished(config)
    expected = simulation.judge.steps[-1].belief.likeliest.bodies[0]
    np.testing.assert_allclose(largest, expected.points, rtol=1e-6)


def test_analyze_replaces_only_an_analysis_and_only_if_told(here, bag, capsys):
    assert main(["analyze", bag, "--out", "out", "--no-figures"]) == 0
    assert main(["analyze", bag, "--out", "out", "--no-figures"]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["analyze", bag, "--out", "out", "--no-figures", "--force"]) == 0
    (here / "mine").mkdir()
    (here / "mine" / "precious.txt").write_text("x")
    assert main(["analyze", bag, "--out", "mine", "--no-figures", "--force"]) == 2
    assert (here / "mine" / "precious.txt").exists()


def test_analyze_takes_parameters_from_a_file_where_the_bag_has_none(here, tmp_path, capsys):
    path = write(tmp_path / "bag", [m for m in messages() if m.topic.name != "/run_info"])
    (here / "p.yaml").write_text(
        "surface_mapper: {ros__parameters: {grid_size: 90}}\nnbv_planner: {ros__parameters:"
        " {num_views: 24}}\n"
    )
    assert (
        main(["analyze", str(path), "--out", "out", "--no-figures", "--params-file", "p.yaml"]) == 0
    )
    # the object is on ground_truth/surface
    assert "4 views, true coverage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyze", "nowhere"], ["nowhere does not exist"]),
        (["analyze", "."], ["holds no bag"]),
        (["analyze", "BAG", "--map", "/x:=scan"], ["--map /x:=scan", "the bag has no topic /x"]),
        (["analyze", "BAG", "--map", "scan"], ["old:=new"]),
        (["analyze", "BAG", "--params-file", "no.yaml"], ["cannot read no.yaml"]),
        (["bag", "replay", "BAG", "--objective", "XYZ"], ["unknown objective 'XYZ'"]),
        (["bag", "replay", "BAG", "--planner", "best"], ["unknown planner 'best'"]),
        (["bag", "replay", "BAG", "--objective", "OSM"], ["OSM needs the true object"]),
        (["bag", "replay", "nowhere"], ["nowhere does not exist"]),
        (["bag", "replay", "BAG", "--params-file", "no.yaml"], ["cannot read no.yaml"]),
        (
            ["bag", "replay", "BAG", "--set", "travel_wait=5"],
            ["'travel_wait'", "did you mean travel_weight?"],
        ),
        (["report", "BAG"], ["is not the results folder of a sweep", "name another run too"]),
        (["report", "BAG", "BAG"], ["is named twice"]),
        (["report", "BAG", "nowhere"], ["nowhere does not exist"]),
        (["bag", "reindex", "nowhere", "--out", "new"], ["nowhere does not exist"]),
        (["bag", "reindex", "BAG", "--out", "."], ["exists already"]),
    ],
    ids=" ".join,
)
def test_bad_input_is_said_in_one_line(here, bag, capsys, arguments, words):
    assert main([bag if word == "BAG" else word for word in arguments]) == 2
    said = [
        line
        for line in capsys.readouterr().err.splitlines()
        if "MB of" not in line and "of 1 MB" not in line
    ]
    assert len(said) == 1
    assert [word for word in words if word not in said[0]] == []
    assert not list(here.rglob("analysis.json"))


@pytest.mark.parametrize(
    "arguments",
    [["bag", "replay", "up"], ["analyze", "up", "--out", "out"], ["report", "up", "up/in"]],
)
def test_a_folder_one_level_too_high_is_told_which_bags_lie_below(here, capsys, arguments):
    for folder in ("up/in/bag", "up/second"):
        write(here / folder, messages()[:1])
    assert main(arguments) == 2
    assert (
        "up holds no bag: no .mcap or .db3 file in it; did you mean up/in/bag, up/second?"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "arguments", [["analyze", "bag"], ["bag", "replay", "bag"], ["report", "bag", "other"]]
)
def test_a_bag_without_a_view_is_an_error(here, bag, capsys, arguments):
    write(
        here / "bag",
        [m for m in messages() if m.topic.name not in ("/goal_pose", "/nbv_planner/iteration")],
    )
    assert main([*arguments, "--out", "out"]) == 2
    assert "bag holds no decision of a planner and no goal" in capsys.readouterr().err
    assert not (here / "out").exists()


def test_reindex_of_a_bag_of_which_nothing_can_be_copied_leaves_no_new_one(here, capsys):
    write(here / "bag", [messages()[0]._replace(data=b"\x28\xb5\x2f\xfd")])
    assert main(["bag", "reindex", "bag", "--out", "new"]) == 2
    assert "a message cannot be decompressed" in capsys.readouterr().err
    assert not (here / "new").exists()


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize(
    "command", [["analyze", "--no-figures"], ["bag", "reindex"], ["bag", "replay"]]
)
def test_messages_packed_in_a_way_that_is_not_known_are_an_error(here, capsys, storage, command):
    folder = write(
        here / "bag", [m._replace(data=zlib.compress(m.data)) for m in messages()], storage
    )
    (folder / "metadata.yaml").unlink()
    assert main([*command, "bag", "--out", "new"]) == 2
    (said,) = [
        line for line in capsys.readouterr().err.splitlines() if "bag holds no message" in line
    ]
    assert "not serialised" in said
    assert not (here / "new").exists()


def test_analyze_and_reindex_read_messages_packed_by_lz4_without_metadata(here, capsys):
    lz4 = pytest.importorskip("lz4.frame")
    folder = write(here / "bag", [m._replace(data=lz4.compress(m.data)) for m in messages()])
    (folder / "metadata.yaml").unlink()
    assert main(["bag", "reindex", "bag", "--out", "new"]) == 0
    for path in ("bag", "new"):
        assert main(["analyze", path, "--no-figures", "--out", f"{path}-out"]) == 0
        assert "4 views, true coverage" in capsys.readouterr().out


def test_replay_says_that_the_decisions_are_the_same_and_by_its_exit_code(here, bag, capsys):
    assert main(["bag", "replay", bag, "--out", "out"]) == 0
    said = capsys.readouterr().out
    assert "all 4 decisions are the same" in said
    rows = json.loads((here / "out" / "replay.json").read_text())["tables"]["replay"]
    assert [row["same"] for row in rows] == ["yes"] * 4


def test_replay_of_a_bag_that_was_tampered_with_fails(here, tmp_path, capsys):
    recorded = messages()
    goals = [m.time for m in recorded if m.topic.name == "/goal_pose"]
    lost = [m for m in recorded if not (m.topic.name == "/scan" and goals[0] <= m.time < goals[2])]
    assert main(["bag", "replay", str(write(tmp_path / "bag", lost))]) == 1
    said = capsys.readouterr().out
    assert "decisions differ: views" in said
    assert "the bag is not complete: 2 of 4 views are without their scan or camera pose" in said


def test_replay_with_another_objective_shows_where_it_would_have_gone(here, bag, capsys):
    assert main(["bag", "replay", bag, "--objective", "IOA"]) == 0
    said = capsys.readouterr().out
    assert "decisions would have been different" in said
    assert "recorded: 4 views" in said
    assert "simulated with the changes: 4 views" in said


def test_replay_with_other_parameters(here, bag, capsys):
    (here / "p.yaml").write_text("nbv_planner: {ros__parameters: {travel_weight: 5.0}}\n")
    for option in ("--params-file", "--params"):  # the second is the old name
        assert main(["bag", "replay", bag, option, "p.yaml"]) == 0
        assert "decisions would have been different" in capsys.readouterr().out


def test_replay_with_a_parameter_set(here, bag, capsys):
    """Over the file, which is over what was recorded."""
    (here / "p.yaml").write_text("nbv_planner: {ros__parameters: {travel_weight: 0.0}}\n")
    assert main(["bag", "replay", bag, "--params-file", "p.yaml", "--set", "travel_weight=5"]) == 0
    said = capsys.readouterr().out
    (here / "q.yaml").write_text("nbv_planner: {ros__parameters: {travel_weight: 5.0}}\n")
    assert main(["bag", "replay", bag, "--params-file", "q.yaml"]) == 0
    assert "decisions would have been different" in said == capsys.readouterr().out


def test_replay_takes_the_parameters_of_a_bag_that_has_none_from_a_file(here, tmp_path, capsys):
    path = write(tmp_path / "bag", [m for m in messages() if m.topic.name != "/run_info"])
    assert main(["bag", "replay", str(path)]) == 2
    assert "--params-file" in capsys.readouterr().err
    (here / "p.yaml").write_text(
        dump_parameters({name: node_parameters(CONFIG, name) for name in NODE_SETTINGS})
    )
    assert main(["bag", "replay", str(path), "--params-file", "p.yaml"]) == 0
    assert "all 4 decisions are the same" in capsys.readouterr().out


def test_an_episode_of_several_is_chosen_and_said(here, tmp_path, capsys):
    path = str(write(tmp_path / "twice", [*messages(), *later(messages()[:-1], 100)]))
    assert main(["analyze", path, "--out", "last", "--no-figures"]) == 0
    said = capsys.readouterr().out
    assert "this is episode 2 of 2; --episode chooses another one" in said
    assert "ended: STOPPED, interrupted after" in said
    assert main(["analyze", path, "--out", "first", "--no-figures", "--episode", "1"]) == 0
    assert "ended: MAX_VIEWS" in capsys.readouterr().out
    assert "1 of 2" in (here / "first" / "tables" / "summary.md").read_text()
    assert main(["bag", "replay", path, "--episode", "1"]) == 0
    assert "all 4 decisions are the same" in capsys.readouterr().out
    assert main(["analyze", path, "--out", "none", "--episode", "3"]) == 2
    assert "--episode 3: must be from 1 to 2" in capsys.readouterr().err


def test_report_puts_bags_episodes_and_sweeps_beside_each_other(here, bag, capsys):
    pytest.importorskip("joblib", minversion="1.3", reason="sweeps need the extra [bench]")
    options = ["--no-figures", "--object", CONFIG.object, "--seed", "5", "--objective", "C"]
    assert main(["simulate", *options, "--out", "sim"]) == 0
    (here / "sweep.yaml").write_text(
        f"name: mine\nobjects: ['{CONFIG.object}']\nplanners: {{U: {{objective: U}}, CSW:"
        " {objective: CSW}}\nprotocols: [sensor]\nseeds: [5]\n"
    )
    assert main(["experiment", "sweep.yaml", "--out", "sweep", "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["report", bag, "sim", "sweep", "--out", "out"]) == 0
    said = capsys.readouterr().out
    assert all(
        label in said for label in ("run", "sim", "U (sensor, sweep)", "CSW (sensor, sweep)")
    )
    content = json.loads((here / "out" / "comparison.json").read_text())["tables"]
    assert content["runs"][0]["T"] == 4.0
    by_pair = {row["pair"]: row for row in content["paired"]}
    name, sim_name = short_names([bag, "sim", "sweep"])[:2]
    sim = json.loads((here / "sim" / "episode.json").read_text())["metrics"]
    assert by_pair[f"{name} − {sim_name}"]["rec"] == pytest.approx(
        SIMULATION.judge.metrics()["rec"] - sim["rec"]
    )
    assert by_pair[f"{name} − {sim_name}"]["pairs"] == 1
    assert (here / "out" / "figures" / "coverage.png").exists()
    assert "<img " in (here / "out" / "comparison.html").read_text(encoding="utf-8")
    assert main(["report", bag, "sim", "--out", "out", "--force", "--no-figures"]) == 0
    assert not list((here / "out").rglob("*.png"))


def test_reindex_makes_a_whole_bag_of_a_cut_one(here, bag, capsys):
    from pathlib import Path

    content = (Path(bag) / "run.mcap").read_bytes()
    (here / "cut.mcap").write_bytes(content[: len(content) // 2])
    assert main(["bag", "reindex", "cut.mcap", "--out", "whole", "--storage", "sqlite3"]) == 0
    assert "ends" in capsys.readouterr().out
    whole = Bag("whole")
    assert whole.inventory().counts.total() > 20
    assert whole.remarks.lines() == []
