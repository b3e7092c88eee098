"""The occupancy grid and its five gains, each against a closed form of its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_bench.rivals.volumetric import GAINS, OccupancyGrid, Rays, volumetric_gain
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

SCENE = Scene()
SIDE = 20  # cells of 0.8 m
LN2 = math.log(2.0)


def grid_of(*scans: tuple[Scan, CameraPose], reach: float = 0.0) -> OccupancyGrid:
    return OccupancyGrid.of(
        [scan for scan, _ in scans], [pose for _, pose in scans], SCENE, SIDE, reach
    )


def beam(length: float, pose: CameraPose | None = None) -> tuple[Scan, CameraPose]:
    """One beam from (10, 0.4) along a row of cells towards -x."""
    return Scan(0.0, 0.1, np.array([length]), 0.05, 10.0), pose or CameraPose(10.0, 0.4, math.pi)


def straight(grid: OccupancyGrid, x: np.ndarray, y: float = 0.4) -> Rays:
    """One ray of one view that passes the places."""
    cell = grid.index(x, np.full(len(x), y))[None, None]
    return Rays(cell, np.diff(cell, axis=2, prepend=-1) != 0)


def gain(grid, rays, name, depth=0.0) -> float:
    return float(volumetric_gain(grid, rays, name, depth)[0])


@pytest.mark.parametrize("number", [1, 2, 7])
def test_a_ray_through_unknown_cells_has_its_closed_form(number):
    """n cells of probability 1/2: mean entropy ln 2, and sum of P_v H = ln 2 (1 + 1/2 + ...) = 2 ln
    2 (1 - 2^-n).
    """
    grid = grid_of()
    rays = straight(grid, 0.4 + 0.8 * np.arange(number))
    expected = 2.0 * LN2 * (1.0 - 0.5**number)
    assert gain(grid, rays, "average_entropy") == pytest.approx(LN2)
    assert gain(grid, rays, "occlusion_aware") == pytest.approx(expected)
    assert gain(grid, rays, "unobserved") == pytest.approx(expected)
    assert gain(grid, rays, "rear_side") == gain(grid, rays, "proximity_count", 3.0) == 0.0


def test_cells_passed_and_hit_get_the_log_odds_of_octomap_within_its_bounds():
    hit, miss = math.log(0.7 / 0.3), math.log(0.4 / 0.6)
    for times in (1, 2, 50):
        grid = grid_of(*[beam(5.0)] * times)
        at_hit, passed, behind, outside = grid.log_odds[
            grid.index(np.array([5.0, 7.0, 3.0, 9.0]), np.full(4, 0.4))
        ]
        assert at_hit == pytest.approx(min(times * hit, math.log(0.97 / 0.03)))
        assert passed == pytest.approx(max(times * miss, math.log(0.12 / 0.88)))
        assert (behind, outside) == (0.0, -np.inf)


def test_a_miss_frees_all_of_its_range_and_an_invalid_beam_nothing():
    assert (grid_of(beam(np.inf)).log_odds[:-1] < 0.0).sum() == 10  # x from 0 to 8 m
    assert grid_of(beam(np.nan)).unknown[:-1].all()


def test_what_is_outside_of_the_square_is_free_and_counts_nothing():
    grid = grid_of()
    rays = straight(grid, np.array([9.0, 8.4, 7.6, 6.8]))
    assert gain(grid, rays, "occlusion_aware") == pytest.approx(2.0 * LN2 * 0.75)
    assert gain(grid, rays, "average_entropy") == pytest.approx(LN2)


def test_the_rear_side_is_what_is_unknown_right_behind_a_hit():
    """From behind, the one cell next to the occupied one counts; none before it does, nor any from
    the front.
    """
    grid = grid_of(beam(5.0), reach=4.0)  # the hit is in the cell from 4.8 to 5.6 m
    behind, front = np.arange(0.4, 8.0, 0.8), np.arange(7.6, 0.0, -0.8)
    assert gain(grid, straight(grid, behind), "rear_side") == 1.0
    assert gain(grid, straight(grid, front), "rear_side") == 0.0
    assert gain(grid, straight(grid, behind[:5]), "rear_side") == 0.0
    seen_through = grid_of(beam(5.0), beam(np.inf), beam(np.inf), beam(np.inf), reach=4.0)
    assert gain(seen_through, straight(seen_through, behind), "rear_side") == 0.0


def test_the_proximity_count_falls_with_the_distance_behind_the_hit():
    """Cells begin 0.2, 1.0, 1.8, ... m behind the hit at x = 5 m; samples are half a cell apart."""
    grid, depth = grid_of(beam(5.0), reach=2.0), 2.0
    behind = np.arange(0.4, 8.0, 0.8)
    values = [
        gain(grid, straight(grid, behind[[place]]), "proximity_count", depth) for place in range(6)
    ]
    np.testing.assert_allclose(
        values, [0.0, 0.0, 0.0, depth - 1.8, depth - 1.0, depth - 0.2], atol=0.41
    )
    assert values[2] == 0.0 < values[3] < values[4] < values[5]
    assert gain(grid, straight(grid, behind), "proximity_count", depth) == pytest.approx(
        sum(values)
    )


def brute(grid: OccupancyGrid, cells: np.ndarray, name: str, depth: float) -> tuple[float, int]:
    """The definitions, cell by cell."""
    outside, total, number, reached, before = len(grid.log_odds) - 1, 0.0, 0, 1.0, -1
    near = grid.beside(grid.occupied)
    for cell in cells:
        if cell == before:
            continue
        before, p = cell, 1.0 / (1.0 + math.exp(-grid.log_odds[cell])) if cell != outside else 0.0
        if cell != outside:
            h = -p * math.log(p) - (1 - p) * math.log(1 - p)
            new, hidden = not grid.observed[cell], grid.hidden[cell]
            number += 1
            total += {
                "average_entropy": h,
                "occlusion_aware": reached * h,
                "unobserved": reached * h * new,
                "rear_side": float(new and np.isfinite(hidden) and near[cell]),
                "proximity_count": depth - hidden if new and hidden <= depth else 0.0,
            }[name]
        reached *= 1.0 - p
        if p > 0.5:
            break
    return total, number


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.0, 6.28), max_size=4), st.integers(0, 10_000))
def test_all_gains_of_all_candidates_are_the_sums_of_the_definitions(angles, seed):
    generator, views = np.random.default_rng(seed), Poses.on_circle(np.linspace(0.0, 6.0, 5), 10.0)
    taken = Poses.on_circle(angles, 10.0) if angles else Poses.of([])
    scans = [
        (
            Scan(
                -0.3,
                0.02,
                np.where(generator.random(31) < 0.3, np.inf, generator.uniform(2, 8, 31)),
                0.05,
                10.0,
            ),
            taken[i],
        )
        for i in range(len(taken))
    ]
    grid = grid_of(*scans, reach=2.0)
    rays = grid.trace(views, SCENE, 7)
    for name in GAINS:
        expected = [
            [
                sum(column)
                for column in zip(*(brute(grid, ray, name, 2.0) for ray in view), strict=True)
            ]
            for view in rays.cell
        ]
        values = [
            total / max(number, 1) if name == "average_entropy" else total
            for total, number in expected
        ]
        np.testing.assert_allclose(volumetric_gain(grid, rays, name, 2.0), values, atol=1e-9)


def test_a_corridor_that_is_known_to_be_free_draws_the_occlusion_aware_gain():
    """Cells of probability p give up to H(p)/p: at OctoMap's least p more than unknown ones, which
    give 2 ln 2.
    """
    p, rays = 0.12, np.arange(0.4, 8.0, 0.8)
    free = grid_of(*[beam(np.inf)] * 9)
    expected = (-p * math.log(p) - (1 - p) * math.log(1 - p)) * (1 - (1 - p) ** len(rays)) / p
    assert gain(free, straight(free, rays), "occlusion_aware") == pytest.approx(expected)
    assert expected > gain(grid_of(), straight(grid_of(), rays), "occlusion_aware")


def test_rays_pass_the_cells_between_camera_and_range():
    grid = OccupancyGrid.of([], [], SCENE, 21)  # a row of cells lies on each axis
    rays = grid.trace(Poses.on_circle([0.0, math.pi / 2], 10.0), SCENE, 3)
    along, none = np.linspace(0.0, 8.0, 11, endpoint=False), np.zeros(11)
    for view, places in enumerate([(along, none), (none, along)]):
        assert set(rays.cell[view, 1]) - {21 * 21} == set(grid.index(*places))
