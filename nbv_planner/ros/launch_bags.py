"""What the launch files do with bags: record one, play one."""

from __future__ import annotations

import re
import sys
import tempfile
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from launch.actions import ExecuteProcess, LogInfo
from launch.events.process import ProcessExited
from launch.substitutions import TextSubstitution

from launch import LaunchContext, LaunchDescriptionEntity
from nbv_planner.config_files import load_parameters, shared_file
from nbv_planner.errors import ConfigFileError
from nbv_planner.planning.session import SessionSettings
from nbv_planner.topics import CAMERA_POSE, GOAL_POSE, RECORDED_TOPICS, SCAN, RecordedTopic

_QOS_FILE = "config/rosbag/record_qos.yaml"
_PLAYED = (SCAN, CAMERA_POSE, GOAL_POSE)
# The recorder writes what it still has when it is asked to end; seconds until it is asked harder.
_PATIENCE = "15"


def has_rosbag2() -> bool:
    """Whether `ros2 bag` is installed."""
    return find_spec("ros2bag") is not None


def record_process(namespace: str, bag_path: str, subscribers: int, *, use_sim_time: bool) -> ExecuteProcess:
    """Record the topics of the nodes in `namespace`: by `ros2 bag`, or where that is missing by this package.

    Args:
        namespace: namespace of the nodes.
        bag_path: folder of the bag; empty for one with date and time in its name.
        subscribers: number of subscribers for which the planner waits when the recorder has ended.
        use_sim_time: whether the times of arrival are those of /clock (by `ros2 bag` only).
    """
    on_exit = partial(_go_on_without, namespace, subscribers)
    path = bag_path or datetime.now().strftime("bag_%Y%m%d_%H%M%S")
    if not has_rosbag2():
        command = [sys.executable, "-m", "nbv_planner.cli.entry", "record", "--out", path, "--namespace", namespace]
        return _process("recorder", command, on_exit=on_exit)
    names = "|".join(re.escape(topic.full_name(namespace)) for topic in RECORDED_TOPICS)
    # By a pattern: the option for lists of names has another form in each distribution.
    command = [
        "ros2", "bag", "record", "--storage", "mcap", "--output", path, "--regex", f"^({names})$",
        "--qos-profile-overrides-path", str(qos_overrides(namespace)),
    ]
    return _process("recorder", command + (["--use-sim-time"] if use_sim_time else []), on_exit=on_exit)


def _go_on_without(
    namespace: str, subscribers: int, event: ProcessExited, context: LaunchContext
) -> list[LaunchDescriptionEntity]:
    """Say loudly that nothing is recorded any more, and let a planner that still waits for the recorder begin."""
    if context.is_shutdown:
        return []
    node = RecordedTopic("nbv_planner", "").full_name(namespace)
    command = ["ros2", "param", "set", "--no-daemon", "--spin-time", "15", node]
    said = f"NOT RECORDED ANY MORE: {event.process_name} has ended with exit code {event.returncode}"
    return [LogInfo(msg=said)] + [
        _process("go_on_without_recorder", [*command, name, value])
        for name, value in (("goal_subscribers", str(subscribers)), ("recorder", "''"))
    ]


def recorder_node() -> str:
    """Node that `ros2 bag record` subscribes with, in whichever order it finds topics; empty for our recorder.

    That one subscribes to goals last, so that they alone tell.
    """
    return "rosbag2_recorder" if has_rosbag2() else ""


def qos_overrides(namespace: str) -> Path:
    """The file of overrides for topics in `namespace`: the shipped one, or a copy with the namespace before each name.

    Raises:
        ConfigFileError: it is not installed.
    """
    shipped = shared_file(_QOS_FILE)
    if not namespace.strip("/"):
        return shipped
    overrides = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    renamed = {RecordedTopic(name.lstrip("/"), "").full_name(namespace): dict(qos) for name, qos in overrides.items()}
    with tempfile.NamedTemporaryFile("w", prefix="record_qos_", suffix=".yaml", delete=False, encoding="utf-8") as file:
        yaml.safe_dump(renamed, file)
    return Path(file.name)


def planner_parameters(params_file: str) -> dict[str, Any]:
    """Parameters of the planner; none of a file that holds more than this package knows, which is not read."""
    try:
        return load_parameters(params_file)["nbv_planner"]
    except ConfigFileError:
        return {}


def subscribers_awaited(params_file: str) -> int:
    """Number of subscribers that the planner waits for, a recorder not counted."""
    given = planner_parameters(params_file)
    return int(given.get("goal_subscribers", SessionSettings().goal_subscribers))


def play_process(bag: str, namespace: str, rate: str, delay: str, on_exit: object) -> ExecuteProcess:
    """Play what mapper and planner listen to, with the bag's time on /clock.

    Args:
        bag: its folder.
        namespace: namespace of the nodes.
        rate: how many times as fast as recorded.
        delay: seconds before the first message, in which the nodes start.
        on_exit: what happens at the end.

    Raises:
        RuntimeError: `ros2 bag` is not installed, or the bag does not exist.
        ValueError: the rate is no positive number, or the delay is none.
    """
    if not has_rosbag2():
        raise RuntimeError("ros2 bag is not installed, which replay.launch.py needs; else: nbv-planner replay BAG")
    if not Path(bag).exists():
        raise RuntimeError(f"bag: {bag!r} does not exist")
    if not re.fullmatch(r"\d*\.?\d+", rate) or float(rate) == 0.0:
        raise ValueError(f"rate: {rate!r} must be a positive number")
    if not re.fullmatch(r"\d*\.?\d+", delay):
        raise ValueError(f"delay: {delay!r} must be a number >= 0")
    names = [RecordedTopic(name, "").full_name(namespace) for name in _PLAYED]
    command = ["ros2", "bag", "play", bag, "--clock", "100", "--rate", rate, "--delay", delay, "--topics", *names]
    return _process("rosbag2_player", command, on_exit=on_exit)


def _process(name: str, command: list[str], on_exit: object = None) -> ExecuteProcess:
    return ExecuteProcess(
        cmd=[[TextSubstitution(text=part)] for part in command], name=name, output="screen", on_exit=on_exit,
        sigterm_timeout=_PATIENCE,
    )
