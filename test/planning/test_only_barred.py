"""Where arcs, polygons or the map bar all views that would see more, the episode ends at once and names them."""

from __future__ import annotations

import dataclasses

import pytest

from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.mapping.matching import ArrivalSettings
from nbv_planner.planning.termination import TerminationMonitor, TerminationReason, TerminationSettings
from nbv_planner.session.planning_session import PlanningSession, SessionSettings

PLAIN = {"object": "ellipse:a=6,b=4", "shapes": 16, "first_views": 8, "certificate_shapes": 50, "grid_size": 360}
BARRED = {
    "arcs": ({"allowed_arcs": (0.0, 3.3)}, "outside the allowed arcs", "°)"),
    "polygon": ({"no_go_polygons": "-12,-12 12,-12 12,-3 -12,-3"}, "in a no-go polygon", "°)"),
}


@pytest.mark.parametrize("planner", ["rollout", "EMC"])
@pytest.mark.parametrize(("bars", "reason", "place"), BARRED.values(), ids=BARRED)
def test_it_ends_as_soon_as_no_view_that_is_left_promises_a_point(planner, bars, reason, place):
    named = {"planner": "greedy", "objective": "EMC"} if planner == "EMC" else {"planner": planner}
    simulation = Simulation(configure(**PLAIN, **named, **bars))
    ended = simulation.finish().termination
    assert ended.reason is TerminationReason.NO_REACHABLE_VIEW
    assert ended.figures["predicted_gain"] < 1.0 <= ended.figures["barred_gain"]
    assert all(word in ended.detail for word in (reason, "the best at x", place, "estimated completeness"))
    assert sum(view.new_points == 0 for view in simulation.judge.views) <= 1
    assert 0.5 < simulation.judge.coverage < 0.8


def test_the_session_of_a_robot_ends_for_the_same_reason():
    simulation = Simulation(configure(**PLAIN, allowed_arcs=(0.0, 3.3)))
    simulation.finish()
    monitor = TerminationMonitor(TerminationSettings(certify=False))
    settings = SessionSettings(wait_for_start=False, goal_subscribers=0)
    session = PlanningSession(simulation.planner, monitor, ArrivalSettings(), settings)
    session.inputs.belief, session.inputs.pose = simulation.belief, simulation.judge.steps[-1].view
    session.visited = simulation._visited()
    assert session.update(1) is None
    assert session.termination is not None
    assert session.termination.reason is TerminationReason.NO_REACHABLE_VIEW
    assert "outside the allowed arcs" in session.termination.detail


def test_views_that_are_left_out_for_a_while_are_no_reason_to_end():
    """They may be reached later; so may those that another view shows to be safe."""
    simulation = Simulation(configure(**PLAIN, allowed_arcs=(0.0, 3.3)))
    simulation.finish()
    decision = simulation.planner.decide(simulation.belief, visited=simulation._visited())
    monitor = TerminationMonitor(TerminationSettings(certify=False))
    assert monitor.only_barred(decision, simulation.planner)
    opened = Simulation(configure(**PLAIN)).planner
    assert monitor.only_barred(decision, opened) is None  # the same reasons, but no arc of the settings
    by_width = dataclasses.replace(simulation.planner.settings, planner="greedy", objective="U")
    simulation.planner.settings = by_width
    assert monitor.only_barred(decision, simulation.planner) is None  # its utilities are no numbers of points
