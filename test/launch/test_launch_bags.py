"""Recording and playing by the launch files: the real launch; `ros2 bag` itself only where it is
installed.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; make test brings the wheels")
pytest.importorskip(
    "launch_ros", reason="launch_ros is not on PyPI: these tests run where ROS 2 is installed"
)

import yaml
from launch.actions import ExecuteProcess
from launch_ros.actions import Node
from launched import ROOT, parameters, started

from nbv_planner.episode.messages import RECORDED_TOPICS
from nbv_planner.ros import launch as launch_bags
from nbv_planner.system import python_command

LATCHED = {topic.name for topic in RECORDED_TOPICS if topic.latched}


def actions(name: str, **given: str) -> tuple[ExecuteProcess | None, dict[str, Node]]:
    """What a launch file starts besides nodes, and its nodes by executable."""
    others, nodes = started(name, **given)
    assert len(others) <= 1
    return (others[0] if others else None), nodes


def command(process: ExecuteProcess) -> list[str]:
    return ["".join(part.text for part in token) for token in process.cmd]


def value(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


@pytest.fixture
def rosbag2(monkeypatch):
    """Let the launch files believe that ros2 bag is installed: what they would start is looked at,
    not started.
    """
    monkeypatch.setattr(launch_bags, "has_rosbag2", lambda: True)


@pytest.mark.parametrize("name", ["simulation", "planner"])
def test_nothing_is_recorded_unless_asked_for(name):
    recorder, nodes = actions(name)
    assert recorder is None
    assert "goal_subscribers" not in parameters(nodes["nbv_planner"])


@pytest.mark.parametrize(("namespace", "prefix"), [("", ""), ("arm", "/arm"), ("/a/b/", "/a/b")])
def test_ros2_bag_records_the_topics_of_the_nodes_with_overrides_for_all_latched_ones(
    rosbag2, namespace, prefix
):
    recorder, nodes = actions("simulation", record="true", bag_path="here", namespace=namespace)
    words = command(recorder)
    assert words[:3] == ["ros2", "bag", "record"]
    assert value(words, "--storage") == "mcap"
    assert value(words, "--output") == "here"
    pattern = re.compile(value(words, "--regex"))
    assert all(pattern.fullmatch(topic.full_name(namespace)) for topic in RECORDED_TOPICS)
    assert not pattern.fullmatch(f"{prefix}/markers")
    assert not pattern.fullmatch(f"/other{prefix}/scan")
    overrides = yaml.safe_load(Path(value(words, "--qos-profile-overrides-path")).read_text())
    assert set(overrides) == {f"{prefix}/{name}" for name in LATCHED}
    assert all(profile["durability"] == "transient_local" for profile in overrides.values())
    assert overrides[f"{prefix}/nbv_planner/iteration"]["depth"] == 100
    # mapper, camera, and the recorder
    assert parameters(nodes["nbv_planner"])["goal_subscribers"] == 3
    assert parameters(nodes["nbv_planner"])["recorder"] == "rosbag2_recorder"


def test_planner_waits_for_one_more_subscriber_than_its_file_says(rosbag2, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("nbv_planner: {ros__parameters: {goal_subscribers: 5}}\n")
    _, nodes = actions("planner", record="true", params_file=str(file))
    assert parameters(nodes["nbv_planner"])["goal_subscribers"] == 6
    file.write_text("nbv_planner: {ros__parameters: {}}\nmy_lidar: {ros__parameters: {rate: 3}}\n")
    _, nodes = actions("planner", record="true", params_file=str(file))
    assert parameters(nodes["nbv_planner"])["goal_subscribers"] == 3


def test_without_ros2_bag_the_package_records_itself(monkeypatch):
    monkeypatch.setattr(launch_bags, "has_rosbag2", lambda: False)
    recorder, nodes = actions("simulation", record="true", bag_path="here", namespace="arm")
    words = command(recorder)
    assert words[:5] == [*python_command("nbv_planner.cli.main"), "bag", "record"]
    assert (value(words, "--out"), value(words, "--namespace")) == ("here", "/arm")
    assert parameters(nodes["nbv_planner"])["recorder"] == "bag_recorder"


def test_replay_plays_what_the_nodes_listen_to_and_keeps_the_goals_apart(rosbag2, tmp_path):
    player, nodes = actions("replay", bag=str(tmp_path), namespace="arm", rate="2.5", delay="3")
    words = command(player)
    assert words[:4] == ["ros2", "bag", "play", str(tmp_path)]
    assert (value(words, "--rate"), value(words, "--delay")) == ("2.5", "3")
    assert words[words.index("--topics") + 1 :] == [
        "/arm/scan",
        "/arm/camera_pose",
        "/arm/goal_pose",
    ]
    assert set(nodes) == {"surface_mapper", "nbv_planner"}
    assert parameters(nodes["surface_mapper"]) == {"use_sim_time": True}
    assert parameters(nodes["nbv_planner"]) == {
        "use_sim_time": True,
        "wait_for_start": False,
        "goal_subscribers": 0,
    }
    assert nodes["nbv_planner"].expanded_remapping_rules == [("goal_pose", "replay/goal_pose")]
    assert not nodes["surface_mapper"].expanded_remapping_rules
    _, nodes = actions("replay", bag=str(tmp_path), rviz="true")
    assert set(nodes) == {"surface_mapper", "nbv_planner", "rviz2"}
    assert parameters(nodes["rviz2"]) == {"use_sim_time": True}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bag": "/nowhere"}, ["bag", "/nowhere", "does not exist"]),
        ({"bag": "/", "rate": "0"}, ["rate", "'0'", "positive"]),
        ({"bag": "/", "rate": "fast"}, ["rate", "'fast'", "positive"]),
        ({"bag": "/", "delay": "-1"}, ["delay", "'-1'", ">= 0"]),
    ],
)
def test_wrong_argument_of_replay_is_refused_by_name(rosbag2, given, words):
    with pytest.raises((ValueError, RuntimeError)) as caught:
        actions("replay", **{"rate": "1.0", "delay": "5.0", **given})
    assert [word for word in words if word not in str(caught.value)] == []


def test_replay_without_ros2_bag_names_the_way_without_it(monkeypatch):
    monkeypatch.setattr(launch_bags, "has_rosbag2", lambda: False)
    with pytest.raises(
        RuntimeError, match=r"needs ros2 bag, which is not installed.*nbv-planner bag replay"
    ):
        actions("replay", bag="/", rate="1.0", delay="0")


def test_launch_records_a_whole_episode(launch, fast, tmp_path):
    """By whichever recorder this machine has: the bag holds every view and the end."""
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    from nbv_planner.bags.analysis import analyse
    from nbv_planner.bags.reader import Bag

    bag = f"bag_path:={tmp_path / 'bag'}"
    process, output = launch("simulation", fast, "exit_when_done:=true", "record:=true", bag)
    code = process.wait(180)
    assert code == 0, output.read_text()
    analysis = analyse(Bag(tmp_path / "bag"))
    assert (tmp_path / "bag" / "metadata.yaml").is_file()
    assert analysis.remarks == ()
    assert analysis.gaps == ()
    assert analysis.termination.reason.value == "MAX_VIEWS"
    assert len(analysis.steps) == len(analysis.views) == 3


INCLUDING = """
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch_ros.actions import PushRosNamespace, SetRemap

def generate_launch_description():
    return LaunchDescription([GroupAction([
        PushRosNamespace("cell"), PushRosNamespace("robot"), SetRemap("scan", "/lidar/scan"),
        SetRemap("camera_pose", "pose"), SetRemap("goal_pose", "view_goal"),
        IncludeLaunchDescription({path!r}),
    ])])
"""


def test_topics_that_an_including_launch_renames_are_recorded_and_analysed(launch, fast, tmp_path):
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    from nbv_planner.bags.analysis import analyse
    from nbv_planner.bags.reader import Bag

    path = str(ROOT / "launch" / "simulation.launch.py")
    (tmp_path / "robot.launch.py").write_text(INCLUDING.format(path=path))
    arguments = (
        fast,
        "namespace:=arm",
        "exit_when_done:=true",
        "record:=true",
        f"bag_path:={tmp_path / 'bag'}",
    )
    process, output = launch(str(tmp_path / "robot"), *arguments)
    assert process.wait(180) == 0, output.read_text()
    analysis = analyse(Bag(tmp_path / "bag"))
    topics = {name: topic.name for name, topic in analysis.recording.topics.topics.items()}
    own = "/cell/robot/arm"
    assert {name: topics[name] for name in ("scan", "camera_pose", "goal_pose", "surface")} == {
        "scan": "/lidar/scan",
        "camera_pose": f"{own}/pose",
        "goal_pose": f"{own}/view_goal",
        "surface": f"{own}/surface",
    }
    assert (analysis.remarks, analysis.gaps) == ((), ())
    assert len(analysis.steps) == len(analysis.views) == 3


def test_ros2_bag_records_topics_under_the_names_that_they_have_here(rosbag2):
    from nbv_planner.ros.launch import record_process

    renamed = [("scan", "/lidar/scan"), ("surface", "belief"), ("nbv_planner/status", "/state")]
    words = command(record_process("/arm", renamed, "here", 2, use_sim_time=False))
    pattern = re.compile(value(words, "--regex"))
    names = {topic.name: topic.full_name("/arm", renamed) for topic in RECORDED_TOPICS}
    assert (names["scan"], names["surface"], names["nbv_planner/status"]) == (
        "/lidar/scan",
        "/arm/belief",
        "/state",
    )
    assert all(map(pattern.fullmatch, names.values()))
    assert not any(map(pattern.fullmatch, ("/arm/scan", "/arm/surface", "/arm/nbv_planner/status")))
    overrides = yaml.safe_load(Path(value(words, "--qos-profile-overrides-path")).read_text())
    assert set(overrides) == {names[name] for name in LATCHED}


def test_a_recorder_that_dies_on_the_way_fails_the_launch_at_its_end(launch, fast, tmp_path):
    # leaves time to kill the recorder on the way
    with Path(fast.partition(":=")[2]).open("a") as file:
        file.write("/**/depth_camera: {ros__parameters: {angular_speed: 1.0}}\n")
    bag = tmp_path / "bag"
    process, output = launch(
        "simulation", fast, "exit_when_done:=true", "record:=true", f"bag_path:={bag}"
    )
    deadline = time.monotonic() + 180
    while "to view 2" not in output.read_text():
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.02)
    (pid,) = re.findall(r"recorder-\d+\]: process started with pid \[(\d+)\]", output.read_text())
    os.kill(int(pid), signal.SIGKILL)
    assert process.wait(180) == 1, output.read_text()
    assert f"has ended with exit code -9; messages until then are in {bag}" in output.read_text()
    assert "MAX_VIEWS" in output.read_text()


def test_when_the_recorder_cannot_record_that_is_said_and_the_episode_goes_on(
    launch, fast, tmp_path
):
    bag = tmp_path / "bag"
    bag.mkdir()
    (bag / "precious.txt").write_text("x")
    process, output = launch(
        "simulation", fast, "exit_when_done:=true", "record:=true", f"bag_path:={bag}"
    )
    assert process.wait(180) == 1, output.read_text()
    assert re.search(r"\[ERROR\].*RECORDING STOPPED: .*; nothing was recorded", output.read_text())
    assert "MAX_VIEWS" in output.read_text()
    assert [path.name for path in bag.iterdir()] == ["precious.txt"]
