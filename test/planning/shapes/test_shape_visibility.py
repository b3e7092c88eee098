"""What a view sees of a shape on a grid, against a walk written plainly and against the thesis's
function.
"""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from beliefs import belief_of, with_evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from views import views_at

from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_visibility import grades_of_sight, visible_cells
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import POINTS
from nbv_planner.surface.seam import fixed
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import ConeSensor, RangeNoise
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

SCENES = [
    Scene(),
    Scene(range_max=7.0, field_of_view=1.0),
    Scene(range_max=14.0, field_of_view=1.8, radius_max=9.0),
]


def rough(seed: int, count: int, size: int) -> Shapes:
    """Shapes that jump, so that much is hidden."""
    rng = np.random.default_rng(seed)
    phase = np.arange(8)[:, None] * uniform_grid(size) + rng.uniform(0, 6, (8, 1))
    wave = rng.normal(size=(count, 8, 1)) * np.cos(phase)
    return Shapes(uniform_grid(size), np.clip(5.0 + wave.sum(axis=1) * 0.8, 2.0, 8.0))


@pytest.mark.parametrize("scene", SCENES)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(16, 90), st.floats(-7.0, 7.0))
def test_a_view_sees_what_the_plain_walk_sees(scene, seed, size, view):
    shapes = rough(seed, 2, size)
    found = visible_cells(shapes, views_at([view]), scene)
    assert found.shape == (2, 1, size)
    if np.abs(np.sin(0.5 * (shapes.angle - view))).min() < 1e-9:
        return  # a grid angle at the view: which side it is on hangs on rounding
    for shape in range(2):
        expected = oracles.visible_on_shape(
            shapes.angle,
            shapes.radius[shape],
            view,
            scene.view_distance,
            scene.field_of_view,
            scene.range_max,
        )
        assert set(np.flatnonzero(found[shape, 0])) == expected


def test_on_smooth_shapes_it_is_the_thesis_observation_function():
    grid = uniform_grid(720)
    shapes = Shapes(
        grid, np.stack([5 + 2 * np.cos(3 * grid), 5 + np.cos(5 * grid), np.full(720, 6.0)])
    )
    views = views_at(np.arange(50) * (2 * math.pi / 50) + 0.001)
    found = visible_cells(shapes, views, Scene())
    for shape in range(3):
        np.testing.assert_array_equal(
            found[shape], observe(grid, shapes.radius[shape], views, Scene())
        )


def test_each_view_and_shape_is_judged_by_itself():
    shapes, views = rough(3, 20, 200), views_at(np.linspace(0.0, 2 * math.pi, 30))
    together = visible_cells(shapes, views, Scene())
    for shape in (0, 7, 19):
        alone = visible_cells(
            Shapes(shapes.angle, shapes.radius[[shape]]), views.chosen(np.array([4, 29])), Scene()
        )
        np.testing.assert_array_equal(alone[0], together[shape][[4, 29]])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_grades_tell_what_is_seen_and_sight_is_the_better_the_less_is_asked(seed, some, more):
    shapes, views = rough(seed, 3, 120), views_at(np.linspace(0.1, 6.0, 7))
    grades = grades_of_sight(shapes, views, Scene(), some)
    np.testing.assert_array_equal(grades > 0, visible_cells(shapes, views, Scene()).any(axis=1))
    assert grades.max() <= 2
    stricter = grades_of_sight(shapes, views, Scene(), max(some, more))
    assert not ((stricter == 2) & (grades < 2)).any()


def test_no_view_sees_nothing():
    assert not grades_of_sight(rough(1, 2, 90), views_at([]), Scene(), 0.2).any()


@pytest.mark.parametrize("least", [0.15, 0.3, 0.6])
def test_a_circle_is_grazed_where_the_angle_of_sight_is_small(least):
    """From the view at angle 0, the sine is the cosine between the ray and the normal: (d cos φ -
    r) / distance.
    """
    grid, radius = uniform_grid(3600), 3.0
    offset = np.abs((grid + np.pi) % (2.0 * np.pi) - np.pi)
    grades = grades_of_sight(
        Shapes(grid, np.full((1, 3600), radius)), views_at([0.0]), Scene(), least
    )[0]
    distance = np.sqrt(100.0 + radius**2 - 20.0 * radius * np.cos(offset))
    sine = (10.0 * np.cos(offset) - radius) / distance
    sure = (np.abs(sine - least) > 0.01) & (np.abs(sine) > 0.01)
    expected = np.where(sine >= least, 2, np.where(sine > 0.0, 1, 0))
    np.testing.assert_array_equal(grades[sure], expected[sure])
    assert (expected == 1).sum() > 100


def test_a_wall_that_faces_away_is_seen_well_from_the_other_side():
    """A step from 4 m to 6 m: the view above it sees nothing of the wall, the view across sees it
    well.
    """
    grid = uniform_grid(720)
    radius = 4.0 + 2.0 * np.clip((np.abs(grid - np.pi) - 0.30) / 0.05, 0.0, 1.0)
    wall = (radius > 4.1) & (radius < 5.9) & (grid > np.pi)
    shape, scene = Shapes(grid, radius[None]), Scene(field_of_view=1.5)
    above, across = (grades_of_sight(shape, views_at([view]), scene, 0.2)[0] for view in (3.7, 3.0))
    assert (above[wall] == 0).all()
    assert (across[wall] == 2).all()


class Oblique(ConeSensor):
    """Noisier at grazing angles."""

    def range_std(self, noise, distance, incidence):
        return noise.std(distance) / np.maximum(np.cos(incidence), 1e-3)


def test_what_a_look_fixes_depends_on_range_and_incidence():
    """Of a circle of 4 m seen from 12 m, ranges grow from 8 m and incidence from 0 with the angle
    from the view.
    """
    grid, views = (
        uniform_grid(720),
        Poses.of([CameraPose.from_polar(0.0, 12.0), CameraPose.from_polar(0.0, 9.0)]),
    )
    shapes, noise = Shapes(grid, np.full((1, 720), 4.0)), RangeNoise(0.02, 0.01)
    drawn = StarReader(Scene())(with_evidence(belief_of(3.0, 5.0))).met(shapes, POINTS)
    offset = np.abs((grid + np.pi) % (2.0 * np.pi) - np.pi)
    for distance, found in zip(
        (12.0, 9.0), fixed(drawn, views, Scene().sensor, noise, 0.105)[0], strict=True
    ):
        reach = np.sqrt(distance**2 + 16.0 - 8.0 * distance * np.cos(offset))
        np.testing.assert_array_equal(found, 0.02 + 0.01 * reach <= 0.105)
    steep = Scene()
    steep.__dict__["sensor"] = Oblique(-0.3, 0.3, 0.05, 10.0)
    oblique = fixed(drawn, views, steep.sensor, noise, 0.105)[0]
    incidence = np.arccos(
        np.clip((9.0 * np.cos(offset) - 4.0) / np.sqrt(97.0 - 72.0 * np.cos(offset)), -1.0, 1.0)
    )
    std = (0.02 + 0.01 * np.sqrt(97.0 - 72.0 * np.cos(offset))) / np.maximum(
        np.cos(incidence), 1e-3
    )
    sure = np.abs(std - 0.105) > 1e-3
    np.testing.assert_array_equal(oblique[1][sure], (std <= 0.105)[sure])
