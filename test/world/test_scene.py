"""The camera's cone and the simple interval."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.episode.parameters import PlannerSettings
from nbv_planner.errors import NbvPlannerError, SettingError
from nbv_planner.gp.kernels import KernelSettings
from nbv_planner.mapping.scans import MeasurementSettings
from nbv_planner.planning.termination import TerminationSettings
from nbv_planner.thesis.intervals import fov_boundary, in_simple_interval
from nbv_planner.world.scene import Scene, check_proportions

SCENE = Scene()


def test_defaults_are_those_of_the_thesis():
    assert (SCENE.pixel_size, SCENE.radius_min, SCENE.radius_max) == (0.1, 2.0, 8.0)
    assert (SCENE.view_distance, SCENE.range_max) == (10.0, 10.0)
    assert math.degrees(SCENE.field_of_view) == pytest.approx(35.0)


@given(st.floats(0.05, 3.1), st.floats(0.5, 30.0), st.floats(8.5, 30.0))
def test_simple_half_width_is_the_polar_angle_of_the_end_of_the_boundary_ray(fov, reach, circle):
    scene = Scene(field_of_view=fov, range_max=reach, view_distance=circle)
    x = circle - reach * math.cos(fov / 2)
    y = reach * math.sin(fov / 2)
    assert scene.simple_half_width == pytest.approx(math.atan2(y, x), abs=1e-12)


def test_simple_half_width_where_the_cone_reaches_past_the_centre():
    scene = Scene(range_max=14.0, field_of_view=math.radians(35))
    assert scene.range_max * math.cos(scene.field_of_view / 2) > scene.view_distance
    assert math.pi / 2 < scene.simple_half_width < math.pi
    # the end of the left boundary ray, by elementary coordinates with the camera at (10, 0)
    end = 10.0 - 14.0 * complex(math.cos(math.radians(17.5)), math.sin(math.radians(17.5)))
    assert scene.simple_half_width == pytest.approx(abs(math.atan2(end.imag, end.real)))


@given(
    st.floats(0.0, 2 * math.pi),
    st.floats(-1.0, 1.0),
    st.sampled_from([0.3, 0.61, 1.5]),
    st.sampled_from([9.0, 10.0, 14.0]),
)
def test_fov_boundary_points_lie_on_the_edge_of_the_cone(view, part, fov, reach):
    scene = Scene(field_of_view=fov, range_max=reach)
    offset = part * scene.simple_half_width
    radius = float(fov_boundary(scene, view + offset, view))
    bearing, distance = oracles.camera_polar(view + offset, radius, view, 10.0)
    assert distance <= reach + 1e-6
    if distance > 1e-6:
        assert abs(bearing) == pytest.approx(fov / 2, abs=1e-6)
        assert math.copysign(1.0, bearing) == (1.0 if offset < 0 else -1.0)
    assert radius == pytest.approx(oracles.boundary(view + offset, view, 10.0, fov), rel=1e-6)


def test_fov_boundary_at_the_view_itself_is_the_camera():
    views = np.linspace(0.0, 2 * math.pi, 50)
    np.testing.assert_allclose(fov_boundary(SCENE, views, views), 10.0)


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_simple_interval_is_symmetric_and_wraps(angle, view):
    gap = abs(oracles.signed(angle - view))
    if abs(gap - SCENE.simple_half_width) > 1e-9:
        assert bool(in_simple_interval(SCENE, angle, view)) == (gap < SCENE.simple_half_width)


def test_simple_interval_across_zero():
    assert in_simple_interval(SCENE, 0.1, 2 * math.pi - 0.1)
    assert in_simple_interval(SCENE, 2 * math.pi - 0.1, 0.1)
    assert not in_simple_interval(SCENE, math.pi, 0.0)


def test_cone_includes_its_edges_and_broadcasts():
    half = SCENE.field_of_view / 2
    inside = SCENE.in_cone(
        np.array([[half], [-half], [half + 1e-6]]), np.array([5.0, 10.0, 10.001])
    )
    np.testing.assert_array_equal(
        inside, [[True, True, False], [True, True, False], [False, False, False]]
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"radius_min": 8.0}, ["radius_min", "radius_max"]),
        ({"radius_min": 9.0, "view_distance": 20.0}, ["radius_min", "radius_max"]),
        ({"view_distance": 8.0}, ["view_distance", "radius_max"]),
        ({"view_distance": 5.0}, ["view_distance", "radius_max"]),
        ({"field_of_view": 0.0}, ["field_of_view", "0"]),
        ({"field_of_view": -0.5}, ["field_of_view"]),
        ({"field_of_view": math.pi}, ["field_of_view", "3.14"]),
        ({"pixel_size": 0.0}, ["pixel_size"]),
        ({"range_min": -0.1}, ["range_min"]),
        ({"range_max": 0.0}, ["range_max"]),
        ({"range_min": 10.0}, ["range_min", "range_max"]),
        ({"radius_min": math.nan}, ["radius_min", "nan"]),
        ({"view_distance": math.inf}, ["view_distance", "inf"]),
        ({"view_distance": "10"}, ["view_distance", "'10'", "number"]),
        ({"view_distance": True}, ["view_distance", "True"]),
    ],
)
def test_scene_that_does_not_fit_together_is_refused_in_one_line(values, words):
    with pytest.raises(SettingError) as caught:
        Scene(**values)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    assert isinstance(caught.value, NbvPlannerError)
    assert isinstance(caught.value, ValueError)


def test_scene_cannot_be_changed_afterwards():
    with pytest.raises(AttributeError):
        SCENE.radius_min = 1.0


@pytest.mark.parametrize("factor", [0.01, 1.0, 100.0])
def test_lengths_in_proportion_are_taken_at_any_scale(factor):
    scene = Scene(
        radius_min=2.0 * factor,
        radius_max=8.0 * factor,
        view_distance=10.0 * factor,
        range_max=10.0 * factor,
        range_min=0.0,
        pixel_size=0.1 * factor,
    )
    check_proportions(
        scene,
        KernelSettings(kernel_std=1.5 * factor),
        PlannerSettings(edge_length=factor, completeness_tau=0.3 * factor, noise_std=0.2 * factor),
        MeasurementSettings(noise_std=0.2 * factor, radius_margin=factor),
        TerminationSettings(band_tolerance=0.7 * factor),
    )


@pytest.mark.parametrize(
    ("settings", "name", "allowed"),
    [
        (TerminationSettings(band_tolerance=2.6), "band_tolerance", 2.5),
        (MeasurementSettings(noise_std=3.0), "noise_std", 2.5),
        (MeasurementSettings(radius_margin=5.1), "radius_margin", 5.0),
        (PlannerSettings(edge_length=6.0), "edge_length", 5.0),
        (PlannerSettings(completeness_tau=30.0), "completeness_tau", 5.0),
        (PlannerSettings(completeness_tau=0.0003), "completeness_tau", 0.0005),
        (KernelSettings(kernel_std=0.29), "kernel_std", 0.3),
        (KernelSettings(kernel_std=7.0), "kernel_std", 6.0),
        (Scene(pixel_size=1.1), "pixel_size", 1.0),
    ],
)
def test_a_length_out_of_proportion_is_refused_and_the_bound_that_is_named_is_allowed(
    settings, name, allowed
):
    def check(holder) -> None:
        check_proportions(*([holder] if isinstance(holder, Scene) else [SCENE, holder]))

    with pytest.raises(SettingError, match=f"^{name}: .* out of proportion") as caught:
        check(settings)
    assert f" {allowed:g} " in str(caught.value)
    check(dataclasses.replace(settings, **{name: allowed}))
