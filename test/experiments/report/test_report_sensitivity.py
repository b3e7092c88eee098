"""What a varied sweep shows in words, on numbers that can be checked on paper."""

from __future__ import annotations

from hand_made import episode, results, sweep_of

from nbv_bench.experiments.summary.sensitivity import sensitivity_tables
from nbv_bench.experiments.summary.sweep_report import sweep_report

SETTINGS = {"scene": {"pixel_size": 0.1}, "sensor": {}, "measurement": {}}
VARIANTS = {0.1: "", 0.2: "pixel_size=0.2", 0.3: "pixel_size=0.3"}


def table_and_findings(
    views: dict[str, tuple[list[int | None], list[int | None], list[int | None]]],
):
    """Tables of planners with T95 of seeds 0, 1, ... at each of three pixel sizes; the reference
    takes 10 views.
    """
    episodes = []
    for planner, by_value in {"greedy_oracle": ([10] * 3,) * 3, **views}.items():
        for variant, of_seeds in zip(VARIANTS.values(), by_value, strict=True):
            for seed, views_95 in enumerate(of_seeds):
                one = episode(planner, views_95=views_95, seed=seed)
                one["case"] |= {"variant": variant} if variant else {}
                episodes.append(one)
    sweep = sweep_of(episodes, vary=[{"pixel_size": [0.3, 0.1, 0.2]}]) | {"settings": SETTINGS}
    table, findings = sensitivity_tables(sweep_report(results(episodes, sweep)))
    return table.records(), {row["what"]: row["finding"] for row in findings.records()}


def test_trend_has_its_ends_rank_correlation_and_whether_it_is_monotone():
    _, said = table_and_findings(
        {
            "up": ([10, 10, 11], [12, 12, 13], [14, 14, 15]),
            "down": ([14] * 3, [13] * 3, [13] * 3),
            "peak": ([11] * 3, [15] * 3, [12] * 3),
            "flat": ([12] * 3, [12] * 3, [12] * 3),
        }
    )
    assert said["up"] == "103.3 % at 0.1, 143.3 % at 0.3: rises, rank correlation 1.00"
    assert said["down"] == "140.0 % at 0.1, 130.0 % at 0.3: falls, rank correlation -0.87"
    assert said["peak"] == "110.0 % at 0.1, 120.0 % at 0.3: not monotone, rank correlation 0.50"
    assert said["flat"] == "120.0 % at 0.1, 120.0 % at 0.3: the same at every value"


def test_order_of_the_planners_is_named_where_it_changes():
    _, said = table_and_findings(
        {"A": ([11] * 3, [12] * 3, [14] * 3), "B": ([12] * 3, [13] * 3, [13] * 3)}
    )
    assert said["order"] == "changes: A < B at 0.1, 0.2; B < A at 0.3"
    _, said = table_and_findings(
        {"A": ([11] * 3, [12] * 3, [13] * 3), "B": ([12] * 3, [13] * 3, [14] * 3)}
    )
    assert said["order"] == "unchanged: A < B at 0.1, 0.2, 0.3"


def test_a_pair_changes_places_only_beyond_both_intervals():
    clear = {
        "A": ([11, 11, 12], [12, 12, 12], [15, 15, 16]),
        "B": ([13, 13, 14], [12, 12, 12], [13, 13, 14]),
    }
    assert table_and_findings(clear)[1]["pairs"] == "A takes fewer than B at 0.1, more at 0.3"
    noisy = {
        "A": ([11, 11, 12], [12, 12, 12], [15, 10, 17]),
        "B": ([13, 13, 14], [12, 12, 12], [13, 13, 13]),
    }
    assert (
        table_and_findings(noisy)[1]["pairs"]
        == "no pair of planners changes places beyond its 95 % intervals"
    )


def test_what_never_reaches_95_percent_is_counted_and_left_out():
    records, said = table_and_findings(
        {"A": ([11] * 3, [12, None, 12], [None] * 3), "B": ([12] * 3,) * 3}
    )
    assert [row["not_reached"] for row in records] == ["none", "A 1", "A 3"]
    assert [row["t95_A"].cases for row in records] == [3, 2, 0]
    assert said["A"] == "110.0 % at 0.1, 120.0 % at 0.2: rises, rank correlation 1.00"
    assert said["order"] == "changes: A < B at 0.1, 0.2; B at 0.3"
