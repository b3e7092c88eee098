"""What options that name an objective alone mean beside a planner that looks at none."""

from __future__ import annotations

import pytest

from nbv_planner.planning.planners.decision_settings import ON_SHAPES, PLANNERS, named_choice


@pytest.mark.parametrize("planner", ON_SHAPES)
def test_an_objective_alone_takes_the_place_of_a_planner_on_shapes(planner):
    assert named_choice({"objective": "U"}, planner) == {"objective": "U", "planner": "greedy"}
    phases = {"objective": "U", "phase_one_objective": "CS"}
    assert named_choice(phases, planner) == {**phases, "planner": "two_phase"}


@pytest.mark.parametrize("planner", sorted(set(PLANNERS) - set(ON_SHAPES)))
def test_a_planner_that_looks_at_objectives_stays(planner):
    assert named_choice({"objective": "U"}, planner) == {"objective": "U"}


@pytest.mark.parametrize(
    "given", [{}, {"planner": "hybrid"}, {"planner": "rollout", "objective": "U"}]
)
def test_what_was_named_is_taken_as_it_is(given):
    assert named_choice(given, "rollout") == given
