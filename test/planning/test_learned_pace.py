"""Speeds and dwell time learned from trips driven: the estimator, and a session whose camera has a
known speed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from beliefs import belief_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from journaled import restarted
from views import circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.planning.motion import MOST_TRIPS, TimeSettings, Trip, learned_pace, travel_time
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import ViewSpaceSettings
from nbv_planner.session import events, targets
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import SessionSettings
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.objects import parse_object
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import Drive

PRIOR = TimeSettings()
SPEED = st.floats(0.02, 5.0)
WAYS = st.lists(st.tuples(st.floats(0.5, 40.0), st.floats(0.05, 3.1)), min_size=3, max_size=12)


def legs_of(ways, pace: TimeSettings, noise=1.0) -> list[Trip]:
    took = travel_time(*np.array(ways).T, pace) * noise
    return [
        Trip(length, turn, 0.0, float(t), pace.dwell_time)
        for (length, turn), t in zip(ways, took, strict=True)
    ]


def loss(trips, prior, v, w) -> float:
    """What is minimised, trip by trip."""
    found = abs(math.log(v / prior.linear_speed)) + abs(math.log(w / prior.turn_speed))
    return found + sum(
        abs(math.log(trip.travel / max(trip.length / v, trip.turn / w))) for trip in trips
    )


@given(WAYS, SPEED, SPEED, st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_it_is_the_best_of_all_pairs_of_speeds_by_brute_force(ways, v, w, seed):
    trips = legs_of(
        ways,
        TimeSettings(v, w, 1.0),
        np.exp(np.random.default_rng(seed).normal(0.0, 0.5, len(ways))),
    )
    found = learned_pace(trips, PRIOR)
    speeds = [PRIOR.linear_speed, *(trip.length / trip.travel for trip in trips)]
    rates = [PRIOR.turn_speed, *(trip.turn / trip.travel for trip in trips)]
    least = min(loss(trips, PRIOR, *pair) for pair in itertools.product(speeds, rates))
    assert loss(trips, PRIOR, found.linear_speed, found.turn_speed) == pytest.approx(
        least, abs=1e-6
    )


@given(WAYS, SPEED)
@example([(0.5, 1.0)] * 3, 0.25)
@settings(max_examples=60, deadline=None)
def test_legs_that_agree_give_their_speed_and_leave_what_they_do_not_depend_on(ways, v):
    """No trip is a turn: each takes as long as the way; one has none, so that slow turns cannot
    explain them all.
    """
    ways = [
        (1.0, 0.0),
        *((length, min(turn, 0.9 * length / v * PRIOR.turn_speed)) for length, turn in ways),
    ]
    found = learned_pace(legs_of(ways, TimeSettings(v, 1e9, 7.0)), PRIOR)
    assert found.linear_speed == pytest.approx(v)
    assert (found.turn_speed, found.dwell_time) == (PRIOR.turn_speed, 7.0)


def test_a_speed_that_no_setting_may_have_counts_as_none():
    trips = [
        Trip(1e-15, 1e-17, 0.0, 1e9, 2.0),
        *legs_of([(2.0, 0.1)] * 3, TimeSettings(0.25, 1.0, 2.0)),
    ]
    assert learned_pace(trips, PRIOR) == TimeSettings(0.25, 1.0, 2.0)


def test_driving_and_turning_are_told_apart_and_a_third_of_delays_counts_for_nothing():
    ways = [
        (20.0, 0.1),
        (1.0, 3.0),
        (12.0, 0.4),
        (0.5, 2.0),
        (16.0, 0.2),
        (2.0, 2.6),
        (9.0, 0.1),
        (0.4, 1.0),
        (30.0, 1.0),
    ]
    pace = TimeSettings(0.3, 0.25, 4.0)
    trips = legs_of(ways, pace)
    assert learned_pace(trips, PRIOR) == pace
    for late in (0, 1, 2):
        trips[late] = Trip(*ways[late], 0.0, trips[late].travel + 300.0, 90.0)
    assert learned_pace(trips, PRIOR) == pace


def test_without_legs_the_parameters_hold_and_one_leg_alone_does_not_outvote_them():
    assert learned_pace([], PRIOR) is PRIOR
    assert (
        learned_pace(legs_of([(10.0, 0.1)], TimeSettings(0.1)), PRIOR).linear_speed
        == PRIOR.linear_speed
    )
    assert learned_pace(
        legs_of([(10.0, 0.1)] * 2, TimeSettings(0.1)), PRIOR
    ).linear_speed == pytest.approx(0.1)


def test_a_camera_that_is_there_at_once_gives_finite_speeds():
    found = learned_pace([Trip(5.0, 0.0, 0.0, 0.0, 0.0)] * 3, PRIOR)
    assert found.linear_speed == pytest.approx(5000.0)
    assert found.turn_speed == PRIOR.turn_speed


# --- in a session

SCENE = Scene()
SECOND = 1_000_000_000


class Robot:
    """A session whose camera drives at a known speed around the object, in steps of simulated
    time.
    """

    def __init__(self, speed: float, dwell: float, **changes) -> None:
        self.speed, self.dwell, self.now = speed, dwell, 0
        chosen = PlannerSettings(planner="greedy", objective="U", revisit_radius=0.0)
        planner = planner_named(chosen, SCENE, circle(ViewSpaceSettings(num_views=30)))
        monitor = TerminationMonitor(TerminationSettings(stall_views=0, max_views=0))
        waits = SessionSettings(wait_for_start=False, goal_subscribers=0, **changes)
        self.run = PlannerCore(planner, monitor, ArrivalSettings(settle_time=0.0), waits)
        self.drive = Drive(parse_object("star", SCENE), GroundSettings(), WorldSettings(), 10.0)
        self.at, self.number = CameraPose.from_polar(0.0, 10.0), 0
        self.run.inputs.pose, self.run.inputs.pose_stamp = self.at, 0
        self.see()

    def see(self) -> None:
        """A surface that is not known in one direction, another one each time."""
        self.number += 1
        wide = 2.4 * self.number
        upper = lambda grid: np.where(np.cos(grid - wide) > 0.9, 8.0, 6.5)  # noqa: E731
        self.run.inputs.belief, self.run.inputs.belief_stamp = (
            belief_of(5.0, upper, size=400),
            self.now,
        )

    def take_views(self, count: int) -> None:
        while len(self.run.episode.visited) < count:
            goal = self.run.episode.goal or events.update(self.run, self.now)
            start, began = self.at, self.now
            self.drive.set_out(start, goal.decision.view)
            while self.run.state.value == "MOVING":
                self.now += SECOND // 20
                self.at = self.drive.view(self.speed * (self.now - began) * 1e-9)
                self.run.inputs.pose, self.run.inputs.pose_stamp = self.at, self.now
                events.update(self.run, self.now)
            self.see()
            self.now += round(self.dwell * SECOND)
            events.update(self.run, self.now)


def test_a_session_learns_how_fast_its_camera_drives_and_how_long_a_view_takes():
    robot = Robot(speed=1.7, dwell=3.0)
    robot.take_views(6)
    length = np.array([trip.length for trip in robot.run.episode.trips])
    assert len(robot.run.episode.trips) == 6
    # The robot takes the chord or goes around the object, the circle's way is along the circle: a
    # bit longer.
    assert 1.7 <= targets.pace(robot.run).linear_speed < 1.15 * 1.7
    assert targets.pace(robot.run).dwell_time == pytest.approx(3.0, abs=0.06)
    assert np.array([trip.predicted for trip in robot.run.episode.trips]) == pytest.approx(
        length / 0.5 + 2.0
    )


@pytest.mark.parametrize(("learn", "speed"), [(False, 0.5), (True, 1.7)])
def test_decisions_count_with_it_only_where_that_is_asked_for(learn, speed):
    robot = Robot(speed=1.7, dwell=3.0, learn_speeds=learn)
    robot.take_views(5)
    settings = targets.ask(robot.run, robot.now).planner.settings
    assert settings.linear_speed == pytest.approx(speed, rel=0.15)
    assert robot.run.planner.settings.linear_speed == 0.5


def test_what_was_disturbed_is_no_leg_and_legs_are_kept_in_the_saved_state():
    robot = Robot(speed=1.7, dwell=3.0)
    robot.take_views(2)
    assert len(robot.run.episode.trips) == 2
    events.pause(robot.run, True, robot.now)
    robot.now += 1000 * SECOND
    events.pause(robot.run, False, robot.now)
    robot.take_views(3)
    assert len(robot.run.episode.trips) == 2
    robot.take_views(4)
    assert len(robot.run.episode.trips) == 3
    again = restarted(robot.run, Robot(speed=1.7, dwell=3.0).run)
    assert again.episode.trips == robot.run.episode.trips


def test_the_newest_legs_count():
    robot = Robot(speed=1.0, dwell=1.0)
    trips = tuple(legs_of([(10.0, 0.1)] * MOST_TRIPS, TimeSettings(0.1)))
    robot.run.episode = dataclasses.replace(robot.run.episode, trips=trips)
    robot.take_views(3)
    assert len(robot.run.episode.trips) == MOST_TRIPS
    assert robot.run.episode.trips[-1].travel < 60.0
