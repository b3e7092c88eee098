"""The campaign that compares episodes with and without a known outline."""

from __future__ import annotations

import numpy as np
import pytest

from campaigns.__main__ import main
from campaigns.prior_command import PRIORS, ROWS_FILE, Case, PriorRow, compare, summary
from nbv_planner.episode.parameters import configure
from nbv_planner.world.objects import parse_object


def test_the_displaced_outline_is_off_by_a_tenth_and_five_degrees():
    case, config = Case("ellipse:a=6,b=4", "square:width=8", 3, "completeness"), configure()
    true, moved, other = (
        one @ [1.0, 1j]
        for one in (case.outline(name, config) for name in ("true", "moved", "other"))
    )
    turn = np.angle(np.vdot(true - true.mean(), moved - moved.mean()))
    assert abs(np.degrees(turn)) > 4.99
    assert abs(np.degrees(turn)) < 5.01
    radius = parse_object("ellipse:a=6,b=4", config.scene).radius(np.angle(true))
    assert abs(abs(moved.mean() - true.mean()) / radius.mean() - 0.1) < 1e-6
    assert abs(other).max() > 5.6  # the corner of the square


def row(prior, views, number=0, reached=1.0, reason="COVERED"):
    return PriorRow(
        f"object{number}", "another", 0, "points", "auto", prior, views, 12, reached, reason
    )


def test_ratios_leave_out_what_was_not_reached_and_count_it():
    rows = [row("none", 10, number) for number in range(4)]
    rows += [row("true", 6 + 2 * (number % 2), number) for number in range(3)]
    rows += [row("true", 0, 3, 0.9), row("other", 10, 0, 0.9), row("knows", 5)]
    lines = summary(rows)
    assert lines[0].startswith("true / none: 66.7% [")
    assert lines[0].endswith("of 3 pairs, 6.67 against 10.00 views")
    assert lines[2].startswith("other / none: 100.0%")
    assert lines[1] == "moved / none: no pair"
    assert "true: 4 episodes, 1 ended before 95 %, 4 claimed, 1 of them wrong, 12.00" in lines[-3]


def test_a_campaign_runs_and_goes_on_where_it_was(tmp_path, capsys):
    command = ["prior", "--objects", "ellipse:a=6,b=4", "square:width=8", "--draws", "1"]
    command += ["--workers", "1", "--out", str(tmp_path)]
    assert main(command) == 0
    rows = (tmp_path / ROWS_FILE).read_text().splitlines()
    assert len(rows) == 1 + 2 * len(PRIORS)
    said = capsys.readouterr().out
    assert "true / none: " in said
    assert "2 of them wrong" not in said
    assert main(command) == 0
    assert capsys.readouterr().out == said
    assert (tmp_path / ROWS_FILE).read_text().splitlines() == rows


@pytest.mark.release
def test_a_solid_is_compared_with_its_own_mesh_and_with_that_of_another(tmp_path):
    case = Case("solid:box", "solid:ball", 0, "completeness", "space")
    rows = compare(case)
    assert [row.prior for row in rows] == list(PRIORS[:4])
    assert all(row.views <= row.taken for row in rows)
    assert not any(row.wrong for row in rows)
