"""The thesis's table: which planners, which published figures, and how episodes are averaged."""

from __future__ import annotations

import math

import pytest

from nbv_planner.experiments.thesis_table import (
    TABLE_PLANNERS,
    EpisodeFigures,
    TableRow,
    published_table,
    run_table,
    table_row,
    thesis_objects,
)


def test_all_six_published_planners_are_compared():
    published = published_table()
    assert list(TABLE_PLANNERS) == ["CSW", "IOA", "I", "U", "UP", "CS-U"]
    assert published.keys() == TABLE_PLANNERS.keys()
    assert published["CS-U"] == TableRow("CS-U", 130.0, 0, 116.0, 100.0, 12.14)
    assert [row.not_reached for row in published.values()] == [0, 4, 5, 0, 0, 0]
    assert len(thesis_objects()) == 22


def test_cs_u_counts_pixels_in_phase_one_and_evaluates_the_closed_form_in_phase_two():
    settings = TABLE_PLANNERS["CS-U"]
    assert (settings.planner, settings.phase_one_objective, settings.objective) == ("two_phase", "CSN", "U")


def test_row_is_relative_to_the_greedy_reference_and_counts_what_never_reaches_95_percent():
    figures = [
        EpisodeFigures("greedy_oracle", "one", 10, 8, 1.0, 0.0),
        EpisodeFigures("greedy_oracle", "two", 20, 10, 1.0, 0.0),
        EpisodeFigures("X", "one", 12, 10, 1.0, 4.0),
        EpisodeFigures("X", "two", 10, None, 0.9, 6.0),
    ]
    row = table_row("X", figures)
    assert (row.planner, row.not_reached) == ("X", 1)
    assert row.t95_percent == pytest.approx(125.0)
    assert row.t_percent == pytest.approx(85.0)
    assert row.rec_percent == pytest.approx(95.0)
    assert row.regret == pytest.approx(5.0)
    assert math.isnan(table_row("X", [figures[0], figures[1], figures[3]]).t95_percent)


def test_table_does_not_depend_on_the_number_of_workers():
    planners = {name: TABLE_PLANNERS[name] for name in ("UP", "CS-U")}
    done: list[tuple[int, int]] = []
    shapes = ["square:width=4"]
    rows = run_table(planners, shapes, 1, progress=lambda *counts: done.append(counts))
    assert rows == run_table(planners, shapes, 2)
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert [row.planner for row in rows] == ["UP", "CS-U"]
