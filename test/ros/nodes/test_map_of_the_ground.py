"""Node nbv_planner with a map of the ground on a latched topic: what it bars, and what is wrong
with some maps.
"""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import numpy as np
import pytest
from beliefs import wavy_belief

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("nav_msgs", reason="needs nav_msgs")

from geometry_msgs.msg import PoseStamped, TransformStamped
from nav_msgs.msg import OccupancyGrid
from ros_world import header, pose_msg, view_pose

from nbv_planner.clouds.sensor_messages import map_from_msg, pose_from_msg
from nbv_planner.planning.view_space import start_text
from nbv_planner.ros.core import qos
from nbv_planner.ros.io import conversions
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.world.ground.occupancy_map import load_map

MAPPED = {
    "objective": "U",
    "certify": False,
    "num_views": 20,
    "max_views": 0,
    "stall_views": 0,
    "robot_radius": 0.3,
    "use_map": True,
}


def grid(
    *occupied: tuple[float, float], frame: str = "object", about: tuple[float, float] = (0.0, 0.0)
) -> OccupancyGrid:
    """A free map of 40 m in cells of half a metre about a point of its frame, but for squares of 2
    m about places.
    """
    cells = np.zeros((80, 80), dtype=np.int8)
    rows, columns = np.indices(cells.shape)
    for x, y in occupied:
        cells[
            (np.abs(0.5 * columns - 19.75 - x) <= 1.0) & (np.abs(0.5 * rows - 19.75 - y) <= 1.0)
        ] = 100
    msg = OccupancyGrid(header=header(frame, 5), data=array("b", cells.tobytes()))
    msg.info.resolution, msg.info.width, msg.info.height = 0.5, 80, 80
    msg.info.origin.position.x, msg.info.origin.position.y = about[0] - 20.0, about[1] - 20.0
    msg.info.origin.orientation.w = 1.0
    return msg


class Scene:
    """A planner at rest at the view angle 0 with a surface, and the goals and the statuses that it
    sends.
    """

    def __init__(self, world, **parameters) -> None:
        self.world, self.node = world, world.start(NbvPlannerNode, **{**MAPPED, **parameters})
        self.goals = world.listen(PoseStamped, "goal_pose")
        world.listen(PoseStamped, "goal_pose")
        self.send = world.speaker(OccupancyGrid, "map", qos.latched())
        if "pose_source" not in parameters:
            world.speaker(PoseStamped, "camera_pose")(pose_msg(view_pose(0.0), self.now()))
        surface = conversions.belief_to_msg(wavy_belief(0, size=200), header("object", 0))
        world.mapper()(surface)

    def now(self) -> int:
        return self.world.peer.get_clock().now().nanoseconds

    def goal(self, number: int) -> tuple[float, float]:
        self.world.spin_until(lambda: len(self.goals) >= number, f"goal {number}")
        pose = pose_from_msg(self.goals[number - 1])
        return pose.x, pose.y


def test_it_waits_for_the_map_and_says_so_then_keeps_off_what_is_occupied_in_it(world):
    scene = Scene(world, input_timeout=0.2)
    wanted = (
        "waiting for /map (nav_msgs/msg/OccupancyGrid; reliable, transient local): 1 publishes it,"
        " nothing usable"
    )
    world.spin_until(lambda: wanted in world.diagnosis(scene.node).message, "what it waits for")
    world.spin_some()
    assert scene.goals == []
    scene.send(grid())
    first = scene.goal(1)
    world.end(scene.node)
    again = Scene(world)
    again.send(grid(first))
    x, y = again.goal(1)
    assert math.hypot(x - first[0], y - first[1]) > 1.0


def test_a_goal_that_a_new_map_bars_is_withdrawn_and_another_one_is_sent(world):
    scene = Scene(world)
    scene.send(grid())
    first = scene.goal(1)
    ground = scene.node.core.planner.views.ground
    scene.send(grid())  # as a costmap is that is sent every second
    world.spin_some()
    assert scene.node.core.planner.views.ground is ground
    scene.send(grid(first))
    x, y = scene.goal(2)
    assert max(abs(x - first[0]), abs(y - first[1])) > 1.0
    assert scene.node.core.episode.withdrawn_views == 1
    assert scene.node.core.episode.withdrawal.endswith(
        "it is now not free in the map, or outside of it"
    )


def bad(**changes) -> OccupancyGrid:
    msg = grid()
    for name, value in changes.items():
        if name == "frame":
            msg.header.frame_id = value
        elif name == "data":
            msg.data = array("b", value)
        elif name in ("x", "w"):
            setattr(
                msg.info.origin.position if name == "x" else msg.info.origin.orientation,
                name,
                value,
            )
        else:
            setattr(msg.info, name, value)
    return msg


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("frame", {"frame": ""}),
        ("frame", {"frame": "odom"}),
        ("resolution", {"resolution": 0.0}),
        ("resolution", {"resolution": math.nan}),
        ("resolution", {"resolution": -0.1}),
        ("size", {"width": 81}),
        ("size", {"width": 0, "height": 0, "data": b""}),
        ("not_finite", {"x": math.nan}),
        ("quaternion", {"w": 0.0}),
        ("data", {"data": bytes([101] * 6400)}),
    ],
)
def test_a_map_that_is_none_is_dropped_with_its_reason_and_the_next_one_counts(
    world, reason, changes, capfd
):
    scene = Scene(world)
    scene.send(bad(**changes))
    world.spin_until(lambda: world.drops(scene.node) == {f"map.{reason}": 1}, "the drop")
    assert scene.goals == []
    if changes.get("frame"):
        assert "frame is 'odom', expected 'object'" in capfd.readouterr().err
    scene.send(grid())
    scene.goal(1)
    scene.send(bad(**changes))
    world.spin_until(lambda: world.drops(scene.node) == {f"map.{reason}": 2}, "the second drop")
    assert scene.node.core.episode.withdrawn_views == 0


def test_the_map_in_use_is_published_as_it_is_placed(world):
    scene = Scene(world)
    told = world.listen(OccupancyGrid, "nbv_planner/ground", qos.latched())
    scene.send(grid((3.0, 0.0)))
    world.spin_until(lambda: told, "the map")
    assert (told[0].header.frame_id, bytes(told[0].data)) == (
        "object",
        bytes(grid((3.0, 0.0)).data),
    )
    assert map_from_msg(told[0]).same_as(map_from_msg(grid((3.0, 0.0))))
    scene.send(grid((3.0, 0.0)))
    scene.send(grid((4.0, 0.0)))
    world.spin_until(lambda: len(told) == 2, "the other map")
    assert map_from_msg(told[1]).same_as(map_from_msg(grid((4.0, 0.0))))


def test_the_map_of_a_file_is_published_too(world):
    hall = str(Path(__file__).parents[3] / "examples" / "hall" / "map.yaml")
    world.start(NbvPlannerNode, **{**MAPPED, "use_map": False, "ground_map": hall})
    told = world.listen(OccupancyGrid, "nbv_planner/ground", qos.latched())
    world.spin_until(lambda: told, "the map")
    known = load_map(hall)
    assert np.array_equal(map_from_msg(told[0]).cells, known.cells)
    assert map_from_msg(told[0]).resolution == pytest.approx(known.resolution)


def test_a_robot_that_stands_in_an_occupied_cell_is_told_the_way_out_and_sent_on(world):
    scene = Scene(world)
    scene.send(grid((10.0, 0.0)))
    x, y = scene.goal(1)
    assert max(abs(x - 10.0), abs(y)) > 1.0
    words = start_text(scene.node.core.planner.views)
    assert words.startswith("the robot stands at x 10 m, y 0 m, not free in the map")


def transform(parent: str, child: str, x: float, y: float, yaw: float) -> TransformStamped:
    msg = TransformStamped(header=header(parent), child_frame_id=child)
    msg.transform.translation.x, msg.transform.translation.y = x, y
    msg.transform.rotation.z, msg.transform.rotation.w = math.sin(0.5 * yaw), math.cos(0.5 * yaw)
    return msg


def test_a_map_in_another_frame_waits_for_the_transform_and_is_placed_by_it(world):
    pytest.importorskip("tf2_ros", reason="needs tf2_ros")
    from tf2_msgs.msg import TFMessage

    scene = Scene(world, pose_source="tf", camera_frame="camera")
    static = world.speaker(TFMessage, "/tf_static", qos.latched(10))
    camera = transform("object", "camera", 10.0, 0.0, math.pi)
    scene.send(grid((3.0, 0.0), frame="map", about=(0.0, 0.0)))
    world.spin_until(lambda: world.drops(scene.node).get("map.frame") == 1, "the drop")
    # The map's frame lies at (10, 10) in that of the object and is turned left by a quarter.
    static(TFMessage(transforms=[camera, transform("object", "map", 10.0, 10.0, 0.5 * math.pi)]))
    scene.goal(1)
    ground = scene.node.core.planner.views.ground
    barred = ground.zones([10.0, 13.0], [13.0, 10.0])
    assert (barred[0] != 0, barred[1]) == (True, 0)
