"""The fewest views and the least time that cover an object, against trying all sets and all
orders.
"""

from __future__ import annotations

import math
from itertools import chain, combinations, permutations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_bench.optimum.optimum_problem import (
    greedy_views,
    least_views,
    plain_problem,
    points_for_95,
    reduced_problem,
)
from nbv_bench.optimum.tours import best_sweep, greedy_tour, least_time, shortest_tour
from nbv_bench.rivals import set_cover
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

needs_milp = pytest.mark.skipif(
    not hasattr(scipy.optimize, "milp"), reason="scipy < 1.9 has no integer programming"
)
TURN = 2.0 * math.pi
SCENE = Scene(pixel_size=0.4)


def drive(offsets) -> float:
    """Radians from one place to the next, from 0, always by the shorter arc."""
    gaps = np.abs(np.diff([0.0, *offsets]))
    return float(np.minimum(gaps, TURN - gaps).sum())


def sets_that_see(visible, points):
    every = range(len(visible))
    for chosen in chain.from_iterable(
        combinations(every, number) for number in range(len(visible) + 1)
    ):
        if visible[list(chosen)].any(axis=0).sum() >= points:
            yield chosen


def quickest_by_trying_all(visible, offset, seconds_per_radian, dwell, points) -> float:
    return min(
        min((drive(order) for order in permutations(offset[list(chosen)])), default=0.0)
        * seconds_per_radian
        + dwell * len(chosen)
        for chosen in sets_that_see(visible, points)
    )


@st.composite
def small_worlds(draw):
    views, points = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    visible = rng.random((views, points)) < draw(st.floats(0.2, 0.7))
    offset = np.array(draw(st.lists(st.floats(0.0, TURN - 1e-3), min_size=views, max_size=views)))
    return visible, offset, draw(st.integers(1, points))


@needs_milp
@settings(max_examples=60, deadline=None)
@given(small_worlds())
def test_fewest_views_are_those_of_trying_all_sets(world):
    visible, _, points = world
    found = least_views(reduced_problem(visible), points, time_limit=10.0)
    least = min((len(chosen) for chosen in sets_that_see(visible, points)), default=None)
    if found is None:
        assert least is None
        return
    assert (found.cost, found.bound, found.proved, len(found.views)) == (least, least, True, least)
    assert reduced_problem(visible).coverage(found.views) >= points


@needs_milp
@settings(max_examples=100, deadline=None)
@given(small_worlds(), st.floats(0.0, 20.0), st.floats(0.0, 5.0))
def test_least_time_is_that_of_trying_all_sets_and_orders(world, seconds_per_radian, dwell):
    visible, offset, points = world
    problem = reduced_problem(visible, offset)
    found = least_time(problem, offset, seconds_per_radian, dwell, points, time_limit=10.0)
    if visible.any(axis=0).sum() < points:
        assert found is None
        return
    quickest = quickest_by_trying_all(visible, offset, seconds_per_radian, dwell, points)
    assert found.cost == pytest.approx(quickest, abs=1e-3)
    assert found.proved
    route = problem.candidates[list(found.views)]
    assert visible[route].any(axis=0).sum() >= points
    assert drive(offset[route]) * seconds_per_radian + dwell * len(route) <= found.cost + 1e-9
    greedy = greedy_tour(problem, offset, seconds_per_radian, dwell, points)
    assert found.cost <= greedy.cost + 1e-9
    assert found.bound <= quickest + 1e-9
    route = problem.candidates[list(greedy.views)]
    assert drive(offset[route]) * seconds_per_radian + dwell * len(route) == pytest.approx(
        greedy.cost
    )


@given(st.lists(st.floats(0.0, TURN - 1e-9), max_size=6))
def test_shortest_tour_is_that_of_trying_all_orders(offsets):
    order, far = shortest_tour(np.array(offsets))
    assert sorted(order) == list(range(len(offsets)))
    assert far == pytest.approx(min(drive(tried) for tried in permutations(offsets)), abs=1e-9)
    assert drive(np.array(offsets)[order]) <= far + 1e-9


def seen_from(views, text="polygon:convex"):
    points = surface_points(parse_object(text, SCENE), SCENE.pixel_size)
    return observe(points.angle, points.radius, views, SCENE)


@needs_milp
@pytest.mark.parametrize("text", ["polygon:convex", "ellipse:a=6,b=4", "square:width=10"])
def test_more_poses_are_never_worse(text):
    """The poses of the circle, and others before and behind it that look elsewhere."""
    angle = np.arange(24) * (TURN / 24)
    circle = Poses.on_circle(angle, SCENE.view_distance)
    distance, turn = np.repeat([10.0, 8.5, 13.0, 10.0], 24), np.repeat([0.0, 0.0, 0.0, 0.4], 24)
    free = Poses.from_polar(np.tile(angle, 4), distance, turn)
    few, many = seen_from(circle, text), seen_from(free, text)
    assert (many[:24] == few).all()
    points = points_for_95(few.shape[1])
    least, free_least = (
        least_views(reduced_problem(visible), points, time_limit=30.0) for visible in (few, many)
    )
    assert least.proved
    assert free_least.proved
    assert free_least.cost <= least.cost <= len(greedy_views(plain_problem(few), points))
    offset, places = angle, np.tile(angle, 4)
    on_circle = least_time(reduced_problem(few, offset), offset, 20.0, 2.0, points, time_limit=30.0)
    # Driving along the circle whatever the distance is no slower.
    anywhere = least_time(reduced_problem(many, places), places, 20.0, 2.0, points, time_limit=30.0)
    assert anywhere.cost <= on_circle.cost + 1e-6


@needs_milp
def test_no_sweep_is_quicker_and_more_speed_takes_no_more_time():
    angle = np.arange(30) * (TURN / 30)
    visible, start = seen_from(Poses.on_circle(angle, SCENE.view_distance)), 0.1
    offset, points = np.mod(angle - start, TURN), points_for_95(visible.shape[1])
    seconds = []
    for speed in (0.1, 0.5, 2.0):
        found = least_time(
            reduced_problem(visible, offset), offset, 10.0 / speed, 2.0, points, time_limit=30.0
        )
        assert found.proved
        seconds.append(found.cost)
        quickest = math.inf
        for step in range(1, 16):
            for direction in (1, -1):
                sweep = [(direction * number * step) % 30 for number in range(31)]
                needed = next(
                    (n for n in range(32) if visible[sweep[:n]].any(axis=0).sum() >= points), None
                )
                if needed is not None:
                    taken = drive(offset[sweep[:needed]]) * 10.0 / speed + 2.0 * needed
                    assert found.cost <= taken + 1e-6
                    one_turn = direction == 1 and 30 % step == 0 and needed <= 30 // step
                    quickest = min(quickest, taken) if one_turn else quickest
        chosen = best_sweep(plain_problem(visible), offset, 10.0 / speed, 2.0, points)
        # Among its numbers of steps are those that divide 30.
        assert found.cost <= chosen.cost + 1e-6
        assert chosen.cost <= quickest + 1e-6
        assert visible[list(chosen.views)].any(axis=0).sum() >= points
        assert drive(offset[list(chosen.views)]) * 10.0 / speed + 2.0 * len(
            chosen.views
        ) == pytest.approx(chosen.cost)
    assert seconds == sorted(seconds, reverse=True)


def test_views_at_other_places_are_kept_though_they_see_less():
    visible = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0]], dtype=bool)
    assert reduced_problem(visible).candidates.tolist() == [0]
    assert reduced_problem(visible, np.array([0.0, 0.0, 1.0, 1.0])).candidates.tolist() == [0, 2]


@pytest.mark.parametrize("points", [1, 7, 20, 39, 40, 100, 400, 528, 999])
def test_95_percent_is_counted_as_in_the_records(points):
    needed = points_for_95(points)
    assert needed / points >= 0.95 > (needed - 1) / points


@needs_milp
def test_without_time_the_greedy_sets_are_left_and_the_bounds_say_so(monkeypatch):
    visible = seen_from(Poses.on_circle(np.arange(24) * (TURN / 24), SCENE.view_distance))
    nothing = type("Nothing", (), {"x": None, "mip_dual_bound": None})
    monkeypatch.setattr(set_cover, "milp_solver", lambda who: lambda *_, **__: nothing)
    problem, points, offset = (
        reduced_problem(visible),
        points_for_95(visible.shape[1]),
        np.arange(24) * (TURN / 24),
    )
    found = least_views(problem, points, time_limit=1.0)
    assert (list(found.views), found.bound, found.proved) == (
        greedy_views(problem, points),
        0,
        False,
    )
    tour = least_time(problem, offset, 20.0, 2.0, points, time_limit=1.0)
    assert tour.cost <= greedy_tour(problem, offset, 20.0, 2.0, points).cost
    assert 0.0 < tour.bound < tour.cost
    assert not tour.proved
