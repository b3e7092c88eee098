"""Times of planners by cost models, against the best sweep in hindsight and the fewest views."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from hand_made import results
from tables import column

from nbv_bench.experiments.cases import run_episode_case
from nbv_bench.experiments.summary.pictures import time_picture
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_bench.experiments.summary.sweep_tables import planner_table
from nbv_bench.experiments.summary.time_tables import races, seconds_by, time_table, timed
from nbv_bench.statistics import HINDSIGHT, figures, in_hindsight, object_means
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.planning.motion import TimeSettings
from nbv_planner.planning.termination import TerminationSettings

CIRCLE = 10.0  # metres
PACE = {"linear_speed": 0.5, "turn_speed": 1.0, "dwell_time": 2.0}


def drive(planner: str, shape: str, seed: int, angles: list[float], full: bool = True) -> dict:
    """An episode that starts at 0 and reaches 95 % with the last of its views."""
    ways = np.cumsum(np.abs(np.diff(angles, prepend=0.0))) * CIRCLE
    views = [
        {"angle": angle, "travelled": way, "coverage": 0.5, "milliseconds": 1.0}
        for angle, way in zip(angles, ways.tolist(), strict=True)
    ]
    views[-1]["coverage"] = 0.96 if full else 0.9
    return {
        "case": {
            "planner": planner,
            "object": shape,
            "object_class": shape,
            "protocol": "sensor",
            "seed": seed,
        },
        "metrics": {
            "T": len(angles),
            "T95": len(angles) if full else None,
            "rec": 1.0,
            "mean_individual_regret": 0.0,
        },
        "views": views,
        "config": {"scene": {"view_distance": CIRCLE}},
        "termination": {"reason": "MAX_VIEWS"},
    }


def sweep(episodes: list[dict], planners: dict) -> dict:
    objects = list(dict.fromkeys(e["case"]["object"] for e in episodes))
    return {
        "name": "by hand",
        "objects": objects,
        "planners": planners,
        "protocols": ["sensor"],
        "seeds": [0, 1],
        "settings": {},
    }


# Seconds at 0.5 m/s: 20 a radian, and 2 a view.
EPISODES = [
    *(drive("coarse", "a", seed, [0.0, 1.0, 2.0]) for seed in (0, 1)),  # 46
    *(drive("coarse", "b", seed, [0.0, 1.0, 2.0, 3.0]) for seed in (0, 1)),  # 68
    *(drive("fine", "a", seed, [0.0, 0.5, 1.0, 1.5, 2.0]) for seed in (0, 1)),  # 50
    *(drive("fine", "b", seed, [0.0, 0.5, 1.0]) for seed in (0, 1)),  # 26
    *(drive("few", "a", seed, [2.0, 1.0]) for seed in (0, 1)),  # 64
    *(drive("few", "b", seed, [1.0]) for seed in (0, 1)),  # 22
    drive("go", "a", 0, [0.0, 1.0]),
    drive("go", "a", 1, [0.0, 0.5]),  # 24, 14
    drive("go", "b", 0, [1.0]),
    drive("go", "b", 1, [2.0], full=False),  # 22, never
]
PLANNERS = {
    "coarse": {"planner": "uniform", "sweep_views": 8},
    "fine": {"planner": "uniform", "sweep_views": 16},
    "few": {"planner": "rollout"},
    "go": {"planner": "tour", **PACE},
}


@pytest.fixture(scope="module")
def report():
    return sweep_report(results(EPISODES, sweep(EPISODES, PLANNERS)))


def test_each_planner_is_compared_with_the_better_of_the_best_sweep_and_the_fewest_views(report):
    table = time_table(report, "sensor")
    rows = {row["algorithm"]: row for row in table.records()}
    assert list(rows) == ["coarse", "fine", "few", "go", HINDSIGHT]
    assert rows[HINDSIGHT]["time95"].mean == pytest.approx((46.0 + 26.0) / 2)
    assert rows["coarse"]["time95"].mean == pytest.approx((46.0 + 68.0) / 2)
    assert rows["coarse"]["worst"] == "b"
    # the rollout is better than any sweep
    assert rows["coarse"]["worst_percent"] == pytest.approx(100.0 * 68.0 / 22.0)
    assert rows["go"]["time95_rel_percent"].mean == pytest.approx(
        100.0 * (19.0 / 46.0 + 22.0 / 22.0) / 2
    )
    assert (rows["go"]["episodes"], rows["go"]["time_not_reached"], rows["go"]["slower"]) == (
        4,
        1,
        0,
    )
    assert rows["few"]["slower"] == 1
    assert rows["few"]["t95"].mean == pytest.approx(1.5)


def test_every_cost_model_of_a_tour_rates_those_that_do_not_depend_on_it():
    again = [
        {**e, "case": {**e["case"], "planner": "fast"}}
        for e in EPISODES
        if e["case"]["planner"] == "go"
    ]
    episodes = [*EPISODES, *again]
    planners = {**PLANNERS, "fast": {"planner": "tour", **PACE, "linear_speed": 5.0}}
    (_, slow), (_, fast) = races(
        sweep_report(results(episodes, sweep(episodes, planners))), "sensor"
    )
    assert "fast" not in set(slow["planner"])
    assert "go" not in set(fast["planner"])
    for cases, seconds in ((slow, 46.0), (fast, 10.0)):
        coarse = cases[cases["planner"] == "coarse"]
        assert object_means(figures(coarse, "time95"))["a"] == pytest.approx(seconds)


def test_a_sweep_without_a_tour_has_no_table_of_times():
    episodes = [drive("coarse", "a", 0, [0.0, 1.0])]
    report = sweep_report(results(episodes, sweep(episodes, {"coarse": PLANNERS["coarse"]})))
    assert time_table(report, "sensor") is None
    assert time_picture(report, "sensor") is None


def test_a_sweep_that_misses_a_seed_is_not_the_best_in_hindsight():
    lucky = [drive("x", "a", 0, [0.0]), drive("x", "a", 1, [0.1], full=False)]
    whole = [drive("y", "a", seed, [0.0, 1.0]) for seed in (0, 1)]
    best = in_hindsight(timed([*lucky, *whole], TimeSettings()), "time95")
    assert object_means(figures(best, "time95")).to_dict() == {"a": pytest.approx(24.0)}


def test_the_best_sweep_in_hindsight_is_a_row_among_the_planners_by_its_views(report):
    """On a the coarse one with 3 views, on b the fine one with 3; one sweep alone is no choice."""
    best = report.sweeps_in_hindsight
    table = planner_table(pd.concat([report.cases, best]))
    assert column(table, "algorithm") == ["coarse", "fine", "few", "go", HINDSIGHT]
    assert list(zip(best["object"], best["T95"], strict=True)) == [*[("a", 3)] * 2, *[("b", 3)] * 2]
    episodes = [episode for episode in EPISODES if episode["case"]["planner"] == "coarse"]
    assert sweep_report(
        results(episodes, sweep(episodes, {"coarse": PLANNERS["coarse"]}))
    ).sweeps_in_hindsight.empty


def test_a_sweep_that_misses_95_percent_is_not_the_best_by_its_views():
    episodes = [
        drive("x", "a", 0, [0.0]),
        drive("x", "a", 1, [0.1], full=False),
        *(drive("y", "a", seed, [0.0, 1.0]) for seed in (0, 1)),
    ]
    planners = {name: {"planner": "uniform"} for name in "xy"}
    found = sweep_report(results(episodes, sweep(episodes, planners))).sweeps_in_hindsight
    assert list(zip(found["planner"], found["T95"], strict=True)) == [(HINDSIGHT, 2)] * 2


def test_the_picture_has_a_panel_per_cost_model(report):
    drawn = time_picture(report, "sensor")
    assert drawn.name == "time"
    assert drawn.png.startswith(b"\x89PNG")


@pytest.mark.parametrize("speed", [0.5, 50.0])
def test_an_episode_rated_by_its_own_cost_model_takes_the_seconds_of_its_record(speed):
    """At 50 m/s turning takes longer than driving."""
    settings = PlannerSettings(planner="uniform", sweep_views=5, linear_speed=speed)
    config = dataclasses.replace(
        EpisodeConfig(object="ellipse:a=6,b=4", planner=settings),
        termination=TerminationSettings(max_views=7, certify=False, stall_views=0),
    )
    found = run_episode_case(config)
    own = [view["seconds"] for view in found["views"]]
    assert seconds_by(found, settings) == pytest.approx(own)
    assert math.isclose(own[0], 0.0314 * 10.0 / 0.5 + 2.0) or speed > 1.0
    other = dataclasses.replace(settings, linear_speed=0.1)
    assert seconds_by(found, other)[-1] == pytest.approx(
        found["views"][-1]["travelled"] / 0.1 + 7 * 2.0
    )
