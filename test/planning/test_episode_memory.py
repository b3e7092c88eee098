"""What of an episode survives the planner, the mapper and the clock (without ROS)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time

import numpy as np
import pytest
from beliefs import belief_of
from hypothesis import given, settings
from hypothesis import strategies as st
from journaled import records_of, restarted
from test_session import SECOND, band, feed, ready, session, take_view

from nbv_planner.errors import InputRejectedError, StateFileError
from nbv_planner.files.plain_values import to_plain
from nbv_planner.planning.endings import TerminationReason
from nbv_planner.session import events, targets
from nbv_planner.session.facts import Begun, Counted, Decided, Judged, Listed, ScansReceived
from nbv_planner.session.journal import Journal, from_records, to_record
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.questions import State
from nbv_planner.session.state import EpisodeState, SurfaceOrigin
from nbv_planner.settings import plain_settings
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import Check, Level
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import Scan


def another(run: PlannerCore, facts: int | None = None, **settings) -> PlannerCore:
    """Another process that goes on after the first facts of `run`, or all, and has heard what the
    first one had.
    """
    other = restarted(run, session(**settings), facts)
    other.inputs = dataclasses.replace(run.inputs)
    return other


def same(one: EpisodeState, other: EpisodeState) -> bool:
    """Whether all fields are, to the last bit; the time that a decision took is measured, and
    differs.
    """
    return json.dumps(timeless(to_plain(one))) == json.dumps(timeless(to_plain(other)))


def timeless(values):
    if isinstance(values, dict):
        return {
            name: timeless(value)
            for name, value in values.items()
            if name != "planning_milliseconds"
        }
    return [timeless(value) for value in values] if isinstance(values, list) else values


def test_the_state_is_what_the_facts_lead_to():
    run = counted(3)
    assert same(from_records(records_of(run))[0], run.episode)
    assert len(run.episode.visited) == 3


def test_at_every_moment_of_an_episode_another_process_goes_on_the_same():
    limit, wide = {"termination": {"max_views": 4}}, [0.0, 2.0, 4.0, 1.0]
    run, moments = ready(**limit), 0
    twin = another(run, **limit)
    for number in range(4):
        for step in range(6):
            now = (10 * number + step + 1) * SECOND
            for one in (run, twin):
                if step == 1:
                    feed(one, pose_angle=one.episode.goal.decision.view_angle - 0.3, pose_stamp=now)
                if step == 3:
                    feed(one, pose_angle=one.episode.goal.decision.view_angle, pose_stamp=now)
                if step == 4:
                    events.take_surface(one, band(wide[number]), now)
                events.update(one, now)
            # A trip that a restart disturbs is none, and when the camera was last elsewhere is
            # judged by newer poses.
            moment = {"trips": (), "away": 0}
            assert same(*(dataclasses.replace(one.episode, **moment) for one in (run, twin)))
            twin, moments = another(twin, **limit), moments + 1
            assert run.planner.views.unreachable == twin.planner.views.unreachable
    assert moments == 24
    assert run.episode.termination.reason is TerminationReason.MAX_VIEWS


class Robot:
    """A camera, a mapper and an operator around a core; each step is one of their events, by a fake
    clock.
    """

    def __init__(self, run: PlannerCore) -> None:
        self.run, self.now, self.published = run, SECOND, []

    def step(self, what: int) -> None:
        run, self.now = self.run, self.now + SECOND
        goal = run.episode.goal
        if what in (0, 1) and goal is not None:
            feed(run, pose_angle=goal.decision.view_angle + 0.3 * what, pose_stamp=self.now)
        elif what == 2:
            events.take_surface(
                run, hit(band(float(self.now // SECOND % 6)), self.now // SECOND), self.now
            )
        elif what == 3:
            self.now += 6 * SECOND
        elif what in (4, 5):
            events.pause(run, what == 4, self.now)
        elif what == 6 and goal is not None:
            events.skip(run, self.now)
        elif what == 7 and goal is not None:
            events.failed(run, goal.stamp, self.now)
        elif what == 8 and goal is not None:
            events.interrupted(run, goal.stamp, "somebody else")
        elif what == 9:
            events.take_surface(run, band(1.0), 0)
        target = events.update(run, self.now)
        if target is not None:
            self.published.append((len(run.facts), target.stamp))


@given(
    steps=st.lists(st.sampled_from([0, 0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9]), max_size=25),
    data=st.data(),
)
@settings(max_examples=30)
def test_a_crash_after_any_fact_loses_nothing_that_was_published_and_takes_no_view_twice(
    steps, data
):
    robot = Robot(ready(goal_timeout=5.0, num_views=16))
    for what in steps:
        robot.step(what)
    run = robot.run
    crash = data.draw(st.integers(1, len(run.facts)))
    twin = another(run, crash, goal_timeout=5.0, num_views=16)
    told = [stamp for facts, stamp in robot.published if facts <= crash]
    known = {fact.goal.stamp for fact in twin.facts if isinstance(fact, Decided)}
    assert known >= set(told)
    whole = [fact for fact in run.facts[:crash] if isinstance(fact, Counted)]
    assert len(twin.episode.visited) + twin.episode.lost_views == len(whole)
    assert twin.episode.visited == tuple(dict.fromkeys(twin.episode.visited))
    on = Robot(twin)
    on.now = robot.now
    events.pause(twin, False, on.now)
    for what in (0, 2, 0, 2, 0, 2):
        on.step(what)
    assert len(set(twin.episode.visited)) == len(twin.episode.visited)


@pytest.mark.parametrize("what", ["paused", "stopped", "not started", "unreachable", "retried"])
def test_whatever_state_it_is_in_survives(what):
    run = ready(wait_for_start=what == "not started", goal_timeout=5.0)
    events.update(run, SECOND)
    if what == "paused":
        events.pause(run, True, 2 * SECOND)
    elif what == "stopped":
        events.stop(run)
    elif what in ("unreachable", "retried"):
        for second in (7, 14) if what == "unreachable" else (7,):
            events.update(run, second * SECOND)
    twin = another(run, wait_for_start=what == "not started", goal_timeout=5.0)
    assert same(run.episode, twin.episode)
    assert (
        run.state
        is twin.state
        is {
            "paused": State.PAUSED,
            "stopped": State.DONE,
            "not started": State.WAITING,
            "unreachable": State.MOVING,
            "retried": State.MOVING,
        }[what]
    )
    assert len(twin.planner.views.unreachable) == (what == "unreachable")


@pytest.mark.parametrize(
    "ranges", [[], [[5.0, math.inf, math.nan]], [[5.0], [-math.inf, 4.0], [3.0, 3.0, 3.0]]]
)
def test_a_planner_that_takes_scans_has_them_after_a_restart(ranges):
    run = ready()
    run.note(
        ScansReceived(
            tuple(
                (
                    Scan(-0.3, 0.2, np.array(found), 0.05, math.inf),
                    CameraPose(10.0 - turn, turn, 3.0 + turn, height=0.5),
                )
                for turn, found in enumerate(ranges)
            )
        )
    )
    heard = targets.ask(another(run), SECOND).planner.scan_history
    assert len(heard) == len(ranges)
    for (scan, pose), (its, its_pose) in zip(heard, run.episode.scan_history, strict=True):
        np.testing.assert_array_equal(scan.ranges, its.ranges)
        assert (scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max) == (
            -0.3,
            0.2,
            0.05,
            math.inf,
        )
        assert pose == its_pose


def test_a_new_episode_knows_legs_origin_scene_and_lists_of_the_one_before_from_its_own_facts():
    run = counted(3)
    events.take_surface(run, band(1.0), 99 * SECOND, MAPPER)
    run.note(Listed({"view_angles": (0.1, 0.7)}))
    known = run.episode
    run.begin()
    alone, _ = from_records(records_of(run)[-1:])
    assert same(alone, run.episode)
    assert (alone.trips, alone.origin, alone.listed) == (
        known.trips,
        MAPPER,
        {"view_angles": (0.1, 0.7)},
    )
    assert len(alone.trips) == 3


def test_the_time_since_the_start_goes_on_over_a_restart():
    run = ready()
    events.update(run, SECOND)
    assert another(run).episode.elapsed(31 * SECOND) == pytest.approx(30.0)


def test_forty_views_are_read_in_less_than_two_seconds(tmp_path):
    run, kept = ready(num_views=60), Journal(tmp_path / "run", "session")
    for number in range(40):
        events.update(run, (2 * number + 1) * SECOND)
        feed(
            run,
            pose_angle=run.episode.goal.decision.view_angle,
            pose_stamp=(2 * number + 1) * SECOND,
        )
        events.take_surface(run, hit(band(0.1 * number), number + 1), (2 * number + 1) * SECOND)
        events.advance(run, (2 * number + 1) * SECOND)
    kept.begin([to_record(fact, 0) for fact in run.facts])
    started = time.process_time()
    episode, _ = from_records(Journal(tmp_path / "run", "session").read())
    session(num_views=60).resume(episode)
    assert time.process_time() - started < 2.0
    assert len(episode.visited) == 40


GOOD = to_record(Begun(started=True), 1)
BAD = {
    "no object": "north",
    "no fact": {"at": 1},
    "an unknown fact": {"at": 1, "fact": "Bored"},
    "a fact that is a list": {"at": 1, "fact": []},
    "no time": {"fact": "Asked"},
    "a time with a fraction": {**GOOD, "at": 1.5},
    "a truth that is a number": {**GOOD, "started": 1},
    "a field too few": {"at": 1, "fact": "Begun"},
    "a field too many": {**GOOD, "more": 1},
    "an end for no known reason": {
        "at": 1,
        "fact": "Ended",
        "termination": {"reason": "BORED", "figures": {}, "detail": ""},
    },
    "a view without a goal": {"at": 1, "fact": "Counted", "stamp": 1, "hits": 1},
    "views lost that were not taken": {"at": 1, "fact": "Lost", "views": 1, "hits": 1},
    "a pose that is not finite": {
        "at": 1,
        "fact": "Skipped",
        "left_out": [[{**to_plain(CameraPose(0.0, 0.0, 0.0)), "x": None}, 1.0]],
    },
    "a scene that cannot be": {"at": 1, "fact": "SceneEstimated", "estimated_scene": {"x": 1.0}},
    "a list that is none": {"at": 1, "fact": "Listed", "lists": {"view_angles": 5}},
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_fact_is_refused_with_its_number(name):
    with pytest.raises(StateFileError, match="fact 2: ") as caught:
        from_records([GOOD, BAD[name]])
    assert caught.value.reason == "content"
    assert len(str(caught.value)) < 700


def test_damaged_facts_of_an_episode_never_lead_to_another_error():
    records = records_of(counted(2))
    for number, record in enumerate(records):
        for name in record:
            for value in (None, -1, "x", [], {}, math.inf):
                with contextlib.suppress(StateFileError):
                    from_records(
                        [*records[:number], {**record, name: value}, *records[number + 1 :]]
                    )


DOUBT = Check("overlap", 7.0, 5.0, Level.FAILED)
MAPPER = SurfaceOrigin("object", 100, plain_settings(PriorSettings()))
OTHER_PRIOR = plain_settings(PriorSettings(kappa=2))


@pytest.mark.parametrize(
    ("other", "reason", "words"),
    [
        (
            dataclasses.replace(MAPPER, prior=OTHER_PRIOR),
            "other_prior",
            "it has kappa 2 (the episode's: 1)",
        ),
        (
            dataclasses.replace(MAPPER, prior=None),
            "other_prior",
            "it has prior None (the episode's: {'kernel': ",
        ),
        (dataclasses.replace(MAPPER, size=50), "other_grid", "it has size 50 (the episode's: 100)"),
        (
            dataclasses.replace(MAPPER, frame="map"),
            "other_grid",
            "it has frame map (the episode's: object)",
        ),
    ],
)
def test_surfaces_of_another_mapper_are_refused_from_the_first_question_to_the_reset(
    other, reason, words
):
    run, belief, its = ready(), band(5.0), band(1.0)
    events.take_surface(run, its, 0, other)
    events.take_surface(run, belief, 0, MAPPER)  # nothing has been decided yet
    events.update(run, SECOND)
    again = another(run)
    for one in (run, again):
        with pytest.raises(InputRejectedError) as caught:
            events.take_surface(one, its, SECOND, other)
        assert caught.value.reason == reason
        assert words in str(caught.value)
        assert (one.inputs.belief, one.episode.origin) == (belief, MAPPER)
    events.take_surface(run, belief, SECOND, MAPPER)
    assert run.inputs.refused is None
    again.begin()
    assert (again.inputs.belief, again.episode.origin, again.inputs.refused) == (its, other, None)


def mapped_at(view: int) -> int:
    return 3 * view * SECOND - SECOND // 2


def counted(number: int) -> PlannerCore:
    """A session in which views mapped at 2.5, 5.5, 8.5, ... s have counted, each with 10 more
    hits.
    """
    run = ready()
    for view in range(1, number + 1):
        events.update(run, (3 * view - 2) * SECOND)
        feed(
            run, pose_angle=run.episode.goal.decision.view_angle, pose_stamp=(3 * view - 1) * SECOND
        )
        events.update(run, (3 * view - 1) * SECOND)
        events.take_surface(run, hit(band(float(view)), 10 * view), mapped_at(view))
        events.update(run, 3 * view * SECOND)
    return run


def hit(belief, hits: int):
    count = np.zeros_like(belief.hits)
    count[0] = hits
    return dataclasses.replace(belief, hits=count)


def test_a_mapper_that_comes_back_with_less_has_lost_its_views():
    run = counted(3)
    before = run.episode.visited
    assert events.take_surface(run, hit(band(9.9), 10), mapped_at(1)) == 2
    assert run.episode.visited == before[:1]
    assert run.episode.lost_views == 2
    assert len(run.episode.history) == 1
    assert events.take_surface(run, hit(band(9.9), 10), mapped_at(1)) == 0


def test_a_mapper_that_comes_back_with_nothing_has_lost_them_all():
    run = counted(3)
    assert events.take_surface(run, band(9.9), 0) == 3
    assert run.episode.visited == ()


def test_a_mapper_that_comes_back_with_everything_has_lost_nothing():
    run = counted(3)
    assert events.take_surface(run, hit(band(9.9), 30), mapped_at(3)) == 0
    assert len(run.episode.visited) == 3


def test_a_mapper_that_was_told_to_forget_has_lost_nothing():
    run = counted(3)
    assert events.take_surface(run, band(9.9), 10 * SECOND) == 0
    assert len(run.episode.visited) == 3


def test_a_planner_that_was_started_again_notices_the_loss_too():
    assert events.take_surface(another(counted(3)), hit(band(9.9), 20), mapped_at(2)) == 1


@pytest.mark.parametrize("back", [0, 1])  # the views that the map still has
@pytest.mark.parametrize("paused", [False, True])
def test_a_map_that_is_lost_between_a_view_and_its_decision_takes_the_leg_to_that_view_with_it(
    back, paused
):
    """The mapper was reset or restarted, or has loaded another map, while the decision was due or
    made elsewhere.
    """
    run = counted(1)
    events.update(run, 4 * SECOND)
    feed(run, pose_angle=run.episode.goal.decision.view_angle, pose_stamp=5 * SECOND)
    events.update(run, 5 * SECOND)
    events.take_surface(run, hit(band(2.0), 20), mapped_at(2))
    events.advance(run, 6 * SECOND)
    question = events.question(run, 6 * SECOND)
    trips = len(run.episode.trips)
    if paused:
        events.pause(run, True, 6 * SECOND)
    assert events.take_surface(run, hit(band(9.9), 10 * back), mapped_at(back)) == 2 - back
    if paused:
        events.pause(run, False, 7 * SECOND)
    # it was about a map that is no more
    assert events.answer(run, question, question.decide(), 7 * SECOND) is None
    assert events.update(run, 7 * SECOND).round == back + 1
    assert len(run.episode.trips) == trips
    assert run.drive.trip is not None


def test_an_episode_that_is_loaded_between_a_view_and_its_decision_has_no_leg_of_the_one_before():
    run = counted(1)
    events.update(run, 4 * SECOND)
    feed(run, pose_angle=run.episode.goal.decision.view_angle, pose_stamp=5 * SECOND)
    events.update(run, 5 * SECOND)
    events.take_surface(run, hit(band(2.0), 20), mapped_at(2))
    events.advance(run, 6 * SECOND)
    assert run.drive.trip is not None
    run.resume(from_records(records_of(ready()))[0])
    assert events.update(run, 7 * SECOND).round == 1
    assert len(run.episode.trips) == 0


def test_a_map_that_is_lost_on_the_way_to_the_next_view_leaves_the_leg_to_that_one():
    run = counted(2)
    events.update(run, 7 * SECOND)
    under_way = run.drive.trip
    assert events.take_surface(run, hit(band(9.9), 0), 0) == 2
    assert run.drive.trip is under_way is not None


def doubted(run: PlannerCore, *doubts: bool) -> PlannerCore:
    """The same, with these doubts after its views."""
    due = iter(doubts)
    run.facts = [
        dataclasses.replace(f, doubt=next(due)) if isinstance(f, Judged) else f for f in run.facts
    ]
    return another(run)


@pytest.mark.parametrize("how", ["restarted", "prior", "scene"])
def test_what_was_doubted_before_a_restart_or_another_planner_counts(how):
    run = doubted(counted(2), True, True)
    if how == "restarted":
        run = another(run)
    elif how == "prior":
        run.use(session().planner, session().monitor)
    else:
        run.recentre(None, session().planner, session().monitor)
    assert sum(run.episode.doubts) == run.monitor.settings.doubt_views
    belief = dataclasses.replace(belief_of(5.0, 5.1, size=400, hits=1), checks=(DOUBT,))
    assert targets.informed(run).after_view(belief, 1.0).reason is TerminationReason.DOUBTFUL


def test_a_doubt_about_a_view_that_is_lost_is_lost_with_it():
    run = doubted(counted(3), True, False, True)
    events.take_surface(run, hit(band(9.9), 10), mapped_at(1))
    assert run.episode.doubts == (True,)


def test_after_the_end_nothing_is_taken_back():
    run = counted(3)
    events.stop(run)
    assert events.take_surface(run, band(9.9), 0) == 0
    assert len(run.episode.visited) == 3


def test_a_clock_that_goes_back_keeps_views_and_time_and_gives_the_goal_anew():
    run = counted(2)
    events.update(run, 100 * SECOND)
    view, elapsed = run.episode.goal.decision.view_angle, run.episode.elapsed(101 * SECOND)
    again = events.clock_went_back(run, 101 * SECOND, 20 * SECOND)
    assert (again.stamp, again.decision.view_angle, again.round) == (20 * SECOND, view, 3)
    assert run.episode.elapsed(20 * SECOND) == elapsed
    assert events.take_surface(run, hit(band(2.0), 20), 5 * SECOND) == 0
    take_view(run, 21 * SECOND)
    events.take_surface(run, hit(band(0.5), 30), 22 * SECOND)
    events.update(run, 22 * SECOND)
    assert len(run.episode.visited) == 3


def test_a_surface_from_before_the_clock_went_back_does_not_count_for_the_goal():
    run = counted(1)
    events.update(run, 100 * SECOND)
    events.clock_went_back(run, 101 * SECOND, 20 * SECOND)
    feed(run, pose_angle=run.episode.goal.decision.view_angle, pose_stamp=21 * SECOND)
    events.update(run, 21 * SECOND)
    assert run.state is State.MEASURING


def test_views_stay_unreachable_for_as_long_as_they_were_meant_to():
    run = ready(goal_timeout=5.0, goal_retries=0, unreachable_duration=30.0)
    events.update(run, SECOND)
    events.update(run, 7 * SECOND)
    (index,) = run.planner.views.unreachable
    events.clock_went_back(run, 7 * SECOND, 2 * SECOND)
    assert run.planner.views.unreachable == {index: pytest.approx(32.0)}
