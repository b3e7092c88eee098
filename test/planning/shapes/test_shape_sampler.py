"""Shapes drawn from what the evidence tells."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from beliefs import wavy_belief

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.errors import SettingError
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.star2d.belief import Evidence
from nbv_planner.star2d.mapper import MapperSettings, SurfaceMapper
from nbv_planner.star2d.measurements import Measurements
from nbv_planner.star2d.shapes.sampler import PosteriorShapes, Prior, ShapeSettings
from nbv_planner.world.scene import Scene

SCENE = Scene()


def belief_of(angle, radius, *, free=None):
    """Belief of a mapper that has measured these radii."""
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings())
    angle = np.asarray(angle, dtype=float)
    mapper.add(Measurements(angle, np.broadcast_to(radius, angle.shape), np.full(len(angle), 0.05)))
    belief = mapper.belief()
    return (
        belief
        if free is None
        else dataclasses.replace(belief, evidence=belief.evidence.bounded(free(belief.angle)))
    )


def shapes(belief, *, count=200, seed=0, **changes):
    settings = ShapeSettings(shapes=count, **changes)
    return PosteriorShapes(Prior(), settings, seed).draw(belief, SCENE)


def test_shapes_have_the_moments_of_the_belief():
    belief = belief_of(np.linspace(1.0, 3.0, 60), 5.3)
    drawn = shapes(belief, count=2000)
    mean, std = (belief.interpolate(values, drawn.angle) for values in (belief.mean, belief.std))
    assert drawn.radius.shape == (2000, 360)
    close = std < 0.8  # where the bounds of the object cut off next to nothing
    np.testing.assert_allclose(drawn.radius.mean(axis=0)[close], mean[close], atol=0.1)
    np.testing.assert_allclose(drawn.radius.std(axis=0)[close], std[close], rtol=0.15)


def test_the_same_belief_and_seed_give_the_same_shapes():
    belief = belief_of([0.3, 1.0], 4.0)
    np.testing.assert_array_equal(shapes(belief).radius, shapes(belief).radius)
    assert not np.array_equal(shapes(belief).radius, shapes(belief, seed=1).radius)


def test_far_from_new_measurements_the_shapes_stay_the_same():
    """Common random numbers: what is measured at 1 rad moves nothing at 4 rad."""
    before, after = shapes(belief_of([0.5], 5.0)), shapes(belief_of([0.5, 1.0], 5.0))
    far, near = np.abs(before.angle - 4.0) < 0.5, np.abs(before.angle - 1.0) < 0.05
    np.testing.assert_allclose(after.radius[:, far], before.radius[:, far], atol=1e-2)
    assert np.abs(after.radius[:, near] - before.radius[:, near]).max() > 1.0


def test_shapes_stay_inside_the_object_bounds_and_what_is_free():
    def free(angle):
        return np.where((angle > 4.0) & (angle < 5.0), 4.5, np.inf)

    drawn = shapes(belief_of(np.linspace(1.0, 2.0, 50), 6.0, free=free))
    inside = (drawn.angle > 4.02) & (drawn.angle < 4.98)
    assert drawn.radius.min() >= SCENE.radius_min
    assert drawn.radius.max() <= SCENE.radius_max
    assert drawn.radius[:, inside].max() == 4.5
    unbounded = shapes(belief_of(np.linspace(1.0, 2.0, 50), 6.0, free=free), free_space=False)
    assert unbounded.radius[:, inside].max() > 6.0


def test_a_measured_surface_tells_more_than_a_ray():
    angle = np.linspace(1.0, 2.0, 400)
    drawn = shapes(belief_of(angle, 6.0, free=lambda grid: np.full(len(grid), 4.0)))
    middle = (drawn.angle > 1.1) & (drawn.angle < 1.9)
    np.testing.assert_allclose(drawn.radius[:, middle], 6.0, atol=0.3)


def test_a_belief_without_evidence_is_refused():
    with pytest.raises(SettingError, match="carries no evidence"):
        shapes(wavy_belief(1))


def test_no_measurement_gives_shapes_of_the_prior():
    belief = dataclasses.replace(wavy_belief(1), evidence=Evidence.none(wavy_belief(1).angle))
    assert np.median(shapes(belief).radius) == pytest.approx(5.0, abs=0.2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shapes", 0),
        ("shapes", -1),
        ("shape_grid", 15),
        ("target_coverage", 0.0),
        ("target_coverage", 1.01),
        ("target_coverage", float("nan")),
        ("point_density", "area"),
    ],
)
def test_bad_settings_are_refused(name, value):
    with pytest.raises(SettingError, match=name):
        ShapeSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("deadline", 0.0), ("deadline", -1.0), ("first_views", 0)]
)
def test_bad_settings_of_a_planner_on_shapes_are_refused(name, value):
    with pytest.raises(SettingError, match=name):
        PlannerSettings(**{name: value})
