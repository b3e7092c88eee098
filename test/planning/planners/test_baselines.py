"""The sweep and the random planner, with which others are compared."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from beliefs import wavy_belief
from views import all_at, at, circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.world.scene import Scene

TWO_PI = 2 * math.pi
BELIEF = wavy_belief(0, size=60)


def toured(name: str, count: int, *, num=360, arcs=None, **changes) -> list[float]:
    """The first `count` views."""
    views = circle(ViewSpaceSettings(num_views=num, **(arcs or {})))
    chosen = PlannerSettings(
        **{"planner": name, "objective": "U", "revisit_radius": 0.0, **changes}
    )
    plan, visited = planner_named(chosen, Scene(), views), []
    for _ in range(count):
        visited.append(plan.decide(BELIEF, visited=all_at(visited)).view_angle)
    return visited


def test_sweep_goes_around_in_equal_steps():
    np.testing.assert_allclose(toured("uniform", 12), np.arange(12) * TWO_PI / 12, atol=1e-9)


def test_later_turns_of_the_sweep_fill_the_gaps_evenly():
    """After 2, 4, 8 turns all views together are equally spaced again."""
    views = toured("uniform", 40, sweep_views=5)
    for turns in (1, 2, 4, 8):
        gaps = np.diff(np.sort(views[: 5 * turns]))
        np.testing.assert_allclose(gaps, TWO_PI / (5 * turns), atol=1e-9)


def test_sweep_starts_from_the_first_view_that_was_taken():
    views = toured("uniform", 6, sweep_views=6, first_candidate=30)
    np.testing.assert_allclose(np.degrees(views), [30, 90, 150, 210, 270, 330])


def test_sweep_takes_the_nearest_view_that_it_may_take():
    views = toured(
        "uniform", 4, sweep_views=4, arcs={"blocked_arcs": (math.radians(85.5), math.radians(99.5))}
    )
    np.testing.assert_allclose(np.degrees(views), [0, 85, 180, 270])


def test_random_views_are_all_candidates_about_equally_often():
    counts = np.zeros(8)
    for seed in range(400):
        counts[round(toured("random", 1, num=8, planner_seed=seed)[0] / (TWO_PI / 8))] += 1
    assert counts.sum() == 400
    # chi-square with 7 degrees of freedom: 99.9 % quantile
    assert np.sum((counts - 50) ** 2 / 50) < 24.3


def test_random_draws_anew_at_every_view():
    assert len(set(toured("random", 10))) > 5


def test_same_planner_seed_gives_the_same_views_and_another_seed_others():
    assert toured("random", 10) == toured("random", 10, planner_seed=0)
    assert toured("random", 10) != toured("random", 10, planner_seed=1)


@pytest.mark.parametrize("name", ["uniform", "random"])
def test_baselines_do_not_look_at_the_surface_or_the_travel(name):
    views = circle(ViewSpaceSettings(num_views=36))
    plan = planner_named(
        PlannerSettings(planner=name, objective="U", travel_weight=10.0), Scene(), views
    )
    decisions = [
        plan.decide(wavy_belief(seed), current_view=at(1.0), visited=all_at([0.2, 0.9]))
        for seed in (1, 2)
    ]
    assert decisions[0].view_angle == decisions[1].view_angle
    for decision in decisions:
        way = abs(oracles.signed(decision.view_angle - 1.0)) * 10.0
        assert decision.score == pytest.approx(decision.utility - 10.0 * way)
