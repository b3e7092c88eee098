"""Where the posterior shapes have nothing left to see, U decides."""

from __future__ import annotations

import numpy as np
import pytest
from beliefs import belief_of, with_evidence
from views import all_at, circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.thesis.area import Uncertainty
from nbv_planner.world.scene import Scene

SCENE, VIEWS = Scene(), ViewSpaceSettings(num_views=40)
# Measured everywhere, and least certain around 4 rad.
ALL_SEEN = with_evidence(
    belief_of(lambda angle: 4.9 - 0.5 * np.exp(-8.0 * (angle - 4.0) ** 2), 5.1, size=400, hits=1)
)
NOTHING_SEEN = with_evidence(belief_of(4.0, 6.0, size=400))


def decision(belief, **settings):
    planner = planner_named(PlannerSettings(**settings), SCENE, circle(VIEWS))
    return planner.decide(belief, visited=all_at([0.3]))


@pytest.mark.parametrize(
    "settings", [{"planner": "rollout"}, {"planner": "greedy", "objective": "EMC"}]
)
def test_the_least_certain_view_is_taken_when_emc_promises_nothing(settings):
    found = decision(ALL_SEEN, **settings)
    bounds = np.where(
        found.feasible, Uncertainty.values(ALL_SEEN, SCENE, found.candidates.view_angle), -np.inf
    )
    assert found.decided_by == "U"
    assert found.view_angle == found.candidates[bounds.argmax()].view_angle
    assert found.view_angle == pytest.approx(4.0, abs=0.1)
    assert found.utilities.max() < 1.0


@pytest.mark.parametrize(
    "settings", [{"planner": "rollout"}, {"planner": "greedy", "objective": "EMC"}]
)
def test_the_planner_itself_decides_while_there_is_something_to_see(settings):
    found = decision(NOTHING_SEEN, **settings)
    assert found.decided_by in ("rollout", "EMC")
    assert found.utilities.max() > 1.0


def test_a_planner_that_heeds_no_objective_goes_on():
    sweep = decision(ALL_SEEN, planner="uniform", objective="EMC")
    assert sweep.decided_by == "uniform"
    assert sweep.view_angle == decision(NOTHING_SEEN, planner="uniform", objective="EMC").view_angle
