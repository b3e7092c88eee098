"""The two-phase planner: the best view inside the interval around the widest area (thesis ch.
5.3.2).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of, wavy_belief
from hypothesis import given, settings
from hypothesis import strategies as st
from views import at, circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.planning.objectives.objective import ObjectiveInfo
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.thesis import TwoPhasePlanner
from nbv_planner.world.scene import Scene

SCENE = Scene()
TWO_PI = 2 * math.pi
# Interval of 53 degrees to either side: two neighbours of 16 candidates, not three.
NARROW = Scene(range_max=9.0, field_of_view=2 * math.atan(0.17))


@dataclasses.dataclass
class Values:
    """Objective with given values at equally spaced candidates."""

    values: list[float]
    info = ObjectiveInfo("X", "values", "nnnnnn", "none")

    def evaluate(self, situation):
        views = situation.views.view_angle
        return np.array([float(self.values[round(v / TWO_PI * len(self.values))]) for v in views])


def planner(area, inner, scene=NARROW, views=None, **changes) -> TwoPhasePlanner:
    space = circle(views or ViewSpaceSettings(num_views=len(area)))
    chosen = PlannerSettings(planner="two_phase", revisit_radius=0.0, **changes)
    return TwoPhasePlanner(Values(area), Values(inner), scene, space, chosen)


def near(place: int, count: int, scene: Scene) -> list[int]:
    """Candidates inside the interval of candidate `place`."""
    reach = oracles.half_width(scene.view_distance, scene.field_of_view, scene.range_max)
    return [k for k in range(count) if abs(oracles.signed((k - place) * TWO_PI / count)) <= reach]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=16, max_size=16))
def test_the_view_is_the_first_best_of_phase_two_around_the_first_best_of_phase_one(pairs):
    area, inner = map(list, zip(*pairs, strict=True))
    allowed = near(area.index(max(area)), 16, NARROW)
    decision = planner(area, inner).decide(wavy_belief(0))
    expected = max(allowed, key=lambda k: (inner[k], -k))
    assert decision.view_angle == pytest.approx(expected * TWO_PI / 16)
    assert decision.utility == inner[expected]
    rest = sorted((inner[k] for k in allowed if k != expected), reverse=True)
    assert decision.margin == inner[expected] - rest[0]


def test_what_lies_outside_the_interval_does_not_count_however_good():
    area, inner = [0.0] * 16, [1.0] * 16
    area[4], inner[5], inner[12] = 9.0, 2.0, 100.0
    decision = planner(area, inner).decide(wavy_belief(0))
    assert decision.view_angle == pytest.approx(5 * TWO_PI / 16)
    assert decision.utilities[12] == 100.0
    assert decision.feasible.all()


def test_interval_reaches_across_zero():
    area, inner = [0.0] * 16, [0.0] * 16
    area[0], inner[15] = 1.0, 1.0
    assert planner(area, inner).decide(wavy_belief(0)).view_angle == pytest.approx(15 * TWO_PI / 16)


def test_a_maximiser_that_may_not_be_chosen_does_not_set_the_interval():
    area, inner = [0.0] * 16, [0.0] * 16
    area[4], area[12], inner[5], inner[13] = 9.0, 8.0, 2.0, 1.0
    views = ViewSpaceSettings(num_views=16, blocked_arcs=(1.5, 1.6))
    assert planner(area, inner, views=views).decide(wavy_belief(0)).view_angle == pytest.approx(
        13 * TWO_PI / 16
    )


def test_travel_counts_in_both_phases():
    area, inner = [0.0] * 16, [0.0] * 16
    area[2], area[10] = 10.0, 11.0
    free = planner(area, inner).decide(wavy_belief(0), current_view=at(0.0))
    dear = planner(area, inner, travel_weight=1.0).decide(wavy_belief(0), current_view=at(0.0))
    assert abs(oracles.signed(free.view_angle - 10 * TWO_PI / 16)) < 0.8
    assert dear.view_angle == pytest.approx(min(near(2, 16, NARROW)) * TWO_PI / 16)


def test_cs_u_prefers_the_widest_area_to_the_widest_place():
    """Figure "confidence vs. uncertainty": U alone goes to a lonely spike, CS-U to the broad
    region.
    """

    def half(grid):
        return np.where(
            np.abs(grid - 1.5) < 0.05, 2.5, np.where(np.abs(grid - 4.5) < 0.8, 1.5, 0.1)
        )

    belief = belief_of(lambda g: 5.0 - half(g), lambda g: 5.0 + half(g), size=1000)
    views = circle(ViewSpaceSettings(num_views=400))
    greedy = planner_named(PlannerSettings(planner="greedy", objective="U"), SCENE, views).decide(
        belief
    )
    phases = planner_named(
        PlannerSettings(planner="two_phase", objective="U"), SCENE, views
    ).decide(belief)
    assert abs(greedy.view_angle - 1.5) < 0.06
    assert abs(phases.view_angle - 4.5) < 0.81
