"""Recordings of version 1, whose clouds carry in columns what `surface_info` says now: read, and
refused, as then.
"""

from __future__ import annotations

import dataclasses
import math
import struct

import numpy as np
import pytest
from beliefs import wavy_belief, with_common
from hypothesis import given
from hypothesis import strategies as st
from simulated_bags import surface_bytes

from nbv_planner.bags.reader import typestore
from nbv_planner.clouds.version_1 import recorded_belief, sensor_from_msg
from nbv_planner.errors import InputRejectedError
from nbv_planner.surface.checks import KINDS, Check, Level
from nbv_planner.world.scene import EstimatedScene

NAN, INF = math.nan, math.inf
FOUND = EstimatedScene(1.5, -2.0, 1.0, 4.0, 6.0, 0.3, 2.5, views=2)


def cloud(belief=None, **old):
    """A cloud of version 1 with these columns."""
    data = surface_bytes(wavy_belief(3, size=40) if belief is None else belief, 7, old)
    return typestore().deserialize_cdr(data, "sensor_msgs/msg/PointCloud2")


def refused(read, msg) -> str:
    with pytest.raises(InputRejectedError) as caught:
        read(msg)
    return caught.value.reason


def test_the_sensor_is_read_and_one_that_is_none_is_refused():
    assert sensor_from_msg(cloud()) == {}
    expected = {"field_of_view": 1.0, "range_min": 0.3, "range_max": 12.0}
    assert sensor_from_msg(cloud(sensor=list(expected.values()))) == expected
    assert refused(sensor_from_msg, cloud(sensor=[-1.0, 0.3, 12.0])) == "sensor"


def test_the_centre_of_the_scene_that_was_found_is_read():
    assert recorded_belief(cloud(scene=dataclasses.astuple(FOUND))).centre == (1.5, -2.0)
    assert recorded_belief(cloud()).centre == (0.0, 0.0)


@pytest.mark.parametrize("value", [NAN, INF, -1.0])
def test_a_scene_that_cannot_be_is_refused(value):
    numbers = [*dataclasses.astuple(FOUND)[:2], value, *dataclasses.astuple(FOUND)[3:]]
    assert refused(recorded_belief, cloud(scene=numbers)) == "scene"


def test_errors_common_to_views_have_no_numbers_but_the_belief_without_them():
    belief = with_common(wavy_belief(3, size=40), 0.1, 0.2)
    back = recorded_belief(cloud(belief))
    np.testing.assert_array_equal(back.by_noise.mean, belief.as_transmitted().by_noise.mean)
    assert back.common is None


@given(
    st.lists(st.sampled_from(KINDS), unique=True, max_size=len(KINDS)),
    st.integers(0, 100),
    st.integers(16, 60),
)
def test_results_of_checks_are_read_with_what_was_not_made_or_not_known(kinds, seed, size):
    rng = np.random.default_rng(seed)
    made = tuple(
        Check(
            kind.name,
            float(np.float32(rng.choice([rng.uniform(0.0, 9.0), NAN]))),
            0.5,
            Level(int(rng.integers(3))),
        )
        for kind in KINDS
        if kind in kinds
    )
    belief = dataclasses.replace(wavy_belief(seed, size=size), checks=made)
    assert repr(recorded_belief(cloud(belief)).checks) == repr(made)


@pytest.mark.parametrize(
    ("row", "level"), [(0, 4.0), (0, 0.5), (0, -1.0), (0, INF), (len(KINDS), 1.0)]
)
def test_results_of_checks_that_are_not_known_are_refused(row, level):
    belief = dataclasses.replace(
        wavy_belief(3, size=40), checks=(Check("noise", 1.0, 1.3, Level.GOOD),)
    )
    msg = cloud(belief)
    offset = next(field.offset for field in msg.fields if field.name == "check_level")
    data = bytearray(bytes(msg.data))
    struct.pack_into("<f", data, row * msg.point_step + offset, level)
    msg.data = np.frombuffer(bytes(data), dtype=np.uint8)
    assert refused(recorded_belief, msg) == "checks"
