"""Ellipses around clusters, their tangents, and which of them is seen first."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbv_bench.rivals.projection import Ellipses, clusters, visible_frontier
from nbv_planner.geometry import angle_difference
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

SCENE = Scene()


def discs(*places: tuple[float, float], radius: float = 0.5) -> Ellipses:
    return Ellipses(np.array(places, dtype=float), np.array([radius * np.eye(2)] * len(places)))


@pytest.mark.parametrize("turn", [0.0, 1.0, 2.5])
def test_a_disc_projects_to_twice_the_arcsine_of_its_radius_over_its_distance(turn):
    view = Poses.of([CameraPose.from_polar(turn, 10.0)])
    bearing, (right, left), distance = discs((0.0, 0.0), radius=2.0).seen_from(view)
    assert (bearing[0, 0], distance[0, 0]) == pytest.approx((0.0, 10.0), abs=1e-12)
    assert (right[0, 0], left[0, 0]) == pytest.approx((-math.asin(0.2), math.asin(0.2)))


@settings(max_examples=50, deadline=None)
@given(
    st.floats(-4.0, 4.0),
    st.floats(-4.0, 4.0),
    st.floats(0.2, 3.0),
    st.floats(0.2, 3.0),
    st.floats(-2.0, 2.0),
    st.floats(0.0, 6.28),
    st.floats(-0.5, 0.5),
)
def test_the_interval_is_that_of_points_on_the_ellipse(x, y, a, b, skew, angle, turn):
    ellipse = Ellipses(np.array([[x, y]]), np.array([[[a, 0.0], [skew, b]]]))
    view = CameraPose.from_polar(angle, 20.0, turn)
    bearing, (right, left), _ = ellipse.seen_from(Poses.of([view]))
    around = np.linspace(0.0, 2.0 * np.pi, 4001)
    points = (
        ellipse.middle[0] + np.stack([np.cos(around), np.sin(around)], axis=1) @ ellipse.shape[0].T
    )
    seen = np.arctan2(*view.to_camera(*points.T)[::-1])
    offset = angle_difference(seen, bearing[0, 0])
    np.testing.assert_allclose([right[0, 0], left[0, 0]], [offset.min(), offset.max()], atol=1e-5)


def test_an_ellipse_has_mean_and_covariance_of_its_cells():
    """A filled disc of radius R has covariance R²/4: its ellipse is the disc itself."""
    side = np.arange(-2.95, 3.0, 0.1)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    points = points[np.hypot(*points.T) <= 2.0] + [1.0, -1.0]
    found = Ellipses.around(points, np.zeros(len(points), dtype=int), 0.1)
    np.testing.assert_allclose(found.middle, [[1.0, -1.0]], atol=1e-9)
    np.testing.assert_allclose(found.shape[0], 2.0 * np.eye(2), atol=0.02)


def test_clusters_hold_every_point_within_their_radius_of_a_point_of_theirs():
    points = np.random.default_rng(0).uniform(-5.0, 5.0, (300, 2))
    labels = clusters(points, 1.5)
    assert set(labels) == set(range(labels.max() + 1))
    for label in range(labels.max() + 1):
        group = points[labels == label]
        apart = np.hypot(*(group[:, None] - group).transpose(2, 0, 1))
        assert apart.max(axis=1).min() <= 1.5
    assert len(clusters(np.empty((0, 2)), 1.0)) == 0


def test_what_is_behind_does_not_count_and_what_is_in_front_does():
    """An occupied disc hides an equal frontier disc behind it; from the other side the frontier
    hides it.
    """
    both, frontier = discs((4.0, 0.0), (2.0, 0.0)), np.array([False, True])
    views = Poses.on_circle([0.0, math.pi], 10.0)
    scene = Scene(range_max=14.0)
    hidden, open_ = visible_frontier(both, frontier, views, scene, 101)
    alone = visible_frontier(discs((2.0, 0.0)), np.array([True]), views, scene, 101)
    assert hidden == 0.0 < open_ == alone[1]
    part = 2.0 * math.asin(0.5 / 12.0) / SCENE.field_of_view
    assert alone[1] / 101 == pytest.approx(part, abs=0.02)


def test_beyond_range_and_beside_the_field_nothing_is_seen():
    views = Poses.on_circle([0.0], 10.0)
    for place in ((-1.0, 0.0), (6.0, 4.0)):
        assert visible_frontier(discs(place), np.array([True]), views, SCENE, 51)[0] == 0.0
    assert visible_frontier(discs((1.0, 0.0)), np.array([True]), views, SCENE, 51)[0] > 0.0
