"""The tour planner: the least time to go, over all shapes; held to tours found by trying all of
them.
"""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from beliefs import wavy_belief, with_evidence
from hypothesis import given
from hypothesis import strategies as st
from views import at, circle

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.episode.wiring import planner_named
from nbv_planner.errors import SettingError
from nbv_planner.planning.motion import TimeSettings, time_matrix, travel_time, trip_time
from nbv_planner.planning.objectives import Situation
from nbv_planner.planning.planners.rollout import views_to_go
from nbv_planner.planning.planners.tour import Circuit, first_seen, seconds_to_go
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings
from nbv_planner.surface.coverage import ShapeCoverage
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

SCENE, DWELL, VIEWS = Scene(), 2.0, 6


def instance(
    seed: int, shapes=3, views=VIEWS, cells=12, speed=1.0
) -> tuple[ShapeCoverage, Circuit]:
    """Views that each see an arc of cells, wider or narrower, at random places of the circle."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, 2 * np.pi, views))
    at_cell = np.arange(cells) * 2 * np.pi / cells
    apart = np.abs((at_cell - angles[:, None] + np.pi) % (2 * np.pi) - np.pi)
    visible = (apart < rng.uniform(0.4, 1.5, (shapes, views, 1))) & (
        rng.random((shapes, views, cells)) < 0.9
    )
    weight = rng.integers(0, 5, (shapes, cells)).astype(np.float32)
    space = circle(angles=angles)
    settings = TimeSettings(linear_speed=speed, turn_speed=1e9, dwell_time=0.0)
    circuit = Circuit(time_matrix(space, space.candidates, settings), DWELL)
    return ShapeCoverage(visible.astype(np.float32), weight, weight.sum(axis=1)), circuit


def best_tour(visible, weight, needed: float, times, first: int) -> float:
    """Least time of all orders of all subsets of views after `first` that see what is needed; inf
    if none does.
    """
    others = [view for view in range(len(visible)) if view != first]
    best = np.inf
    for number in range(len(others) + 1):
        for order in permutations(others, number):
            route = [first, *order]
            if weight[visible[route].any(axis=0)].sum() >= needed - 1e-6:
                trips = sum(times[a, b] for a, b in pairwise(route))
                best = min(best, trips + DWELL * len(route))
    return best


def compared(seed: int, target: float, speed: float) -> list[tuple[float, float]]:
    """Time to go by the planner and least possible time of each shape and first view of an
    instance.
    """
    coverage, circuit = instance(seed, speed=speed)
    found = seconds_to_go(coverage, circuit, np.arange(VIEWS), target)
    pairs = []
    for shape, (visible, weight) in enumerate(
        zip(coverage.visible > 0, coverage.unseen, strict=True)
    ):
        for first in range(VIEWS):
            least = best_tour(visible, weight, target * weight.sum(), circuit.times, first)
            if np.isfinite(least):
                pairs.append((float(found[shape, first]), least))
    return pairs


def test_where_nothing_is_unseen_the_first_view_is_the_last():
    """Cells that every shape has seen are left out, so that there may be none."""
    coverage, circuit = instance(0, cells=0)
    found = seconds_to_go(coverage, circuit, np.arange(VIEWS), 0.95)
    assert found.shape == (3, VIEWS)
    assert (found <= DWELL).all()


@given(st.integers(0, 10_000), st.sampled_from([0.6, 0.9, 1.0]), st.sampled_from([0.1, 1.0, 100.0]))
def test_no_tour_is_shorter_than_the_best_of_all(seed, target, speed):
    """Up to the part of the last view that is not needed."""
    for found, least in compared(seed, target, speed):
        assert found >= least - DWELL - 1e-6


@pytest.mark.parametrize("speed", [0.1, 1.0, 10.0])
def test_tours_are_next_to_the_best_of_all(speed):
    pairs = np.array([pair for seed in range(12) for pair in compared(seed, 0.95, speed)])
    assert len(pairs) > 100
    assert np.mean(pairs[:, 0] / pairs[:, 1]) < 1.05


@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.95, 1.0]))
def test_where_travel_takes_no_time_it_needs_no_more_views_than_the_rollout(seed, target):
    coverage, circuit = instance(seed, views=9, cells=30)
    first = np.arange(9)
    free = Circuit(np.zeros_like(circuit.times), DWELL)
    views = views_to_go(coverage, first, np.ones(9, dtype=bool), target)
    # of a shape without points the rollout needs no view, a tour its first
    some = coverage.unseen.sum(axis=1) > 0.0
    assert (seconds_to_go(coverage, free, first, target)[some] <= DWELL * views[some] + 1e-6).all()


@given(st.integers(0, 10_000))
def test_the_first_view_that_sees_a_cell_is_found_in_both_directions(seed):
    visible = instance(seed)[0].visible
    ahead, back = first_seen(visible)
    for s, v, m in np.ndindex(*visible.shape):
        places = [p for p in range(VIEWS) if visible[s, (v + p) % VIEWS, m]]
        assert ahead[s, v, m] == min(places, default=VIEWS)
        places = [p for p in range(VIEWS) if visible[s, (v - p) % VIEWS, m]]
        assert back[s, v, m] == min(places, default=VIEWS)


def circuit_of(size: int, speed: float) -> Circuit:
    space = circle(ViewSpaceSettings(num_views=size))
    settings = TimeSettings(linear_speed=speed, turn_speed=1e9, dwell_time=0.0)
    return Circuit(time_matrix(space, space.candidates, settings), DWELL)


def seeing(cells: list[list[int]], points: int) -> ShapeCoverage:
    visible = np.zeros((1, len(cells), points), dtype=np.float32)
    for view, seen in enumerate(cells):
        visible[0, view, seen] = 1.0
    return ShapeCoverage(visible, np.ones((1, points), dtype=np.float32), np.array([float(points)]))


def test_a_slow_robot_passes_by_and_a_fast_one_takes_fewer_views():
    """Three views on the way along eighth parts of the circle, or one on its other side."""
    cells = [[0], [1], [2], [3], [1, 2, 3], [], [], []]
    trip = 2 * np.pi * 10.0 / 8
    slow = seconds_to_go(seeing(cells, 4), circuit_of(8, 1.0), np.array([0]), 1.0)
    assert slow[0, 0] == pytest.approx(3 * trip + 4 * DWELL)
    fast = seconds_to_go(seeing(cells, 4), circuit_of(8, 100.0), np.array([0]), 1.0)
    assert fast[0, 0] == pytest.approx(4 * trip / 100.0 + 2 * DWELL)


def test_it_goes_a_bit_the_other_way_first():
    cells = [[0], [1], [2], [3], [], [], [], [], [], [4]]
    trip = 2 * np.pi * 10.0 / 10
    found = seconds_to_go(seeing(cells, 5), circuit_of(10, 1.0), np.array([0]), 1.0)
    assert found[0, 0] == pytest.approx((2 + 3) * trip + 5 * DWELL)


def planner(**changes):
    chosen = {
        "planner": "tour",
        "shapes": 6,
        "deadline": 600.0,
        "revisit_radius": 0.0,
        "shape_grid": 90,
        **changes,
    }
    return planner_named(PlannerSettings(**chosen), SCENE, circle(ViewSpaceSettings(num_views=40)))


BELIEF = with_evidence(wavy_belief(3, size=200))


def test_a_slow_robot_stays_nearer_than_a_fast_one():
    here = at(1.0)
    trips = [
        float(
            np.abs(planner(linear_speed=speed).decide(BELIEF, current_view=here).view_angle - 1.0)
        )
        for speed in (0.01, 100.0)
    ]
    assert trips[0] < trips[1]


def test_without_travel_times_it_may_go_anywhere_and_takes_no_more_views_than_the_rollout():
    fast = {"linear_speed": 1e9, "turn_speed": 1e9}
    tour, rollout = planner(**fast), planner(planner="rollout", **fast)
    found, other = (one.decide(BELIEF, current_view=at(1.0)) for one in (tour, rollout))
    coverage = tour._objective.coverage(Situation(tour._reader(BELIEF), SCENE, found.candidates))
    which = [
        int(np.argmin(np.abs(one.candidates.view_angle - one.view_angle))) for one in (found, other)
    ]
    circuit = Circuit(np.zeros((40, 40)), DWELL)
    seconds = seconds_to_go(coverage, circuit, np.array(which), 0.95).mean(axis=0)
    assert seconds[0] <= seconds[1] + 1e-6


def test_deciding_twice_gives_the_same_and_changes_nothing():
    one = planner()
    first, again = (one.decide(BELIEF, current_view=at(0.3), visited=[at(0.0)]) for _ in range(2))
    assert first.view == again.view
    assert first.decided_by == "tour"


class Line(ViewSpace):
    """Views at different distances that look past the centre, from one to another in a straight
    line.
    """

    def path_length(self, start: CameraPose, ends: Poses) -> np.ndarray:
        x, y = ends.position.T
        return np.hypot(x - start.x, y - start.y)


def test_any_poses_have_a_time_matrix():
    space = Line(
        Poses.from_polar(
            np.array([0.0, 1.0, 4.0]), np.array([10.0, 12.0, 9.0]), np.array([0.0, 0.5, -0.5])
        )
    )
    settings = TimeSettings(linear_speed=2.0, turn_speed=0.1, dwell_time=3.0)
    times = time_matrix(space, space.candidates, settings)
    assert np.diag(times) == pytest.approx(3.0)
    assert times == pytest.approx(times.T)
    assert times[0, 1] == pytest.approx(1.5 / 0.1 + 3.0)  # the heading turns by 1.5 rad


def test_time_is_that_of_driving_or_turning_whichever_takes_longer():
    assert travel_time([10.0, 1.0], [0.5, -3.0], TimeSettings(0.5, 1.0, 2.0)) == pytest.approx(
        [20.0, 3.0]
    )
    space = circle()
    assert trip_time(space, None, space.candidates, TimeSettings()) == pytest.approx(2.0)
    assert trip_time(space, at(0.0), Poses.of([at(1.0)]), TimeSettings()) == pytest.approx(22.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"linear_speed": 0.0},
        {"linear_speed": float("nan")},
        {"turn_speed": -1.0},
        {"turn_speed": float("inf")},
        {"dwell_time": -0.1},
        {"dwell_time": float("nan")},
        {"linear_speed": "fast"},
    ],
)
def test_a_cost_model_without_sense_is_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        PlannerSettings(planner="tour", **wrong)
