"""`nbv-planner simulate`: what it leaves behind, what decides the views, and Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import os
import pty
import re
import signal
import time
from pathlib import Path

import command
import numpy as np
import pytest

from nbv_planner.cli.main import main
from nbv_planner.cli.options import add_episode_options, parameters_from
from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.surface.checks import KINDS

FILES = {
    "beliefs.npz",
    "episode.json",
    "outline.csv",
    "outline.dxf",
    "outline.geojson",
    "reconstruction.gif",
    "reconstruction.png",
    "views.csv",
}
TOP = {"checks", "config", "versions", "seed", "views", "termination", "metrics", "calibration"}
VIEW = [
    "number",
    "angle",
    "new_points",
    "coverage",
    "greedy_gain",
    "objective_value",
    "milliseconds",
    "rmse",
    "max_error",
    "hausdorff",
    "iou",
    "band_coverage",
    "travelled",
    "completeness",
    "accuracy",
    "seconds",
    "distance",
    "turn",
    "simple_regret",
    "chamfer",
    "weighted",
]
SLOW = """\
/**/surface_mapper: {ros__parameters: {grid_size: 1000}}
/**/nbv_planner: {ros__parameters: {num_views: 2000, stall_views: 0}}
"""
METRICS = {
    "T",
    "T95",
    "C95",
    "completeness",
    "accuracy",
    "rec",
    "mean_individual_regret",
    "surface_points",
    "time95",
}


def record(folder) -> dict:
    return json.loads((folder / "episode.json").read_text(encoding="utf-8"))


def angles(folder) -> list[float]:
    return [view["angle"] for view in record(folder)["views"]]


@pytest.fixture(scope="module")
def episodes(tmp_path_factory, fast_file):
    """One episode of each protocol, with what was printed."""
    folder = tmp_path_factory.mktemp("episodes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = [
            "--object",
            "ellipse:a=6,b=4",
            "--objective",
            "U",
            "--seed",
            "4",
            "--params-file",
            fast_file,
        ]
        for protocol in ("sensor", "thesis"):
            assert main(["simulate", "--protocol", protocol, *options, "--out", protocol]) == 0
    return folder


@pytest.mark.parametrize("protocol", ["sensor", "thesis"])
def test_record_has_the_promised_keys(episodes, protocol):
    found = record(episodes / protocol)
    assert set(found) == TOP
    assert found["seed"] == 4
    assert all(list(view) == VIEW for view in found["views"])
    assert set(found["metrics"]) == METRICS
    assert found["metrics"]["T"] == len(found["views"])
    assert found["metrics"]["rec"] == found["views"][-1]["coverage"]
    assert {"nbv_planner", "python", "numpy", "scipy"} <= set(found["versions"])
    assert set(found["config"]) == set(EpisodeConfig().as_dict())
    assert found["config"]["object"] == "ellipse:a=6,b=4"
    assert found["config"]["planner"]["objective"] == "U"
    assert found["config"]["mapper"]["grid_size"] == 120
    assert found["config"]["protocol"] == protocol
    # the thesis protocol has no scans to check
    kinds = [kind.name for kind in KINDS[:-3]] if protocol == "sensor" else []
    assert [check["name"] for check in found["checks"]] == kinds
    assert {tuple(check) for check in found["checks"]} <= {("name", "score", "limit", "level")}
    assert "NaN" not in (episodes / protocol / "episode.json").read_text()


def test_termination_comes_with_its_figures(episodes):
    ended = record(episodes / "sensor")["termination"]
    assert (ended["reason"], ended["views"]) == ("MAX_VIEWS", 3.0)
    assert re.fullmatch(
        r"3 views taken; estimated completeness [\d.]+% \(95%: \d+ to \d+\)", ended["detail"]
    )
    ended = record(episodes / "thesis")["termination"]
    assert ended["reason"] in {"COMPLETE", "NO_NEW_POINTS"}
    assert ended["coverage"] == pytest.approx(record(episodes / "thesis")["metrics"]["rec"])


@pytest.mark.parametrize("protocol", ["sensor", "thesis"])
def test_folder_holds_the_promised_files_and_nothing_lies_beside_it(episodes, protocol):
    folder = episodes / protocol
    assert {path.name for path in folder.iterdir()} == FILES
    assert {path.name for path in episodes.iterdir()} == {"sensor", "thesis"}
    with (folder / "views.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    known = [{key: float(value) for key, value in row.items()} for row in rows]
    assert all(math.isnan(row.pop("weighted")) for row in known)  # there are no regions
    found = record(folder)["views"]
    assert {row.pop("weighted") for row in found} == {None}
    assert known == found


@pytest.mark.parametrize("protocol", ["sensor", "thesis"])
def test_pictures_can_be_opened_and_the_animation_has_a_frame_per_view(episodes, protocol):
    image = pytest.importorskip(
        "PIL.Image", reason="Pillow comes with matplotlib, which is not installed"
    )
    with image.open(episodes / protocol / "reconstruction.png") as picture:
        assert min(picture.size) >= 400
    with image.open(episodes / protocol / "reconstruction.gif") as animation:
        assert animation.n_frames == record(episodes / protocol)["metrics"]["T"]


def test_beliefs_are_kept_view_by_view(episodes):
    with np.load(episodes / "sensor" / "beliefs.npz", allow_pickle=False) as beliefs:
        assert beliefs["angle"].shape == (120,)
        assert beliefs["mean"].shape == beliefs["upper"].shape == (3, 120)
        assert beliefs["utilities"].shape == (3, 24)
        assert set(beliefs["hit_view"]) == {1, 2, 3}
        chosen = beliefs["utilities"].max(axis=1)
    assert chosen[0] == pytest.approx(record(episodes / "sensor")["views"][0]["objective_value"])


def test_seconds_of_the_cost_model_are_printed_only_where_a_speed_was_given(
    here, fast_file, capsys
):
    options = ["simulate", "--no-figures", "--params-file", fast_file]
    way = r"(?m)^[\d.]+ m from view to view"
    assert main([*options, "--out", "untimed"]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"{way}; no time, since linear_speed is not given$", said)
    assert not re.search(r"\d s\b", said.partition("from view to view")[2])
    assert main([*options, "--set", "linear_speed=0.5", "--out", "timed"]) == 0
    seconds = re.search(
        rf"{way} and (\d+) s by the cost model \(0\.5 m/s, .*\), 95 % after (?:N/A|\d+) s$",
        capsys.readouterr().out,
    )
    assert seconds
    assert float(seconds[1]) == pytest.approx(
        record(here / "timed")["views"][-1]["seconds"], abs=0.5
    )


def test_same_seed_gives_the_same_views_and_another_one_another_surface(here, fast_file, capsys):
    for out, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        assert (
            main(
                [
                    "simulate",
                    "--no-figures",
                    "--seed",
                    seed,
                    "--params-file",
                    fast_file,
                    "--out",
                    out,
                ]
            )
            == 0
        )
    a, b = ([{**v, "milliseconds": 0} for v in record(here / out)["views"]] for out in "ab")
    assert a == b
    with (
        np.load("a/beliefs.npz") as first,
        np.load("b/beliefs.npz") as second,
        np.load("c/beliefs.npz") as other,
    ):
        assert all(
            np.array_equal(first[name], second[name], equal_nan=True) for name in first.files
        )
        assert not np.array_equal(first["mean"][0], other["mean"][0])


def test_progress_is_shown_per_view(here, fast_file, capsys):
    assert main(["simulate", "--no-figures", "--params-file", fast_file, "--out", "a"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    derived, _, rest = said.out.partition("object polygon:star")
    assert derived.startswith("not given, so derived: radius_min 2 m")
    assert max(map(len, derived.splitlines())) < 120
    assert "frontier.radius" not in derived  # of another planner
    lines = rest.splitlines()
    assert "IOA" in lines[0]
    for number, (line, view) in enumerate(
        zip(lines[2:5], record(here / "a")["views"], strict=True), start=1
    ):
        assert line.split()[0] == str(number)
        assert f"{math.degrees(view['angle']):.1f}°" in line
        assert f"{view['completeness']:.1%}" in line
    assert lines[0].endswith("target the outline within 0.3 m of the measured surface")
    assert "true completeness" in lines[1]
    assert any("MAX_VIEWS" in line for line in lines[5:])
    assert "a/" in lines[-1]


def test_progress_shows_the_coverage_by_posterior_shapes_with_its_interval(here, capsys):
    assert main(["simulate", "--no-figures", "--object", "square:width=4", "--out", "a"]) == 0
    shown = re.findall(
        r"^ +\d+ .*% +([\d.]+)% \(95%: (\d+) to (\d+)\)", capsys.readouterr().out, re.MULTILINE
    )
    assert len(shown) == len(record(here / "a")["views"])
    for mean, lower, upper in shown:
        assert -0.5 <= float(lower) - 0.5 <= float(mean) <= float(upper) + 0.5 <= 100.5


@pytest.mark.parametrize("candidate", [0, 99])
def test_first_candidate_fixes_the_first_view_of_the_thesis_protocol(here, candidate):
    options = [
        "--no-figures",
        "--protocol",
        "thesis",
        "--object",
        "square:width=4",
        "--objective",
        "UP",
    ]
    assert main(["simulate", *options, "--set", f"first_candidate={candidate}", "--out", "a"]) == 0
    assert angles(here / "a")[0] == pytest.approx(candidate * 2 * math.pi / 99)


def test_omniscient_objective_can_be_simulated(here, fast_file):
    assert (
        main(
            [
                "simulate",
                "--no-figures",
                "--objective",
                "OSM",
                "--params-file",
                fast_file,
                "--out",
                "a",
            ]
        )
        == 0
    )
    assert record(here / "a")["metrics"]["mean_individual_regret"] == 0.0


def test_contour_file_is_found_from_where_the_command_runs(here, fast_file):
    (here / "my.csv").write_text("x,y\n4,0\n0,4\n-4,0\n0,-4\n")
    for text in ("file:my.csv", "spline:my.csv"):
        assert (
            main(
                [
                    "simulate",
                    "--no-figures",
                    "--object",
                    text,
                    "--params-file",
                    fast_file,
                    "--out",
                    text[:4],
                ]
            )
            == 0
        )
        assert record(here / text[:4])["config"]["object"] == text


def test_without_out_a_fresh_folder_below_results_is_taken(here, fast_file):
    for _ in range(2):
        assert (
            main(
                [
                    "simulate",
                    "--no-figures",
                    "--object",
                    "ellipse:a=6,b=4",
                    "--params-file",
                    fast_file,
                ]
            )
            == 0
        )
    names = sorted(path.name for path in (here / "results").iterdir())
    assert len(names) == 2
    assert names[1] == names[0] + "-2"
    assert "IOA" in names[0]
    assert "seed0" in names[0]


def test_force_replaces_an_older_results_folder_as_a_whole(here, fast_file):
    arguments = ["simulate", "--params-file", fast_file, "--out", "a"]
    assert main(arguments) == 0
    (here / "a" / "old").touch()
    assert main([*arguments, "--seed", "9", "--force"]) == 0
    assert {path.name for path in (here / "a").iterdir()} == FILES
    assert record(here / "a")["seed"] == 9
    assert {path.name for path in here.iterdir()} == {"a"}


def test_force_is_harmless_where_nothing_is(here, fast_file):
    assert (
        main(
            [
                "simulate",
                "--no-figures",
                "--params-file",
                fast_file,
                "--out",
                "new/deeper",
                "--force",
            ]
        )
        == 0
    )
    assert (here / "new" / "deeper" / "episode.json").is_file()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--planner", "rollout", "--objective", "U"],
            "note: rollout takes EMC; objective U is ignored\n",
        ),
        (["--planner", "rollout", "--objective", "EMC"], ""),
        (["--planner", "greedy", "--objective", "U"], ""),
        (["--objective", "U"], ""),
    ],
)
def test_an_objective_that_the_planner_does_not_look_at_is_named(capsys, options, said):
    arguments = argparse.ArgumentParser()
    add_episode_options(arguments)
    parameters_from(arguments.parse_args(options))
    assert capsys.readouterr().err == said


def test_what_a_file_holds_for_other_packages_is_named_and_left_out(tmp_path, capsys):
    file = tmp_path / "p.yaml"
    file.write_text(
        "amcl: {ros__parameters: {x: 2024-02-31}}\narm: {nbv_planner: {ros__parameters: {max_views:"
        " 7}}}\n"
    )
    parser = argparse.ArgumentParser()
    add_episode_options(parser)
    assert (
        parameters_from(parser.parse_args(["--params-file", str(file)]))["nbv_planner"]["max_views"]
        == 7
    )
    assert (
        capsys.readouterr().err
        == f"note: {file}: sections not used, since no node of this package has them: 'amcl'\n"
    )


def test_shipped_file_gives_way_to_the_file_that_to_set_and_that_to_the_other_options(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(
        "/**: {ros__parameters: {seed: 1, noise_std: 0.1, objective: U, object: star}}\n"
    )
    parser = argparse.ArgumentParser()
    add_episode_options(parser)

    def found(*options: str) -> list[object]:
        values = parameters_from(parser.parse_args(options))
        camera, planner = values["depth_camera"], values["nbv_planner"]
        # of the shipped file
        assert planner["certify"] is values["surface_mapper"]["robust"] is True
        return [
            camera["seed"],
            camera.get("noise_std"),
            planner["planner"],
            planner.get("objective"),
            camera["object"],
        ]

    named = ["--params-file", str(file)]
    changes = ["--set", "seed=2", "--set", "depth_camera.noise_std=0.3", "--set", "planner=hybrid"]
    assert found() == [0, None, "rollout", None, "polygon:star"]
    assert found(*named) == [1, 0.1, "greedy", "U", "star"]
    assert found(*named, *changes) == [2, 0.3, "hybrid", "U", "star"]
    assert found(*changes, *named, "--seed", "3", "--planner", "two_phase") == [
        3,
        0.3,
        "two_phase",
        "U",
        "star",
    ]
    assert found("--set", "planner=random", "--object", "diamond") == [
        0,
        None,
        "random",
        None,
        "diamond",
    ]


def test_the_outline_of_an_unknown_scene_is_where_the_object_is(here, capsys):
    changes = ["scene=unknown", "object_x=1.5", "object_y=-0.8", "max_views=8"]
    arguments = ["simulate", "--no-figures", "--object", "ellipse:a=5,b=4", "--out", "a"]
    assert main([*arguments, *(word for change in changes for word in ("--set", change))]) == 0
    lines = (here / "a" / "outline.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines if line[0] in "-0123456789"]
    x, y = np.array([[float(row[0]), float(row[1])] for row in rows]).T
    assert [0.5 * (x.min() + x.max()), 0.5 * (y.min() + y.max())] == pytest.approx(
        [1.5, -0.8], abs=0.4
    )
    assert re.search(r"about x [\d.]+ m, y -[\d.]+ m", capsys.readouterr().out)
    with np.load(here / "a" / "beliefs.npz", allow_pickle=False) as beliefs:
        # The first scan has one candidate, where the robot stands.
        assert np.isnan(beliefs["utilities"][0]).all()
        assert np.isfinite(beliefs["utilities"][-1]).all()
        assert beliefs["utilities"].shape[1:] == beliefs["candidates"].shape


def test_a_file_of_one_line_takes_the_views_of_the_shipped_planner(here, capsys):
    (here / "p.yaml").write_text("nbv_planner: {ros__parameters: {max_views: 2}}\n")
    assert main(["simulate", "--no-figures", "--params-file", "p.yaml", "--out", "a"]) == 0
    assert main(["simulate", "--no-figures", "--set", "max_views=2", "--out", "b"]) == 0
    assert capsys.readouterr().out.count("planner rollout, objective EMC") == 2
    assert angles(here / "a") == angles(here / "b")
    assert record(here / "a")["config"] == record(here / "b")["config"]


def test_ctrl_c_whose_exception_is_lost_ends_the_episode_after_the_view(
    here, fast_file, monkeypatch
):
    def lost(*_) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    monkeypatch.setattr("nbv_planner.cli.simulate.print_view", lost)
    before = signal.getsignal(signal.SIGINT)
    assert main(["simulate", "--no-figures", "--params-file", fast_file, "--out", "a"]) == 130
    assert len(record(here / "a")["views"]) == 1
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("views_before", "kinds"),
    [
        (0, [signal.SIGINT]),
        (2, [signal.SIGTERM]),
        (2, [signal.SIGINT, signal.SIGINT]),
        (2, [signal.SIGHUP, signal.SIGTERM]),
    ],
)
def test_a_signal_saves_what_there_is(tmp_path, views_before, kinds):
    """Also before the first view, and if another one comes while it is saved."""
    (tmp_path / "slow.yaml").write_text(SLOW)
    process = command.start(["simulate", "--params-file", "slow.yaml", "--out", "a"], tmp_path)
    command.read_until(process, str(views_before) if views_before else "view")
    for kind in kinds:
        process.send_signal(kind)
        time.sleep(0.1)
    rest, _ = process.communicate(timeout=180)
    assert process.returncode == 128 + kinds[0], rest
    assert "STOPPED" in rest
    assert "Traceback" not in rest
    found = record(tmp_path / "a")
    assert found["termination"]["reason"] == "STOPPED"
    assert found["termination"]["views"] == len(found["views"]) >= views_before
    assert (tmp_path / "a" / "reconstruction.png").stat().st_size > 0
    assert {path.name for path in tmp_path.iterdir()} == {"a", "slow.yaml"}


def test_a_terminal_that_is_closed_takes_nothing_with_it(tmp_path):
    """It cannot be written to before its signal comes."""
    (tmp_path / "slow.yaml").write_text(SLOW)
    reading, writing = pty.openpty()
    arguments = ["simulate", "--no-figures", "--params-file", "slow.yaml", "--out", "a"]
    process = command.start(arguments, tmp_path, stdout=writing)
    os.close(writing)
    said = b""
    while b"\n   2 " not in said:
        said += os.read(reading, 4096)
    os.close(reading)
    command.compute(process, 0.5)  # and cannot write what it finds
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=180) == 129
    assert len(record(tmp_path / "a")["views"]) > 2
    assert {path.name for path in tmp_path.iterdir()} == {"a", "slow.yaml"}


def test_deviations_from_a_nominal_outline_are_written_and_said(here, fast_file, capsys):
    Path("part.csv").write_text("x,y\n3,3\n-3,3\n-3,-3\n3,-3\n", encoding="utf-8")
    options = ["simulate", "--params-file", fast_file, "--object", "square:width=6"]
    nominal = ["--nominal", "part.csv", "--tolerance", "2"]
    assert main([*options, *nominal, "--out", "a"]) == 0
    said = capsys.readouterr().out
    assert "deviation: " in said
    assert " at 2 m, as far as it was seen" in said
    assert Path("a/deviation.csv").read_text(encoding="utf-8").count("\n") > 700
    assert Path("a/deviation.png").stat().st_size > 1000
    assert main([*options, "--no-figures", "--out", "b"]) == 0
    assert "deviation" not in capsys.readouterr().out
    assert not Path("b/deviation.csv").exists()
    prior = ["--set", "prior_outline=part.csv", "--no-figures", "--out", "c"]
    assert main([*options, *prior]) == 0
    assert Path("c/deviation.csv").exists()


def test_a_nominal_outline_of_another_size_is_refused_before_the_first_view(here, capsys):
    Path("part.csv").write_text("x,y\n3000,3000\n-3000,3000\n0,-3000\n", encoding="utf-8")
    assert main(["simulate", "--nominal", "part.csv", "--out", "a"]) == 2
    assert "write unit=mm" in capsys.readouterr().err
    assert not Path("a").exists()
