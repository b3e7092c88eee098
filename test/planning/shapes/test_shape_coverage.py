"""Unseen points of posterior shapes and the views that would see them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import pytest
from beliefs import TWO_PI, Drawn, belief_of, left_to_see, with_evidence
from views import views_at

from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.planning.objectives import ExpectedMarginalCoverage, Situation
from nbv_planner.planning.planners.rollout import views_to_go
from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_coverage import (
    measured_parts,
    surface_density,
    unseen_fraction,
)
from nbv_planner.star2d.shapes.shape_visibility import visible_cells
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import POINTS, ShapeCoverage
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

SCENE = Scene()
CAMERA = {"d_cam": 10.0, "fov": SCENE.field_of_view, "d_max": 10.0}


def wavy(count: int, size: int, seed: int = 0) -> Shapes:
    rng, grid = np.random.default_rng(seed), uniform_grid(size)
    phase = rng.uniform(0, 6, (count, 3, 1))
    return Shapes(
        grid, 5.0 + np.cos(np.array([[2.0], [3.0], [7.0]]) * grid + phase).sum(axis=1) * 0.9
    )


BELIEF = with_evidence(belief_of(4.0, 6.0, size=360))


@pytest.mark.parametrize("taken", [[], [0.4], [1.0, 3.3]])
@pytest.mark.parametrize("seed", range(3))
def test_gains_are_what_the_plain_walk_counts_half_of_it_where_views_left_no_measurements(
    seed, taken
):
    shapes, views = wavy(3, 120, seed), np.array([0.11, 1.3, 2.9, 5.07])
    gains = left_to_see(POINTS, shapes, views_at(taken), views_at(views), SCENE, BELIEF).gains()
    for view, value in zip(views, gains.mean(axis=0, dtype=float), strict=True):
        whole, new = (
            oracles.expected_gain(shapes.angle, shapes.radius, before, view, **CAMERA, h=0.1)
            for before in ([], taken)
        )
        expected = 0.5 * (whole + new)
        assert value == pytest.approx(expected, abs=120 * 2.0**-9)  # whole parts


def test_a_view_that_was_taken_adds_nothing_when_it_is_repeated():
    gains = left_to_see(
        POINTS, wavy(3, 120), views_at([1.3]), views_at([0.11, 1.3, 1.4]), SCENE, BELIEF
    ).gains()
    np.testing.assert_array_equal((gains > 0.0).all(axis=0), [True, False, True])


@pytest.mark.parametrize("taken", [[], [0.4], [1.0, 3.3]])
def test_emc_is_the_mean_gain_where_no_measurement_lies_near(taken):
    """Circles as they were measured, 0.2 m beside that, and 0.4 m: near enough, only where a view
    sees it, too far.
    """
    grid, views = uniform_grid(360), views_at([0.11, 1.3, 2.9, 5.07])
    shapes = Shapes(grid, np.repeat([[5.0], [5.2], [5.4]], 360, axis=1))
    belief = with_evidence(
        belief_of(4.9, 5.1, size=720, hits=lambda angle: (angle < 2.5).astype(int))
    )
    sight = visible_cells(shapes, views_at(taken), SCENE).any(axis=1)
    seen = np.stack([grid < 2.5, (grid < 2.5) & sight[1], np.zeros(360, dtype=bool)])
    unseen = np.where(seen, 0.0, surface_density(shapes, SCENE.pixel_size)) * np.where(
        sight, 0.5, 1.0
    )
    expected = (visible_cells(shapes, views, SCENE) * unseen[:, None]).sum(axis=2).mean(axis=0)
    surface = Drawn(SCENE, shapes=shapes)(belief)
    values = ExpectedMarginalCoverage().evaluate(Situation(surface, SCENE, views, views_at(taken)))
    # A reach of at most 0.25 m goes on at either end of what was measured.
    np.testing.assert_allclose(values, expected, atol=4.0 * 0.25 / SCENE.pixel_size / 3)


def test_newest_answer_is_kept_for_the_same_question_alone():
    objective, surface = ExpectedMarginalCoverage(), Drawn(SCENE, shapes=wavy(2, 90))(BELIEF)
    question = Situation(surface, SCENE, views_at([0.5, 2.0]))
    first = objective.coverage(question)
    assert objective.coverage(dataclasses.replace(question, visited=views_at([]))) is first
    assert objective.coverage(dataclasses.replace(question, visited=views_at([1.0]))) is not first
    assert objective.coverage(question) is not first


@pytest.mark.parametrize(
    "text", ["ellipse:a=5,b=5", "ellipse:a=8,b=2", "flower:frequency=4,amplitude=2", "star"]
)
def test_crossings_count_the_surface_points(text):
    shape, grid = parse_object(text, SCENE), uniform_grid(2000)
    counted = surface_density(Shapes(grid, shape.radius(grid)[None]), SCENE.pixel_size).sum()
    assert counted == pytest.approx(len(surface_points(shape, SCENE.pixel_size)), rel=0.01)


def test_length_counts_pixels_along_the_contour():
    circle = Shapes(uniform_grid(720), np.full((1, 720), 5.0))
    assert surface_density(circle, 0.1, "length").sum() == pytest.approx(2 * math.pi * 50, rel=1e-4)
    assert surface_density(circle, 0.1).sum() == pytest.approx(400, rel=1e-4)


@pytest.mark.parametrize(
    "text", ["ellipse:a=6,b=4", "square:width=6", "flower:frequency=8,amplitude=1", "star"]
)
def test_what_was_seen_is_told_by_the_measurements_alone(text):
    """On the true shape, the unseen points it leaves are those that the judge counts, within three
    per cent of all.
    """
    shape, grid = parse_object(text, SCENE), uniform_grid(1000)
    points = surface_points(shape, SCENE.pixel_size)
    mapper, seen = (
        SurfaceMapper(PeriodicMatern(), MapperSettings()),
        np.zeros(len(points.angle), dtype=bool),
    )
    for view in (0.0, 1.0, 2.2, 4.0):
        now = observe(points.angle, points.radius, view, SCENE)[0]
        seen |= now
        mapper.add(Measurements(points.angle[now], points.radius[now], np.full(now.sum(), 0.2)))
    density = surface_density(Shapes(grid, shape.radius(grid)[None]), SCENE.pixel_size)[0]
    unseen = (density * unseen_fraction(mapper.belief(), grid, SCENE.pixel_size)).sum()
    assert unseen == pytest.approx((~seen).sum(), abs=0.03 * len(seen))


def test_nothing_seen_and_everything_seen():
    grid = uniform_grid(90)
    assert (unseen_fraction(belief_of(4.0, 6.0, size=360, hits=0), grid, 0.1) == 1).all()
    assert (unseen_fraction(belief_of(4.0, 6.0, size=360, hits=1), grid, 0.1) == 0).all()


def test_waves_of_a_shape_do_not_hide_what_was_measured():
    """From a grazing view a wavy shape hides parts of itself; where the surface was measured, they
    count as seen.
    """
    grid = uniform_grid(360)
    shapes, view = Shapes(grid, 5.0 + 0.05 * np.cos(90 * grid)[None]), views_at([0.9])
    belief = with_evidence(
        belief_of(4.9, 5.1, size=720, hits=lambda angle: (np.abs(angle - 0.9) < 0.8).astype(int))
    )
    inside, visible = np.abs(grid - 0.9) < 0.75, visible_cells(shapes, view, SCENE)[0, 0]
    assert (inside & ~visible).sum() > 10
    drawn = StarReader(SCENE)(belief).met(shapes, POINTS)
    assert (drawn.doubted(visible_cells(shapes, view, SCENE))[0, inside] == 1.0).all()


def test_few_beams_close_the_surface_between_them_and_single_ones_do_not():
    """Every 0.3 m on a circle of radius 5 m; the same measurements, three of them left over."""
    grid, step = uniform_grid(360), TWO_PI / 720
    every = belief_of(
        4.9, 5.1, size=720, hits=lambda angle: (np.rint(angle / step) % 7 == 0).astype(int)
    )
    few = belief_of(
        4.9, 5.1, size=720, hits=lambda angle: (np.rint(angle / step) % 240 == 0).astype(int)
    )
    assert unseen_fraction(every, grid, 0.1).mean() < 0.02
    assert unseen_fraction(few, grid, 0.1).mean() > 0.98
    circle = Shapes(grid, np.full((1, 360), 5.0))
    near_every, near_few = (
        measured_parts(circle, with_evidence(belief), SCENE, [2.5])[0] for belief in (every, few)
    )
    assert near_every.mean() > 0.98
    assert near_few.mean() < 0.2


def coverage_of(sets: list[list[int]], weight: list[float]) -> ShapeCoverage:
    visible = np.zeros((1, len(sets), len(weight)), dtype=np.float32)
    for view, cells in enumerate(sets):
        visible[0, view, cells] = 1.0
    unseen = np.array([weight], dtype=np.float32)
    return ShapeCoverage(visible, unseen, unseen.sum(axis=1, dtype=float))


@pytest.mark.parametrize("target", [0.3, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_views_to_go_are_those_of_a_plain_greedy_cover(seed, target):
    rng = np.random.default_rng(seed)
    weight = list(rng.integers(1, 9, 12).astype(float))
    sets = [list(np.flatnonzero(rng.random(12) < 0.3)) for _ in range(7)]
    cover = coverage_of(sets, weight)
    found = views_to_go(cover, np.arange(7), np.ones(7, dtype=bool), target)[0]
    expected = [
        oracles.greedy_views(sets, weight, target * sum(weight), first) for first in range(7)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_views_that_may_not_follow_are_left_out():
    cover = coverage_of([[0], [1, 2], [1], [2]], [1.0, 1.0, 1.0])
    first = np.array([0])
    assert views_to_go(cover, first, np.ones(4, dtype=bool), 1.0)[0, 0] == 2.0
    assert views_to_go(cover, first, np.array([True, False, True, True]), 1.0)[0, 0] == 3.0


def test_enough_seen_already_takes_no_view():
    cover = coverage_of([[0]], [1.0])
    cover = ShapeCoverage(cover.visible, cover.unseen, np.array([100.0]))
    assert views_to_go(cover, np.array([0]), np.array([True]), 0.95)[0, 0] == 0.0
