"""Measurements per grid angle: what is kept of them, and that it gives the posterior that they
give.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.star2d.belief import Evidence, uniform_grid
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements

GRID = uniform_grid(16)
STEP = 2 * math.pi / 16


def test_nothing_is_known_at_first():
    evidence = Evidence.none(GRID)
    assert [len(values) for values in evidence.measured] == [0, 0, 0]
    assert (evidence.free == np.inf).all()


@given(
    st.lists(
        st.tuples(st.floats(0, 6.28), st.floats(2, 8), st.floats(0.01, 1.0)),
        min_size=1,
        max_size=30,
    )
)
def test_each_cell_keeps_the_weighted_means_however_the_measurements_come(rows):
    angle, radius, std = np.array(rows).T
    evidence, half = Evidence.none(GRID), len(rows) // 2
    for part in (slice(0, half), slice(half, None)):
        evidence = evidence.adding(GRID, angle[part], radius[part], std[part])
    for k, place in enumerate(GRID):
        offset = [math.remainder(a - place, 2 * math.pi) for a in angle]
        mine = [i for i, d in enumerate(offset) if abs(d) < STEP / 2 - 1e-9]
        if any(abs(abs(d) - STEP / 2) < 1e-8 for d in offset):
            continue  # on the edge of the cell
        if not mine:
            assert (evidence.angle[k], evidence.radius[k], evidence.std[k]) == (place, 0.0, np.inf)
            continue
        weight = np.array([std[i] ** -2 for i in mine])
        mean = np.average([offset[i] for i in mine], weights=weight)
        assert evidence.angle[k] - place == pytest.approx(mean, abs=1e-9)
        assert evidence.radius[k] == pytest.approx(
            np.average([radius[i] for i in mine], weights=weight)
        )
        assert evidence.std[k] == pytest.approx(weight.sum() ** -0.5)


def test_bounds_only_come_down():
    evidence = Evidence.none(GRID).bounded(np.full(16, 5.0)).bounded(np.linspace(4.0, 7.0, 16))
    np.testing.assert_array_equal(evidence.free, np.minimum(5.0, np.linspace(4.0, 7.0, 16)))


def test_the_posterior_of_the_evidence_is_that_of_the_measurements():
    """Within 2 cm (the prior has 1.5 m): what is lost is how the surface runs within a cell of 6
    mrad.
    """
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, 4.0, 3000)
    data = Measurements(
        angle, 5.0 + np.cos(3 * angle) + rng.normal(size=3000) * 0.1, np.full(3000, 0.1)
    )
    direct = SurfaceMapper(PeriodicMatern(), MapperSettings())
    direct.add(data)
    again = SurfaceMapper(PeriodicMatern(), MapperSettings())
    evidence = direct.belief().evidence
    again.add(Measurements(*evidence.measured))
    np.testing.assert_allclose(again.belief().mean, direct.belief().mean, atol=0.02)
    np.testing.assert_allclose(again.belief().std, direct.belief().std, atol=0.02)
    assert len(evidence.measured[0]) < 700


def test_the_mapper_keeps_evidence_apart_from_older_beliefs_and_forgets_it_on_reset():
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=16))
    before = mapper.belief()
    mapper.add(Measurements(np.array([0.1]), np.array([4.0]), np.array([0.2])))
    assert [len(belief.evidence.measured[0]) for belief in (before, mapper.belief())] == [0, 1]
    mapper.reset()
    assert len(mapper.belief().evidence.measured[0]) == 0


def test_a_transmitted_belief_has_its_evidence_in_single_precision():
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=16))
    mapper.add(Measurements(np.array([0.1]), np.array([4.1]), np.array([0.2])))
    sent, kept = mapper.belief().as_transmitted().evidence, mapper.belief().evidence
    for name in ("angle", "radius", "std", "free"):
        np.testing.assert_array_equal(getattr(sent, name), getattr(kept, name).astype(np.float32))
        assert getattr(sent, name).dtype == float
