"""Meshes of level sets are closed, look outwards and enclose what the formula says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import ContourError
from nbv_planner.volume.bodies.mesh import Mesh, level_set


def lattice(count=48, half=1.3):
    step = 2.0 * half / count
    axis = (np.arange(count) + 0.5) * step - half
    return (
        np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1),
        np.full(3, axis[0]),
        step,
    )


def test_a_sphere_has_its_volume_area_and_euler_characteristic():
    places, start, step = lattice()
    mesh = level_set(np.linalg.norm(places, axis=-1) - 1.0, start, step)
    assert mesh.open_edges == 0
    assert mesh.volume == pytest.approx(4.0 / 3.0 * math.pi, rel=5e-3)
    assert mesh.area == pytest.approx(4.0 * math.pi, rel=1e-2)
    assert len(mesh.vertices) - len(mesh.faces) // 2 == 2
    out = (mesh.normals * mesh.corners.mean(axis=1)).sum(axis=1)
    assert (out > 0.9).all()


def test_a_torus_has_one_handle():
    places, start, step = lattice()
    places = places + 0.4 * step  # no plane of symmetry lies between two layers of the lattice
    ring = np.hypot(np.linalg.norm(places[..., :2], axis=-1) - 0.8, places[..., 2]) - 0.3
    mesh = level_set(ring, start, step)
    assert mesh.open_edges == 0
    assert mesh.volume == pytest.approx(2.0 * math.pi**2 * 0.8 * 0.09, rel=2e-2)
    assert len(mesh.vertices) - len(mesh.faces) // 2 == 0


@given(seed=st.integers(0, 1000))
def test_any_smooth_function_gives_a_closed_surface(seed):
    places, start, step = lattice(24)
    rng = np.random.default_rng(seed)
    middle = rng.uniform(-0.6, 0.6, size=(4, 3))
    away = np.linalg.norm(places[..., None, :] - middle, axis=-1) - rng.uniform(0.25, 0.5, size=4)
    mesh = level_set(np.log(np.exp(-12.0 * away).sum(axis=-1)) / -12.0, start, step)
    ends = np.stack([mesh.faces, np.roll(mesh.faces, -1, axis=1)], -1).reshape(-1, 2)
    # each edge is run along as often in either direction
    forward = np.unique(ends, axis=0, return_counts=True)
    backward = np.unique(ends[:, ::-1], axis=0, return_counts=True)
    assert np.array_equal(forward[0], backward[0])
    assert np.array_equal(forward[1], backward[1])
    assert mesh.volume > 0.0


def test_what_reaches_the_border_is_closed_there():
    places, start, step = lattice(12)
    mesh = level_set(np.full(places.shape[:3], -1.0), start, step)
    assert mesh.open_edges == 0


def test_no_surface_is_said():
    with pytest.raises(ContourError, match="negative nowhere"):
        level_set(np.ones((4, 4, 4)), np.zeros(3), 1.0)


def test_points_are_even_over_the_area_of_small_and_large_triangles():
    """Of areas 0.5 and 9 m², 3 m apart."""
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [4, 0, 0], [7, 0, 0], [4, 6, 0]]
    mesh = Mesh(np.array(corners, dtype=float), np.array([[0, 1, 2], [3, 4, 5]]))
    points, normals = mesh.sample(1900)
    assert (points[:, 0] < 2.0).mean() == pytest.approx(0.5 / 9.5, abs=0.002)
    large = points[points[:, 0] > 2.0]
    assert large.mean(axis=0) == pytest.approx([5.0, 2.0, 0.0], abs=0.1), "the middle of it"
    assert (normals == [0.0, 0.0, 1.0]).all()
