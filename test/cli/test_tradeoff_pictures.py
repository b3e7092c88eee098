"""What the pictures of quality against time show, read off the figures before they are written."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra [analysis]")
pytest.importorskip("joblib", minversion="1.3", reason="joblib 1.3 comes with the extra 'bench'")

from nbv_bench.experiments.folder import SweepFolder
from nbv_bench.experiments.results import read_sweep
from nbv_bench.experiments.runner import run_sweep
from nbv_bench.experiments.summary import pictures as tradeoff
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_bench.experiments.sweep_file import load_sweep
from nbv_bench.figures import sweep_figures

SWEEP = """\
objects: [square:width=4, square:width=6]
planners:
  best: {objective: OSM}
  U: {objective: U, first_candidate: 5}
  UP: {objective: UP}
  U late: {objective: U, first_candidate: 40}
  U early: {objective: U, first_candidate: 0}
  OCU: {objective: OCU}   # stalls below 95 %
"""


def report_of(tmp_path, text: str):
    (tmp_path / "sweep.yaml").write_text(text, encoding="utf-8")
    sweep = load_sweep(str(tmp_path / "sweep.yaml"))
    with SweepFolder(tmp_path / "results", sweep, resume=False) as folder:
        run_sweep(folder, workers=1, backend="sequential")
    return sweep_report(read_sweep(tmp_path / "results"))


@pytest.fixture
def drawn(monkeypatch):
    """Contents of the figures that are drawn."""
    found, real = [], sweep_figures.draw_marks
    monkeypatch.setattr(
        sweep_figures,
        "draw_marks",
        lambda given, *more, **named: (found.append(given), real(given, *more, **named))[1],
    )
    return found


def test_planners_that_differ_in_one_number_are_a_line_and_the_others_points(tmp_path, drawn):
    picture = tradeoff.tradeoff_picture(report_of(tmp_path, SWEEP), "thesis")
    assert picture.name == "tradeoff"
    (content,) = drawn
    assert list(content) == ["", "U"]
    assert list(content[""]) == ["U", "UP"]
    line = content["U"]["first_candidate"]
    assert [mark.text for mark in line] == ["0", "5", "40"]
    (centre,) = content[""]["U"]
    assert (line[1].x, line[1].y) == (centre.x, centre.y)


def test_a_line_with_a_planner_that_never_reaches_95_percent_is_not_drawn(tmp_path, drawn):
    text = SWEEP.replace("objective: U,", "objective: OCU,")
    assert tradeoff.tradeoff_picture(report_of(tmp_path, text), "thesis")
    assert [{title: list(lines) for title, lines in one.items()} for one in drawn] == [{"": ["UP"]}]


def test_without_a_reference_there_is_nothing_to_draw(tmp_path, drawn):
    text = SWEEP.replace("  best: {objective: OSM}\n", "")
    assert tradeoff.tradeoff_picture(report_of(tmp_path, text), "thesis") is None
    assert drawn == []
