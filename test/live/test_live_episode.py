"""A live episode: the same whatever the order of arrival, useful when started late, bounded, and safe to read."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import threading

import numpy as np
import pytest
from beliefs import wavy_belief
from live_story import SCENE, SECOND, STAR, TRUTH, decision, judged_episode, status, told

from nbv_planner.camera import CameraPose, MeasurementSettings
from nbv_planner.live import CandidateValues, LiveEpisode
from nbv_planner.live.coverage import estimated_coverage, taken_angles, true_coverage
from nbv_planner.live.episode import SECTIONS
from nbv_planner.live.sections import section
from nbv_planner.scene import Scene
from nbv_planner.simulated_camera import SensorSettings, SimulatedCamera


@pytest.fixture(scope="module")
def judged():
    return judged_episode()


def test_whatever_the_order_the_view_is_the_same(judged):
    plain = {name: section(told(LiveEpisode(), judged).view(), name) for name in SECTIONS}
    for seed in range(8):
        view = told(LiveEpisode(), judged, random.Random(seed)).view()
        assert {name: section(view, name) for name in SECTIONS} == plain


def test_everything_is_there(judged):
    view = told(LiveEpisode(), judged).view()
    assert [d.round for d in view.decisions] == [1, 2, 3]
    assert all(d.candidates is not None for d in view.decisions)
    assert view.belief is judged.steps[-1].belief
    assert len(view.last_hits) > 5
    assert len(view.earlier_hits) > 10
    assert view.waits_for == ("run_info (from nbv_planner; until then the geometry shown is the default one)",)


def test_true_coverage_is_that_of_the_judge(judged):
    view = told(LiveEpisode(), judged).view()
    assert true_coverage(view) == [(0, 0.0), *((n, v.coverage) for n, v in enumerate(judged.views, start=1))]
    assert estimated_coverage(view) == [(n, pytest.approx(0.1 * n)) for n in range(4)]


def test_started_late_it_shows_what_is_latched(judged):
    """Decisions, the last candidates, the last surface and the status are latched; scans and goals are not."""
    live = LiveEpisode()
    for number in (1, 2, 3):
        live.on_decision(decision(number))
    live.on_candidates(3 * SECOND, CandidateValues(np.zeros(2), np.ones(2), np.ones(2, dtype=bool)))
    live.on_belief(3 * SECOND + 5, judged.steps[-1].belief)
    live.on_status(status(3))
    view = live.view()
    assert [d.candidates is not None for d in view.decisions] == [False, False, True]
    assert len(view.earlier_hits) == len(view.last_hits) == 0
    assert len(estimated_coverage(view)) == 4
    assert [words.split(" ")[0] for words in view.waits_for] == ["camera_pose", "scan", "run_info"]


def test_nothing_heard_yet_names_what_is_awaited():
    waits = LiveEpisode().view().waits_for
    assert [words.split(" ")[0] for words in waits] == [
        "nbv_planner/status", "surface", "camera_pose", "scan", "run_info",
    ]  # fmt: skip
    assert all("from" in words for words in waits)


def test_new_episode_forgets_the_one_before():
    live = LiveEpisode()
    for number in (1, 2, 3):
        live.on_decision(decision(number))
    live.on_decision(decision(1, goal_stamp=9 * SECOND, view_angle=6.0))
    assert [(d.round, d.view_angle) for d in live.view().decisions] == [(1, 6.0)]


def test_goal_given_up_for_another_belongs_to_the_same_round():
    live = LiveEpisode()
    for number, angle in ((1, 1.0), (2, 2.0), (2, 2.5)):
        live.on_decision(decision(number, view_angle=angle))
    live.on_status(status(2))
    assert list(taken_angles(live.view())) == [1.0, 2.5]


def test_reset_of_the_mapper_forgets_the_hits(judged):
    live = told(LiveEpisode(), judged)
    prior = dataclasses.replace(judged.steps[0].belief, hits=0 * judged.steps[0].belief.hits)
    live.on_belief(9 * SECOND, prior)
    view = live.view()
    assert len(view.earlier_hits) == len(view.last_hits) == 0


def test_true_coverage_needs_every_view_since_the_first():
    live = LiveEpisode()
    live.on_truth(TRUTH)
    for number in (5, 6):
        live.on_decision(decision(number))
    live.on_status(status(6))
    assert true_coverage(live.view()) == []


def test_memory_stays_bounded(judged):
    live = LiveEpisode()
    belief = judged.steps[-1].belief
    pose = CameraPose.on_view_circle(1.0, 10.0)
    scan = SimulatedCamera(STAR, SCENE, SensorSettings(num_beams=641)).scan(pose, 1, 0)
    for number in range(1, 1200):
        stamp = number * SECOND
        live.on_decision(decision(number))
        live.on_candidates(stamp, CandidateValues(np.zeros(2), np.ones(2), np.ones(2, dtype=bool)))
        live.on_pose(stamp, pose)
        live.on_scan(stamp, scan)
        live.on_belief(stamp, dataclasses.replace(belief, hits=belief.hits * number))
    view = live.view()
    assert len(view.earlier_hits) + len(view.last_hits) <= 8000
    assert len(view.decisions) == 500
    assert len(live._hits._scans) <= 100
    assert len(live._hits._found) <= 64
    assert len(view.last_hits) > 100  # the newest are still there
    assert len(live._candidates) <= 10
    assert max(len(json.dumps(section(view, name))) for name in SECTIONS) < 120_000


def test_sections_are_json_whatever_the_numbers():
    live = LiveEpisode()
    bad = np.array([math.nan, math.inf, -math.inf, 1.0])
    live.on_decision(decision(1, runner_up=math.nan, margin=math.nan, coverage_estimate=math.nan, utility=math.inf))
    live.on_candidates(SECOND, CandidateValues(np.arange(4.0), bad, np.ones(4, dtype=bool)))
    live.on_status(status(0, coverage_estimate=math.nan, elapsed=math.nan, message="</script><b>&"))
    live.on_belief(0, wavy_belief(1, size=5000))
    view = live.view()
    for name in SECTIONS:
        json.dumps(section(view, name), allow_nan=False)
    assert section(view, "decision")["utility"] == [None, None, None, 1.0]
    assert section(view, "coverage")["estimate"] == []
    assert len(section(view, "belief")["angle"]) == 361


@pytest.mark.parametrize(
    ("say", "changed"),
    [
        (lambda live: live.on_status(status(1)), {"status", "decision", "coverage"}),
        (lambda live: live.on_pose(7, CameraPose(1.0, 2.0, 3.0)), {"camera"}),
        (lambda live: live.on_belief(0, wavy_belief(2)), {"belief", "hits"}),
        (lambda live: live.on_settings(Scene(range_max=12.0), MeasurementSettings(), "x"), set(SECTIONS)),
    ],
)
def test_only_what_changed_gets_a_new_version(say, changed):
    live = LiveEpisode()
    say(live)  # the first message of a source also changes what is awaited
    live.on_pose(1, CameraPose(9.0, 9.0, 9.0))
    live.on_settings(Scene(), MeasurementSettings(), "")
    before = live.view().versions
    say(live)
    after = live.view().versions
    assert {name for name in SECTIONS if after[name] != before[name]} == changed


def test_same_pose_again_is_nothing_new():
    live = LiveEpisode()
    live.on_pose(1, CameraPose(1.0, 2.0, 3.0))
    before = live.view().versions
    live.on_pose(2, CameraPose(1.0, 2.0, 3.0))
    assert live.view().versions == before
    assert not live.wait(before, 0.0)


def test_waiting_thread_wakes_with_news():
    live = LiveEpisode()
    before = live.view().versions
    woken = []
    thread = threading.Thread(target=lambda: woken.append(live.wait(before, 30.0)))
    thread.start()
    live.on_status(status(0))
    thread.join(30.0)
    assert woken == [True]
