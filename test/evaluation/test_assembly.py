"""An episode is put together from its messages in whichever order they arrive, in bounded
memory.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from beliefs import wavy_belief
from simulated_bags import info_of

from nbv_planner.episode.log import EpisodeLog, _size
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    CANDIDATES,
    ITERATION,
    RUN_INFO,
    SCAN,
    SURFACE,
    SURFACE_INFO,
    Candidates,
    RecordedDecision,
    decision_from_values,
    estimate_from_values,
    termination_from_values,
)
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.errors import InputRejectedError
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.surface.coverage import CoverageEstimate
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan

VALUES = {
    "round": "2",
    "goal_stamp": "70",
    "view_angle": "1.5",
    "utility": "0.25",
    "planning_milliseconds": "3.0",
}
BELIEF = wavy_belief(1, size=20)
CANDIDATE_VIEWS = Candidates(*np.zeros((5, 3)), np.ones(3, dtype=bool))
SCAN_TAKEN = Scan(0.0, 0.1, np.full(3, 5.0), 0.1, 10.0)
POSE = CameraPose(10.0, 0.0, math.pi)


def decision(number: int, stamp: int) -> RecordedDecision:
    return RecordedDecision(number, stamp, 0.1 * number, 1.0, 2.0)


VALUES_OF = {CANDIDATES: CANDIDATE_VIEWS, SURFACE: BELIEF, SCAN: SCAN_TAKEN, CAMERA_POSE: POSE}


def say(log: EpisodeLog, topic: str, stamp: int) -> None:
    log.add(topic, decision(stamp // 100, stamp) if topic == ITERATION else VALUES_OF[topic], stamp)
    if topic == SURFACE:
        log.add(SURFACE_INFO, info_of(BELIEF, stamp), stamp)


ONE_VIEW = [(ITERATION, 100), (CANDIDATES, 100), (SURFACE, 105), (SCAN, 105), (CAMERA_POSE, 105)]


@pytest.mark.parametrize(
    "order", itertools.permutations(ONE_VIEW), ids=lambda o: "-".join(k[0] for k, _ in o)
)
def test_any_order_within_a_view_gives_the_same(order):
    log = EpisodeLog()
    for what in order:
        say(log, *what)
    (view,) = log.views
    assert view.belief.mean is BELIEF.mean
    assert (view.candidates, view.scan.scan, view.scan.pose) == (
        CANDIDATE_VIEWS,
        SCAN_TAKEN,
        POSE,
    )
    assert view.belief_stamp == view.scan.stamp == 105


@pytest.mark.parametrize("seed", range(20))
def test_topics_may_overtake_each_other_across_views(seed):
    """Decisions stay in order among themselves; everything else may come long before or after."""
    rng = np.random.default_rng(seed)
    others = [
        (topic, stamp + 5 * (topic != CANDIDATES))
        for stamp in (100, 200, 300)
        for topic in (CANDIDATES, SURFACE, SCAN, CAMERA_POSE)
    ]
    mixed = [others[index] for index in rng.permutation(len(others))]
    places = np.sort(rng.integers(0, len(others) + 1, size=3))
    for place, stamp in reversed(list(zip(places, (100, 200, 300), strict=True))):
        mixed.insert(int(place), (ITERATION, stamp))
    log = EpisodeLog()
    for what in mixed:
        say(log, *what)
    assert [view.belief_stamp for view in log.views] == [105, 205, 305]
    assert all(view.candidates and view.scan for view in log.views)


def test_of_several_surfaces_the_earliest_after_the_decision_counts():
    log = EpisodeLog()
    for what in [(SURFACE, 140), (ITERATION, 100), (SURFACE, 120), (SURFACE, 99), (SURFACE, 130)]:
        say(log, *what)
    assert log.views[0].belief_stamp == 120


def test_a_surface_from_after_the_next_decision_is_none_of_the_view_before():
    """As when a recorder starts late: all decisions come at once, and only the newest surface."""
    log = EpisodeLog()
    for what in [(SURFACE, 305), (ITERATION, 100), (ITERATION, 200), (ITERATION, 300)]:
        say(log, *what)
    assert [view.belief_stamp for view in log.views] == [None, None, 305]


def test_the_same_decision_again_changes_nothing_and_another_one_of_the_round_takes_its_place():
    log = EpisodeLog()
    for stamp in (100, 100, 150, 100):
        log.add(ITERATION, decision(1, stamp))
    assert [view.decision.goal_stamp for view in log.views] == [150]
    assert [(old.goal_stamp, stamp) for old, stamp in log.given_up] == [(100, 150)]


def test_decisions_said_again_from_the_first_one_begin_no_episode():
    """As when a recorder subscribes again to what is latched."""
    log = EpisodeLog()
    for stamp in (100, 200, 300, 100, 200, 300, 400):
        say(log, ITERATION, stamp)
    assert [view.decision.round for view in log.views] == [1, 2, 3, 4]
    assert log.number == 1


MS = 1_000_000


@pytest.mark.parametrize(
    ("mapper", "x"),
    [
        ({}, 10.5),
        ({"pose_gap": 0.0}, 10.0),
        ({"pose_gap": 0.0, "pose_tolerance": 0.001}, None),
        ({"mount_x": 1.0}, 9.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("when", [0, 2, 4])
def test_a_scan_gets_its_pose_as_the_mapper_gives_it_whenever_the_parameters_come(mapper, x, when):
    """The camera looks along -x; the scan is taken in the middle between two poses that are 20 ms
    apart.
    """
    said = [
        (SCAN, SCAN_TAKEN, 110 * MS),
        (CAMERA_POSE, POSE, 100 * MS),
        (CAMERA_POSE, CameraPose(11.0, 0.0, math.pi), 120 * MS),
        (SURFACE, BELIEF, 110 * MS),
        (SURFACE_INFO, info_of(BELIEF, 110 * MS, mount=(mapper.get("mount_x", 0.0), 0.0, 0.0))),
    ]
    said.insert(when, (RUN_INFO, RunParameters({"surface_mapper": mapper}), 0))
    log = EpisodeLog()
    log.add(ITERATION, decision(1, 90 * MS))
    for what in said:
        log.add(*what)
    (view,) = log.views
    if x is None and when < 4:
        assert view.scan is None
    elif x is not None:
        assert view.scan.pose.x == pytest.approx(x)


def test_waiting_values_are_bounded_in_number_and_in_bytes():
    large = Scan(0.0, 1e-6, np.full(2**17, 5.0), 0.1, 10.0)
    log = EpisodeLog()
    for stamp in range(1, 2000):
        log.add(SCAN, SCAN_TAKEN if stamp < 1900 else large, stamp)
    assert (
        log._scans._bytes == sum(_size(scan) for scan in log._scans.entries.values()) <= 32 * 2**20
    )
    for stamp in range(2000, 4000):
        for topic in VALUES_OF:
            say(log, topic, stamp)
    kept = (
        log._scans.entries,
        log._surfaces.entries,
        log._candidates.entries,
        log._unpaired,
        log._poses,
    )
    assert max(len(values) for values in kept) <= 400


def test_values_of_a_decision_are_read():
    assert decision_from_values(VALUES) == RecordedDecision(2, 70, 1.5, 0.25, 3.0, None)
    assert decision_from_values({**VALUES, "surface_stamp": "60"}).surface_stamp == 60


def test_a_decision_off_the_view_circle_tells_its_whole_view():
    assert decision_from_values(VALUES).view(10.0) == CameraPose.from_polar(1.5, 10.0)
    elsewhere = CameraPose.from_polar(1.5, 7.0, -0.2)
    values = {
        **VALUES,
        **{name: repr(number) for name, number in elsewhere.off_circle(10.0).items()},
    }
    assert decision_from_values(values).view(10.0) == elsewhere
    with pytest.raises(InputRejectedError, match="view_distance is inf"):
        decision_from_values({**values, "view_distance": "inf"})
    assert CameraPose.from_polar(1.5, 10.0).off_circle(10.0) == {}  # rounding is no reason


@pytest.mark.parametrize(
    "values",
    [{"round": "x"}, {"view_angle": "nan"}, {"view_angle": "inf"}, {"goal_stamp": "1.5"}],
    ids=str,
)
def test_values_that_are_no_decision_are_refused(values):
    with pytest.raises(InputRejectedError) as caught:
        decision_from_values({**VALUES, **values})
    assert caught.value.reason == "iteration"
    with pytest.raises(InputRejectedError):
        decision_from_values({key: value for key, value in VALUES.items() if key not in values})


def test_a_termination_is_read_with_its_figures():
    values = {
        "state": "DONE",
        "views": "3",
        "reason": "NO_GAIN",
        "detail": "why",
        "min_gain": "0.5",
        "elapsed": "1",
    }
    assert termination_from_values(values) == Termination(
        TerminationReason.NO_GAIN, {"min_gain": 0.5}, "why"
    )
    stopped = {**values, "reason": "STOPPED"}
    assert termination_from_values(stopped).figures == {"min_gain": 0.5, "views": 3.0}
    assert termination_from_values({"state": "MOVING"}) is None


@pytest.mark.parametrize(
    "values", [{"reason": "BORED"}, {"reason": "NO_GAIN", "min_gain": "much"}], ids=str
)
def test_a_termination_nobody_knows_is_refused(values):
    with pytest.raises(InputRejectedError) as caught:
        termination_from_values({"state": "DONE", "views": "1", **values})
    assert caught.value.reason == "status"


ESTIMATE = {
    "coverage_mean": "0.9",
    "coverage_lower": "0.85",
    "coverage_upper": "0.95",
    "coverage_probability": "0.25",
}


def test_an_estimate_of_the_coverage_is_read_where_there_is_one():
    assert estimate_from_values({"state": "MOVING", **ESTIMATE}) == CoverageEstimate(
        0.9, 0.85, 0.95, 0.25
    )
    assert estimate_from_values({"state": "MOVING", "coverage_estimate": "0.9"}) is None


@pytest.mark.parametrize("name", ESTIMATE)
@pytest.mark.parametrize("value", [None, "much", "nan", "inf", "-0.1", "1.1"])
def test_an_estimate_that_is_not_whole_is_refused(name, value):
    values = {key: text for key, text in {**ESTIMATE, name: value}.items() if text is not None}
    with pytest.raises(InputRejectedError, match="coverage") as caught:
        estimate_from_values(values)
    assert caught.value.reason == "status"
