"""The table of certificates: claims that held, and how late they were."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import compared, episode, results, sweep_of
from scipy import stats

from nbv_bench.experiments.summary.contents import report_page, report_tables
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_bench.experiments.summary.sweep_tables import certificate_table


def covered(coverages, *, target=0.95, planner="A", shape="square:a", seed=0):
    """Episode that ended COVERED after views with these coverages."""
    made = episode(planner, shape, protocol="sensor", seed=seed, views=len(coverages))
    made["views"] = [
        {**view, "coverage": c} for view, c in zip(made["views"], coverages, strict=True)
    ]
    return {**made, "termination": {"reason": "COVERED", "target_coverage": target}}


CLAIMS = [
    covered([0.5, 0.95]),  # at once
    covered([0.5, 0.96, 0.97, 0.99], seed=1),  # two late
    covered([0.5, 0.9499], seed=2),  # never
    covered([0.5, 0.96], shape="random:gp:1"),
    episode("A", "random:gp:2", protocol="sensor"),  # ended otherwise
]


def by_class(table):
    names = [column.name for column in table.columns]
    return {row[2]: dict(zip(names, row, strict=True)) for row in table.rows}


def test_claims_are_counted_and_their_lateness_is_averaged_where_they_held():
    rows = by_class(
        certificate_table(compared([*CLAIMS, covered([0.5, 0.96], shape="random:gp:3")]))
    )
    assert list(rows) == ["all", "square", "random"]
    everything = rows["all"]
    assert (everything["episodes"], everything["claims"], everything["held"]) == (6, 5, 4)
    late = everything["views_late"]
    assert late.mean == pytest.approx(np.mean([0, 2, 0, 0]))
    assert late.high - late.mean == pytest.approx(stats.t.ppf(0.975, 3) * stats.sem([0, 2, 0, 0]))
    assert np.isnan(rows["square"]["views_late"].high)  # two claims that held are too few
    assert everything["most_late"] == 2
    assert (rows["square"]["claims"], rows["square"]["held"]) == (3, 2)


def test_the_part_that_held_has_the_interval_of_wilson():
    part = by_class(certificate_table(compared(CLAIMS)))["all"]["held_percent"]
    n, p, z = 4, 0.75, stats.norm.ppf(0.975)
    centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    expected = [100 * p, *(100 * (centre + sign * half) / (1 + z**2 / n) for sign in (-1, 1))]
    assert [part.mean, part.low, part.high] == pytest.approx(expected)


def test_the_target_is_that_of_the_claim():
    (row,) = certificate_table(compared([covered([0.5, 0.85, 0.95], target=0.8)])).rows
    assert row[-1] == 1


def test_planners_that_claim_nothing_have_no_row_and_without_any_claim_there_is_no_table():
    others = [episode("B", "square:a", protocol="sensor")]
    assert {row[1] for row in certificate_table(compared([*CLAIMS, *others])).rows} == {"A"}
    assert certificate_table(compared(others)) is None
    report = sweep_report(results(others, sweep_of(others)))
    assert "certificate" not in [table.name for table in report_tables(report)]


def test_a_planner_none_of_whose_claims_held_has_no_lateness():
    (row,) = certificate_table(compared([covered([0.5])])).rows
    assert (row[5], row[6].mean, row[-1]) == (0, 0.0, None)
    assert np.isnan(row[7].mean)


def test_page_and_tables_hold_it():
    report = sweep_report(results(CLAIMS, sweep_of(CLAIMS)))
    tables = report_tables(report)
    (table,) = [table for table in tables if table.name == "certificate"]
    assert "| 75.0 [30.1, 95.4] |" in table.to_markdown()
    assert "Certificate of coverage" in report_page(report, tables, [])
