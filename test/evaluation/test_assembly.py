"""An episode is put together from its messages in whichever order they arrive, in bounded memory."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from beliefs import wavy_belief

from nbv_planner.camera import CameraPose, Scan
from nbv_planner.errors import InputRejectedError
from nbv_planner.evaluation.assembly import EpisodeAssembly
from nbv_planner.evaluation.recorded_decision import (
    RecordedDecision,
    decision_from_values,
    estimate_from_values,
    termination_from_values,
)
from nbv_planner.message_values import Candidates
from nbv_planner.planning.shapes.certificate import CoverageEstimate
from nbv_planner.planning.termination import Termination, TerminationReason

VALUES = {"round": "2", "goal_stamp": "70", "view_angle": "1.5", "utility": "0.25", "planning_milliseconds": "3.0"}
BELIEF = wavy_belief(1, size=20)
CANDIDATES = Candidates(np.zeros(3), np.zeros(3), np.zeros(3), np.ones(3, dtype=bool))
SCAN = Scan(0.0, 0.1, np.full(3, 5.0), 0.1, 10.0)
POSE = CameraPose(10.0, 0.0, math.pi)


def decision(number: int, stamp: int) -> RecordedDecision:
    return RecordedDecision(number, stamp, 0.1 * number, 1.0, 2.0)


def say(assembly: EpisodeAssembly, what: tuple[str, int]) -> None:
    kind, stamp = what
    calls = {
        "decision": lambda: assembly.add_decision(decision(stamp // 100, stamp)),
        "candidates": lambda: assembly.add_candidates(stamp, lambda: CANDIDATES),
        "surface": lambda: assembly.add_surface(stamp, lambda: BELIEF),
        "scan": lambda: assembly.add_scan(stamp, lambda: SCAN),
        "pose": lambda: assembly.add_pose(stamp, lambda: POSE),
    }
    calls[kind]()


TWO_VIEWS = [("decision", 100), ("candidates", 100), ("surface", 105), ("scan", 105), ("pose", 105)]


@pytest.mark.parametrize("order", itertools.permutations(TWO_VIEWS), ids=lambda o: "-".join(k[0] for k, _ in o))
def test_any_order_within_a_view_gives_the_same(order):
    assembly = EpisodeAssembly()
    for what in order:
        say(assembly, what)
    (view,) = assembly.views
    assert (view.candidates, view.belief, view.scan, view.pose) == (CANDIDATES, BELIEF, SCAN, POSE)
    assert view.belief_stamp == 105


@pytest.mark.parametrize("seed", range(20))
def test_topics_may_overtake_each_other_across_views(seed):
    """Decisions stay in order among themselves; everything else may come long before or after."""
    rng = np.random.default_rng(seed)
    others = [(kind, stamp + 5 * (kind != "candidates")) for stamp in (100, 200, 300)
              for kind in ("candidates", "surface", "scan", "pose")]  # fmt: skip
    rng.shuffle(others)
    places = np.sort(rng.integers(0, len(others) + 1, size=3))
    mixed = [tuple(o) for o in others]
    mixed = [(kind, int(stamp)) for kind, stamp in mixed]
    for place, stamp in reversed(list(zip(places, (100, 200, 300), strict=True))):
        mixed.insert(int(place), ("decision", stamp))
    assembly = EpisodeAssembly()
    for what in mixed:
        say(assembly, what)
    assert [view.belief_stamp for view in assembly.views] == [105, 205, 305]
    assert all(view.candidates and view.scan and view.pose for view in assembly.views)


def test_of_several_surfaces_the_earliest_after_the_decision_counts():
    assembly = EpisodeAssembly()
    for what in [("surface", 140), ("decision", 100), ("surface", 120), ("surface", 99), ("surface", 130)]:
        say(assembly, what)
    assert assembly.views[0].belief_stamp == 120


def test_a_surface_from_after_the_next_decision_is_none_of_the_view_before():
    """As when a recorder starts late: all decisions come at once, and only the newest surface."""
    assembly = EpisodeAssembly()
    for what in [("surface", 305), ("decision", 100), ("decision", 200), ("decision", 300)]:
        say(assembly, what)
    assert [view.belief_stamp for view in assembly.views] == [None, None, 305]


def test_the_same_decision_again_changes_nothing_and_another_one_of_the_round_takes_its_place():
    assembly = EpisodeAssembly()
    assembly.add_decision(decision(1, 100))
    assembly.add_decision(decision(1, 100))
    assembly.add_decision(decision(1, 150))
    assert [view.decision.goal_stamp for view in assembly.views] == [150]
    assert [(old.goal_stamp, stamp) for old, stamp in assembly.given_up] == [(100, 150)]


def test_what_cannot_be_read_is_as_if_it_had_not_come():
    def broken():
        raise InputRejectedError("layout", "broken")

    assembly = EpisodeAssembly()
    assembly.add_decision(decision(1, 100))
    assembly.add_surface(105, broken)
    assembly.add_candidates(100, broken)
    assert (assembly.views[0].belief, assembly.views[0].candidates) == (None, None)
    assembly.add_surface(106, lambda: BELIEF)
    assert assembly.views[0].belief_stamp == 106


def test_only_what_belongs_to_a_decision_is_read():
    read = []
    assembly = EpisodeAssembly()
    for stamp in range(1000):
        assembly.add_scan(stamp, lambda stamp=stamp: read.append(stamp) or SCAN)
    assembly.add_decision(decision(1, 990))
    assembly.add_surface(995, lambda: BELIEF)
    assert read == [995]


def test_waiting_values_are_bounded_in_number_and_in_bytes():
    assembly = EpisodeAssembly()
    for stamp in range(1, 2000):
        assembly.add_scan(stamp, lambda: SCAN, size=2**20)
    assembly.add_decision(decision(1, 0))
    assembly.add_surface(1, lambda: BELIEF)
    assert assembly.views[0].scan is None  # long gone
    assert assembly._scans._bytes <= 32 * 2**20
    assert len(assembly._scans.stamps) <= 400


def test_values_of_a_decision_are_read():
    assert decision_from_values(VALUES) == RecordedDecision(2, 70, 1.5, 0.25, 3.0, None)
    assert decision_from_values({**VALUES, "surface_stamp": "60"}).surface_stamp == 60


@pytest.mark.parametrize(
    "values", [{"round": "x"}, {"view_angle": "nan"}, {"view_angle": "inf"}, {"goal_stamp": "1.5"}], ids=str
)
def test_values_that_are_no_decision_are_refused(values):
    with pytest.raises(InputRejectedError) as caught:
        decision_from_values({**VALUES, **values})
    assert caught.value.reason == "iteration"
    with pytest.raises(InputRejectedError):
        decision_from_values({key: value for key, value in VALUES.items() if key not in values})


def test_a_termination_is_read_with_its_figures():
    values = {"state": "DONE", "views": "3", "reason": "NO_GAIN", "detail": "why", "min_gain": "0.5", "elapsed": "1"}
    assert termination_from_values(values) == Termination(TerminationReason.NO_GAIN, {"min_gain": 0.5}, "why")
    stopped = {**values, "reason": "STOPPED"}
    assert termination_from_values(stopped).figures == {"min_gain": 0.5, "views": 3.0}
    assert termination_from_values({"state": "MOVING"}) is None


@pytest.mark.parametrize("values", [{"reason": "BORED"}, {"reason": "NO_GAIN", "min_gain": "much"}], ids=str)
def test_a_termination_nobody_knows_is_refused(values):
    with pytest.raises(InputRejectedError) as caught:
        termination_from_values({"state": "DONE", "views": "1", **values})
    assert caught.value.reason == "status"


ESTIMATE = {"coverage_mean": "0.9", "coverage_lower": "0.85", "coverage_upper": "0.95", "coverage_probability": "0.25"}


def test_an_estimate_of_the_coverage_is_read_where_there_is_one():
    assert estimate_from_values({"state": "MOVING", **ESTIMATE}) == CoverageEstimate(0.9, 0.85, 0.95, 0.25)
    assert estimate_from_values({"state": "MOVING", "coverage_estimate": "0.9"}) is None


@pytest.mark.parametrize("name", ESTIMATE)
@pytest.mark.parametrize("value", [None, "much", "nan", "inf", "-0.1", "1.1"])
def test_an_estimate_that_is_not_whole_is_refused(name, value):
    values = {key: text for key, text in {**ESTIMATE, name: value}.items() if text is not None}
    with pytest.raises(InputRejectedError, match="coverage") as caught:
        estimate_from_values(values)
    assert caught.value.reason == "status"
