"""Tables by class of object, with intervals over the objects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made import REFERENCE, compared, episode, results, sweep_of
from scipy import stats

from nbv_bench.experiments.summary.contents import report_page, report_tables
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_bench.experiments.summary.sweep_tables import object_table, paired_table
from nbv_planner.world.objects import OBJECT_SETS

# Views to 95 % of planner A on three objects of one class and two of another; the reference takes 4
# everywhere.
VIEWS = {"square:a": 4, "square:b": 6, "square:c": 8, "random:gp:1": 5, "random:gp:2": None}


def episodes():
    found = []
    for shape, views in VIEWS.items():
        found += [
            episode(REFERENCE, shape, views_95=4),
            episode("A", shape, views_95=views, regret=2.0),
        ]
        found.append(episode("B", shape, views_95=4, regret=1.0))
    return found


def by_class(table, planner):
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return {row["object_class"]: row for row in rows if row["algorithm"] == planner}


def test_each_class_has_its_mean_and_an_interval_over_its_objects():
    rows = by_class(object_table(compared(episodes()), "objects"), "A")
    assert list(rows) == ["all", "square", "random"]
    everything = rows["all"]["t95_rel_percent"]
    values = [100.0, 150.0, 200.0, 125.0]
    half = stats.t.ppf(0.975, 3) * stats.sem(values)
    assert (everything.mean, everything.high - everything.mean) == pytest.approx((143.75, half))
    assert (rows["all"]["number"], rows["all"]["not_reached"]) == (5, 1)
    assert rows["square"]["t95_rel_percent"].mean == 150.0
    assert math.isnan(rows["square"]["t95_rel_percent"].high)  # three objects are too few
    assert (rows["random"]["number"], rows["random"]["not_reached"]) == (2, 1)
    assert math.isnan(rows["random"]["t95_rel_percent"].high)  # one object is left


def test_seeds_of_an_object_are_averaged_first():
    cases = [
        episode(p, shape, views_95=v if p == "A" else 4, seed=seed)
        for shape, by_seed in {
            "one": (4, 6),
            "two": (8, 8),
            "three": (4, 4),
            "four": (6, 8),
        }.items()
        for seed, v in enumerate(by_seed)
        for p in (REFERENCE, "A")
    ]
    found = by_class(object_table(compared(cases), "objects"), "A")["all"]["t95_rel_percent"]
    values = [125.0, 200.0, 100.0, 175.0]
    assert found.mean == pytest.approx(150.0)
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, 3) * stats.sem(values))


def test_optimum_has_a_column_where_it_is_known():
    table = object_table(compared(episodes()), "objects")
    assert "t95_optimum_percent" not in [column.name for column in table.columns]
    percent = [
        10.0 * n if e["case"]["planner"] == "A" else math.nan for n, e in enumerate(episodes())
    ]
    table = object_table(compared(episodes()).assign(t95_optimum_percent=percent), "objects")
    of_a, of_b = (by_class(table, planner)["all"]["t95_optimum_percent"] for planner in "AB")
    assert of_a.mean == pytest.approx(np.nanmean(percent))
    assert of_b.cases == 0


def test_pairs_differ_object_by_object():
    table = paired_table(compared(episodes()))
    rows = {row[1]: row[5:] for row in table.rows if row[2:4] == ("A", "B")}
    found, *counts = rows["t95_rel_percent"]
    values = [0.0, 50.0, 100.0, 25.0]
    assert found.mean == pytest.approx(43.75)
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, 3) * stats.sem(values))
    assert counts == [4, 1]
    regret = rows["regret"][0]
    assert (regret.mean, regret.low, regret.high) == (1.0, 1.0, 1.0)


def test_page_names_the_sets_and_shows_the_tables():
    cases = [episode("A", shape) for shape in (*OBJECT_SETS["real"], "square:width=5")]
    report = sweep_report(results(cases, sweep_of(cases)))
    tables = [*report_tables(report), object_table(report.cases, "objects")]
    page = report_page(report, tables, [])
    assert "16 objects × 1 planner × 1 protocol × 1 seed, among them the whole set real." in page
    assert "Planners by class of object" in page
    other = sweep_report(results(cases[1:], sweep_of(cases[1:])))
    assert "among them" not in report_page(other, report_tables(other), [])
