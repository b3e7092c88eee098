"""Shapes drawn from the average over priors: of what quantity they are priors, and with how much
noise.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements
from nbv_planner.star2d.shapes.learned_shapes import shape_sampler
from nbv_planner.star2d.shapes.sampler import Prior, ShapeSettings
from nbv_planner.world.scene import Scene

SCENE = Scene()


def belief_of(angle, radius, std):
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings())
    mapper.add(Measurements(angle, radius, np.full(len(angle), std)))
    return mapper.belief()


def drawn(belief, **changes):
    settings = ShapeSettings(shapes=200, **changes)
    return shape_sampler(settings, Prior()).draw(belief, SCENE)


def errors(shapes, truth, begin, end):
    """Root mean square distance of all shapes from the truth between two angles."""
    there = (shapes.angle > begin) & (shapes.angle < end)
    return float(np.sqrt(np.mean((shapes.radius[:, there] - truth(shapes.angle[there])) ** 2)))


def test_priors_of_the_inverse_go_on_straight_where_they_have_seen_an_edge():
    def edge(angle):
        return 3.0 / np.cos(angle - 1.5)

    angle = np.linspace(0.8, 1.8, 150)
    belief = belief_of(angle, edge(angle), 0.02)
    inverse, plain = (drawn(belief, prior_quantity=name) for name in ("inverse_radius", "radius"))
    assert errors(inverse, edge, 0.85, 1.75) < 0.05
    assert errors(inverse, edge, 1.8, 2.1) < 0.8 * errors(plain, edge, 1.8, 2.1)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_noise_that_is_not_there_does_not_blur_the_shapes(noise):
    angle = np.linspace(0.5, 2.5, 200)

    def surface(angle):
        return 5.0 + np.cos(3.0 * angle)

    radius = surface(angle) + noise * np.random.default_rng(0).standard_normal(200)
    belief = belief_of(angle, radius, 0.2)
    learned, declared = (
        drawn(belief, prior_noise_levels=levels) for levels in ((0.1, 0.3), (1.0,))
    )
    if noise:
        np.testing.assert_array_equal(learned.radius, declared.radius)
    else:
        assert errors(learned, surface, 0.5, 2.5) < 0.5 * errors(declared, surface, 0.5, 2.5)
        assert errors(learned, surface, 2.5, 2.7) < errors(declared, surface, 2.5, 2.7)


@pytest.mark.parametrize(
    ("angle", "radius", "std"),
    [((1.0,), (0.01,), 0.2), ((1.0, 1.0), (2.0, 8.0), 1e-4), ((), (), 0.2)],
)
def test_shapes_are_inside_the_bounds_with_few_and_odd_measurements(angle, radius, std):
    radius = drawn(belief_of(np.array(angle), np.array(radius), std)).radius
    assert radius.min() >= SCENE.radius_min
    assert radius.max() <= SCENE.radius_max


def test_half_of_the_shapes_have_the_corner_that_was_not_seen():
    def square(angle):
        return 4.0 / np.cos(np.mod(angle + np.pi / 4, np.pi / 2) - np.pi / 4)

    angle = np.linspace(1.2, 2.0 * np.pi + 0.4, 900)  # a corner is at π/4
    belief = belief_of(np.mod(angle, 2.0 * np.pi), square(angle), 0.02)
    smooth, half = (
        drawn(belief, symmetry_probability=0.0, edge_probability=part) for part in (0.0, 0.5)
    )
    hidden = (smooth.angle > 0.45) & (smooth.angle < 1.15)
    error = np.abs(half.radius - square(half.angle))[:, hidden].max(axis=1)
    assert (np.abs(smooth.radius - square(smooth.angle))[:, hidden].max(axis=1) > 0.1).all()
    assert 0.5 * 2.0 / 3.0 - 0.1 < (error < 0.1).mean() < 0.5
    same = (smooth.radius == half.radius).all(axis=1)
    assert same.mean() == 0.5


def test_a_belief_without_evidence_is_refused():
    belief = dataclasses.replace(belief_of(np.array([1.0]), np.array([5.0]), 0.2), evidence=None)
    with pytest.raises(SettingError, match="evidence"):
        drawn(belief)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prior_noise_levels": (0.0,)}, "prior_noise_levels"),
        ({"prior_noise_levels": (1.5,)}, "prior_noise_levels"),
        ({"prior_noise_levels": (float("nan"),)}, "prior_noise_levels"),
        ({"prior_quantity": "area"}, "prior_quantity"),
        ({"edge_probability": 1.5}, "edge_probability"),
        ({"edge_probability": float("nan")}, "edge_probability"),
        ({"edge_length": 0.0}, "edge_length"),
    ],
)
def test_settings_out_of_range_are_refused(changes, words):
    with pytest.raises(SettingError, match=words):
        ShapeSettings(**changes)
