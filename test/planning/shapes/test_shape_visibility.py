"""What a view sees of a shape on a grid, against a walk written plainly and against the thesis's function."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.planning.shapes.visibility import visible_cells
from nbv_planner.scene import Scene
from nbv_planner.surface import uniform_grid
from nbv_planner.visibility import observe

SCENES = [Scene(), Scene(range_max=7.0, field_of_view=1.0), Scene(range_max=14.0, field_of_view=1.8, radius_max=9.0)]


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
    found = visible_cells(shapes, np.array([view]), scene)
    assert found.shape == (2, 1, size)
    if np.abs(np.sin(0.5 * (shapes.angle - view))).min() < 1e-9:
        return  # a grid angle at the view: which side it is on hangs on rounding
    for shape in range(2):
        expected = oracles.visible_on_shape(
            shapes.angle, shapes.radius[shape], view, scene.view_distance, scene.field_of_view, scene.range_max
        )
        assert set(np.flatnonzero(found[shape, 0])) == expected


def test_on_smooth_shapes_it_is_the_thesis_observation_function():
    grid = uniform_grid(720)
    shapes = Shapes(grid, np.stack([5 + 2 * np.cos(3 * grid), 5 + np.cos(5 * grid), np.full(720, 6.0)]))
    views = np.arange(50) * (2 * math.pi / 50) + 0.001
    found = visible_cells(shapes, views, Scene())
    for shape in range(3):
        np.testing.assert_array_equal(found[shape], observe(grid, shapes.radius[shape], views, Scene()))


def test_each_view_and_shape_is_judged_by_itself():
    shapes, views = rough(3, 20, 200), np.linspace(0.0, 2 * math.pi, 30)
    together = visible_cells(shapes, views, Scene())
    for shape in (0, 7, 19):
        alone = visible_cells(Shapes(shapes.angle, shapes.radius[[shape]]), views[[4, 29]], Scene())
        np.testing.assert_array_equal(alone[0], together[shape][[4, 29]])
