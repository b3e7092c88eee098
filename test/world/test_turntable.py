"""A fixed camera before a turntable: poses from joint angles, and joint angles for views."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbv_planner.errors import SettingError
from nbv_planner.world.camera_mount import TurntableSettings, camera_seen_from_object, joint_for

angles = st.floats(-50.0, 50.0)
places = st.tuples(st.floats(0.2, 20.0), st.floats(-math.pi, math.pi), st.floats(-math.pi, math.pi))


def table(place, **limits) -> TurntableSettings:
    distance, around, yaw = place
    x, y = distance * math.cos(around), distance * math.sin(around)
    return TurntableSettings(camera_x=x, camera_y=y, camera_yaw=yaw, **limits)


@given(angles, places, st.floats(-5, 5), st.floats(-5, 5))
def test_a_point_that_turns_with_the_table_is_seen_where_it_is(joint, place, x, y):
    """By turning the point instead of the camera."""
    settings = table(place)
    turned_x = x * math.cos(joint) - y * math.sin(joint)
    turned_y = x * math.sin(joint) + y * math.cos(joint)
    dx, dy = turned_x - settings.camera_x, turned_y - settings.camera_y
    expected = math.hypot(dx, dy), math.atan2(dy, dx) - settings.camera_yaw
    seen = camera_seen_from_object(joint, settings).to_camera(x, y)
    assert math.hypot(*seen) == pytest.approx(expected[0], abs=1e-9)
    if expected[0] > 1e-6:
        assert math.remainder(
            math.atan2(seen[1], seen[0]) - expected[1], 2 * math.pi
        ) == pytest.approx(0.0, abs=1e-7)


@given(angles, angles, places)
def test_at_the_joint_for_a_view_the_camera_has_that_view_and_the_way_is_the_shortest(
    view, joint, place
):
    settings = table(place)
    found = joint_for(view, joint, settings)
    assert found is not None
    seen = camera_seen_from_object(found, settings).view_angle
    assert math.remainder(seen - view, 2 * math.pi) == pytest.approx(0.0, abs=1e-9)
    assert abs(found - joint) <= math.pi + 1e-9


@given(angles, st.floats(-50.0, 40.0), st.floats(0.1, 20.0), angles, places)
def test_within_limits_it_is_the_nearest_that_there_is(view, low, span, joint, place):
    settings = table(place, joint_min=low, joint_max=low + span)
    free = joint_for(view, joint, table(place))
    turns = free + 2 * math.pi * np.arange(-40, 41)
    allowed = turns[(turns >= low) & (turns <= low + span)]
    found = joint_for(view, joint, settings)
    if len(allowed) == 0:
        assert found is None
    else:
        nearest = allowed[np.argmin(np.abs(allowed - free))]
        assert found == pytest.approx(nearest, abs=1e-9)


def test_a_full_turn_reaches_every_view_and_half_a_turn_does_not():
    wide = TurntableSettings(joint_min=-math.pi, joint_max=math.pi)
    narrow = TurntableSettings(joint_min=0.0, joint_max=math.pi)
    views = np.linspace(0.0, 6.2, 40)
    assert all(joint_for(view, 0.0, wide) is not None for view in views)
    assert [joint_for(view, 0.0, narrow) is not None for view in (0.0, -1.0, 1.0)] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("values", "word"),
    [({"camera_x": 0.0}, "camera_x"), ({"joint_min": 1.0, "joint_max": 1.0}, "joint_max")],
)
def test_a_table_that_cannot_be_is_refused(values, word):
    with pytest.raises(SettingError, match=word):
        TurntableSettings(**values)
