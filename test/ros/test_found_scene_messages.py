"""The scene that was found travels with the surface."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels")

from beliefs import belief_of
from ros_world import header

from nbv_planner.episode.messages import belief_from_msg, found_from_msg
from nbv_planner.errors import InputRejectedError
from nbv_planner.ros.io.conversions import belief_to_msg
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.world.scene import FoundScene

FOUND = FoundScene(1.5, -2.0, 1.0, 4.0, 6.0, 0.3, 2.5, views=2)


def message(found: FoundScene | None):
    belief = belief_of(5.0, lambda grid: np.full(len(grid), 6.0), size=100)
    x, y = (0.0, 0.0) if found is None else (found.x, found.y)
    return belief_to_msg(belief.seen_from(-x, -y), header("object", 7), PriorSettings(), found=found)


def test_the_scene_and_the_centre_come_back():
    assert found_from_msg(message(FOUND)) == FOUND
    belief = belief_from_msg(message(FOUND))
    assert belief.centre == (1.5, -2.0)
    np.testing.assert_allclose(belief.mean, 5.5)


def test_the_points_are_in_the_frame_of_the_object():
    cloud = message(FOUND)
    x, y = (np.frombuffer(cloud.data, dtype="<f4").reshape(cloud.width, -1)[:, column] for column in (0, 1))
    np.testing.assert_allclose(np.hypot(x - 1.5, y + 2.0), 5.5, rtol=1e-5)


def test_a_known_scene_carries_none():
    assert found_from_msg(message(None)) is None
    assert belief_from_msg(message(None)).centre == (0.0, 0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_scene_that_cannot_be_is_refused(value):
    cloud = message(FOUND)
    field = next(field for field in cloud.fields if field.name == "scene")
    data = bytearray(cloud.data)
    place = 2 * cloud.point_step + field.offset  # radius_min
    data[place : place + 8] = np.array([value], dtype="<f8").tobytes()
    cloud.data = bytes(data)
    with pytest.raises(InputRejectedError, match="no usable scene"):
        found_from_msg(cloud)
