"""Regret against its bound, from runs made up by hand and from one that is run."""

import dataclasses

import pytest
from tables import column

from nbv_bench.experiments.cases import THEORY_MEASURES
from nbv_bench.experiments.summary.thesis_tables import theory_table
from nbv_bench.experiments.sweep_file import load_sweep


def row(planner, measurement="line_of_sight", regret=10, objective=50.0, bound=100.0, holds=True):
    return {
        "case": {"planner": planner},
        "measurement": measurement,
        "proof": "proved",
        "confidence": "schedule",
        "individual_regret": regret,
        "objective_sum": objective,
        "bound_spectral": bound,
        "band_holds": holds,
        "coverage": 0.5,
    }


def test_groups_are_one_per_measurement_and_planner_in_order():
    rows = [row("U"), row("CS"), row("U"), row("U", "surface_points")]
    table = theory_table(rows, delta=0.05)
    assert [(one["measured"], one["algorithm"], one["runs"]) for one in table.records()] == [
        ("line_of_sight", "U", 2),
        ("line_of_sight", "CS", 1),
        ("surface_points", "U", 1),
    ]


def test_counts_runs_below_the_bound_and_in_the_band():
    table = theory_table(
        [row("U"), row("U", regret=100), row("U", objective=101.0, holds=False)], delta=0.05
    )
    assert column(table, "regret_below") == [3]
    assert column(table, "objective_below") == [2]
    assert column(table, "band_held") == [2]
    assert column(table, "individual_regret") == [pytest.approx(40.0)]


@pytest.mark.parametrize("runs", [1, 10, 60])
def test_lower_end_when_all_hold_is_the_root_of_five_percent(runs):
    low = column(theory_table([row("U")] * runs, delta=0.05), "band_held_low")[0]
    assert low == pytest.approx(100.0 * 0.05 ** (1.0 / runs))


def test_no_band_that_held_gives_zero():
    assert column(theory_table([row("U", holds=False)], delta=0.05), "band_held_low") == [0.0]


def test_shipped_sweep_stays_below_the_bound_on_its_first_surface():
    sweep = load_sweep("theory")
    case = sweep.case("U", sweep.objects[0], "thesis", 0, "theory")
    config = dataclasses.replace(
        case.config, termination=dataclasses.replace(case.config.termination, max_views=5)
    )
    measured = THEORY_MEASURES["theory"].run(config)
    assert (
        0 < measured["individual_regret"] <= measured["objective_sum"] <= measured["bound_spectral"]
    )
    assert measured["band_holds"]
