"""The campaign about objects of any outline, and the glyphs it runs on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from campaigns.__main__ import main
from campaigns.glyphs import GLYPHS, loops_of, written
from campaigns.outlines_command import (
    ROWS_FILE,
    OutlineCase,
    OutlineRow,
    compare,
    compared,
    summary,
)
from nbv_planner.world.objects.contour_files import read_outlines


@pytest.mark.parametrize(("glyph", "bodies"), [("C", 1), ("%", 3), ("i", 2), ("O", 1)])
def test_a_glyph_is_its_outer_outlines_about_the_middle(glyph, bodies):
    loops = loops_of("DejaVu Sans", glyph)
    corners = np.concatenate(loops)
    assert len(loops) == bodies
    assert np.hypot(*corners.T).max() == pytest.approx(5.2)
    assert np.abs(corners.min(axis=0) + corners.max(axis=0)).max() < 1e-9


def test_glyphs_that_are_star_shaped_are_left_out_and_no_glyph_is_in_both_halves(tmp_path):
    names = {half: set(written(tmp_path, half)) for half in GLYPHS}
    assert not names["tuning"] & names["test"]
    assert all("capital_letter_x" not in name for name in names["tuning"])
    assert len(names["tuning"]) >= 35
    assert len(names["test"]) >= 35
    place = next(name for name in names["tuning"] if "percent" in name).removeprefix("file:")
    assert len(read_outlines(Path(place))) == 3


def row(views, taken, reached, reason="COVERED", number=0):
    return OutlineRow(f"object{number}", 0, "", 5, views, taken, reached, reason, taken // 2)


def test_the_summary_counts_claims_those_that_are_true_and_failures():
    rows = [row(6, 8, 0.97, number=number) for number in range(3)]
    rows += [row(0, 10, 0.94, number=3), row(9, 40, 0.99, "MAX_VIEWS", 4)]
    lines = list(summary(rows))
    assert lines[0].startswith("claimed: 4 of 5, 80% [")
    assert lines[1].startswith("true when claimed: 3 of 4, 75% [")
    assert lines[2].startswith("interval holds: 50.0% of 74 views, by object 50.0% [")
    assert "knows: 135.0% [" in lines[3]
    assert lines[3].endswith("of 4 objects, 1 failed")
    assert lines[4] == "wrong: object3: 94.0% after 10 views"


def test_an_object_that_the_knowing_planner_cannot_reach_is_in_no_ratio():
    rows = [row(6, 8, 0.97), OutlineRow("other", 0, "", 0, 9, 9, 0.96, "COVERED", 9)]
    assert list(summary(rows))[3].endswith("of 1 objects, 0 failed")


def test_views_are_compared_with_those_of_other_settings_of_the_same_objects():
    sweep = [
        OutlineRow(f"object{n}", 0, "planner=uniform", 8, 12, 25, 1.0, "MAX_VIEWS", 0)
        for n in range(3)
    ]
    own = [row(6, 8, 0.97, number=0), row(9, 9, 0.96, number=1), row(0, 9, 0.9, number=2)]
    over, knows = compared([*own, *sweep], "")
    assert over.startswith("views to 95 % over planner=uniform: 62.5% [")
    assert over.endswith("of 2 objects, 1 failed")
    assert knows.startswith("views to 95 % over the planner that knows of planner=uniform: 93.8% [")
    assert not list(compared(own, ""))
    alike = [dataclasses.replace(row, knows=5) for row in sweep]
    assert len(list(compared([*own, *alike], ""))) == 1


def test_the_planner_that_knows_goes_on_where_the_surface_was_near_and_is_no_more(tmp_path):
    """It looked from two sides for ever, as what had been near once did not count again."""
    letter = next(name for name in written(tmp_path, "tuning") if name.endswith("letter_l.csv"))
    found = compare(OutlineCase(letter, 0, "max_views=1"))
    assert 0 < found.knows <= 10


def test_knowing_the_object_takes_no_more_views_and_settings_reach_the_episode():
    found = compare(OutlineCase("letter:L", 0, "max_views=30 surface_model=volume"))
    assert 0 < found.knows <= found.views <= found.taken
    short = compare(OutlineCase("letter:L", 0, "max_views=2"))
    assert (short.taken, short.views, short.reason) == (2, 0, "MAX_VIEWS")
    assert short.knows == found.knows


def test_what_is_finished_is_not_run_again_and_other_settings_are_other_rows(tmp_path, capsys):
    command = ["outlines", "--objects", "letter:L", "--set", "max_views=2", "--workers", "1"]
    command += ["--out", str(tmp_path)]
    assert main(command) == 0
    rows = (tmp_path / ROWS_FILE).read_text()
    said = capsys.readouterr().out
    assert said.startswith("claimed: 0 of 1, 0% [")
    assert "true when claimed: 0 of 0" in said
    assert main(command) == 0
    assert capsys.readouterr().out == said
    assert (tmp_path / ROWS_FILE).read_text() == rows
    assert main([*command, "--set", "range_max=9.9"]) == 0  # of other settings is another row
    assert (tmp_path / ROWS_FILE).read_text().startswith(rows)
    assert len((tmp_path / ROWS_FILE).read_text().splitlines()) == 3
