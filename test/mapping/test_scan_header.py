"""What the header of a scan says of the sensor."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.mapping.scan_making import ScanMakerSettings, scan_of_points
from nbv_planner.world.scale import SensorHeader, SensorHeaders
from nbv_planner.world.scan import Scan
from nbv_planner.world.scene import Scene

SCENE = Scene(radius_min=0.5, radius_max=1.0, view_distance=2.0, range_max=2.0, pixel_size=0.02)
WIDEST = 2.0 * math.asin(0.5)


def scan(
    low: float, high: float, beams: int = 101, *, range_min: float = 0.1, range_max: float = 1.5
) -> Scan:
    return Scan(low, (high - low) / (beams - 1), np.ones(beams), range_min, range_max)


@pytest.mark.parametrize(
    ("low", "high", "field"),
    [
        (-0.4, 0.4, 0.8),
        (-0.4, 0.6, 0.8),
        (-0.6, 0.4, 0.8),
        (-0.1, 3.0, 0.2),
        (-math.pi, math.pi, WIDEST),
        (0.0, 2 * math.pi, WIDEST),
        (-2 * math.pi, 0.0, WIDEST),
        (-2.36, 2.36, WIDEST),
        (2 * math.pi - 0.3, 2 * math.pi + 0.3, 0.6),
        (-4.0 * math.pi - 0.2, -4.0 * math.pi + 0.3, 0.4),
    ],
)
def test_the_field_of_view_is_the_cone_about_the_line_of_sight_that_may_hold_the_object(
    low, high, field
):
    said, unknown = SensorHeader.of(scan(low, high)).in_scene(SCENE)
    assert said == pytest.approx(
        {"field_of_view": field, "range_min": 0.1, "range_max": 1.5}, rel=1e-5
    )
    assert unknown == ()


@pytest.mark.parametrize(("low", "high"), [(0.2, 1.0), (-1.0, -0.2), (2.0, 4.0), (0.0, 3.0)])
def test_a_sensor_that_looks_past_the_line_of_sight_does_not_say_it(low, high):
    said, unknown = SensorHeader.of(scan(low, high)).in_scene(SCENE)
    assert set(said) == {"range_min", "range_max"}
    assert unknown == ("field_of_view",)


def test_what_is_as_declared_up_to_single_precision_is_no_news():
    half = float(np.float32(0.5 * SCENE.field_of_view))
    same = scan(-half, half, range_min=float(np.float32(SCENE.range_min)), range_max=2.0)
    assert SensorHeader.of(same).in_scene(SCENE) == ({}, ())


def test_a_range_that_is_not_stated_is_not_said():
    said, unknown = SensorHeader.of(scan(-0.4, 0.4, range_min=0.0, range_max=math.inf)).in_scene(
        SCENE
    )
    assert set(said) == {"field_of_view"}
    assert unknown == ("range_min", "range_max")


@pytest.mark.parametrize(("given", "field"), [({}, None), ({"scan_field": 0.8}, 0.79)])
def test_a_cloud_does_not_say_the_field_of_view_unless_scan_field_is_given(given, field):
    """Bearings all around hold no point where the sensor does not look."""
    bearings = np.linspace(-0.3, 0.3, 100)
    points = np.column_stack([np.cos(bearings), np.sin(bearings), np.zeros(100)])
    said, unknown = SensorHeader.of(
        scan_of_points(points, ScanMakerSettings(**given), optical=False)
    ).in_scene(SCENE)
    assert said == ({"field_of_view": pytest.approx(field)} if field else {})
    assert unknown == (*(() if field else ("field_of_view",)), "range_min", "range_max")


@given(
    st.floats(-7.0, 7.0),
    st.floats(0.01, 2 * math.pi),
    st.integers(2, 400),
    st.floats(0.0, 3.0),
    st.floats(0.1, 90.0),
)
def test_what_is_said_makes_a_scene_whose_cone_the_beams_fill(low, sweep, beams, near, more):
    header = scan(low, low + sweep, beams, range_min=near, range_max=near + more)
    said, _ = SensorHeader.of(header).in_scene(
        dataclasses.replace(SCENE, range_min=0.01, range_max=1000.0)
    )
    if "range_min" in said and said["range_min"] >= said.get("range_max", math.inf):
        return  # it measures only beyond the object; the scene refuses that
    scene = dataclasses.replace(SCENE, **{"range_min": 0.01, "range_max": 1000.0, **said})
    assert scene.range_max <= max(3.0, 1000.0 * ("range_max" not in said)) + 1e-5
    if "field_of_view" in said:
        assert said["field_of_view"] <= WIDEST + 1e-5
        for edge in (-0.499 * said["field_of_view"], 0.0, 0.499 * said["field_of_view"]):
            off = np.abs(np.angle(np.exp(1j * (header.bearings - edge))))
            assert off.min() <= header.angle_increment + 1e-6


def test_of_the_headers_so_far_each_number_is_the_one_that_sees_the_most():
    headers = SensorHeaders()
    for half, near, far in (
        (0.2, 0.3, 0.9),
        (0.3, 0.1, 0.8),
        (0.1, 0.2, 1.4),
        (0.1, 0.0, math.inf),
    ):
        headers = headers.after(scan(-half, half, range_min=near, range_max=far))
    said, unknown = headers.widest.in_scene(SCENE)
    assert said == pytest.approx(
        {"field_of_view": 0.6, "range_min": 0.1, "range_max": 1.4}, rel=1e-5
    )
    assert unknown == ()


def test_headers_that_change_from_scan_to_scan_are_told_from_another_mode_and_from_rounding():
    one, other = scan(-0.4, 0.4), scan(-0.4, 0.4, range_max=1.2)
    rounded = dataclasses.replace(one, range_max=float(np.float32(1.5000001)))
    headers = SensorHeaders()
    for each in (one, rounded, one, other, other):
        headers = headers.after(each)
    assert headers.changes == 1
    assert not headers.changing
    for each in (one, other):
        headers = headers.after(each)
    assert headers.changing
