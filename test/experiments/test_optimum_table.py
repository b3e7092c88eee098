"""The table of optima: its greedy column is the omniscient greedy planner of the simulation."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import partial

import numpy as np
import pytest
import scipy.optimize

from nbv_bench.optimum.least import (
    candidate_views,
    least_time_row,
    least_views_row,
    optimum_row,
    run_optima,
)
from nbv_bench.optimum.optimum_problem import points_for_95
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings, configure
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import angle_difference
from nbv_planner.planning.view_space import ViewSpaceSettings, path_around, view_space_for
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import MotionSettings
from nbv_planner.world.visibility import observe

pytestmark = pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)

START = MotionSettings().start(Scene().view_distance)


@pytest.mark.parametrize(
    "text", ["polygon:convex", "square:width=8", "flower:frequency=3,amplitude=2"]
)
def test_greedy_is_the_omniscient_planner_of_the_thesis_protocol(text, tmp_path):
    row = optimum_row(text, 100, tmp_path, 60.0)
    greedy = PlannerSettings(planner="greedy", objective="OSM", first_candidate=-1)
    simulation = Simulation(EpisodeConfig(object=text, protocol="thesis", planner=greedy))
    list(simulation.run())
    views, metrics = simulation.judge.views, simulation.judge.metrics()
    assert np.diff(row.greedy_coverage, prepend=0).tolist() == [view.new_points for view in views]
    assert row.greedy.views_95 == metrics["T95"]
    assert row.optimum.surface_points == metrics["surface_points"]


@pytest.mark.parametrize("text", ["letter:C", "two_boxes"])
def test_of_an_object_that_is_not_star_shaped_what_the_circle_sees_counts(text, tmp_path):
    """The row, the fewest views and the quickest tour are those of the judge's points."""
    row = optimum_row(text, 30, tmp_path, 60.0)
    greedy = configure(
        object=text, planner="greedy", objective="OSM", target="points", num_views=30
    )
    judge = Simulation(dataclasses.replace(greedy, stop_at_coverage=1.0)).judge
    visible = judge.truth.visible(judge.space.candidates)
    assert row.optimum.surface_points == row.optimum.reachable == len(judge.truth)
    circle = view_space_for(ViewSpaceSettings(num_views=30), Scene()).candidates
    fewest = least_views_row(text, circle, circle, 60.0).costs["circle, least"]
    assert fewest.cost == row.optimum.views_95
    tour = least_time_row(text, circle, START, (0.5,), 2.0, 60.0).costs["0.5 m/s, least"]
    for views in (fewest.views, tour.views):
        assert visible[list(views)].any(axis=0).sum() >= points_for_95(len(judge.truth))


def test_rows_do_not_depend_on_the_number_of_workers(tmp_path):
    objects, steps = ["square:width=4", "star", "ellipse:a=5,b=4"], []
    once, again = (
        partial(optimum_row, candidates=12, cache=tmp_path / name, time_limit=60.0)
        for name in ("one", "two")
    )
    alone = run_optima(once, objects, 1)
    assert run_optima(again, objects, 2, steps.append) == alone
    assert steps == [1, 2, 3]
    assert [row.object for row in alone] == objects


def test_greedy_ratio_keeps_the_guarantee_and_json_takes_a_row(tmp_path):
    row = optimum_row("ellipse:a=5,b=5", 30, tmp_path, 60.0)
    assert 1.0 - math.exp(-1.0) <= min(row.greedy.approximation_ratio) <= 1.0
    content = json.loads(json.dumps(row.to_json(), allow_nan=False))
    assert content["views_95"] == row.optimum.views_95
    assert content["greedy_coverage"] == list(row.greedy_coverage)
    assert len(content["best_views"]) == len(content["best_coverage"]) == len(content["proved"])


def test_100_candidates_are_those_of_the_thesis():
    assert candidate_views(100).tolist() == np.linspace(0.0, 2 * math.pi, 100).tolist()
    assert candidate_views(360) == pytest.approx(np.arange(360) * (2 * math.pi / 360))
    assert candidate_views(1).tolist() == [0.0]


# Radii with the view circle's, so that its views are among the poses.
ANNULUS = ViewSpaceSettings(
    view_space="annulus",
    annulus_min=8.5,
    annulus_max=11.5,
    annulus_radii=3,
    annulus_angles=20,
    annulus_headings=3,
)
CIRCLE = view_space_for(ViewSpaceSettings(num_views=20), Scene()).candidates


def test_views_of_the_fewest_are_those_of_the_candidates():
    poses = view_space_for(ANNULUS, Scene()).candidates
    row = least_views_row("square:width=8", CIRCLE, poses, 60.0)
    surface = surface_points(parse_object("square:width=8", Scene()), Scene().pixel_size)
    for name, views in (("circle", CIRCLE), ("poses", poses)):
        least = row.costs[f"{name}, least"]
        assert len(least.views) == least.cost == least.bound <= row.costs[f"{name}, greedy"].cost
        seen = observe(
            surface.angle, surface.radius, views.chosen(np.array(least.views)), Scene()
        ).any(axis=0)
        assert seen.sum() >= points_for_95(len(surface))
    assert row.costs["poses, least"].cost <= row.costs["circle, least"].cost


def test_no_tour_among_the_poses_is_below_the_bound_and_that_of_the_best_ring_is_real():
    text, speed, dwell = "square:width=8", 0.5, 2.0
    poses = view_space_for(ANNULUS, Scene()).candidates
    costs = least_time_row(text, CIRCLE, START, (speed,), dwell, 60.0, poses).costs
    best, least = costs["0.5 m/s, poses"], costs["0.5 m/s, least"]
    assert best.bound < best.cost <= least.cost + 1e-9
    assert least.proved
    surface = surface_points(parse_object(text, Scene()), Scene().pixel_size)
    seen, needed = (
        observe(surface.angle, surface.radius, poses, Scene()),
        points_for_95(len(surface)),
    )
    assert seen[list(best.views)].any(axis=0).sum() >= needed
    (distance,) = set(poses.distance[list(best.views)])
    angles = np.array([0.0314, *poses.view_angle[list(best.views)]])
    driven = (
        abs(distance - 10.0) + distance * np.abs(angle_difference(angles[1:], angles[:-1])).sum()
    )
    assert driven / speed + dwell * len(best.views) == pytest.approx(best.cost)
    rng = np.random.default_rng(1)
    # greedy tours with drawn preferences, along shortest paths around the object's bound
    for _ in range(50):
        here, seconds, known = (
            CameraPose.from_polar(0.0314, 10.0),
            0.0,
            np.zeros(len(surface), dtype=bool),
        )
        weight = 1.0 + rng.random(len(poses))
        while known.sum() < needed:
            cost = path_around(here, poses, Scene().radius_max) / speed + dwell
            chosen = int(((seen & ~known).sum(axis=1) * weight / cost).argmax())
            here, seconds, known = poses[chosen], seconds + cost[chosen], known | seen[chosen]
        assert seconds >= best.bound


def test_objects_that_cannot_be_seen_have_no_tour():
    two = Poses.on_circle([0.0, 1.0], 10.0)
    costs = least_time_row("square:width=8", two, START, (0.5,), 2.0, 60.0, two).costs
    assert set(costs.values()) == {None}
