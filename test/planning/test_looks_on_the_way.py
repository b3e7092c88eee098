"""Looking on the way: poses between two views, what they show, and the least sweep; held to all
routes tried.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from views import at, circle

from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.simulation import Simulation
from nbv_planner.errors import SettingError
from nbv_planner.planning.motion import TimeSettings, looks_between, time_matrix, with_looks
from nbv_planner.planning.planners.tour import Circuit, seconds_to_sweep, seen_on_trips
from nbv_planner.planning.view_space import FreeViewSpace, ViewSpaceSettings, set_ground
from nbv_planner.surface.coverage import ShapeCoverage
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

SCENE, DWELL, VIEWS = Scene(), 2.0, 6
ANGLES = st.floats(0.0, 6.28)


@given(ANGLES, ANGLES, st.floats(0.3, 5.0))
def test_looks_on_the_circle_lie_evenly_along_the_shorter_arc(start, end, every):
    space = circle()
    looks = looks_between(space, at(start), at(end), every)
    around = math.remainder(end - start, 2 * math.pi)
    assert looks.are_on_circle(SCENE.view_distance)
    expected = start + math.copysign(every / 10.0, around) * np.arange(1, len(looks) + 1)
    np.testing.assert_allclose(looks.view_angle, expected, atol=1e-9)
    rest = abs(around) * 10.0 - every * len(looks)
    assert -1e-6 <= rest <= every * (1.0 + 1e-5)


def test_looks_between_free_poses_lie_on_the_path_and_turn_evenly():
    """From one side of the object to the other: no look in what may be the object, nor off the
    path's length.
    """
    space = FreeViewSpace.annulus(ViewSpaceSettings(view_space="annulus"), SCENE)
    set_ground(space, GroundSettings())
    start, end = CameraPose.from_polar(0.2, 12.0, -0.3), CameraPose.from_polar(3.0, 9.0, 0.3)
    looks = looks_between(space, start, end, 1.0)
    x, y = Poses.of([start, *(looks[number] for number in range(len(looks))), end]).position.T
    steps = np.hypot(np.diff(x), np.diff(y))
    assert (steps[:-1] <= 1.0 + 1e-6).all()
    assert steps.sum() == pytest.approx(
        float(space.ground_path_length(start, Poses.of([end]))[0]), rel=0.02
    )
    assert np.diff(looks.turn) == pytest.approx(
        np.full(len(looks) - 1, looks.turn[1] - looks.turn[0])
    )
    assert -0.3 < looks.turn[0] < looks.turn[-1] < 0.3


def test_without_a_leg_or_without_looks_nothing_is_added():
    views = [at(0.0), at(1.0), at(1.0)]
    assert with_looks(circle(), views, 0.0) == views
    assert len(looks_between(circle(), at(1.0), at(1.0), 0.5)) == 0
    taken = with_looks(circle(), views, 5.0)
    assert [view.view_angle for view in taken] == pytest.approx([0.0, 0.5, 1.0, 1.0])


def instance(seed: int, shapes=2, cells=9) -> tuple[ShapeCoverage, Circuit, np.ndarray]:
    """Views at equal angles that each see cells by chance; all cells are seen by some view."""
    rng = np.random.default_rng(seed)
    visible = rng.random((shapes, VIEWS, cells)) < 0.25
    visible[:, rng.integers(0, VIEWS, cells), np.arange(cells)] = True
    weight = rng.integers(0, 5, (shapes, cells)).astype(np.float32)
    space = circle(ViewSpaceSettings(num_views=VIEWS))
    settings = TimeSettings(
        linear_speed=rng.choice([0.5, 5.0, 50.0]), turn_speed=1e9, dwell_time=0.0
    )
    circuit = Circuit(time_matrix(space, space.candidates, settings), DWELL)
    return (
        ShapeCoverage(visible.astype(np.float32), weight, weight.sum(axis=1)),
        circuit,
        space.angles,
    )


def between(start: int, end: int) -> list[int]:
    """Places on the shorter arc of the circuit, the ends included; of two equal ones the
    counter-clockwise one.
    """
    ahead = (end - start) % VIEWS
    way = range(ahead + 1) if 2 * ahead <= VIEWS else range(0, ahead - VIEWS - 1, -1)
    return [(start + place) % VIEWS for place in way]


@given(st.integers(0, 10_000), st.integers(0, VIEWS - 1))
def test_a_leg_shows_what_the_views_between_its_ends_show(seed, start):
    coverage, _, angles = instance(seed)
    found = seen_on_trips(coverage.visible, angles, float(angles[start]))
    for end in range(VIEWS):
        if 2 * abs((end - start) % VIEWS) != VIEWS:  # both arcs are the shorter one
            np.testing.assert_array_equal(
                found[:, end], coverage.visible[:, between(start, end)].max(axis=1)
            )


def least(visible, weight, needed: float, times, first: int) -> float:
    """Least time until what is needed has been seen from the first view on, over all routes
    of trips (Dijkstra).
    """
    best, open_ = {}, [(DWELL, first, frozenset([first]))]
    while open_:
        open_.sort(key=lambda entry: entry[0])
        spent, here, seen = open_.pop(0)
        if weight[visible[sorted(seen)].any(axis=0)].sum() >= needed - 1e-6:
            return spent
        if (here, seen) in best:
            continue
        best[here, seen] = spent
        for end in {*range(VIEWS)} - {here}:
            # Half a turn may lead along either arc.
            ways = [between(here, end)] + (
                [between(end, here)] if 2 * ((end - here) % VIEWS) == VIEWS else []
            )
            open_ += [(spent + times[here, end] + DWELL, end, seen | set(way)) for way in ways]
    return math.inf


@pytest.mark.parametrize("target", [0.7, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_the_sweep_is_the_best_of_all_routes(seed, target):
    """Where the first view alone is not enough; of one that is, only the needed part counts."""
    coverage, circuit, _ = instance(seed)
    first = np.arange(VIEWS)
    found = seconds_to_sweep(coverage, coverage, circuit, first, target)
    for shape, (visible, weight) in enumerate(
        zip(coverage.visible > 0, coverage.unseen, strict=True)
    ):
        for view in range(VIEWS):
            if weight[visible[view]].sum() >= target * weight.sum() > 0.0:
                assert found[shape, view] <= DWELL
                continue
            best = least(visible, weight, target * weight.sum(), circuit.times, view)
            assert found[shape, view] == pytest.approx(best), (shape, view)


def config(**planner) -> EpisodeConfig:
    chosen = {"planner": "uniform", "sweep_views": 4, **planner}
    return EpisodeConfig(planner=PlannerSettings(**chosen), stop_at_coverage=0.9)


def run(config: EpisodeConfig) -> Simulation:
    simulation = Simulation(config)
    list(simulation.run())
    return simulation


def test_an_episode_counts_and_maps_what_is_seen_on_the_way():
    simulation, plain = run(config(look_every=1.0)), run(config())
    judge, points = simulation.judge, simulation.judge.truth.points
    taken = [view for step in judge.steps for view in (*step.passed, step.view)]
    seen = observe(points.angle, points.radius, Poses.of(taken), SCENE).any(axis=0)
    np.testing.assert_array_equal(judge.seen, seen)
    assert len(judge.views) == len(judge.steps) < len(plain.judge.steps)
    assert sum(record.new_points for record in judge.views) == seen.sum()
    one, other = judge.steps[1], plain.judge.steps[1]
    assert len(one.passed) == 15  # a quarter of 62.8 m
    assert len(one.hits) > 5 * len(other.hits)
    assert (judge.views[1].seconds, judge.views[1].travelled) == pytest.approx(
        (plain.judge.views[1].seconds, plain.judge.views[1].travelled)
    )
    assert judge.views[1].coverage > plain.judge.views[1].coverage


def test_looks_of_one_leg_have_noise_of_their_own():
    simulation = Simulation(config(look_every=1.0))
    pose = at(1.0)
    ranges = [simulation.look(pose, number).scan.ranges for number in (0, 1, 2)]
    met = np.isfinite(ranges).all(axis=0)
    assert met.any()
    assert (np.ptp(np.array(ranges)[:, met], axis=0) > 0.0).all()


def test_a_tour_that_looks_on_the_way_needs_fewer_stops_and_no_more_time():
    tour = {"planner": "tour", "target": "points", "deadline": 600.0, "shapes": 8}
    looking, plain = (
        run(config(**tour, look_every=1.0)).judge.views,
        run(config(**tour)).judge.views,
    )
    assert len(looking) < len(plain)
    assert looking[-1].seconds < plain[-1].seconds


@pytest.mark.parametrize("planner", ["tour", "rollout"])
def test_unknown_scenes_and_free_poses_can_be_looked_at_on_the_way(planner):
    free = ViewSpaceSettings(
        view_space="annulus", annulus_radii=2, annulus_angles=12, annulus_headings=1
    )
    chosen = PlannerSettings(planner=planner, look_every=2.0, deadline=600.0, shapes=4)
    base = EpisodeConfig(planner=chosen, stop_at_coverage=0.8)
    unknown = dataclasses.replace(base.search, scene="unknown")
    for changes in ({"views": free}, {"search": unknown}):
        simulation = run(dataclasses.replace(base, **changes))
        assert any(step.passed for step in simulation.judge.steps)
        assert simulation.judge.coverage >= 0.8


def test_the_thesis_protocol_does_not_look_on_the_way():
    with pytest.raises(SettingError, match="look_every"):
        Simulation(dataclasses.replace(config(look_every=1.0), protocol="thesis"))
    with pytest.raises(SettingError, match="look_every"):
        PlannerSettings(look_every=-1.0)
