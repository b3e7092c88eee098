"""An episode in space by the command, its files, and bad input in one line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from programs import main

from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.episode.solid.space_deciders import early_claim
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.volume.bodies.families import solid_named
from nbv_planner.volume.bodies.mesh_files import read_mesh, stl_bytes

SMALL = {"radius_max": 0.25, "horizontal_field": 0.9, "num_views": 24, "shapes": 4}


def episode(**more):
    return SolidEpisode(SolidConfig.of({"nodes": {**SMALL, **more}}))


def test_an_episode_completes_a_box_and_says_so():
    taken = episode(object="solid:box", planner="greedy", num_views=30)
    views = list(taken.run())
    assert taken.termination.reason is TerminationReason.COVERED
    completeness = [view.completeness for view in views]
    assert completeness == sorted(completeness)
    assert completeness[-1] > 0.95
    assert 3 <= len(views) <= 12
    assert views[-1].estimate.mean == pytest.approx(completeness[-1], abs=0.05)
    assert views[-1].travelled > 0.4


def test_the_same_seed_gives_the_same_episode_and_another_seed_another():
    runs = [
        [
            (view.pose, view.completeness)
            for view in episode(seed=seed, max_views=views, num_views=12).run()
        ]
        for seed, views in ((1, 2), (1, 2), (2, 1))
    ]
    assert runs[0] == runs[1]
    assert runs[0][:1] != runs[2]


def test_an_object_of_another_size_is_looked_at_the_same():
    small, large = episode(max_views=3), episode(max_views=3, radius_max=50.0, range_max=500.0)
    for one, other in zip(small.run(), large.run(), strict=True):
        assert np.allclose(
            [200.0 * one.pose.x, 200.0 * one.pose.height], [other.pose.x, other.pose.height]
        )


@pytest.mark.parametrize(
    ("given", "least"),
    [({}, 0.0), ({"columns": 32}, 0.0132), ({"noise_std": 0.005}, 0.0268)],
    ids=["as shipped", "beams", "noise"],
)
def test_a_resolution_finer_than_beams_or_noise_is_said(given, least):
    config = SolidConfig.of({"nodes": {**SMALL, **given}})
    words = early_claim(0.0125, config.noise.ranges, config.scene, config.sensor)
    assert bool(words) == bool(least)
    assert f"less than {least} m" in words or not least


@pytest.mark.slow
def test_the_command_writes_record_views_points_and_a_closed_surface(tmp_path, capsys):
    file, out = tmp_path / "part.stl", tmp_path / "results"
    file.write_bytes(stl_bytes(solid_named("bracket", 100.0)))
    words = ["simulate", "--object", f"file:{file},unit=mm,origin=auto", "--out", str(out)]
    words += ["--set", "num_views=24", "--set", "shapes=4", "--set", "max_views=3"]
    assert main([*words, "--set", "radius_max=0.12", "--planner", "greedy"]) == 0
    said = capsys.readouterr().out
    assert "ended: MAX_VIEWS" in said
    assert "open edges: 0" in said
    assert {path.name for path in out.iterdir()} == {
        *("episode.json", "views.csv", "points.ply", "surface.stl", "surface.ply"),
        *("reconstruction.png", "reconstruction.gif"),
    }
    record = json.loads((out / "episode.json").read_text())
    rows = list(csv.DictReader((out / "views.csv").open()))
    assert record["views"] == len(rows) == 3
    assert record["config"]["scene"]["radius_max"] == 0.12
    assert float(rows[-1]["completeness"]) == record["completeness"] > 0.4
    quaternion = np.array([[float(row[f"q{axis}"]) for axis in "xyzw"] for row in rows])
    assert np.linalg.norm(quaternion, axis=1).tolist() == pytest.approx([1.0] * 3)
    for name in ("surface.stl", "surface.ply"):
        mesh = read_mesh(out / name)
        assert mesh.open_edges == 0
        assert 0.05 < mesh.radius < 0.13


def test_an_object_of_a_file_is_in_space_too(tmp_path, capsys):
    file = tmp_path / "solid.yaml"
    file.write_text("/**:\n  ros__parameters: {object: solid:box, num_views: 12, max_views: 1}\n")
    words = ["simulate", "--params-file", str(file), "--out", str(tmp_path / "out")]
    assert main([*words, "--no-figures", "--set", "certify=false"]) == 0
    assert "object solid:box, planner rollout, seed 0, 12 candidate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--object", "solid:mugg"], "mug"),
        (["--object", "file:nowhere.stl"], "nowhere.stl"),
        (["--object", "solid:mug", "--planner", "hybrid"], "rollout"),
        (["--object", "solid:mug", "--objective", "U"], "EMC"),
        (["--object", "solid:mug", "--protocol", "thesis"], "protocol"),
        (["--object", "solid:mug", "--set", "view_space=list"], "view_file"),
        (["--object", "solid:mug", "--set", "view_distance=0.1"], "view_distance"),
        (["--object", "solid:mug", "--set", "range_max=0.1"], "range_max"),
        (["--object", "solid:mug", "--set", "noise_std_per_metre=0.0"], "noise_std"),
        (["--object", "solid:mug", "--set", "columnz=3"], "columns"),
    ],
)
def test_bad_input_ends_in_one_line(tmp_path, capsys, words, said):
    out = tmp_path / "results"
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["simulate", *words, "--out", str(out)]))
    assert ended.value.code == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert said in error
    assert not out.exists()
