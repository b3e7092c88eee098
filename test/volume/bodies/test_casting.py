"""Beams meet a mesh where a plain search over all triangles says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.volume.bodies.casting import cast
from nbv_planner.volume.bodies.mesh import Mesh


def by_search(mesh, origin, direction):
    """Solve a + u (b - a) + v (c - a) = t d for every pair."""
    found = np.full(len(direction), np.inf)
    for first, second, third in mesh.corners - origin:
        for number, beam in enumerate(direction):
            matrix = np.stack([second - first, third - first, -beam], axis=1)
            if abs(np.linalg.det(matrix)) < 1e-12:
                continue
            u, v, t = np.linalg.solve(matrix, -first)
            if u >= -1e-9 and v >= -1e-9 and u + v <= 1.0 + 1e-9 and t > 0.0:
                found[number] = min(found[number], t)
    return found


def soup(seed, count=40):
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(count, 1, 3))
    corners = middle + 0.5 * rng.normal(size=(count, 3, 3))
    return Mesh(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def beams(seed, count, spread):
    rng = np.random.default_rng([seed, 7])
    aside = spread * rng.uniform(-1.0, 1.0, size=(count, 2))
    direction = np.concatenate([np.ones((count, 1)), aside], axis=1)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    direction = direction @ turn.T
    return direction / np.linalg.norm(direction, axis=1)[:, None], turn[:, 0]


@given(seed=st.integers(0, 10_000), away=st.sampled_from([0.0, 0.5, 3.0, 50.0]))
def test_beams_meet_what_a_plain_search_meets(seed, away):
    mesh = soup(seed)
    direction, ahead = beams(seed, 25, 0.6)
    origin = -away * ahead
    distance, face = cast(mesh, origin, direction)
    assert distance == pytest.approx(by_search(mesh, origin, direction), rel=1e-6, abs=1e-9)
    assert ((face >= 0) == np.isfinite(distance)).all()
    met = np.flatnonzero(face >= 0)
    places = origin + distance[met, None] * direction[met]
    off = ((places - mesh.corners[face[met], 0]) * mesh.normals[face[met]]).sum(axis=1)
    assert np.abs(off).max(initial=0.0) < 1e-6 * (1.0 + away)


def test_beams_all_around_are_cast_too():
    mesh = soup(3)
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(40, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    distance, _ = cast(mesh, np.zeros(3), direction)
    assert distance == pytest.approx(by_search(mesh, np.zeros(3), direction), rel=1e-6)
    assert 5 < np.isfinite(distance).sum() < 40


def test_no_beam_slips_through_a_closed_surface():
    cube = Mesh(
        np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]),
        np.array(
            [
                [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
                [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
            ]
        ),
    )  # fmt: skip
    # through corners, edges and diagonals
    aim = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 9)] * 3, indexing="ij"), -1).reshape(-1, 3)
    origin = np.array([4.0, 0.0, 0.0])
    direction = (aim - origin) / np.linalg.norm(aim - origin, axis=1)[:, None]
    distance, _ = cast(cube, origin, direction)
    assert np.isfinite(distance).all()
    assert (distance <= np.linalg.norm(aim - origin, axis=1) + 1e-12).all()


def test_no_beam_is_cast():
    distance, face = cast(soup(0), np.zeros(3), np.empty((0, 3)))
    assert distance.shape == face.shape == (0,)
