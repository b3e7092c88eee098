"""Sweeps in which scene and sensor vary: what is run, what is refused, and what is said of it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import sweeps
from programs import main

from nbv_bench.experiments.cases import run_case
from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.results import read_sweep
from nbv_bench.experiments.summary.contents import sweep_optima
from nbv_bench.experiments.summary.runs import compared_runs
from nbv_bench.experiments.summary.sensitivity import sensitivity_tables
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_bench.experiments.sweep import case_identities
from nbv_planner.errors import ConfigFileError

SENSOR = sweeps.TINY.replace("protocols: [thesis, sensor]", "protocols: [sensor]")
VARIED = (
    SENSOR.replace("max_views: 2", "max_views: 12, stall_views: 0, certify: false")
    + """\
  robust: {robust: false}
vary:
  - pixel_size: [0.1, 0.4]
  - {view_distance: [9, 12], range_max: [9, 12]}
  - noise_std: [0.05, 0.2]
"""
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("varied")
    sweep = sweeps.load(folder, VARIED)
    sweeps.run(folder / "results", sweep)
    return sweep, folder / "results"


def test_every_variant_is_run_once_and_that_of_the_settings_is_shared(tmp_path):
    sweep = sweeps.load(tmp_path, VARIED)
    assert list(sweep.variants) == [
        "",
        "pixel_size=0.4",
        "view_distance=9, range_max=9",
        "view_distance=12, range_max=12",
        "noise_std=0.05",
    ]
    cases = sweep.cases()
    assert len(cases) == 5 * 2 * 2 == len({case.slug for case in cases})
    assert [case.as_dict() for case in cases] == case_identities(sweep.as_dict())
    by_variant = {case.variant: case.config for case in cases}
    assert by_variant["pixel_size=0.4"].scene == replace(sweep.base.scene, pixel_size=0.4)
    far = by_variant["view_distance=12, range_max=12"].scene
    assert (far.view_distance, far.range_max, far.pixel_size) == (12.0, 12.0, 0.1)
    quiet = by_variant["noise_std=0.05"]
    assert quiet.sensor.noise_std == quiet.measurement.noise_std == 0.05
    assert by_variant[""].scene == sweep.base.scene


def test_a_sweep_without_variations_has_the_files_that_it_always_had(tmp_path):
    sweep = sweeps.load(tmp_path)
    assert "vary" not in sweep.as_dict()
    assert sweep.cases()[0].slug == "greedy_oracle-square_width_4-thesis-seed3-89e3ecc0"


LINES = {
    "vary: {pixel_sise: [0.1, 0.2]}": [
        "line 15: vary: unknown parameter 'pixel_sise'; known: ",
        "pixel_size",
    ],
    "vary: {seed: [1, 2]}": ["line 15: vary: unknown parameter 'seed'"],
    "vary: {pixel_size: 0.1}": ["line 15: vary.pixel_size: must be a list"],
    "vary: {pixel_size: [0.1]}": [
        "line 15: vary: must be 'parameter: [value, ...]' with at least two values"
    ],
    "vary: {}": ["line 15: vary: must be 'parameter: [value, ...]'"],
    "vary: []": ["line 15: vary: must be a list with at least one item"],
    "vary: {pixel_size: [0.1, 0.2], range_max: [9]}": ["line 15: vary", "the same number for each"],
    "vary: {pixel_size: [0.1, 0.2], range_max: [9, 10, 11]}": [
        "line 15: vary",
        "the same number for each",
    ],
    "vary:\n  - pixel_size: [0.1, -0.2]": [
        "line 16: vary: pixel_size: -0.2 is out of range; must be >= 1e-12"
    ],
    "vary: {pixel_size: [0.1, tiny]}": ["line 15: vary: pixel_size: 'tiny' is text"],
    "vary: {num_beams: [31, 31.5]}": ["line 15: vary: num_beams: 31.5"],
    "vary: {pixel_size: [0.2, 0.2]}": ["line 15: vary.pixel_size: 0.2 is given twice"],
    "vary: {pixel_size: [0.1, 0.1]}": ["line 15: vary.pixel_size: 0.1 is given twice"],
    "vary:\n  - pixel_size: [0.1, 0.2]\n  - pixel_size: [0.2, 0.4]": [
        "line 17: vary.pixel_size: 0.2 is given twice"
    ],
    "vary: {view_distance: [9, 9], range_max: [9, 10]}": [
        "line 15: vary.view_distance: 9 is given twice"
    ],
    "vary:\n  view_distance:\n    - 9\n    - 7": [
        "line 18: vary.view_distance: view_distance: 7.0 puts the camera in"
    ],
    "vary: {radius_max: [8, 5]}": ["line 15: vary.radius_max", "ellipse:a=6,b=4"],
    "vary: {pixel_size: [0.1, 0.2]}\nmeasure: [theory]": [
        "line 15: vary: is for the measure episode only"
    ],
}


@pytest.mark.parametrize(("line", "words"), LINES.items(), ids=list(LINES))
def test_what_cannot_vary_is_refused_with_its_line(tmp_path, line, words):
    with pytest.raises(ConfigFileError) as caught:
        sweeps.load(tmp_path, sweeps.TINY + line + "\n")
    assert str(caught.value).count("tiny.yaml") == 1
    for word in words:
        assert word in str(caught.value)


def test_a_varied_sweep_is_resumed_where_it_was(tmp_path, results):
    sweep, folder = results
    with SweepFolder(tmp_path / "again", sweep) as begun:
        begun.keep(run_case(begun.unfinished()[0]))
    progress = sweeps.run(tmp_path / "again", sweep, resume=True)
    assert (progress.kept, progress.run) == (1, 19)
    assert sweeps.files(tmp_path / "again") == sweeps.files(folder)


def test_episodes_of_two_scenes_are_never_averaged(results):
    _, folder = results
    report = sweep_report(read_sweep(folder))
    assert len(report.protocols) == 5
    assert report.detailed == ["sensor"]
    for name in report.protocols:
        assert len(report.of_protocol(name)) == 4
    runs = compared_runs(str(folder), "x", analyse_bag=pytest.fail)
    assert len(runs) == 10
    assert all(len(run.episodes) == 2 for run in runs)


def test_table_holds_the_ratio_to_the_reference_in_the_same_scene(results):
    _, folder = results
    report = sweep_report(read_sweep(folder))
    table, _ = sensitivity_tables(report)
    records = [json.loads(path.read_text()) for path in (folder / "episodes").glob("*.json")]
    for row in table.records():
        name = str(row["parameter"]).partition(" ")[0]
        at_value = [
            r
            for r in records
            if any(r["config"][group].get(name) == row["value"] for group in ("scene", "sensor"))
            and _others_are_as_the_sweep_has_them(r, row)
        ]
        t95 = {(r["case"]["planner"], r["case"]["object"]): r["metrics"]["T95"] for r in at_value}
        assert len(t95) == 4
        ratios = [
            100.0 * t95["random", shape] / t95["greedy_oracle", shape]
            for shape in report.sweep["objects"]
            if t95["random", shape] and t95["greedy_oracle", shape]
        ]
        assert row["t95_random"].cases == len(ratios)
        assert row["t95_random"].mean == pytest.approx(np.mean(ratios), nan_ok=True)


def _others_are_as_the_sweep_has_them(record, row) -> bool:
    said = record["case"].get("variant", "")
    return not said or said.startswith(str(row["parameter"]).partition(" ")[0])


def test_report_writes_table_picture_and_words(results, tmp_path, capsys):
    _, folder = results
    assert main(["report", str(folder), "--out", str(tmp_path / "report"), "--no-optimum"]) == 0
    rows = list(csv.DictReader((tmp_path / "report/tables/sensitivity.csv").open()))
    assert [row["value"] for row in rows] == ["0.1", "0.4", "9.0", "12.0", "0.05", "0.2"]
    assert (tmp_path / "report/figures/sensitivity.png").stat().st_size > 10_000
    assert len(list((tmp_path / "report/figures").glob("planners*.png"))) == 1
    page = (tmp_path / "report/report.html").read_text()
    assert "rank correlation" in page
    assert "× 5 variants" in page


def test_optimum_is_that_of_each_scene(results, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    report = sweep_report(read_sweep(results[1]))
    optima = sweep_optima(report.episodes)
    assert len(optima) == 10
    points = {
        place[0]: best.surface_points
        for place, best in optima.items()
        if place[1] == "square:width=4"
    }
    assert points["sensor (pixel_size=0.4)"] < points["sensor"] / 3
    assert points["sensor (noise_std=0.05)"] == points["sensor"]
