"""Series of cuts: their folder, what goes on from cut to cut, and the stack."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
import signal
import time

import command
import numpy as np
import pytest

from nbv_planner.cli.main import main
from nbv_planner.episode.parameters import configure
from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI
from nbv_planner.known.known_outline import DIRECTIONS, KnownOutline
from nbv_planner.report.ahead.cut_series import CutRow, CutSeries, cuts_in, stacked, trended
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.bodies.mesh_files import read_mesh

ANGLE = TWO_PI / DIRECTIONS * np.arange(DIRECTIONS)
HEIGHTS = ("0.00", "0.25", "0.50", "0.75")


@pytest.fixture(name="pile")
def a_pile(tmp_path):
    """A folder of the cuts of a leaning oval that becomes smaller."""
    folder = tmp_path / "pile"
    folder.mkdir()
    for number, name in enumerate(HEIGHTS):
        corner = (1.0 - 0.08 * number) * (6.0 * np.cos(ANGLE) + 4.5j * np.sin(ANGLE)) + 0.1 * number
        rows = [f"{one.real:.6f},{one.imag:.6f}" for one in corner]
        (folder / f"{name}.csv").write_text("\n".join(["x,y", *rows]))
    return folder


def simulate(pile, out, *more):
    return main(["simulate", "--series", str(pile), "--out", str(out), *more])


def table(out):
    with (out / "series.csv").open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_cuts_of_a_folder_go_from_the_lowest_to_the_highest(tmp_path):
    for name in ("10", "-0.5", "9.25"):
        (tmp_path / f"{name}.csv").write_text("")
    (tmp_path / "README.md").write_text("")
    assert [cut.height for cut in cuts_in(tmp_path)] == [-0.5, 9.25, 10.0]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "holds no outline, must be a folder of 0.25.csv"),
        (("low.csv",), r"low\.csv does not have a height as its name, must be like 0.25.csv"),
        (("nan.csv",), "a height as its name"),
        (("0.5.csv", "0.50.csv"), "are at the same height"),
    ],
)
def test_a_folder_that_is_no_series_is_refused_in_one_line(tmp_path, names, said):
    for name in names:
        (tmp_path / name).write_text("")
    with pytest.raises(SettingError, match=said):
        cuts_in(tmp_path)


def test_the_trend_of_a_taper_goes_on_and_fine_detail_stays():
    fine = 1.0 + 0.02 * np.cos(40.0 * ANGLE)

    def of(size):
        return KnownOutline(size * fine, 0.1, (0.1, 0.1))

    again = trended(of(4.0), of(3.6), 1.0)
    assert again.radius == pytest.approx(3.6 * 0.9 * fine)
    assert trended(of(4.0), of(3.6), 0.0).radius == pytest.approx(3.6 * fine)
    noisy = KnownOutline(4.0 * fine, 0.1, (0.1, 0.1))
    still = KnownOutline(np.full(DIRECTIONS, 4.0), 0.1, (0.1, 0.1))
    assert np.ptp(trended(still, noisy, 1.0).radius - noisy.radius) < 1e-4


def test_a_stack_is_closed_and_encloses_what_is_between_the_cuts():
    mesh = Mesh(*stacked(np.full((4, 360), 2.0), np.array([0.0, 0.5, 1.0, 3.0])))
    assert list(mesh.faults()) == []
    assert mesh.volume == pytest.approx(12.0 * np.pi, rel=1e-3)


def after_three_cuts(pile, out) -> CutSeries:
    """A series whose first three cuts are done, with exact outlines."""
    CutSeries(configure(), pile, out, again=False)
    for name in HEIGHTS[:3]:
        row = CutRow(float(name), 3, 1.0, 0.0, 0.0, "none", 0.0, "COVERED")
        (out / name).mkdir()
        (out / name / "episode.json").write_text("{}")
        content = {"row": dataclasses.asdict(row), "pairs": {}}
        (out / name / "cut.json").write_text(json.dumps(content))
        shutil.copy(pile / f"{name}.csv", out / name / "outline.csv")
    return CutSeries(configure(), pile, out, again=False)


def test_the_next_cut_knows_the_last_one_and_has_noise_of_its_own(pile, tmp_path):
    series = after_three_cuts(pile, tmp_path / "out")
    config, said = series.next_config()
    assert said.startswith("known: the cut below, to")
    assert config.object == f"file:{pile / '0.75.csv'}"
    assert config.sensor.seed == configure().sensor.seed + 3
    (tmp_path / "out" / "0.50" / "episode.json").unlink()
    assert CutSeries(configure(), pile, tmp_path / "out", again=False).left[0].name == "0.50"


def test_the_trend_goes_on_in_proportion_to_the_heights(pile, tmp_path):
    (pile / "0.75.csv").rename(pile / "1.00.csv")
    series = after_three_cuts(pile, tmp_path / "out")
    twice = trended(series._outline(1), series._outline(2), 2.0)
    assert series._known()["trend"].radius == pytest.approx(twice.radius)
    assert np.median(twice.radius / series._outline(2).radius) == pytest.approx(0.83, abs=0.02)


def test_of_a_cut_whose_last_one_cannot_be_a_prior_nothing_is_known(pile, tmp_path):
    series = after_three_cuts(pile, tmp_path / "out")
    (tmp_path / "out" / "0.50" / "outline.csv").write_text("x,y\n30,0\n31,0\n30,1\n")
    config, said = series.next_config()
    assert said.startswith("nothing is known of it: prior_outline: ")
    assert not config.outline.prior_outline


def test_each_cut_is_the_prior_of_the_next_and_a_series_goes_on_where_it_stopped(
    pile, tmp_path, capsys
):
    out = tmp_path / "out"
    assert simulate(pile, out) == 0
    said = capsys.readouterr().out
    assert "cut at 0 m, nothing is known of it" in said
    assert "cut at 0.25 m, known: the cut below, to" in said
    assert "; 0 cuts left" in said
    rows = table(out)
    assert [row["prior"] for row in rows] == ["none", "same", "same", "trend"]
    assert all(float(row["completeness"]) > 0.95 for row in rows)
    assert sum(int(row["views"]) for row in rows[1:]) < 3 * int(rows[0]["views"])
    assert read_mesh(out / "stack.ply").open_edges == 0
    assert (out / "cuts.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "0.75" / "outline.csv").exists()
    # without the last cut's results it is the only one that is done again, with the same outcome
    (out / "0.75" / "cut.json").unlink()
    assert simulate(pile, out, "--no-figures") == 0
    assert capsys.readouterr().out.count("cut at") == 1
    assert table(out) == rows


def test_results_of_another_series_are_kept(pile, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("")
    assert simulate(pile, out) == 2
    assert "holds no series; choose another --out" in capsys.readouterr().err
    (out / "series.json").write_text("{}")
    assert simulate(pile, out) == 2
    assert "other cuts or settings; choose another --out, or --force" in capsys.readouterr().err
    assert simulate(pile, out, "--object", "polygon:star") == 2
    assert "takes no object" in capsys.readouterr().err
    (pile / "1.00.csv").write_text("x,y\n1,0\n0,1\n-1,-1\n")
    assert simulate(pile, tmp_path / "new") == 2
    assert "1.00.csv" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_cut_below_that_cannot_be_a_prior_is_said_and_the_series_goes_on(pile, tmp_path, capsys):
    out = tmp_path / "out"
    assert simulate(pile, out, "--no-figures") == 0
    (out / "0.75" / "cut.json").unlink()
    (out / "0.50" / "outline.csv").write_text("x,y\n30,0\n31,0\n30,1\n")
    capsys.readouterr()
    assert simulate(pile, out, "--no-figures") == 0
    said = capsys.readouterr().out
    assert "cut at 0.75 m, nothing is known of it: prior_outline: " in said
    assert "no stack of outlines: " in said
    assert "no pictures" not in said
    assert table(out)[-1]["prior"] == "none"


@pytest.mark.slow
def test_after_ctrl_c_nothing_is_lost(pile, tmp_path, capsys):
    out = tmp_path / "out"
    process = command.start(
        ["simulate", "--series", str(pile), "--out", str(out), "--no-figures"], tmp_path
    )
    while not (out / "0.00" / "cut.json").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said
    kept = table(out)
    assert 1 <= len(kept) < len(HEIGHTS)
    assert simulate(pile, out, "--no-figures") == 0
    whole = tmp_path / "whole"
    assert simulate(pile, whole, "--no-figures") == 0
    assert table(out) == table(whole)
    assert table(out)[: len(kept)] == kept
