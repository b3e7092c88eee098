"""Launch files that wire mapper and planner to Nav2, a turntable, a simulator: what they start,
under which names.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; make test brings the wheels")
pytest.importorskip(
    "launch_ros", reason="launch_ros is not on PyPI: these tests run where ROS 2 is installed"
)

import yaml
from launch.utilities import perform_substitutions
from launched import ROOT, described, files_of, nodes

from launch import LaunchContext

NODES = {
    "planner": ["surface_mapper", "nbv_planner"],
    "nav2": ["static_transform_publisher", "surface_mapper", "nbv_planner"],
    "turntable": ["turntable", "surface_mapper", "nbv_planner"],
    "simulator": ["surface_mapper", "nbv_planner"],
}
SENSOR = {"image", "camera_info", "points", "echoes"}
TOPICS = {
    "planner": {"scan", "camera_pose", "goal_pose", "/tf", "/tf_static", *SENSOR},
    "nav2": {"scan", "goal_pose"},
    "turntable": {"scan", "joint_states", "joint_command"},
    "simulator": {"scan", "camera_pose", "goal_pose"},
}


@pytest.mark.parametrize("name", NODES)
def test_the_nodes_are_started_and_every_argument_is_described(name):
    assert list(nodes(name)) == NODES[name]
    for argument in described(name).get_launch_arguments():
        assert argument.description.endswith(".")
        assert argument.default_value is not None


@pytest.mark.parametrize("name", NODES)
def test_topics_may_have_other_names(name):
    arguments = {argument.name for argument in described(name).get_launch_arguments()}
    given = {f"{topic.strip('/')}_topic": f"/other/{topic.strip('/')}" for topic in TOPICS[name]}
    assert set(given) == {found for found in arguments if found.endswith("_topic")}
    found = nodes(name, **given)
    for executable in ("surface_mapper", "nbv_planner"):
        renamed = dict(found[executable].expanded_remapping_rules)
        assert renamed == {topic: f"/other/{topic.strip('/')}" for topic in TOPICS[name]}


@pytest.mark.parametrize(
    ("text", "given", "source"),
    [
        ("/**: {ros__parameters: {scan_source: depth_image}}", {}, "depth_image"),
        ("/**/scan_maker: {ros__parameters: {scan_source: point_cloud}}", {}, "point_cloud"),
        (
            "/**: {ros__parameters: {scan_source: depth_image}}",
            {"scan_source": "multi_echo"},
            "multi_echo",
        ),
        ("/**: {ros__parameters: {scan_source: depth_image}}", {"scan_source": "laser_scan"}, None),
        ("/**: {ros__parameters: {max_views: 3}}", {}, None),
        ("/**: {ros__parameters: {max_views: 3}}", {"scan_source": "depth_image"}, "depth_image"),
    ],
)
def test_a_sensor_that_sends_no_scans_has_them_made(tmp_path, text, given, source):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    found = nodes("planner", params_file=str(file), image_topic="/eye/depth", **given)
    assert set(found) == {"surface_mapper", "nbv_planner", *(["scan_maker"] if source else [])}
    if source:
        values = {}
        for name in files_of(found["scan_maker"]):  # the last one has the arguments
            for section in yaml.safe_load(Path(name).read_text()).values():
                values.update(section["ros__parameters"])
        assert values["scan_source"] == source
        assert dict(found["scan_maker"].expanded_remapping_rules)["image"] == "/eye/depth"


def test_a_table_has_its_own_values_of_the_shipped_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {ros__parameters: {radius_max: 7.0}}\n")
    found = files_of(nodes("turntable", params_file=str(file))["turntable"])
    shipped = yaml.safe_load((ROOT / "config" / "turntable.yaml").read_text())
    own = shipped["/**"]["ros__parameters"]
    assert yaml.safe_load(Path(found[0]).read_text()) == {"/**": {"ros__parameters": own}}
    assert found[1] == str(file)


def test_the_place_of_the_object_in_the_map_is_published():
    given = {
        "object_x": "1.5",
        "object_y": "-2",
        "object_yaw": "0.3",
        "map_frame": "world",
        "object_frame": "vase",
    }
    node = nodes("nav2", **given)["static_transform_publisher"]
    context = LaunchContext(argv=[])
    context.launch_configurations.update(given)
    wanted = [
        "--x",
        "1.5",
        "--y",
        "-2",
        "--yaw",
        "0.3",
        "--frame-id",
        "world",
        "--child-frame-id",
        "vase",
    ]
    # The first word is the executable, which is looked for only when it is started; what ROS adds
    # comes last.
    assert [
        perform_substitutions(context, part) for part in node.cmd[1 : len(wanted) + 1]
    ] == wanted


@pytest.mark.parametrize("name", ["turntable", "simulator"])
def test_they_run_wait_and_end_cleanly(launch, name):
    process, output = launch(name)
    said = "waiting for the service ~/start" if name == "turntable" else "waiting for /surface"
    deadline = time.monotonic() + 180
    while said not in output.read_text():
        assert time.monotonic() < deadline, output.read_text()
        assert process.poll() is None, output.read_text()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(180) == 0
    assert "Traceback" not in output.read_text()
