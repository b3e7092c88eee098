"""Contradictions between views are what is left after the surface may be anything in each cell."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.mapping.belief import SurfaceBelief, uniform_grid
from nbv_planner.mapping.checks.overlap import Outline, Residuals, ViewData, displacement_scores
from nbv_planner.world.pose import View

STD, RADIUS, DISTANCE = 0.1, 5.0, 13.0


def outline(scale=1.0, amplitude=0.5) -> Outline:
    angle = uniform_grid(720)
    radius = scale * (RADIUS + amplitude * np.cos(3.0 * angle))
    belief = SurfaceBelief(angle, radius, np.full(720, 0.1), radius - 0.1, radius + 0.1, np.zeros(720, dtype=int))
    return Outline(belief, scale * STD)


def view_of(direction, hits, x=0.0, y=0.0, scale=1.0, radius=RADIUS, amplitude=0.5, seed=0, noise=STD) -> ViewData:
    """Noisy hits within 0.6 rad of a direction, displaced by x and y."""
    random = np.random.default_rng([seed, int(1000 * direction)])
    angle = direction + random.uniform(-0.6, 0.6, hits)
    radius = radius + amplitude * np.cos(3.0 * angle) + noise * random.standard_normal(hits)
    at_x, at_y = polar_to_cartesian(angle, radius)
    pose = View(direction, scale * DISTANCE).pose
    points = np.stack([at_x + x, at_y + y, np.full(hits, STD)])
    return ViewData(np.array([pose.x, pose.y, pose.yaw]), scale * points, np.empty((2, 0)))


def around(count=10, **options):
    return [view_of(direction, 60, **options) for direction in np.arange(count) * (2.0 * math.pi / count)]


def scores(views, scale=1.0) -> tuple[float, float]:
    contour = outline(scale)
    return displacement_scores(Residuals.of(views, contour), contour, scale * STD)


def by_regression(residuals: Residuals, derivatives, group, cells, radius) -> float:
    """The score by a regression with a column for each cell, as a textbook has it."""
    cell = np.floor(residuals.angle / (2.0 * math.pi / cells)).astype(int) % cells
    member = np.asarray(group, dtype=bool)[residuals.view]
    known = ~residuals.lone
    shared = np.isin(cell, cell[member & known]) & np.isin(cell, cell[~member & known])
    if all(group):
        shared = np.array([len(set(residuals.view[known & (cell == one)])) > 1 for one in cell])
    shared &= known
    known, cell = np.unique(cell[shared], return_inverse=True)
    dummies = np.eye(len(known))[cell]
    own = (derivatives * member[:, np.newaxis])[shared]
    free = np.eye(len(cell)) - dummies @ np.linalg.pinv(dummies)
    own, z = free @ own, free @ np.clip(residuals.distance[shared], -4.0, 4.0)
    inverse = np.linalg.inv(own.T @ own + np.diag([(0.1 * radius) ** -2.0] * 2 + [0.1**-2.0]))
    found = inverse @ own.T @ z
    pair = known[cell] // 2
    blocks = [own[pair == one] for one in np.unique(pair)]
    left = [(z - own @ found)[pair == one] for one in np.unique(pair)]
    used = len(blocks)
    scatter = sum(np.outer(block.T @ part, block.T @ part) for block, part in zip(blocks, left, strict=True))
    covariance = inverse + inverse @ scatter @ inverse * used / max(used - 3, 1)
    return math.sqrt(found @ np.linalg.solve(covariance, found))


def by_cameras(residuals: Residuals) -> np.ndarray:
    """Derivatives of the distances by ahead, left and turn of the camera, from those by the place of the hit."""
    x, y, yaw = residuals.pose[residuals.view].T
    along_x, along_y, turn = residuals.by.T
    ahead, left = along_x * np.cos(yaw) + along_y * np.sin(yaw), along_y * np.cos(yaw) - along_x * np.sin(yaw)
    return np.stack([ahead, left, turn + along_x * y - along_y * x], axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_the_scores_are_those_of_a_regression_with_a_free_surface_in_each_cell(seed):
    views = [*around(8, seed=seed), view_of(0.3, 60, x=0.1, y=0.2, seed=seed)]
    contour = outline()
    residuals = Residuals.of(views, contour)
    cells = 2 * round(0.5 * min(2.0 * math.pi * RADIUS / STD, len(residuals.view) / 4))
    groups = [np.arange(9) >= first for first in range(1, 9)] + [np.arange(9) == one for one in range(9)]
    expected = max(by_regression(residuals, residuals.by, group, cells, RADIUS) for group in groups)
    common = by_regression(residuals, by_cameras(residuals), np.ones(9), cells, RADIUS)
    assert displacement_scores(residuals, contour, STD) == pytest.approx((expected, common), rel=1e-6)


@given(amplitude=st.floats(-0.2, 0.2), seed=st.integers(0, 50))
def test_what_the_surface_is_in_a_cell_does_not_matter(amplitude, seed):
    contour = outline()
    residuals = Residuals.of(around(seed=seed, noise=0.3 * STD), contour)
    cells = 2 * round(0.5 * len(residuals.view) / 4)
    off = amplitude * 5.0 * np.sin(np.floor(residuals.angle / (2.0 * math.pi / cells)))
    shifted = dataclasses.replace(residuals, distance=residuals.distance + off)
    assert displacement_scores(shifted, contour, STD) == pytest.approx(
        displacement_scores(residuals, contour, STD), abs=1e-6
    )


@given(scale=st.sampled_from([1e-3, 0.1, 10.0, 1e4]), seed=st.integers(0, 20))
def test_the_scores_do_not_depend_on_the_unit_of_length(scale, seed):
    assert scores(around(scale=scale, seed=seed), scale) == pytest.approx(scores(around(seed=seed)), rel=1e-6)


def test_views_that_do_not_overlap_say_nothing():
    assert scores(around(4)) == pytest.approx((0.0, math.nan), abs=1e-6, nan_ok=True)


def test_two_views_are_not_compared_yet():
    assert scores(around(2)) == pytest.approx((math.nan, math.nan), nan_ok=True)


def test_honest_noise_seldom_scores():
    found = np.array([scores(around(seed=seed)) for seed in range(100)])
    assert found.max() < 4.0
    assert np.median(found[:, 1]) < 2.0


@pytest.mark.parametrize("late", [
    [view_of(direction, 60, x=0.15, seed=1) for direction in np.arange(5, 10) * (0.2 * math.pi)],  # the object moved
    [view_of(0.2 * math.pi * k, 60, x=0.04 * k, seed=1) for k in range(5, 10)],  # drift
    [view_of(0.3, 60, y=0.3, seed=1), view_of(0.9, 60, seed=1)],  # one view alone
])  # fmt: skip
def test_views_displaced_against_the_others_score(late):
    assert scores([*around(seed=2)[:5], *late])[0] > 4.5


def test_a_constant_offset_of_the_camera_scores():
    views = [
        view_of(angle, 60, x=-0.25 * math.sin(angle), y=0.25 * math.cos(angle), seed=3)
        for angle in np.arange(14) * (2.0 * math.pi / 14)
    ]
    assert scores(views)[1] > 4.0


def test_steep_walls_are_left_out():
    contour, views = outline(), [*around(8), view_of(0.3, 60, x=0.1, y=0.2)]
    residuals = Residuals.of(views, contour)
    steep = dataclasses.replace(residuals, steep=np.ones(len(residuals.view), dtype=bool))
    assert displacement_scores(steep, contour, STD) == (0.0, 0.0)


def test_the_hits_of_many_views_are_thinned_out():
    assert len(Residuals.of(around(50, seed=4), outline()).view) <= 2048
    assert scores(around(50, seed=4))[0] < 4.0
