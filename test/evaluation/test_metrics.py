"""Episode metrics on examples computed by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.records import FULL_ENOUGH, episode_metrics


@dataclass
class View:
    coverage: float
    new_points: int
    greedy_gain: int
    completeness: float = 0.0
    accuracy: float = 1.0
    seconds: float = 7.0
    weighted: float = math.nan


def test_metrics_of_a_hand_computed_episode():
    views = [
        View(0.5, 50, 60),
        View(0.9, 40, 40, 0.95),
        View(0.95, 5, 8, 0.97),
        View(0.96, 1, 5, 0.98, 0.9),
    ]
    assert episode_metrics(views, 100) == {
        "T": 4,
        "T95": 3,
        "C95": 2,
        "rec": pytest.approx(0.96),
        "completeness": 0.98,
        "accuracy": 0.9,
        "mean_individual_regret": pytest.approx((10 + 0 + 3 + 4) / 4),
        "surface_points": 100,
        "time95": 7.0,
    }


def test_t95_is_none_if_95_percent_is_never_reached():
    metrics = episode_metrics([View(0.5, 50, 50), View(0.949, 44, 50)], 100)
    assert metrics["T95"] is None
    assert metrics["T"] == 2


def test_95_percent_itself_counts():
    assert FULL_ENOUGH == 0.95
    assert episode_metrics([View(0.95, 95, 95)], 100)["T95"] == 1
    assert episode_metrics([View(19 / 20, 19, 19)], 20)["T95"] == 1


def test_an_episode_without_views_has_no_mean():
    metrics = episode_metrics([], 100)
    assert math.isnan(metrics.pop("accuracy"))
    assert metrics == {
        "T": 0,
        "T95": None,
        "C95": None,
        "rec": 0.0,
        "completeness": 0.0,
        "mean_individual_regret": None,
        "surface_points": 100,
        "time95": None,
    }


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12))
def test_metrics_follow_their_definitions(steps):
    total = sum(new for new, _ in steps) + 7
    views, covered = [], 0
    for new, extra in steps:
        covered += new
        views.append(View(covered / total, new, new + extra))
    metrics = episode_metrics(views, total)
    assert metrics["T"] == len(steps)
    assert metrics["rec"] == pytest.approx(covered / total)
    assert metrics["mean_individual_regret"] == pytest.approx(
        sum(extra for _, extra in steps) / len(steps)
    )
    reached = [t for t, view in enumerate(views, start=1) if view.coverage >= 0.95]
    assert metrics["T95"] == (reached[0] if reached else None)
    assert set(map(type, metrics.values())) <= {int, float, type(None)}
