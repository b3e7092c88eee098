"""The table of optima: its greedy column is the omniscient greedy planner of the simulation."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.optimize

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.simulation import Simulation
from nbv_planner.experiments.optimum import OptimumCase, candidate_views, run_optima
from nbv_planner.planning.planners import PlannerSettings

pytestmark = pytest.mark.skipif(not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming")


@pytest.mark.parametrize("text", ["polygon:convex", "square:width=8", "flower:frequency=3,amplitude=2"])
def test_greedy_is_the_omniscient_planner_of_the_thesis_protocol(text, tmp_path):
    row = OptimumCase(text, 100, tmp_path, 60.0).run()
    greedy = PlannerSettings(planner="greedy", objective="OSM", first_candidate=-1)
    simulation = Simulation(EpisodeConfig(object=text, protocol="thesis", planner=greedy))
    list(simulation.run())
    views, metrics = simulation.judge.views, simulation.judge.metrics()
    assert np.diff(row.greedy_coverage, prepend=0).tolist() == [view.new_points for view in views]
    assert row.greedy.views_95 == metrics["T95"]
    assert row.optimum.surface_points == metrics["surface_points"]


def test_rows_do_not_depend_on_the_number_of_workers(tmp_path):
    wanted = [(text, count) for text in ("square:width=4", "star") for count in (12, 30)]
    cases = [OptimumCase(text, count, tmp_path / "one", 60.0) for text, count in wanted]
    alone = run_optima(cases, 1)
    again = [OptimumCase(case.object, case.candidates, tmp_path / "two", 60.0) for case in cases]
    steps = []
    assert run_optima(again, 2, lambda done, total: steps.append((done, total))) == alone
    assert steps == [(number, 4) for number in range(1, 5)]
    assert [(row.object, row.candidates) for row in alone] == [(case.object, case.candidates) for case in cases]


def test_greedy_ratio_keeps_the_guarantee_and_json_takes_a_row(tmp_path):
    row = OptimumCase("ellipse:a=5,b=5", 30, tmp_path, 60.0).run()
    assert 1.0 - math.exp(-1.0) <= min(row.greedy.approximation_ratio) <= 1.0
    content = json.loads(json.dumps(row.to_json(), allow_nan=False))
    assert content["views_95"] == row.optimum.views_95
    assert content["greedy_coverage"] == list(row.greedy_coverage)
    assert len(content["best_views"]) == len(content["best_coverage"]) == len(content["proved"])


def test_100_candidates_are_those_of_the_thesis():
    assert candidate_views(100).tolist() == np.linspace(0.0, 2 * math.pi, 100).tolist()
    assert candidate_views(360) == pytest.approx(np.arange(360) * (2 * math.pi / 360))
    assert candidate_views(1).tolist() == [0.0]
