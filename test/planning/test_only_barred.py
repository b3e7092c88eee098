"""Where arcs, polygons or the map bar all views that would see more, the episode ends at once and
names them.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from nbv_planner.episode.parameters import configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.session import events
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings

PLAIN = {
    "object": "ellipse:a=6,b=4",
    "shapes": 16,
    "first_views": 8,
    "certificate_shapes": 50,
    "grid_size": 360,
}
BARRED = {
    "arcs": ({"allowed_arcs": (0.0, 3.3)}, "outside the allowed arcs", "°)"),
    "polygon": ({"no_go_polygons": "-12,-12 12,-12 12,-3 -12,-3"}, "in a no-go polygon", "°)"),
}


U, IOA = {"planner": "greedy", "objective": "U"}, {"planner": "greedy", "objective": "IOA"}
# By new points, by something else, by nothing, and by a map of its own.
NAMED = {
    "rollout": {},
    "EMC": {"planner": "greedy", "objective": "EMC"},
    "U": U,
    "IOA": IOA,
    "EMC-U": {**U, "planner": "two_phase", "phase_one_objective": "EMC"},
    "OSM": {"planner": "greedy", "objective": "OSM"},
    "uniform": {"planner": "uniform"},
    "volumetric": {"planner": "volumetric"},
    "design": {"planner": "design"},
}


# Each planner and each bar: which planner it is does not matter to what is barred.
PAIRS = {
    f"{name}-{bar}": (NAMED[name], *BARRED[bar])
    for name, bar in zip(NAMED, itertools.cycle(BARRED), strict=False)
}


@pytest.mark.parametrize(("named", "bars", "reason", "place"), PAIRS.values(), ids=PAIRS)
def test_it_ends_as_soon_as_no_view_that_is_left_promises_a_point(named, bars, reason, place):
    simulation = Simulation(configure(**PLAIN, **named, **bars))
    ended = simulation.finish().termination
    assert ended.reason is TerminationReason.NO_REACHABLE_VIEW
    assert ended.figures["predicted_gain"] < 1.0 <= ended.figures["barred_gain"]
    assert all(
        word in ended.detail for word in (reason, "the best at x", place, "estimated completeness")
    )
    assert sum(view.new_points == 0 for view in simulation.judge.views) <= 1
    assert 0.5 < simulation.judge.coverage < 0.8


def test_the_session_of_a_robot_ends_for_the_same_reason():
    simulation = Simulation(configure(**PLAIN, allowed_arcs=(0.0, 3.3)))
    simulation.finish()
    monitor = TerminationMonitor(TerminationSettings(certify=False))
    settings = SessionSettings(wait_for_start=False, goal_subscribers=0)
    session = PlannerCore(simulation.planner, monitor, ArrivalSettings(), settings)
    session.inputs.belief, session.inputs.pose = simulation.belief, simulation.judge.steps[-1].view
    taken = tuple(simulation._visited())
    judged, sure = (0.5,) * len(taken), (False,) * len(taken)
    session.episode = dataclasses.replace(
        session.episode, visited=taken, history=judged, doubts=sure
    )
    assert events.update(session, 1) is None
    assert session.episode.termination is not None
    assert session.episode.termination.reason is TerminationReason.NO_REACHABLE_VIEW
    assert "outside the allowed arcs" in session.episode.termination.detail


def test_a_view_that_is_to_tell_whether_what_was_seen_is_right_need_not_see_more():
    simulation = Simulation(configure(**PLAIN, allowed_arcs=(0.0, 3.3)))
    simulation.finish()
    monitor = TerminationMonitor(TerminationSettings(certify=False))
    decision = simulation.planner.decide(simulation.belief, visited=simulation._visited())
    assert monitor.only_barred(decision, simulation.planner) is not None
    monitor.doubts = [True]
    assert monitor.only_barred(decision, simulation.planner) is None


def test_views_at_random_end_as_well_though_some_of_them_are_worth_nothing():
    simulation = Simulation(
        configure(**PLAIN, planner="random", stall_views=0, **BARRED["arcs"][0])
    )
    ended = simulation.finish().termination
    assert ended.reason is TerminationReason.NO_REACHABLE_VIEW
    assert "the best at x" in ended.detail
    assert 0.6 < simulation.judge.coverage < 0.65


@pytest.mark.parametrize(
    "named",
    [U, IOA, {"planner": "uniform"}, {"planner": "random"}, {"planner": "volumetric"}],
    ids=["U", "IOA", "uniform", "random", "volumetric"],
)
def test_without_bars_nothing_is_drawn_for_it_and_every_view_is_as_if_it_could_not_be_judged(named):
    """Nor does it choose another view where something is barred: it only ends."""
    for bars in ({}, BARRED["arcs"][0]):
        judged, blind = (
            Simulation(configure(**PLAIN, **named, **bars, max_views=5)) for _ in range(2)
        )
        blind.planner.expected = None
        for run in (judged, blind):
            run.finish()
        for one, other in zip(judged.steps, blind.steps, strict=True):
            assert (one.view, one.objective_value) == (other.view, other.objective_value)
            np.testing.assert_array_equal(one.utilities, other.utilities)
        decision = judged.planner.decide(judged.belief, visited=judged._visited())
        assert bars or decision.promised is None


def test_what_the_mean_contour_plainly_shows_the_shapes_confirm():
    """Where shapes are left undrawn they would not have ended the episode."""
    plain = 0
    for named in (U, {"planner": "uniform"}):
        simulation = Simulation(configure(**PLAIN, **named, **BARRED["arcs"][0]))
        planner = simulation.planner
        for record in simulation.run():
            belief, taken = simulation.belief, simulation._visited()
            decision = planner.decide(belief, visited=taken)
            assert decision is not None
            assert len(taken) == record.number
            if decision.promised is None:
                plain += 1
                question = planner._situation(belief, planner.views.candidates, None, taken)
                gains = planner.expected.evaluate(question)
                assert gains[decision.excluded == 0].max() >= 1.0
    assert plain > 5


def test_the_shapes_of_a_planner_on_something_else_promise_what_they_would_to_EMC():
    simulation = Simulation(configure(**PLAIN, **U, **BARRED["arcs"][0]))
    simulation.finish()
    by_width = simulation.planner.decide(simulation.belief, visited=simulation._visited())
    twin = Simulation(configure(**PLAIN, planner="greedy", objective="EMC", **BARRED["arcs"][0]))
    by_points = twin.planner.decide(simulation.belief, visited=simulation._visited())
    assert by_points.promised is by_points.utilities
    np.testing.assert_array_equal(by_width.promised, by_points.utilities)
    assert by_width.utilities.max() > 100.0  # in another unit


def test_views_that_are_left_out_for_a_while_are_no_reason_to_end():
    """They may be reached later; so may those that another view shows to be safe."""
    simulation = Simulation(configure(**PLAIN, allowed_arcs=(0.0, 3.3)))
    simulation.finish()
    decision = simulation.planner.decide(simulation.belief, visited=simulation._visited())
    monitor = TerminationMonitor(TerminationSettings(certify=False))
    assert monitor.only_barred(decision, simulation.planner)
    opened = Simulation(configure(**PLAIN)).planner
    # the same reasons, but no arc of the settings
    assert monitor.only_barred(decision, opened) is None
    unknown = dataclasses.replace(decision, promised=None)
    assert monitor.only_barred(unknown, simulation.planner) is None
    bare = dataclasses.replace(simulation.belief, evidence=None)  # of a mapper that publishes none
    by_width = Simulation(configure(**PLAIN, **U, **BARRED["arcs"][0], certify=False)).planner
    assert by_width.decide(bare, visited=simulation._visited()).promised is None
