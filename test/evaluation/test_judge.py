"""The judge counts what a plain set does; the record is plain JSON."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of
from views import at, circle

from nbv_planner.episode.judge import EpisodeJudge, StarTruth
from nbv_planner.episode.records import Step
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.surface.seam import Hits
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene

SCENE = Scene(pixel_size=0.25)
CANDIDATES = Poses.on_circle(np.arange(20) * (2 * math.pi / 20), SCENE.view_distance)
CAMERA = (10.0, SCENE.field_of_view, 10.0)


def step(view: float, value: float = 1.5) -> Step:
    return Step(
        view=at(view),
        objective_value=value,
        candidates=CANDIDATES,
        utilities=np.zeros(20),
        belief=belief_of(4.0, 6.0),
        hits=Hits.none(),
        milliseconds=2.5,
    )


@pytest.fixture
def judge() -> EpisodeJudge:
    shape = parse_object("polygon:concave", SCENE)
    return EpisodeJudge(
        StarTruth(surface_points(shape, 0.25), SCENE, shape), circle(angles=CANDIDATES.view_angle)
    )


def test_each_view_is_judged_as_a_plain_set_would(judge):
    angle, radius = judge.truth.points.angle.tolist(), judge.truth.points.radius.tolist()

    def sees(view):
        return oracles.observed(angle, radius, view, *CAMERA)

    seen: set[int] = set()
    for view in (0.0, 1.0, 1.05, 4.0, 0.0):
        greedy = max(len(sees(float(c)) - seen) for c in CANDIDATES.view_angle)
        new = sees(view) - seen
        assert set(np.flatnonzero(judge.new_points(at(view))).tolist()) == new
        record = judge.add(step(view))
        seen |= new
        assert (record.angle, record.new_points, record.greedy_gain) == (view, len(new), greedy)
        assert (record.objective_value, record.milliseconds) == (1.5, 2.5)
        assert record.coverage == pytest.approx(len(seen) / len(angle))
        assert set(np.flatnonzero(judge.seen).tolist()) == seen
        assert judge.coverage == pytest.approx(len(seen) / len(angle))
    assert judge.views[-1].new_points == 0
    assert len(judge.steps) == len(judge.views) == 5


def test_judge_starts_with_nothing_seen(judge):
    assert judge.coverage == 0.0
    assert not judge.seen.any()
    assert judge.views == []


def test_errors_are_those_of_the_belief_with_the_measurements_of_the_view(judge):
    """The band of the test's belief is 4 m to 6 m, its mean 5 m."""
    record = judge.add(step(0.0))
    radius = judge.truth.shape.radius(np.arange(400) * (2 * math.pi / 400))
    assert record.rmse == pytest.approx(math.sqrt(np.mean((radius - 5.0) ** 2)))
    assert record.max_error == pytest.approx(3.0)
    assert record.band_coverage == pytest.approx(np.mean((radius >= 4.0) & (radius <= 6.0)))
    assert record.iou == pytest.approx(
        np.sum(np.minimum(radius, 5.0) ** 2) / np.sum(np.maximum(radius, 5.0) ** 2)
    )
    assert record.hausdorff == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize(("start", "first"), [(None, 0.0), (6.0, 10.0 * (0.5 + 2 * math.pi - 6.0))])
def test_way_along_the_view_circle_adds_up_the_shorter_way_round(judge, start, first):
    judge = dataclasses.replace(
        judge, start=None if start is None else at(start), steps=[], views=[]
    )
    travelled = [judge.add(step(view)).travelled for view in (0.5, 3.0, 6.0, 6.0)]
    assert travelled == pytest.approx([first, first + 25.0, first + 55.0, first + 55.0])


def test_record_says_how_often_the_last_belief_holds_the_truth(judge):
    ended = Termination(TerminationReason.MAX_VIEWS, {}, "enough")
    assert judge.record({}, 0, ended).calibration is None
    judge.add(step(0.0))
    found = judge.record({}, 0, ended).to_json()["calibration"]
    radius = judge.truth.shape.radius(judge.steps[-1].belief.angle)
    assert found["levels"][-1] == 0.99
    assert found["inside"][-1] == pytest.approx(np.mean(np.abs(radius - 5.0) <= 2.5758 * 0.5))


def test_record_is_plain_json_with_the_keys_of_the_issue(judge):
    judge.add(step(0.0))
    judge.add(step(2.0, value=math.nan))
    termination = Termination(
        TerminationReason.MAX_VIEWS, {"views": 2.0, "bound": math.inf}, "enough"
    )
    record = judge.record({"scene": {"radius_min": 2.0}}, 7, termination, note="x")
    content = json.loads(json.dumps(record.to_json(), allow_nan=False))
    assert set(content) >= {
        "config",
        "versions",
        "seed",
        "views",
        "termination",
        "metrics",
        "calibration",
    }
    assert content["seed"] == 7
    assert content["config"] == {"scene": {"radius_min": 2.0}}
    assert content["termination"]["reason"] == "MAX_VIEWS"
    assert (
        2.0 in content["termination"].values()
        or 2.0 in content["termination"].get("figures", {}).values()
    )
    for view in content["views"]:
        assert set(view) == {
            "number",
            "angle",
            "new_points",
            "coverage",
            "greedy_gain",
            "objective_value",
            "milliseconds",
            "rmse",
            "max_error",
            "hausdorff",
            "iou",
            "band_coverage",
            "travelled",
            "completeness",
            "accuracy",
            "seconds",
            "distance",
            "turn",
            "simple_regret",
            "chamfer",
            "weighted",
        }
    assert content["views"][1]["objective_value"] is None
    assert set(content["metrics"]) == {
        "T",
        "T95",
        "C95",
        "completeness",
        "accuracy",
        "rec",
        "mean_individual_regret",
        "surface_points",
        "time95",
    }
    assert content["metrics"]["T"] == 2
    assert content["versions"]["note"] == "x"


def test_each_belief_is_judged_at_the_resolution(judge):
    """A measured circle of 5 m about a square: a plain search over all pairs of points is the
    oracle.
    """
    belief = belief_of(4.9, 5.1, hits=lambda angle: (angle < 4.0).astype(int))
    record = judge.add(dataclasses.replace(step(0.0), belief=belief))
    angle = np.linspace(0.0, belief.angle[belief.hits > 0][-1], 2000)
    arc = np.stack([5.0 * np.cos(angle), 5.0 * np.sin(angle)], axis=1)
    distance = np.hypot(*(judge.outline.points[:, None] - arc).T)
    assert judge.outline.spacing <= judge.tau / 10.0
    assert 0.02 < record.completeness < 0.9
    assert record.completeness == pytest.approx(
        np.mean(distance.min(axis=0) <= judge.tau), abs=0.005
    )
    assert record.accuracy == pytest.approx(np.mean(distance.min(axis=1) <= judge.tau), abs=0.01)
    np.testing.assert_array_equal(judge.complete.mean(), record.completeness)
    assert judge.metrics()["completeness"] == record.completeness
    assert judge.metrics()["C95"] is None


def test_nothing_is_complete_that_was_not_measured(judge):
    record = judge.add(step(0.0))
    assert record.completeness == 0.0
    assert math.isnan(record.accuracy)
    assert (
        judge.record({}, 0, Termination(TerminationReason.STOPPED)).to_json()["metrics"]["accuracy"]
        is None
    )


def test_an_object_elsewhere_is_judged_where_it_stands():
    """What was measured about another centre counts in the frame of the object."""
    shape = parse_object("ellipse:a=5,b=5", SCENE)
    judge = EpisodeJudge(
        StarTruth(surface_points(shape, 0.25), SCENE, shape), circle(angles=CANDIDATES.view_angle)
    )
    angle = np.arange(400) * (2 * math.pi / 400)
    # The circle of 5 m about the origin, as seen from (1, 0).
    radius = -np.cos(angle) + np.sqrt(25.0 - np.sin(angle) ** 2)
    there = dataclasses.replace(
        belief_of(lambda _: radius, lambda _: radius, hits=1), centre=(1.0, 0.0)
    )
    assert judge.add(dataclasses.replace(step(0.0), belief=there)).completeness == 1.0
    here = dataclasses.replace(there, centre=(0.0, 0.0))
    assert judge.add(dataclasses.replace(step(0.0), belief=here)).completeness < 0.5


def test_simple_regret_is_what_its_definition_says(judge):
    for view in (0.0, 1.0, 4.0):
        judge.add(step(view))
    new = [view.new_points for view in judge.views]
    assert all(math.isnan(view.simple_regret) for view in judge.views)
    subsets = judge.truth.visible(CANDIDATES)
    best = [
        max(
            int(subsets[list(chosen)].any(axis=0).sum())
            for chosen in itertools.combinations(range(20), number)
        )
        for number in (1, 2)
    ]
    judge.compare(best)
    factor = 1.0 - 1.0 / math.e
    first, second, third = (view.simple_regret for view in judge.views)
    assert first == pytest.approx(factor * best[0] - new[0])
    assert second == pytest.approx(factor * (best[1] - best[0]) - new[1])
    assert math.isnan(third)
    assert first + second == pytest.approx(factor * best[1] - sum(new[:2])), (
        "R(2), thesis eq. cumulative-regret"
    )
