"""A live episode: the same whatever the order of arrival, useful when started late, bounded, and
safe to read.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
import threading

import numpy as np
import pytest
from beliefs import wavy_belief
from live_story import (
    SCENE,
    SECOND,
    STAR,
    TRUTH,
    candidates,
    decision,
    judged_episode,
    say_surface,
    status,
    told,
)

from nbv_planner.episode.log import LoggedView
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    CANDIDATES,
    GROUND_TRUTH,
    ITERATION,
    RUN_INFO,
    SCAN,
    STATUS,
)
from nbv_planner.episode.parameters import configure
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.view.live import (
    SECTIONS,
    LiveEpisode,
    estimated_coverage,
    taken_views,
    true_coverage,
)
from nbv_planner.view.sections import section
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera


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
    assert [logged.decision.round for logged in view.views] == [1, 2, 3]
    assert all(logged.candidates is not None for logged in view.views)
    np.testing.assert_array_equal(view.belief.mean, judged.steps[-1].belief.mean)
    assert len(view.last_hits) > 5
    assert len(view.earlier_hits) > 10
    assert view.waits_for == (
        "run_info (from nbv_planner; until then the geometry shown is the default one)",
    )


def test_true_coverage_is_that_of_the_judge(judged):
    view = told(LiveEpisode(), judged).view()
    assert true_coverage(view) == [
        (0, 0.0),
        *((n, v.coverage) for n, v in enumerate(judged.views, start=1)),
    ]
    assert estimated_coverage(view) == [(n, pytest.approx(0.1 * n)) for n in range(4)]


def test_started_late_it_shows_what_is_latched(judged):
    """Decisions, the last candidates, the last surface and the status are latched; scans and goals
    are not.
    """
    live = LiveEpisode()
    for number in (1, 2, 3):
        live.add(ITERATION, decision(number))
    live.add(CANDIDATES, candidates(np.zeros(2), np.ones(2)), 3 * SECOND)
    say_surface(live, judged.steps[-1].belief, 3 * SECOND + 5)
    live.add(STATUS, status(3))
    view = live.view()
    assert [logged.candidates is not None for logged in view.views] == [False, False, True]
    assert len(view.earlier_hits) == len(view.last_hits) == 0
    assert len(estimated_coverage(view)) == 4
    assert [words.split(" ")[0] for words in view.waits_for] == ["camera_pose", "scan", "run_info"]


def test_nothing_heard_yet_names_what_is_awaited():
    waits = LiveEpisode().view().waits_for
    assert [words.split(" ")[0] for words in waits] == [
        "nbv_planner/status",
        "surface",
        "camera_pose",
        "scan",
        "run_info",
    ]
    assert all("from" in words for words in waits)


def test_new_episode_forgets_the_one_before():
    live = LiveEpisode()
    for number in (1, 2, 3):
        live.add(ITERATION, decision(number))
    live.add(ITERATION, decision(1, goal_stamp=9 * SECOND, view_angle=6.0))
    assert [(v.decision.round, v.decision.view_angle) for v in live.view().views] == [(1, 6.0)]


def test_goal_given_up_for_another_belongs_to_the_same_round():
    live = LiveEpisode()
    for second, number, angle in ((1, 1, 1.0), (2, 2, 2.0), (3, 2, 2.5)):
        live.add(ITERATION, decision(number, view_angle=angle, goal_stamp=second * SECOND))
    live.add(STATUS, status(2))
    assert taken_views(live.view()).view_angle.tolist() == [1.0, 2.5]


def test_reset_of_the_mapper_forgets_the_hits(judged):
    live = told(LiveEpisode(), judged)
    prior = dataclasses.replace(judged.steps[0].belief, hits=0 * judged.steps[0].belief.hits)
    say_surface(live, prior, 9 * SECOND)
    view = live.view()
    assert len(view.earlier_hits) == len(view.last_hits) == 0


def test_hits_near_the_centre_are_kept_for_a_surface_without_a_radius(tmp_path):
    """A bar through the centre: its sides are nearer than the least radius less its margin."""
    bar = tmp_path / "bar.csv"
    bar.write_text("x,y\n-4,-0.4\n4,-0.4\n4,0.4\n-4,0.4\n", encoding="utf-8")
    run = Simulation(configure(object=f"file:{bar}", surface_model="volume", max_views=1))
    run.finish()
    pose = CameraPose(0.0, -SCENE.view_distance, math.pi / 2)
    scan = MatchedScan(
        SECOND + 5, SimulatedCamera(run.truth, SCENE, SensorSettings()).scan(pose, 1, 0), pose
    )
    for belief, some in ((run.belief, True), (wavy_belief(1), False)):
        view = LoggedView(
            decision(1), candidates(np.zeros(1), np.ones(1)), SECOND + 5, belief, scan
        )
        hits = view.step(SCENE, MeasurementSettings()).hits
        assert (np.hypot(*hits.points.T) < 1.0).any() == some
        live = LiveEpisode()
        live._take_belief(belief, SECOND + 5)
        live._paired(scan)
        assert len(live.view().last_hits) == len(hits)


def test_true_coverage_needs_every_view_since_the_first():
    live = LiveEpisode()
    live.add(GROUND_TRUTH, TRUTH)
    for number in (5, 6):
        live.add(ITERATION, decision(number))
    live.add(STATUS, status(6))
    assert true_coverage(live.view()) == []


def test_memory_stays_bounded(judged, monkeypatch):
    monkeypatch.setattr("nbv_planner.episode.log._MOST_VIEWS", 500)
    monkeypatch.setattr("nbv_planner.episode.log._KEPT", 100)
    live = LiveEpisode()
    belief = judged.steps[-1].belief
    pose = CameraPose.from_polar(1.0, 10.0)
    scan = SimulatedCamera(STAR, SCENE, SensorSettings(num_beams=641)).scan(pose, 1, 0)
    for number in range(1, 1200):
        stamp = number * SECOND
        live.add(ITERATION, decision(number))
        live.add(CANDIDATES, candidates(np.zeros(2), np.ones(2)), stamp)
        live.add(CAMERA_POSE, pose, stamp)
        live.add(SCAN, scan, stamp)
        say_surface(live, dataclasses.replace(belief, hits=belief.hits * number), stamp)
    view = live.view()
    assert len(view.earlier_hits) + len(view.last_hits) <= 8000
    assert len(view.views) == 500
    assert max(len(kept.entries) for kept in (live._scans, live._surfaces, live._candidates)) <= 100
    assert len(live._hits) <= 64
    assert len(view.last_hits) > 100  # the newest are still there
    assert max(len(json.dumps(section(view, name))) for name in SECTIONS) < 120_000


def test_sections_are_json_whatever_the_numbers():
    live = LiveEpisode()
    bad = np.array([math.nan, math.inf, -math.inf, 1.0])
    live.add(
        ITERATION,
        decision(
            1, runner_up=math.nan, margin=math.nan, coverage_estimate=math.nan, utility=math.inf
        ),
    )
    live.add(CANDIDATES, candidates(np.arange(4.0), bad), SECOND)
    live.add(
        STATUS, status(0, coverage_estimate=math.nan, elapsed=math.nan, message="</script><b>&")
    )
    say_surface(live, wavy_belief(1, size=5000))
    view = live.view()
    for name in SECTIONS:
        json.dumps(section(view, name), allow_nan=False)
    assert section(view, "decision")["utility"] == [None, None, None, 1.0]
    assert section(view, "coverage")["estimate"] == []
    assert len(section(view, "belief")["angle"]) == 361


@pytest.mark.parametrize(
    ("say", "changed"),
    [
        (lambda live: live.add(STATUS, status(1)), {"status", "decision", "coverage"}),
        (lambda live: live.add(CAMERA_POSE, CameraPose(1.0, 2.0, 3.0), 7), {"camera"}),
        (lambda live: say_surface(live, wavy_belief(2)), {"belief", "checks", "hits", "ground"}),
        (
            lambda live: live.add(RUN_INFO, RunParameters({"nbv_planner": {"range_max": 12.0}})),
            set(SECTIONS),
        ),
    ],
)
def test_only_what_changed_gets_a_new_version(say, changed):
    live = LiveEpisode()
    say(live)  # the first message of a source also changes what is awaited
    live.add(CAMERA_POSE, CameraPose(9.0, 9.0, 9.0), 1)
    live.add(RUN_INFO, RunParameters({}))
    before = live.view().versions
    say(live)
    after = live.view().versions
    assert {name for name in SECTIONS if after[name] != before[name]} == changed


def test_same_pose_again_is_nothing_new():
    live = LiveEpisode()
    live.add(CAMERA_POSE, CameraPose(1.0, 2.0, 3.0), 1)
    before = live.view().versions
    live.add(CAMERA_POSE, CameraPose(1.0, 2.0, 3.0), 2)
    assert live.view().versions == before
    assert not live.wait(before, 0.0)


def test_waiting_thread_wakes_with_news():
    live = LiveEpisode()
    before = live.view().versions
    woken = []
    thread = threading.Thread(target=lambda: woken.append(live.wait(before, 30.0)))
    thread.start()
    live.add(STATUS, status(0))
    thread.join(30.0)
    assert woken == [True]


@pytest.mark.parametrize(
    ("decided_by", "utility", "words"),
    [
        ("rollout", 1.0, "chosen for the fewest views left, not for the most points now"),
        ("CS-U", 1.0, "chosen within the interval of phase 1"),
        ("IOA", 1.0, "chosen for its shorter way"),
        ("U", 1.0, "chosen by U: no further gain is expected, or hybrid keeps its bound"),
        ("rollout", 4.0, ""),
        ("rollout", 9.0, ""),
        ("", 1.0, ""),
    ],
)
def test_a_view_that_is_not_the_largest_is_explained(decided_by, utility, words):
    """Only among candidates that might have been chosen: the largest of all is 5, and may not."""
    known = candidates(np.arange(6.0), np.arange(6.0), np.arange(6) < 5)
    assert LoggedView(decision(1, utility=utility, decided_by=decided_by), known).choice == words
    assert LoggedView(decision(1, utility=utility, decided_by=decided_by)).choice == ""
