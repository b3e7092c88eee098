"""run_info: one latched YAML text with the parameters of all nodes and the versions."""

from __future__ import annotations

import pytest
import yaml

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)

from std_msgs.msg import String

from nbv_planner.episode.parameters import NODE_SETTINGS, parameters_of
from nbv_planner.episode.run_info import parameters_from_msg
from nbv_planner.errors import ConfigFileError
from nbv_planner.ros.core import qos
from nbv_planner.ros.nodes.depth_camera import DepthCamera
from nbv_planner.ros.nodes.nbv_planner import NbvPlannerNode
from nbv_planner.ros.nodes.surface_mapper import SurfaceMapperNode
from nbv_planner.versions import versions


def complete(world):
    """Wait until run_info knows all nodes, heard by a late subscriber."""
    heard = world.listen(String, "run_info", qos.latched())
    return world.spin_until(
        lambda: next((i for i in map(content, heard) if i["nodes_not_found_yet"] == []), None),
        "a complete run_info",
    )


def content(msg: String) -> dict:
    return yaml.safe_load(msg.data)


def test_it_holds_every_parameter_of_every_node_and_the_versions(world):
    nodes = {
        "depth_camera": world.start(DepthCamera, seed=42, object="ellipse:a=6,b=4"),
        "surface_mapper": world.start(SurfaceMapperNode, length_scale=0.3, grid_size=100),
        "nbv_planner": world.start(NbvPlannerNode, allowed_arcs=[1.0, 2.0]),
    }
    info = complete(world)
    assert set(info) == {"versions", "nodes", "nodes_not_found_yet", "topics"}
    assert info["versions"] == versions()
    assert set(info["nodes"]) == set(nodes)
    for name, node in nodes.items():
        known = info["nodes"][name]
        every = {key for key in parameters_of(NODE_SETTINGS[name]) if "." not in key}
        assert every - {"completeness_tau"} <= set(known)  # which follows from the noise
        for key, value in known.items():
            actual = node.get_parameter(key).value
            assert value == (
                actual if isinstance(actual, (str, bool, int, float)) else list(actual)
            )
    assert info["nodes"]["depth_camera"]["seed"] == 42
    assert info["nodes"]["depth_camera"]["object"] == "ellipse:a=6,b=4"
    assert info["nodes"]["nbv_planner"]["allowed_arcs"] == [1.0, 2.0]


def test_it_holds_the_names_that_the_topics_have_here(world):
    renamed = [
        "--ros-args",
        "-r",
        "__ns:=/arm",
        "-r",
        "scan:=/lidar/scan",
        "-r",
        "goal_pose:=view_goal",
    ]
    world.start(NbvPlannerNode, cli_args=renamed)
    heard = world.listen(String, "/arm/run_info", qos.latched())
    topics = content(world.spin_until(lambda: heard, "run_info")[0])["topics"]
    assert (topics["scan"], topics["goal_pose"], topics["surface"]) == (
        "/lidar/scan",
        "/arm/view_goal",
        "/arm/surface",
    )


def test_nodes_that_have_not_appeared_are_named_until_they_do(world):
    world.start(NbvPlannerNode, run_info_nodes="surface_mapper")
    heard = world.listen(String, "run_info", qos.latched(10))
    world.spin_until(lambda: heard, "the first run_info")
    first = content(heard[0])
    assert (set(first["nodes"]), first["nodes_not_found_yet"]) == (
        {"nbv_planner"},
        ["surface_mapper"],
    )
    world.start(SurfaceMapperNode, grid_size=123)
    assert complete(world)["nodes"]["surface_mapper"]["grid_size"] == 123


def test_it_holds_what_the_world_file_of_the_camera_says(world, tmp_path):
    there = tmp_path / "world.yaml"
    there.write_text("object: {x: 1.5, y: -1}\nbias: {yaw: 0.1}\n", encoding="utf-8")
    world.start(DepthCamera, world_file=str(there))
    world.start(NbvPlannerNode, run_info_nodes="depth_camera")
    heard = world.listen(String, "run_info", qos.latched())
    world.spin_until(
        lambda: heard and content(heard[-1])["nodes_not_found_yet"] == [], "a complete run_info"
    )
    there.unlink()
    config = parameters_from_msg(heard[-1]).config()
    assert (config.world.placed, config.sensor.pose_bias_yaw) == ((1.5, -1.0), 0.1)


def test_it_holds_what_the_region_file_says(world, tmp_path):
    there = tmp_path / "part.csv"
    there.write_text("from,to,weight\n0,90,1\n", encoding="utf-8")
    planner = world.start(NbvPlannerNode, region_file=str(there), run_info_nodes="")
    assert "by weight (1 region" in planner.core.planner.expected.target.summary
    heard = world.listen(String, "run_info", qos.latched())
    world.spin_until(lambda: heard, "run_info")
    there.unlink()
    config = parameters_from_msg(heard[-1]).config()
    assert config.target.regions.summary == "by weight (1 region, 0 elsewhere)"


def test_a_region_file_that_is_not_allowed_stops_the_node_with_a_line(world, tmp_path):
    there = tmp_path / "part.csv"
    there.write_text("from,to,weight\n0,90,-1\n", encoding="utf-8")
    with pytest.raises(ConfigFileError, match=r"part.csv, line 2: weight: -1 must be >= 0"):
        world.start(NbvPlannerNode, region_file=str(there))


def test_with_no_other_nodes_it_is_complete_at_once(world):
    world.start(NbvPlannerNode, run_info_nodes="")
    assert set(complete(world)["nodes"]) == {"nbv_planner"}


def test_a_parameter_that_changes_at_run_time_is_published_again(world):
    planner = world.start(
        NbvPlannerNode, run_info_nodes="surface_mapper", max_views=3, allowed_arcs=[0.0, 3.0]
    )
    mapper = world.start(SurfaceMapperNode, grid_size=100)
    mapper.declare_parameter("note", [1.0])  # of a node that has been asked, and a list
    heard = world.listen(String, "run_info", qos.latched(100))
    world.spin_until(
        lambda: heard and content(heard[-1])["nodes_not_found_yet"] == [], "a complete run_info"
    )
    before = content(heard[-1])["nodes"]
    assert world.set_parameters(planner, max_views=7)[0].successful
    assert not world.set_parameters(planner, max_views=-1)[0].successful
    assert world.set_parameters(mapper, note=[2.0, 3.0])[0].successful
    world.spin_until(
        lambda: content(heard[-1])["nodes"]["surface_mapper"]["note"] == [2.0, 3.0], "the changes"
    )
    after = content(heard[-1])["nodes"]
    assert (before["nbv_planner"].pop("max_views"), after["nbv_planner"].pop("max_views")) == (3, 7)
    assert (before["surface_mapper"].pop("note"), after["surface_mapper"].pop("note")) == (
        [1.0],
        [2.0, 3.0],
    )
    assert after == before
