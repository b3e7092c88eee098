"""Recording with the real rclpy: everything that is said, from whoever says it, up to the moment of
a kill.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip(
    "rclpy", reason="needs rclpy: source a ROS 2 installation or install the wheels"
)
pytest.importorskip("rosbags", reason="rosbags is not installed (pip install '.[analysis]')")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from recorded import CONFIG, messages
from ros_world import PATIENCE, World
from sensor_msgs.msg import CameraInfo, Image, LaserScan, PointCloud2
from std_msgs.msg import String

from nbv_planner.bags.reader import Bag, decode
from nbv_planner.bags.writer import BagWriter
from nbv_planner.cli.main import main
from nbv_planner.clouds.sensor_messages import scan_from_msg
from nbv_planner.clouds.surface_messages import belief_from_msg
from nbv_planner.episode.messages import RECORDED_IN_SPACE, RECORDED_TOPICS
from nbv_planner.ros.core import qos
from nbv_planner.ros.io.recorder import BagRecorder
from nbv_planner.ros.node_processes import free_domain_id, isolated_environment

ROOT = Path(__file__).parents[2]
TALK = ["/talk"]
EPISODE = ("scan", "camera_pose", "surface", "nbv_planner/candidates", "nbv_planner/iteration")
KINDS = {
    "sensor_msgs/msg/LaserScan": LaserScan,
    "geometry_msgs/msg/PoseStamped": PoseStamped,
    "sensor_msgs/msg/PointCloud2": PointCloud2,
    "diagnostic_msgs/msg/DiagnosticStatus": DiagnosticStatus,
}


@pytest.fixture
def recorder(world, tmp_path):
    """Return a function that starts a recorder in the test's own graph."""
    writers = []

    def start(topics=(), names=(), cli_args=None, **options) -> BagRecorder:
        writers.append(BagWriter(tmp_path / f"bag{len(writers)}"))
        return world.start(
            partial(BagRecorder, writers[-1], topics, names, **options), cli_args=cli_args
        )

    yield start
    for writer in writers:
        writer.close()


def heard(path: Path, topic: str) -> list[str]:
    return [decode(message).data for message in Bag(path).messages(lambda t: t.name == topic)]


def test_everything_that_is_said_is_written_as_it_was_said(world, recorder, tmp_path):
    node = recorder(names=TALK)
    publisher = world.peer.create_publisher(String, "talk", qos.reliable(100))
    world.spin_until(lambda: publisher.get_subscription_count() == 1, "messages")
    for number in range(50):
        publisher.publish(String(data=f"word {number}"))
    world.spin_until(lambda: node.counts["/talk"] == 50, "messages")
    node._writer.close()
    assert heard(tmp_path / "bag0", "/talk") == [f"word {number}" for number in range(50)]


def test_a_late_recorder_keeps_every_iteration(world, recorder):
    publisher = world.peer.create_publisher(
        DiagnosticStatus, "nbv_planner/iteration", qos.latched(100)
    )
    for number in range(40):
        publisher.publish(DiagnosticStatus(name=str(number)))
    node = recorder(topics=RECORDED_TOPICS)
    world.spin_until(lambda: node.counts["/nbv_planner/iteration"] == 40, "messages")


def test_in_space_images_and_their_calibration_are_recorded_and_no_scans(world, recorder):
    node = recorder(topics=RECORDED_IN_SPACE)
    kinds = {"image": Image, "camera_info": CameraInfo, "points": PointCloud2, "scan": LaserScan}
    publishers = {
        name: world.peer.create_publisher(kind, name, qos.sensor_data())
        for name, kind in kinds.items()
    }

    def seen() -> bool:
        for name, publisher in publishers.items():
            publisher.publish(kinds[name]())
        return all(node.counts[f"/{name}"] > 2 for name in ("image", "camera_info", "points"))

    world.spin_until(seen, "messages")
    assert "/scan" not in node.counts


def test_a_best_effort_publisher_is_recorded_too(world, recorder):
    node = recorder(topics=RECORDED_TOPICS)
    publisher = world.peer.create_publisher(LaserScan, "scan", qos.sensor_data())

    def scanned() -> bool:
        publisher.publish(LaserScan())
        return node.counts["/scan"] > 3

    world.spin_until(scanned, "messages")


def test_a_latched_topic_from_a_publisher_that_does_not_latch_is_recorded_too(world, recorder):
    node = recorder(topics=RECORDED_TOPICS)
    publisher = world.peer.create_publisher(String, "run_info", qos.reliable())

    def said() -> bool:
        publisher.publish(String(data="x"))
        return node.counts["/run_info"] > 3

    world.spin_until(said, "messages")


def test_topics_in_a_namespace_are_recorded_and_the_others_not(world, recorder):
    node = recorder(topics=RECORDED_TOPICS, namespace="arm")
    inside = world.peer.create_publisher(String, "/arm/run_info", qos.latched())
    world.peer.create_publisher(String, "/run_info", qos.latched()).publish(String(data="outside"))
    inside.publish(String(data="inside"))
    world.spin_until(lambda: node.counts["/arm/run_info"] == 1, "messages")
    assert set(node.counts) == {"/arm/run_info"}
    assert "/arm/scan" in node.silent


def test_goals_are_subscribed_to_last_so_that_a_planner_that_waits_misses_nothing(world, recorder):
    node = recorder(topics=RECORDED_TOPICS, goals_last=True)
    goal = world.peer.create_publisher(PoseStamped, "goal_pose", qos.reliable())
    others = [topic for topic in RECORDED_TOPICS if topic.name in EPISODE]
    publishers = [
        world.peer.create_publisher(KINDS[topic.type], topic.name, qos.latched())
        for topic in others[:-1]
    ]
    world.spin_some()
    assert goal.get_subscription_count() == 0
    publishers.append(
        world.peer.create_publisher(KINDS[others[-1].type], others[-1].name, qos.latched())
    )
    world.spin_until(
        lambda: goal.get_subscription_count() == 1, "the recorder's subscription of the goals"
    )
    world.spin_until(
        lambda: all(one.get_subscription_count() == 1 for one in publishers),
        "all other subscriptions",
    )
    assert set(node.silent) >= {f"/{topic.name}" for topic in others}


def test_goals_are_recorded_after_a_while_even_if_other_topics_never_come(
    world, recorder, monkeypatch
):
    monkeypatch.setattr("nbv_planner.ros.io.recorder._HOLD_PERIOD", 0.5)
    recorder(topics=RECORDED_TOPICS, goals_last=True)
    goal = world.peer.create_publisher(PoseStamped, "goal_pose", qos.reliable())
    world.peer.create_publisher(LaserScan, "scan", qos.reliable())
    world.spin_until(
        lambda: goal.get_subscription_count() == 1, "the recorder's subscription of the goals"
    )


def test_what_publishers_offer_is_kept_for_whoever_plays_the_bag(world, recorder, tmp_path):
    import yaml

    node = recorder(topics=RECORDED_TOPICS)
    world.peer.create_publisher(String, "run_info", qos.latched()).publish(String(data="x"))
    world.spin_until(lambda: node.counts["/run_info"] == 1, "messages")
    node._writer.close()
    metadata = yaml.safe_load((tmp_path / "bag0" / "metadata.yaml").read_text())[
        "rosbag2_bagfile_information"
    ]
    (topic,) = metadata["topics_with_message_count"]
    (profile,) = yaml.safe_load(topic["topic_metadata"]["offered_qos_profiles"])
    assert (profile["reliability"], profile["durability"]) == (1, 1)  # reliable, transient local


def start(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "nbv_planner.cli.main", "bag", "record", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.fixture
def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**isolated_environment(free_domain_id()), "PYTHONPATH": path}


@pytest.fixture
def told_world(environment):
    """A graph on the domain of the processes."""
    with World(domain=int(environment["ROS_DOMAIN_ID"])) as made:
        yield made


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_subcommand_record_as_a_process(told_world, environment, tmp_path, storage, end):
    """Ended properly the bag is whole; killed it holds what was said until just before."""
    process = start(environment, tmp_path, "--out", "bag", "--storage", storage, "--topics", "talk")
    publisher = told_world.peer.create_publisher(String, "talk", qos.reliable(1000))
    told_world.spin_until(lambda: publisher.get_subscription_count() == 1, "the recorder")
    words = [f"word {number}" for number in range(100)]
    for word in words:
        publisher.publish(String(data=word))
    file = tmp_path / "bag" / f"bag.{'mcap' if storage == 'mcap' else 'db3'}"
    deadline = time.monotonic() + PATIENCE
    # readable while it is being written
    while len(heard(file, "/talk")) < 100 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(end)
    said, _ = process.communicate(timeout=PATIENCE)
    assert heard(tmp_path / "bag", "/talk") == words
    if end == signal.SIGKILL:
        assert process.returncode == -9
        assert not (tmp_path / "bag" / "metadata.yaml").exists()
    else:
        assert process.returncode == 0, said
        assert "/talk: 100 messages" in said
        assert "Traceback" not in said
        assert Bag(tmp_path / "bag").inventory().counts.total() >= 100
        assert (tmp_path / "bag" / "metadata.yaml").exists()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_message_is_written_leaves_it_whole(
    told_world, environment, tmp_path, monkeypatch, end
):
    told_world.peer.create_publisher(String, "talk", qos.latched()).publish(String(data="whole"))
    write, before = BagWriter.write, signal.getsignal(end)

    def interrupted(*arguments) -> None:
        os.kill(os.getpid(), end)
        time.sleep(0.05)
        write(*arguments)

    monkeypatch.setattr(BagWriter, "write", interrupted)
    monkeypatch.setenv("ROS_DOMAIN_ID", environment["ROS_DOMAIN_ID"])
    assert main(["bag", "record", "--out", str(tmp_path / "bag"), "--topics", "talk"]) == 0
    assert heard(tmp_path / "bag", "/talk") == ["whole"]
    assert signal.getsignal(end) is before


def test_an_existing_bag_is_refused_before_anything_is_recorded(tmp_path, capsys):
    (tmp_path / "bag").mkdir()
    assert main(["bag", "record", "--out", str(tmp_path / "bag")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_messages_of_rclpy_and_those_made_without_it_are_the_same():
    """What the simulated bags of the tests hold is what the nodes would send."""
    from rclpy.serialization import deserialize_message

    from nbv_planner.ros.io import conversions

    recorded = {message.topic.name: message for message in messages()}
    scan = scan_from_msg(deserialize_message(recorded["/scan"].data, LaserScan))
    assert len(scan.ranges) == CONFIG.sensor.num_beams
    cloud = deserialize_message(recorded["/surface"].data, PointCloud2)
    belief = belief_from_msg(cloud)
    again = conversions.belief_to_msg(belief, cloud.header)
    assert bytes(again.data) == bytes(cloud.data)
    assert [field.name for field in again.fields] == [field.name for field in cloud.fields]


def test_renamed_topics_are_recorded_under_the_names_that_they_have(world, recorder):
    node = recorder(
        topics=RECORDED_TOPICS, namespace="arm", cli_args=["--ros-args", "-r", "scan:=/lidar/scan"]
    )
    publisher = world.peer.create_publisher(LaserScan, "/lidar/scan", qos.reliable())

    def scanned() -> bool:
        publisher.publish(LaserScan())
        return node.counts["/lidar/scan"] > 0

    world.spin_until(scanned, "messages")
    assert {"/arm/surface", "/lidar/scan"} <= {*node.counts, *node.silent}
    assert "/arm/scan" not in node.silent


def test_a_rule_that_renames_nothing_is_refused(capsys):
    assert main(["bag", "record", "--remap", "scan"]) == 2
    assert "'scan' must have the form old:=new" in capsys.readouterr().err
