"""Bodies that nothing has met: how probable one is, and where it may be."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from nbv_planner.surface.seam import Hits
from nbv_planner.volume import sampled_solids as solids_module
from nbv_planner.volume.grid import FREE, HIT, UNKNOWN, Cells
from nbv_planner.volume.sampled_solids import others
from nbv_planner.volume.volume_surface import VolumeForm


def places_left(radius: float, seen: float) -> tuple[Cells, float]:
    """Cells with a hit in the middle, all free within the part `seen` of the ball's radius, and the
    part of the places in which a disc of this radius has not been looked for.
    """
    lattice = VolumeForm().lattice
    away = np.linalg.norm(lattice.centres, axis=1)
    blank = Cells.blank(lattice)
    middle = Hits(np.full((1, 2), 0.01), np.array([0.05]), np.array([[9.0, 0.0]]), np.zeros(1, int))
    state = np.where(away <= seen * lattice.radius, FREE, blank.state)
    cells = dataclasses.replace(blank, state=state).adding(middle)
    free_to = seen * lattice.radius + radius
    left = max((lattice.radius - radius) ** 2 - free_to**2, 0.0) / lattice.radius**2
    return cells, left


@pytest.mark.parametrize("seen", [0.0, 0.4, 0.6, 0.9])
def test_another_body_is_believed_as_far_as_places_for_it_are_left(seen, monkeypatch):
    """The posterior q f / (1 - q + q f) of a disc of one size; all of it lies in unknown space."""
    monkeypatch.setattr(solids_module, "_OTHER", (0.1, 0.1 + 1e-9))
    cells, left = places_left(0.8, seen)
    hit = cells.state == HIT
    found = others(cells, np.repeat(hit[None], 2000, axis=0), 5) & ~hit
    some = found.any(axis=1)
    wanted = 0.3 * left / (0.7 + 0.3 * left)
    assert some.mean() == pytest.approx(wanted, abs=3.5 * math.sqrt(wanted * 0.7 / 2000) + 0.01)
    assert (cells.state[found.any(axis=0)] == UNKNOWN).all()
    area = found.sum(axis=1)[some] * cells.lattice.cell**2
    np.testing.assert_allclose(area, math.pi * 0.8**2, rtol=0.05)


def test_another_body_is_apart_from_the_solid_and_elsewhere_after_the_next_hit():
    cells, _ = places_left(0.8, 0.0)
    half = np.repeat((cells.lattice.centres[:, 0] > 0.0)[None], 300, axis=0)
    found = others(cells, half, 1) & ~half
    assert found.any()
    assert (cells.lattice.centres[found.any(axis=0), 0] < -2.0 * cells.lattice.cell).all()
    more = Hits(np.full((1, 2), 0.5), np.array([0.05]), np.array([[9.0, 0.0]]), np.zeros(1, int))
    assert (others(cells.adding(more), half, 1) != others(cells, half, 1)).any()
    np.testing.assert_array_equal(others(cells, half, 1) & ~half, found)
