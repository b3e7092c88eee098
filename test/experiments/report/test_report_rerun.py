"""Recorded episodes that are run again, and what the objectives say in them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import scipy.optimize
from hand_made import REFERENCE, compared, episode

from nbv_bench.experiments.cases import run_case
from nbv_bench.experiments.summary.contents import (
    optimum_table,
    place_of,
    sweep_optima,
    with_optimum,
)
from nbv_bench.experiments.summary.view_pictures import (
    episode_landscapes,
    landscape_episode,
    ranking_objectives,
    rerun,
    view_map,
)
from nbv_bench.experiments.sweep import Sweep
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings, recorded_config
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import ResultsError
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings

SWEEP = Sweep(
    "small",
    ("square:width=4",),
    {
        REFERENCE: PlannerSettings(planner="greedy", objective="OSM"),
        "U": PlannerSettings(planner="greedy", objective="U"),
    },
    ("thesis",),
)


@pytest.fixture(scope="module")
def episodes():
    """Both planners on a square, as they come back from their files."""
    return [json.loads(json.dumps(run_case(case).content)) for case in SWEEP.cases()]


def test_configuration_survives_the_way_through_json():
    config = EpisodeConfig(
        object="square:width=6",
        protocol="thesis",
        scene=Scene(pixel_size=0.2),
        sensor=SensorSettings(seed=7),
        planner=PlannerSettings(planner="greedy", objective="UP"),
        thesis_tie_tolerance=1e-9,
    )
    config = dataclasses.replace(
        config, views=dataclasses.replace(config.views, allowed_arcs=(0.0, 1.0, 2.0, 3.0))
    )
    assert recorded_config(json.loads(json.dumps(config.as_dict()))) == config


def test_group_that_an_older_version_did_not_record_has_its_defaults():
    config = EpisodeConfig(object="square:width=6", scene=Scene(pixel_size=0.2))
    values = {
        name: value
        for name, value in config.as_dict().items()
        if name not in ("mapper", "thesis_tie_tolerance")
    }
    assert recorded_config(values) == config


def test_episode_of_a_version_without_targets_was_about_surface_points():
    values = EpisodeConfig().as_dict()
    del values["planner"]["target"], values["planner"]["completeness_tau"]
    assert recorded_config(values).planner.target == "points"
    assert recorded_config(EpisodeConfig().as_dict()).planner.target == "completeness"


def test_episode_runs_again_to_the_same_views(episodes):
    judge = rerun(episodes[1]).judge
    assert [view.angle for view in judge.views] == [view["angle"] for view in episodes[1]["views"]]


@pytest.mark.parametrize("change", ["other", "fewer"])
def test_episode_that_comes_out_otherwise_is_refused(episodes, change):
    views = [dict(view) for view in episodes[1]["views"]]
    if change == "other":
        views[-1]["angle"] += 0.1
    else:
        del views[-1]
    with pytest.raises(ResultsError, match="U on square:width=4 takes other views"):
        rerun({**episodes[1], "views": views})


def test_objectives_are_evaluated_on_the_belief_before_each_decision(episodes):
    judge = rerun(episodes[1]).judge
    decisions = episode_landscapes(episodes[1], ["U", "CSW"])
    assert [[(x.objective, x.decision) for x in d] for d in decisions] == [
        [("U", n), ("CSW", n)]
        for n in sorted({2, (judge.metrics()["T95"] + 2) // 2, judge.metrics()["T95"]})
    ]
    for own, other in decisions:
        step, view = judge.steps[own.decision - 1], judge.views[own.decision - 1]
        np.testing.assert_allclose(own.value, step.utilities)
        assert own.angle[own.choice] == pytest.approx(step.view.view_angle)
        assert own.gain[own.choice] == view.new_points
        assert own.gain.max() == view.greedy_gain
        assert not np.allclose(other.value, own.value)


def test_the_episode_of_the_largest_regret_is_chosen():
    cases = [
        episode(REFERENCE, "easy"),
        episode("A", "easy", regret=1.0),
        episode("B", "easy", regret=2.0),
        episode(REFERENCE, "hard"),
        episode("A", "hard", regret=9.0),
        episode("B", "hard", regret=5.0),
    ]
    chosen = landscape_episode(compared(cases), REFERENCE)
    assert (chosen["case"]["object"], chosen["case"]["planner"]) == ("hard", "A")
    assert landscape_episode(compared(cases[:1]), REFERENCE) is None


def test_objectives_that_rank_views_are_listed_once():
    planners = {
        "ref": {"objective": "OSM"},
        "a": {"planner": "two_phase", "phase_one_objective": "CSN", "objective": "U"},
        "b": {"objective": "U"},
        "c": {"planner": "random", "objective": "IOA"},
    }
    assert ranking_objectives(planners) == ["CSN", "U"]


@pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)
def test_optimum_of_each_object_is_what_the_planners_are_measured_against(
    episodes, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = []
    optima = sweep_optima(episodes, done.append)
    best = optima[place_of(episodes[0])]
    assert done == [1]
    cases = with_optimum(compared(episodes), optima)
    table = optimum_table(cases, "table_7_1_optimum")
    names = [column.name for column in table.columns]
    for row, e in zip(table.rows, episodes, strict=True):
        found = dict(zip(names, row, strict=True))
        seen, views = sum(view["new_points"] for view in e["views"]), len(e["views"])
        most = best.coverage_by(views)
        assert found["true_regret"].mean == pytest.approx((1 - np.exp(-1)) * most - seen)
        assert found["approximation_ratio"].mean == pytest.approx(seen / most)
        assert found["least_ratio"].mean <= found["approximation_ratio"].mean <= 1.0
        assert found["t95_optimum_percent"].mean == pytest.approx(
            100 * e["metrics"]["T95"] / best.views_95
        )
        assert (found["episodes"], found["proved"], found["not_reached"]) == (1, 1, 0)


@pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)
def test_planner_with_fewer_candidates_is_measured_against_the_best_of_these(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sweep = dataclasses.replace(
        SWEEP,
        protocols=("sensor",),
        planners={"many": PlannerSettings(), "few": PlannerSettings()},
        variant_settings={"few": {"views": {"num_views": 7}}},
        base=EpisodeConfig(termination=TerminationSettings(max_views=1)),
    )
    optima = sweep_optima([run_case(case).content for case in sweep.cases()])
    assert [
        max(max(views) for views in optimum.best_views) >= 7 for optimum in optima.values()
    ] == [True, False]


def test_an_object_of_several_outlines_is_mapped_with_all_of_them_and_has_no_landscapes(tmp_path):
    drawn = tmp_path / "two.csv"
    drawn.write_text("x,y\n-4,-1\n-2,-1\n-2,1\n-4,1\n\n2,-1\n4,-1\n4,1\n", encoding="utf-8")
    planner = PlannerSettings(planner="greedy", objective="EMC", shapes=2)
    ends = TerminationSettings(max_views=2)
    sweep = Sweep("two", (f"file:{drawn}",), {"E": planner}, ("sensor",))
    sweep = dataclasses.replace(sweep, base=EpisodeConfig(termination=ends))
    recorded = json.loads(json.dumps(run_case(*sweep.cases()).content))
    lines = view_map(recorded).outlines
    assert [line.shape for line in lines] == [(2, 5), (2, 4)]
    np.testing.assert_array_equal(lines[1][:, [0, -1]], [[2, 2], [-1, -1]])
    recorded["config"]["search"]["surface_model"] = "volume"
    recorded["views"] = Simulation(recorded_config(recorded["config"])).finish().to_json()["views"]
    with pytest.raises(ResultsError, match=r"two\.csv is not star-shaped, and objectives"):
        episode_landscapes(recorded, ["U"])
    drawn.unlink()
    assert view_map(recorded).outlines == []
