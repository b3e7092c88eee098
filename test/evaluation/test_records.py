"""The judge counts what a plain set does; the record is plain JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of

from nbv_planner.evaluation.records import EpisodeJudge, Step, ViewRecord, versions
from nbv_planner.objects import parse_object, surface_points
from nbv_planner.planning.termination import Termination, TerminationReason
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements

SCENE = Scene(pixel_size=0.25)
CANDIDATES = np.arange(20) * (2 * math.pi / 20)
CAMERA = (10.0, SCENE.field_of_view, 10.0)


def step(view: float, value: float = 1.5) -> Step:
    return Step(
        view_angle=view,
        objective_value=value,
        candidates=CANDIDATES,
        utilities=np.zeros(20),
        belief=belief_of(4.0, 6.0),
        measurements=Measurements.empty(),
        milliseconds=2.5,
    )


@pytest.fixture
def judge() -> EpisodeJudge:
    return EpisodeJudge(surface_points(parse_object("polygon:concave", SCENE), 0.25), SCENE, CANDIDATES)


def test_each_view_is_judged_as_a_plain_set_would(judge):
    angle, radius = judge.points.angle.tolist(), judge.points.radius.tolist()

    def sees(view):
        return oracles.observed(angle, radius, view, *CAMERA)

    seen: set[int] = set()
    for view in (0.0, 1.0, 1.05, 4.0, 0.0):
        greedy = max(len(sees(float(c)) - seen) for c in CANDIDATES)
        new = sees(view) - seen
        assert set(np.flatnonzero(judge.new_points(view)).tolist()) == new
        record = judge.add(step(view))
        seen |= new
        assert record == ViewRecord(
            angle=view, new_points=len(new), coverage=pytest.approx(len(seen) / len(angle)), greedy_gain=greedy,
            objective_value=1.5, milliseconds=2.5,
        )  # fmt: skip
        assert set(np.flatnonzero(judge.seen).tolist()) == seen
        assert judge.coverage == pytest.approx(len(seen) / len(angle))
    assert judge.views[-1].new_points == 0
    assert len(judge.steps) == len(judge.views) == 5


def test_judge_starts_with_nothing_seen(judge):
    assert judge.coverage == 0.0
    assert not judge.seen.any()
    assert judge.views == []


def test_record_is_plain_json_with_the_keys_of_the_issue(judge):
    judge.add(step(0.0))
    judge.add(step(2.0, value=math.nan))
    termination = Termination(TerminationReason.MAX_VIEWS, {"views": 2.0, "bound": math.inf}, "enough")
    record = judge.record({"scene": {"radius_min": 2.0}}, 7, termination, note="x")
    content = json.loads(json.dumps(record.to_json(), allow_nan=False))
    assert set(content) >= {"config", "versions", "seed", "views", "termination", "metrics"}
    assert content["seed"] == 7
    assert content["config"] == {"scene": {"radius_min": 2.0}}
    assert content["termination"]["reason"] == "MAX_VIEWS"
    assert 2.0 in content["termination"].values() or 2.0 in content["termination"].get("figures", {}).values()
    for view in content["views"]:
        assert set(view) == {"angle", "new_points", "coverage", "greedy_gain", "objective_value", "milliseconds"}
    assert content["views"][1]["objective_value"] is None
    assert set(content["metrics"]) == {"T", "T95", "rec", "mean_individual_regret", "surface_points"}
    assert content["metrics"]["T"] == 2
    assert content["versions"]["note"] == "x"


def test_versions_name_the_package_and_what_its_numbers_rest_on():
    found = versions(ros="jazzy")
    assert {"nbv_planner", "numpy", "scipy", "python"} <= set(found)
    assert found["numpy"] == np.__version__
    assert list(found)[-1] == "ros"
    assert all(isinstance(value, str) and value for value in found.values())
