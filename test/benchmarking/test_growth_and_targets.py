"""Slopes are those of the power law, and targets are judged by the worst value that they hold
for.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench import PARTS, TARGETS, growth_rows, growth_slope, target_rows


def mapper_row(n: int, *, smoothness: str = "3/2", grid: int = 1000, update: float = 1.0, **others):
    row = {
        "smoothness": smoothness,
        "grid": grid,
        "measurements": n,
        "update": update,
        "samples": 2.0,
        "megabytes": 0.5,
        "ratio": None,
        "difference": None,
    }
    return row | others


def judged(part: str, rows) -> dict[str, tuple[float, bool]]:
    return {row["target"]: (row["worst"], row["met"]) for row in target_rows({part: rows})}


@given(
    st.floats(-3, 3),
    st.floats(0.01, 100),
    st.lists(st.integers(1, 10**6), min_size=2, max_size=9, unique=True),
)
def test_slope_of_a_power_law_is_its_exponent(exponent, factor, numbers):
    values = [factor * n**exponent for n in numbers]
    assert growth_slope(numbers, values) == pytest.approx(exponent, abs=1e-6)


def test_growth_is_fitted_per_smoothness_from_a_thousand_on_and_for_one_grid():
    rows = [mapper_row(n, update=n**0.5, megabytes=7.0) for n in (1000, 10_000, 1_000_000)]
    ignored = [
        mapper_row(100, update=1e9),
        mapper_row(2000, grid=500, update=1e9),
        mapper_row(5000, smoothness="1/2"),
    ]
    (fitted,) = growth_rows(rows + ignored)
    assert (fitted["smoothness"], fitted["from"], fitted["to"]) == ("3/2", 1000, 1_000_000)
    assert fitted["update"] == pytest.approx(0.5)
    assert fitted["megabytes"] == pytest.approx(0.0, abs=1e-12)


def test_slopes_over_less_than_three_decades_say_nothing_of_the_target():
    short, whole = (
        judged("mapper", [mapper_row(1000), mapper_row(most)]) for most in (10**5, 10**6)
    )
    assert not any("slope" in text for text in short)
    assert sum("slope" in text for text in whole) == 2


def test_the_worst_value_decides():
    rows = [
        mapper_row(1500, ratio=300.0),
        mapper_row(1500, smoothness="5/2", ratio=99.0),
        mapper_row(1500, grid=500, ratio=1.0),
    ]
    assert judged("mapper", rows)["every ν: update at n = 1500, M = 1000: dense time to ours"] == (
        99.0,
        False,
    )
    found = judged("mapper", [mapper_row(100), mapper_row(100, samples=4.0)])
    assert found == {"64 joint samples: time in updates": (4.0, True)}


def test_objectives_are_judged_at_a_hundred_candidates_on_a_thousand_angles():
    def row(name, views, ratio, decide):
        return {
            "objective": name,
            "views": views,
            "grid": 1000,
            "ratio": ratio,
            "decide_ms": decide,
        }

    rows = [row("U", 100, 150.0, 0.1), row("CS", 100, 120.0, 2.0), row("IOA", 100, 19.0, 5.0)]
    found = judged("objectives", [*rows, row("U", 3600, 1.0, 99.0), row("OCL", 100, 1.0, 99.0)])
    assert list(found.values()) == [(120.0, True), (19.0, False), (2.0, False), (5.0, True)]


def test_planning_on_shapes_is_judged_by_its_slowest_decision_among_a_hundred_candidates():
    def row(planner, taken, views, decide):
        return {
            "planner": planner,
            "taken": taken,
            "views": views,
            "shapes": 32,
            "decide_ms": decide,
        }

    emc = [row("EMC", 0, 100, 41.0), row("EMC", 3, 100, 20.0), row("EMC", 3, 3600, 700.0)]
    found = judged("shapes", [*emc, row("rollout", 0, 100, 99.0)])
    assert list(found.values()) == [(41.0, False), (99.0, True)]


def test_a_part_of_the_table_or_a_short_loop_proves_nothing():
    assert judged("table", [{"objects": 1, "planners": 1, "wall_s": 2.0}]) == {}
    assert judged("table", [{"objects": 22, "planners": 7, "wall_s": 61.0}]) != {}
    loop = {
        "rate_hz": 40.0,
        "duration_s": 60.0,
        "scan_in_to_goal_ms.p99": 12.0,
        "nodes.surface_mapper.rss_growth_mb": 0.1,
    }
    assert list(judged("loop", [loop]).values()) == [(12.0, True)]
    assert len(judged("loop", [loop | {"duration_s": 600.0}])) == 2
    assert list(judged("loop", [loop | {"call_ms.all.p99": 101.0}]).values()) == [
        (12.0, True),
        (101.0, False),
    ]
    assert judged("loop", [loop | {"rate_hz": 10.0}, loop | {"duration_s": 59.0}]) == {}


def test_every_target_belongs_to_a_part_and_says_something_of_its_own():
    assert {target.part for target in TARGETS} <= set(PARTS)
    assert len({target.text for target in TARGETS}) == len(TARGETS)
