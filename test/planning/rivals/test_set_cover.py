"""The least cover against brute force, and a plan that is made once and carried out."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nbv_bench.rivals import farthest_ranks, set_cover
from nbv_bench.rivals.set_cover import least_cover
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.world.pose import Poses
from nbv_planner.world.simulated_camera import SensorSettings

pytestmark = pytest.mark.skipif(not hasattr(scipy.optimize, "milp"), reason="needs scipy >= 1.9")


@settings(max_examples=60, deadline=None)
@given(arrays(bool, st.tuples(st.integers(1, 8), st.integers(0, 12))))
def test_the_cover_is_complete_and_no_smaller_one_is(visible):
    found = least_cover(visible)
    reachable = visible.any(axis=0)
    assert (visible[found].any(axis=0) == reachable).all()
    for smaller in combinations(range(len(visible)), max(len(found) - 1, 0)):
        assert not reachable.any() or (visible[list(smaller)].any(axis=0) != reachable).any()


def test_the_ranks_beyond_the_plan_lead_to_where_nobody_has_been():
    views, visited = Poses.on_circle([0.0, 1.0, 3.0], 10.0), Poses.on_circle([0.2, 1.4], 10.0)
    expected = [20.0 * np.sin(0.1), 20.0 * np.sin(0.2), 20.0 * np.sin(0.8)]
    np.testing.assert_allclose(farthest_ranks(views, visited), expected)
    np.testing.assert_array_equal(farthest_ranks(views, Poses.of([])), 0.0)


def test_the_plan_of_the_first_scan_is_carried_out_without_another_one(monkeypatch):
    """Every decision finds the same plan; its views come first, the nearest each time, and then
    others.
    """
    plans = []
    monkeypatch.setattr(
        set_cover, "least_cover", lambda visible: plans.append(least_cover(visible)) or plans[-1]
    )
    config = EpisodeConfig(
        object="polygon:star", planner=PlannerSettings(planner="set_cover", target="points")
    )
    config = dataclasses.replace(
        config,
        sensor=SensorSettings(num_beams=61, noise_std=0.2),
        termination=dataclasses.replace(
            config.termination,
            max_views=9,
            certify=False,
            stall_views=0,
            min_gain=0.0,
            target_fraction=1.0,
        ),
    )
    episode = Simulation(config)
    angles = np.array([record.angle for record in episode.run()])
    assert len(plans) == len(angles) - 1
    assert all((plan == plans[0]).all() for plan in plans)
    planned = episode.planner.views.candidates.view_angle[plans[0]]
    carried_out = min(len(planned), len(angles) - 1)
    assert np.isin(angles[1 : 1 + carried_out], planned).all()
