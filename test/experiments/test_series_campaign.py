"""The campaign that compares series of cuts with the same cuts one by one."""

from __future__ import annotations

import numpy as np
import pytest

from campaigns.__main__ import main
from campaigns.cut_shapes import FAMILIES, HALVES, cuts_of
from campaigns.series_command import ROWS_FILE, VARIANTS, SeriesRow, summary
from nbv_planner.geometry import TWO_PI


@pytest.mark.parametrize("family", FAMILIES)
def test_each_cut_is_star_shaped_within_the_scene_and_like_the_one_below(family):
    for seed in range(3):
        cuts = [corners @ [1.0, 1j] for corners in cuts_of(family, seed).values()]
        for corner in cuts:
            assert np.abs(corner).min() > 2.0
            assert np.abs(corner).max() < 8.0
            steps = np.angle(np.roll(corner, -1) / corner)
            assert steps.min() > 0.0
            assert steps.sum() == pytest.approx(TWO_PI)
        sizes = [np.abs(corner).mean() for corner in cuts]
        assert np.abs(np.diff(sizes)).max() < 0.25 * sizes[0]
    assert np.array_equal(cuts_of(family, 0)[0.0], cuts_of(family, 0)[0.0])
    assert not np.array_equal(cuts_of(family, 0)[0.0], cuts_of(family, 1)[0.0])


def test_no_family_is_in_both_halves():
    assert sorted([*HALVES["tuning"], *HALVES["test"]]) == sorted(FAMILIES)


def test_views_are_added_up_over_a_series():
    def row(way, draw, views, reached=1.0):
        return SeriesRow("heap", draw, 2, 0.0, way, views, reached, 10.0, 0.0, "COVERED")

    rows = [row("single", draw, 10) for draw in (0, 0, 1, 1)]
    rows += [row("series", draw, 6 + draw) for draw in (0, 0, 1)] + [row("series", 1, 7, 0.9)]
    rows += [row("knows", draw, 5) for draw in (0, 0, 1, 1)]
    lines = summary(rows)
    assert lines[0].startswith("series / single, views: 65.0% [")
    assert lines[0].endswith("of 2 series, 13.0 against 20.0")
    assert "series: 4 cuts, 4 claimed, 1 of them wrong, 1 below 95 %" in lines


@pytest.mark.release
def test_a_campaign_runs_and_goes_on_where_it_was(tmp_path, capsys):
    command = ["series", "--draws", "1", "--cuts", "3", "--workers", "1", "--out", str(tmp_path)]
    assert main(command) == 0
    rows = (tmp_path / ROWS_FILE).read_text().splitlines()
    assert len(rows) == 1 + 3 * len(VARIANTS)
    said = capsys.readouterr().out
    assert main(command) == 0
    assert capsys.readouterr().out == said
    assert (tmp_path / ROWS_FILE).read_text().splitlines() == rows
