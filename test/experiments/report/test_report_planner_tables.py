"""Means with intervals, paired differences, failures and times."""

from __future__ import annotations

import math

import pytest
from hand_made import REFERENCE, compared, episode
from scipy import stats

from nbv_bench.experiments.summary.sweep_tables import (
    MERITS,
    failure_table,
    paired_table,
    planner_settings_table,
    planner_table,
    timing_table,
)

REGRETS = [3.0, 5.0, 4.0, 8.0]


def seeds(planner, regrets, **more):
    return [
        episode(
            planner,
            protocol="sensor",
            seed=seed,
            regret=r,
            views=4,
            views_95=3 + seed % 2,
            iou=0.9,
            **more,
        )
        for seed, r in enumerate(regrets)
    ]


def cell(table, row, name):
    return row[[column.name for column in table.columns].index(name)]


def test_interval_over_seeds_is_students():
    table = planner_table(compared([*seeds(REFERENCE, [0.0] * 4), *seeds("X", REGRETS)]))
    protocol, planner, episodes, not_reached = table.rows[1][:4]
    assert (protocol, planner, episodes, not_reached) == ("sensor", "X", 4, 0)
    regret = cell(table, table.rows[1], "regret")
    low, high = stats.t.interval(0.95, 3, loc=5.0, scale=stats.sem(REGRETS))
    assert (regret.mean, regret.low, regret.high) == pytest.approx((5.0, low, high))


def test_every_figure_of_merit_has_its_interval_in_csv():
    header = planner_table(compared(seeds("X", REGRETS))).to_csv().splitlines()[0].split(",")
    assert {f"{m.name}{end}" for m in MERITS for end in ("", "_low", "_high")} <= set(header)
    assert "milliseconds" not in header


def test_one_seed_has_a_mean_and_no_interval_and_what_is_not_measured_is_missing():
    table = planner_table(compared([episode("X", regret=2.0)]))
    regret, way = (cell(table, table.rows[0], name) for name in ("regret", "travelled"))
    assert regret.mean == 2.0
    assert math.isnan(regret.low)
    assert math.isnan(way.mean)


def test_paired_differences_are_taken_on_the_same_object_and_seed():
    table = paired_table(compared([*seeds("X", REGRETS), *seeds("Y", [2.0, 4.0, 5.0])]))
    (row,) = [row for row in table.rows if row[1] == "regret"]
    assert row[2:4] == ("X", "Y")
    difference = cell(table, row, "difference")
    assert difference.mean == pytest.approx((1.0 + 1.0 - 1.0) / 3)
    low, _ = stats.t.interval(0.95, 2, loc=1 / 3, scale=stats.sem([1.0, 1.0, -1.0]))
    assert difference.low == pytest.approx(low)
    assert (cell(table, row, "pairs"), cell(table, row, "unpaired")) == (3, 1)


def test_protocols_are_not_mixed():
    cases = compared([episode("X", regret=1.0), *seeds("X", REGRETS), *seeds("Y", REGRETS)])
    groups = [row[:3] for row in planner_table(cases).rows]
    assert groups == [("thesis", "X", 1), ("sensor", "X", 4), ("sensor", "Y", 4)]
    assert {row[0] for row in paired_table(cases).rows} == {"sensor"}


def test_failures_are_listed_with_their_error():
    case = episode("X", "file:a,b.csv")["case"]
    table = failure_table([{"case": case, "error": "ContourError: no", "traceback": "..."}])
    assert table.rows == (("thesis", "X", "file:a,b.csv", 0, "ContourError: no"),)
    assert failure_table([]).note == "No case has failed."


def test_times_are_summed_up_over_all_decisions():
    slow = episode("X", views=3)
    for view, milliseconds in zip(slow["views"], (1.0, 2.0, 9.0), strict=True):
        view["milliseconds"] = milliseconds
    episodes = [
        slow,
        episode("X", "two", views=0, views_95=None),
        episode("Y", views=0, views_95=None),
    ]
    reference = [episode(REFERENCE, shape, views_95=2) for shape in ("one", "two")]
    table = timing_table(compared([*episodes, *reference]))
    assert table.rows[0][:4] == ("thesis", "X", 3, 2.0)
    assert table.rows[0][5] == 9.0
    # 3 views for 2 on one object, N/A on the other
    assert (table.rows[0][6].mean, table.rows[0][7]) == (150.0, 1)
    assert table.rows[1][:3] == ("thesis", "Y", 0)
    assert all(math.isnan(value) for value in table.rows[1][3:6])
    assert (table.rows[1][6].cases, table.rows[1][7]) == (0, 1)


def test_labels_are_explained_and_a_missing_reference_is_said():
    two_phase = {"planner": "two_phase", "phase_one_objective": "CSN", "objective": "U"}
    own = {"mapper": {"grid_size": 60, "prior_mean": 4.0}}
    variant = {"planner": "greedy", "objective": "U", "travel_weight": 0.5, "settings": own}
    table = planner_settings_table({"A": two_phase, "B": variant}, None)
    assert table.rows == (
        ("A", "planner=two_phase, objective=U, phase_one_objective=CSN"),
        (
            "B",
            "planner=greedy, objective=U, travel_weight=0.5,"
            " mapper.grid_size=60, mapper.prior_mean=4.0",
        ),
    )
    assert "no omniscient greedy planner" in table.note
