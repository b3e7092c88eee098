"""What cameras off the view circle see: against rays that are followed step by step, on contours
and on shapes.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from beliefs import belief_of
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.star2d.belief import uniform_grid
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_visibility import grades_of_sight, visible_cells
from nbv_planner.thesis.area import Uncertainty
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import BeamScene, Scene
from nbv_planner.world.visibility import observe

SCENE, SIZE = BeamScene(), 720
GRID = uniform_grid(SIZE)
#: metres, by which a ray may enter the contour, or miss it, before the answer is sure.
MARGIN = 0.03


def contour(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    waves = [
        size * np.cos(m * GRID + phase)
        for m, size, phase in zip(
            (2, 3, 5, 8), rng.uniform(0, (1.0, 1.2, 0.6, 0.3)), rng.uniform(0, 6, 4), strict=True
        )
    ]
    return np.clip(5.0 + sum(waves), 2.0, 8.0)


def clearance(view: CameraPose, radius: np.ndarray) -> np.ndarray:
    """How far each ray from the camera to a contour point stays outside of the contour, metres;
    negative inside.

    The last tenth of a metre of a ray does not count: there it meets the contour that it goes to.
    """
    x, y = polar_to_cartesian(GRID, radius)
    length = np.hypot(x - view.x, y - view.y)
    part = np.linspace(0.0, 1.0, 400)[:, None] * np.maximum(1.0 - 0.1 / length, 0.0)
    at_x, at_y = view.x + part * (x - view.x), view.y + part * (y - view.y)
    around = np.interp(np.arctan2(at_y, at_x), GRID, radius, period=2 * math.pi)
    return (np.hypot(at_x, at_y) - around).min(axis=0)


def expected(view: CameraPose, radius: np.ndarray, scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Which points are surely seen, and which surely not."""
    bearing, distance = (
        np.asarray(values)
        for values in (
            np.arctan2(*view.to_camera(*polar_to_cartesian(GRID, radius))[::-1]),
            np.hypot(*np.subtract(polar_to_cartesian(GRID, radius), [[view.x], [view.y]])),
        )
    )
    free, half = clearance(view, radius), 0.5 * scene.field_of_view
    slack = 0.01
    seen = (free > MARGIN) & (np.abs(bearing) < half - slack) & (distance < scene.range_max - slack)
    hidden = (
        (free < -MARGIN) | (np.abs(bearing) > half + slack) | (distance > scene.range_max + slack)
    )
    return seen, hidden


views = st.tuples(st.floats(0.0, 6.28), st.floats(0.15, 9.0), st.floats(-3.0, 3.0))


@pytest.mark.parametrize("scene", [SCENE, BeamScene(field_of_view=2.0, range_max=20.0)])
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), views)
def test_a_camera_anywhere_sees_what_rays_reach(scene, seed, place):
    """Close to the object and inside of its concavities, too, and whatever the heading."""
    radius, (angle, height, turn) = contour(seed), place
    view = CameraPose.from_polar(
        angle, float(np.interp(angle, GRID, radius, period=2 * math.pi)) + height, turn
    )
    seen, hidden = expected(view, radius, scene)
    for found in (
        observe(GRID, radius, Poses.of([view]), scene)[0],
        visible_cells(Shapes(GRID, radius[None]), Poses.of([view]), scene)[0, 0],
    ):
        # A point next to the tip that hides it is as little sure as the tip.
        assert np.count_nonzero(seen & ~found) <= 4
        assert np.count_nonzero(hidden & found) <= 4


def test_a_camera_in_a_notch_sees_both_walls_beside_it():
    radius = 5.0 + 2.0 * np.cos(3.0 * GRID)
    scene = BeamScene(field_of_view=3.0, range_max=20.0)
    inside = Poses.of(
        [CameraPose.from_polar(math.pi / 3.0, 4.0), CameraPose.from_polar(math.pi / 3.0, 4.0, 2.0)]
    )
    for found in (
        observe(GRID, radius, inside, scene),
        visible_cells(Shapes(GRID, radius[None]), inside, scene)[0],
    ):
        assert found[0][math.pi / 3.0 - 0.1 > GRID].any()
        assert found[0][(math.pi / 3.0 + 0.1 < GRID) & (GRID < 2.0)].any()
        # looking out of the notch along one of its walls
        assert 0 < found[1].sum() < found[0].sum()


def test_all_headings_at_a_place_are_judged_as_each_alone():
    rng = np.random.default_rng(5)
    shapes = Shapes(GRID, np.stack([contour(seed) for seed in range(4)]))
    many = Poses.from_polar(
        np.repeat([0.3, 2.0, 5.5], 5), np.repeat([8.6, 11.0, 16.0], 5), rng.uniform(-0.8, 0.8, 15)
    )
    together = visible_cells(shapes, many, SCENE)
    for number in range(len(many)):
        np.testing.assert_array_equal(
            together[:, number], visible_cells(shapes, Poses.of([many[number]]), SCENE)[:, 0]
        )


def test_a_view_inside_of_a_shape_sees_nothing_of_it():
    shapes = Shapes(GRID, np.stack([np.full(SIZE, 4.0), np.full(SIZE, 7.5)]))
    found = visible_cells(shapes, Poses.of([CameraPose.from_polar(1.0, 6.0)]), SCENE)
    assert found[0].any()
    assert not found[1].any()


def test_a_distant_camera_sees_peaks_in_range_past_a_valley_out_of_range():
    """From 16 m with a range of 10 m nothing below 6 m is in range: the thesis's walk would end at
    once.
    """
    radius = np.where(np.abs(GRID - 0.2) < 0.1, 7.5, 4.0)
    view = Poses.of([CameraPose.from_polar(0.0, 16.0)])
    for found in (
        observe(GRID, radius, view, SCENE)[0],
        visible_cells(Shapes(GRID, radius[None]), view, SCENE)[0, 0],
    ):
        assert found.any()
        assert (radius[found] > 6.0).all()


def test_grades_off_the_circle_tell_what_is_seen():
    shapes = Shapes(GRID, np.stack([contour(seed) for seed in range(3)]))
    taken = Poses.from_polar(
        np.array([0.1, 2.0, 4.0]), np.array([9.0, 12.0, 15.0]), np.array([0.2, 0.0, -0.3])
    )
    grades = grades_of_sight(shapes, taken, SCENE, 0.2)
    differ = (grades > 0) != visible_cells(shapes, taken, SCENE).any(axis=1)
    assert differ.mean() < 0.002  # single precision


#: metres, by which a pose is off that of a view; a walk that began or ended elsewhere would see
#: other points.
OFF = 1e-12


@pytest.mark.parametrize(
    "scene", [Scene(), BeamScene(), Scene(range_max=7.0), BeamScene(range_max=7.0)], ids=repr
)
def test_nothing_depends_on_the_last_digit_of_a_distance(scene):
    """The sensor's rule is that of the scene: views so little off the circle see the same, and are
    as good.
    """
    shapes = Shapes(GRID, np.stack([contour(seed) for seed in range(5)]))
    exact = Poses.on_circle(0.003 + np.arange(40) * (2 * math.pi / 40), scene.view_distance)
    off = Poses(exact.position + OFF * np.cos(np.arange(80.0)).reshape(-1, 2), exact.rotation)
    assert off.are_on_circle(scene.view_distance)
    assert not (off.distance == scene.view_distance).all()
    for radius in shapes.radius:
        np.testing.assert_array_equal(
            *(observe(GRID, radius, views, scene) for views in (exact, off))
        )
    np.testing.assert_array_equal(*(visible_cells(shapes, views, scene) for views in (exact, off)))
    np.testing.assert_array_equal(
        *(grades_of_sight(shapes, views, scene, 0.2) for views in (exact, off))
    )
    belief = belief_of(
        lambda _: shapes.radius[0] - 0.5, lambda _: shapes.radius[0] + 0.5, grid=GRID
    )
    np.testing.assert_allclose(
        *(Uncertainty.values(belief, scene, views) for views in (exact, off)), rtol=1e-9
    )


@pytest.mark.parametrize("turn", [-0.7, -0.2, 0.1, 0.4])
def test_a_turned_camera_of_the_thesis_sees_the_part_of_the_walk_that_is_in_its_field(turn):
    shapes, half = (
        Shapes(GRID, np.stack([contour(seed) for seed in range(5)])),
        0.5 * SCENE.field_of_view,
    )
    angle = 0.003 + np.arange(20) * (2 * math.pi / 20)
    turned = Poses.from_polar(angle, np.full(20, 10.0), np.full(20, turn))
    wide = visible_cells(shapes, Poses.on_circle(angle, 10.0), Scene(field_of_view=3.0))
    x, y = polar_to_cartesian(GRID, shapes.radius)
    at = np.stack(
        [np.arctan2(*turned[number].to_camera(x, y)[::-1]) for number in range(20)], axis=1
    )
    np.testing.assert_array_equal(
        visible_cells(shapes, turned, Scene()), wide & (np.abs(at) <= half)
    )
