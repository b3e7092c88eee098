"""Completeness in the tables, relative to the planner that knows the object and has the same
target.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from hand_made import compared, episode, results, rows, sweep_of

from nbv_bench.experiments.summary.contents import report_tables
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_bench.experiments.summary.sweep_tables import certificate_table

COMPLETE, POINTS = "greedy_oracle, completeness", "greedy_oracle"


def made(planner, shape, views_c95, *, views_95=4, completeness=0.96, seed=0):
    more = {"C95": views_c95, "completeness": completeness, "accuracy": 0.9}
    return episode(planner, shape, protocol="sensor", views_95=views_95, more=more, seed=seed)


def report_of(episodes, targets):
    sweep = sweep_of(episodes)
    for label, target in targets.items():
        sweep["planners"][label].update(objective="OSM", target=target)
    return sweep_report(results(episodes, sweep))


EPISODES = [
    case
    for shape, own in (("square:a", 6), ("square:b", None))
    for case in (
        made(COMPLETE, shape, 4, views_95=8),
        made(POINTS, shape, 5),
        made("A", shape, own, views_95=6),
    )
]


def test_each_figure_is_relative_to_the_planner_that_knows_the_object_and_has_its_target():
    report = report_of(EPISODES, {COMPLETE: "completeness", POINTS: "points"})
    own = report.cases[report.cases["planner"] == "A"]
    np.testing.assert_equal(list(own["c95_rel_percent"]), [150.0, math.nan])  # of 4 views
    # of 4 views, those of the other reference
    assert list(own["t95_rel_percent"]) == [150.0, 150.0]
    assert report.reference == POINTS


def test_with_one_reference_both_are_relative_to_it():
    episodes = [case for case in EPISODES if case["case"]["planner"] != COMPLETE]
    cases = report_of(episodes, {POINTS: "points"}).cases
    first = cases[cases["planner"] == "A"].iloc[0]
    assert (first["c95_rel_percent"], first["t95_rel_percent"]) == (120.0, 150.0)


def test_every_table_that_has_coverage_has_completeness():
    report = report_of(EPISODES, {COMPLETE: "completeness", POINTS: "points"})
    tables = {table.name: table for table in report_tables(report)}
    found = {
        name
        for name, table in tables.items()
        if "c95_rel_percent" in {column.name for column in table.columns}
    }
    assert found == {"planners", "objects", "timing"}
    assert {row[1] for row in tables["paired"].rows} >= {
        "c95_rel_percent",
        "completeness_percent",
        "accuracy_percent",
    }
    row = next(row for row in tables["objects"].records() if row["algorithm"] == "A")
    assert (row["c95_rel_percent"].mean, row["c95_not_reached"]) == (150.0, 1)
    planner = next(row for row in tables["planners"].records() if row["algorithm"] == "A")
    assert planner["completeness_percent"].mean == 96.0


def test_results_of_versions_without_completeness_are_still_read():
    old = [
        episode(planner, "square:a", protocol="sensor", seed=seed)
        for planner in (POINTS, "A")
        for seed in (0, 1)
    ]
    assert (
        compared(old)[["C95", "completeness", "accuracy", "c95_rel_percent"]].isna().all(axis=None)
    )
    tables = {
        table.name: table for table in report_tables(sweep_report(results(old, sweep_of(old))))
    }
    row = rows(tables["objects"])["A"]
    assert row["c95_not_reached"] is None
    assert row["c95_rel_percent"].cases == 0
    assert all(dataclasses.is_dataclass(table) and table.to_csv() for table in tables.values())


def test_a_claim_of_completeness_is_judged_by_the_completeness():
    claim = made("A", "square:a", 2)
    views = [
        {**claim["views"][0], "coverage": 0.5, "completeness": part} for part in (0.8, 0.95, 0.97)
    ]
    ended = {"reason": "COVERED", "target_coverage": 0.95, "completeness_tau": 0.3}
    row, *_ = certificate_table(
        compared([{**claim, "views": views, "termination": ended}])
    ).records()
    assert (row["claims"], row["held"], row["views_late"].mean) == (1, 1, 1.0)
