"""Recording, fitting and judging the calibration of the coverage estimate."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.__main__ import main
from campaigns.calibrate_command import TABLE, as_rows, class_of
from campaigns.calibration import Rows, claims_held, fitted, folds, moved_by, quantile_regression
from campaigns.reliability import Estimates, by_shapes, calibrated, held_out, pictured, summarised
from campaigns.running import objects_of
from nbv_planner.errors import SettingError
from nbv_planner.star2d.shapes.certificate import FEATURES, logit


def pinball(design, wanted, quantile, coefficients) -> float:
    rest = wanted - design @ coefficients
    return float((WEIGHT * np.where(rest > 0.0, quantile * rest, (quantile - 1.0) * rest)).sum())


WEIGHT = np.repeat([0.5, 1.5], 30)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.05, 0.5, 0.9]))
def test_no_other_coefficients_have_a_smaller_loss(seed, quantile):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(60), rng.normal(3.0, 2.0, 60), rng.normal(size=60)])
    wanted = design @ [0.3, 0.8, -0.5] + rng.standard_t(3, 60)
    found = quantile_regression(design, wanted, quantile, WEIGHT)
    assert found[1] >= 0.0
    least = pinball(design, wanted, quantile, found)
    for _ in range(30):
        other = found + rng.normal(scale=0.1, size=3)
        if other[1] >= 0.0:
            assert pinball(design, wanted, quantile, other) >= least - 1e-7


def test_what_falls_with_the_shapes_coverage_is_taken_for_independent_of_it():
    x = np.linspace(0.0, 1.0, 50)
    found = quantile_regression(np.column_stack([np.ones(50), x]), -x, 0.5, np.ones(50))
    assert found[1] == pytest.approx(0.0, abs=1e-9)


@given(st.lists(st.floats(-5.0, 5.0), min_size=40, max_size=200), st.sampled_from([0.8, 0.95]))
def test_a_moved_end_leaves_no_more_outside_than_it_may(short, level):
    for weight in (np.ones(len(short)), np.linspace(0.5, 1.5, len(short))):
        moved = moved_by(np.array(short), weight, level)
        assert np.average(np.array(short) <= moved, weights=weight) >= level - 1e-9
        assert moved in short


def episodes(number: int, seed: int = 0, views: int = 12, wrong: float = 0.0) -> Rows:
    """Episodes of as many objects, whose shapes say `wrong` logits more than is true, with noise of
    0.3 logits.
    """
    rng = np.random.default_rng(seed)
    truth = np.tile(np.linspace(0.2, 0.995, views), number)
    object_ = np.repeat(np.arange(number), views)
    evidence = {name: rng.normal(size=len(truth)) for name in FEATURES}
    evidence["fine"] = np.repeat(rng.normal(size=number), views)
    evidence["coverage"] = logit(truth) + wrong + 0.3 * rng.normal(size=len(truth))
    evidence["sure"] = evidence["coverage"]
    said = 1.0 / (1.0 + np.exp(-evidence["coverage"]))
    raw = np.column_stack([said, *[said] * 9, np.where(said > 0.9575, 1.0, 0.0)])
    return Rows(object_, object_, ["one"] * len(truth), object_ % 3 == 0, truth, raw, evidence)


def test_real_outlines_weigh_as_much_as_all_others():
    rows = episodes(9)
    assert (
        rows.weight[rows.real].sum()
        == pytest.approx(rows.weight[~rows.real].sum())
        == pytest.approx(54.0)
    )
    assert (rows.chosen(rows.real).weight == 1.0).all()


def test_claims_hold_as_often_as_the_table_says():
    rows = episodes(60, wrong=1.0)
    score = rows.evidence["coverage"] - logit(0.95)
    pairs = claims_held(rows, score, 0.95)
    assert pairs[-1][1] >= 0.95
    for least, probability in pairs:
        first = [index[score[index] >= least][:1] for index in rows.episodes()]
        held = [rows.truth[one[0]] >= 0.95 for one in first if len(one)]
        assert np.mean(held) >= probability
    assert claims_held(rows, score - 99.0, 0.95) == []


def test_few_episodes_claim_nothing():
    rows = episodes(5)
    score = rows.evidence["coverage"] - logit(0.95)
    pairs = claims_held(rows, score, 0.95)
    assert all(probability < 0.95 for _, probability in pairs), "five of five are no proof of 95 %"


def test_the_interval_of_a_calibration_holds_on_other_objects():
    calibration, table = fitted(episodes(80, wrong=1.0), ("coverage", "fine"))
    others = episodes(80, seed=1, wrong=1.0)
    everything = summarised(others, calibrated(others, calibration))[0]
    assert 0.9 <= everything.inside / everything.lines <= 0.995
    assert everything.held >= 0.95 * everything.claimed > 0
    assert summarised(others, by_shapes(others))[0].inside == 0
    assert table["fitted"] == {"rows": 960, "episodes": 80, "objects": 80}


def test_no_object_is_judged_by_a_fit_to_itself():
    rows = episodes(30)
    parts = folds(rows)
    assert all(len(set(parts[rows.object == one])) == 1 for one in range(30))
    found = held_out(rows, ("coverage",))
    assert (found.lower <= found.mean).all()
    assert (found.mean <= found.upper).all()


def test_lines_count_up_to_the_claim():
    rows = episodes(2, views=4)
    claims = np.array([False, False, False, True, True, False, False, False])
    found = Estimates(rows.truth, rows.truth, rows.truth, claims)
    everything = summarised(rows, found)[0]
    assert (everything.lines, everything.inside, everything.episodes, everything.claimed) == (
        5,
        5,
        2,
        2,
    )
    assert (everything.held, everything.late) == (1, 0.0)
    assert "held 1 (50.0%" in everything.text


def test_the_diagram_is_drawn(tmp_path):
    rows = episodes(20)
    pictured(rows, by_shapes(rows), held_out(rows, ("coverage",)), tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").read_bytes().startswith(b"\x89PNG")


def test_objects_come_from_sets_folders_and_texts(tmp_path):
    (tmp_path / "INDEX.csv").write_text("name\n", encoding="utf-8")
    with pytest.raises(SettingError, match="holds no outline"):
        objects_of([str(tmp_path)])
    for name in ("rough_isle", "rough_cape"):
        (tmp_path / f"{name}.csv").write_text("x,y\n", encoding="utf-8")
    first, *found = objects_of([str(tmp_path), "prior:3", "thesis", "prior:3"])
    assert (first, len(found)) == (f"file:{tmp_path}/rough_cape.csv", 24)
    assert [class_of(text) for text in found[:3]] == ["rough", "prior", "thesis"]
    assert class_of("random:notches:2") == "random:notches"


def test_nothing_to_fit_is_refused():
    with pytest.raises(SettingError, match="holds no row"):
        as_rows([])


def test_recording_keeps_what_was_done(tmp_path, capsys):
    rows, before = tmp_path / "rows.csv", TABLE.read_bytes()
    assert (
        main(["calibrate", "--objects", "square:width=6", "--rows", str(rows), "--workers", "1"])
        == 0
    )
    first = rows.read_text(encoding="utf-8")
    assert (
        main(
            [
                "calibrate",
                "--objects",
                "square:width=6",
                "--rows",
                str(rows),
                "--workers",
                "1",
                "--judge",
            ]
        )
        == 0
    )
    assert rows.read_text(encoding="utf-8") == first
    with rows.open(encoding="utf-8", newline="") as lines:
        read = list(csv.DictReader(lines))
    truth = [float(row["truth"]) for row in read]
    assert truth == sorted(truth)
    assert sum(one >= 0.995 for one in truth) == 5
    assert "calibrated" in capsys.readouterr().out
    assert TABLE.read_bytes() == before


def test_rows_of_another_version_are_refused(tmp_path, capsys):
    rows = tmp_path / "rows.csv"
    rows.write_text("object,view\n", encoding="utf-8")
    assert main(["calibrate", "--rows", str(rows), "--judge"]) != 0
    assert "columns of another version" in capsys.readouterr().err
