"""The scene that was found travels with the surface."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from beliefs import belief_of
from ros_world import header
from simulated_bags import info_of

from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.mapping.surface_info import info_from_text
from nbv_planner.ros.io.conversions import belief_to_msg
from nbv_planner.world.scene import EstimatedScene

FOUND = EstimatedScene(1.5, -2.0, 1.0, 4.0, 6.0, 0.3, 2.5, views=2)


def sent(found: EstimatedScene | None):
    """The two messages of a surface about the centre of what was found."""
    belief = belief_of(5.0, lambda grid: np.full(len(grid), 6.0), size=100)
    x, y = (0.0, 0.0) if found is None else (found.x, found.y)
    return (
        belief_to_msg(belief.seen_from(-x, -y), header("object", 7)),
        info_of(belief, 7, scene=found).text,
    )


@pytest.mark.parametrize(("found", "centre"), [(FOUND, (1.5, -2.0)), (None, (0.0, 0.0))])
def test_the_scene_and_the_centre_come_back(found, centre):
    cloud, text = sent(found)
    info = info_from_text(text)
    assert info.scene == found
    belief = info.applied(belief_from_msg(cloud))
    assert belief.centre == centre
    np.testing.assert_allclose(belief.mean, 5.5)


def test_the_points_are_in_the_frame_of_the_object():
    cloud, _ = sent(FOUND)
    x, y = (
        np.frombuffer(cloud.data, dtype="<f4").reshape(cloud.width, -1)[:, column]
        for column in (0, 1)
    )
    np.testing.assert_allclose(np.hypot(x - 1.5, y + 2.0), 5.5, rtol=1e-5)
