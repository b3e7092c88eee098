"""The report of deviations from a nominal outline: table, words, picture."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from nbv_planner.known.deviation_report import wanted
from nbv_planner.known.known_outline import DIRECTIONS, KnownOutline
from nbv_planner.surface.seam import Hits
from nbv_planner.world.scene import Scene

ROUND = KnownOutline(np.full(DIRECTIONS, 4.0), 0.1, (0.4, 0.1), (0.5, 0.0))
NOISE = 0.05


def hits_of(angle, radius):
    way = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    noise = NOISE * np.random.default_rng(1).standard_normal(len(angle))
    points = (radius + noise)[:, None] * way + ROUND.origin
    sigma = np.full(len(angle), NOISE)
    return Hits(points, sigma, 10.0 * way, np.zeros(len(angle), dtype=np.intp))


def report(radius, part=1.0, tolerance=0.4):
    angle = 2.0 * np.pi * part / 600 * np.arange(600)
    asked = wanted(None, ROUND, Scene(), "fitted", tolerance)
    return asked.compared(hits_of(angle, np.broadcast_to(radius, 600)))


def rows_of(text):
    head, body = text.split("\n", 1)
    assert head.startswith("# deviation in metres")
    return list(csv.DictReader(io.StringIO(body)))


def test_the_table_has_a_row_for_each_place_and_no_number_where_nothing_was_seen():
    made = report(4.0, part=0.5)
    rows = rows_of(made.csv)
    assert len(rows) == len(made.deviation.points)
    seen = [row["seen"] == "1" for row in rows]
    assert seen == made.deviation.seen.tolist()
    for row, there in zip(rows, seen, strict=True):
        numbers = [row[name] for name in ("lower", "deviation", "upper")]
        if there:
            assert float(numbers[0]) <= float(numbers[1]) <= float(numbers[2])
        else:
            assert numbers == ["", "", ""]
    assert 0.4 < np.mean(seen) < 0.6


def test_the_words_say_what_differs_and_the_verdict():
    dent = np.where(np.abs(np.arange(600) - 300) < 20, 3.0, 4.0)
    made = report(dent)
    assert "1 stretch differs significantly" in made.summary
    assert "less" in made.summary
    deviation = made.deviation
    place = np.nanargmax(np.where(deviation.seen, np.abs(deviation.mean), 0.0))
    assert (
        f"greatest {deviation.mean[place]:+.3g} m ({deviation.lower[place]:+.3g} to" in made.summary
    )
    assert deviation.mean[place] == pytest.approx(-1.0, abs=0.1)
    assert made.summary.endswith("FAIL at 0.4 m, as far as it was seen")
    assert "no stretch differs significantly" in report(4.0).summary
    assert report(4.0).summary.endswith("PASS at 0.4 m, as far as it was seen")
    assert "PASS" not in report(4.0, tolerance=None).summary


def test_a_file_wins_over_what_was_known_and_without_either_there_is_nothing(tmp_path):
    file = tmp_path / "square.csv"
    file.write_text("x,y\n3,3\n-3,3\n-3,-3\n3,-3\n", encoding="utf-8")
    asked = wanted(str(file), ROUND, Scene(), "placed", None)
    assert asked.nominal.length.sum() == pytest.approx(24.0)
    assert wanted(None, None, Scene(), "fitted", 0.1) is None


def test_the_picture_shows_every_place_seen_and_not_seen():
    pytest.importorskip("matplotlib")
    from nbv_planner.report.figures.recorded_figure import draw_deviation

    made = report(np.where(np.arange(600) < 40, 4.6, 4.0), part=0.6)
    figure = draw_deviation(made.deviation, 0.3)
    lines = figure.axes[0].collections
    assert sum(len(one.get_paths()) for one in lines) == len(made.deviation.points)
    assert "FAIL at 0.3 m" in figure.axes[0].get_title(loc="left") + figure.axes[0].get_title()
