"""A recorded bag, played by `ros2 bag play`, through surface mapper and planner again.

The mapper subscribes to the recorded goals, at which the recorded camera stood. The planner decides
again, and its goals go to `replay/goal_pose`; it continues as long as they are those of the
recorded camera.
"""

import re
from pathlib import Path

from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown

from launch import LaunchContext, LaunchDescription
from nbv_planner.episode.messages import CAMERA_POSE, GOAL_POSE, SCAN, full_name
from nbv_planner.ros.launch import (
    ARGUMENTS,
    declared,
    given_arguments,
    has_rosbag2,
    is_true,
    names_here,
    node,
    parameter_file,
    process,
    rviz,
)

SHARED = ("namespace", "log_level", "objective", "planner", "exit_when_done", "rviz")
OWN = {
    "rate": ("1.0", "How many times as fast as recorded."),
    "delay": ("5.0", "Seconds until the bag is played, for the nodes to start."),
}


def generate_launch_description() -> LaunchDescription:
    shared = {name: ARGUMENTS[name] for name in SHARED}
    file = parameter_file("robot.yaml", "; take the recorded one")
    bag = DeclareLaunchArgument("bag", description="Folder of the bag.")
    return LaunchDescription(
        [bag, *declared({**OWN, **file, **shared}), OpaqueFunction(function=replay)]
    )


def replay(context: LaunchContext) -> list[ExecuteProcess]:
    given = {**given_arguments(context, ("bag", *OWN)), "use_sim_time": "true"}
    planner = {"wait_for_start": False, "goal_subscribers": 0}
    return [
        player(given, names_here(context, given["namespace"])[0]),
        node("surface_mapper", given),
        node("nbv_planner", given, planner, [("goal_pose", "replay/goal_pose")]),
        *([rviz(given)] if is_true("rviz", given) else []),
    ]


def player(given: dict[str, str], namespace: str) -> ExecuteProcess:
    """Play what mapper and planner subscribe to, with the bag's time on /clock.

    Raises:
        RuntimeError: `ros2 bag` is not installed, or the bag does not exist.
        ValueError: the rate is not a positive number, or the delay is not a number >= 0.
    """
    bag, rate, delay = (given[name] for name in ("bag", "rate", "delay"))
    if not has_rosbag2():
        raise RuntimeError(
            "replay.launch.py needs ros2 bag, which is not installed; without it: nbv-planner bag"
            " replay BAG"
        )
    if not Path(bag).exists():
        raise RuntimeError(f"bag: {bag!r} does not exist")
    if not re.fullmatch(r"\d*\.?\d+", rate) or float(rate) == 0.0:
        raise ValueError(f"rate: {rate!r} must be a positive number")
    if not re.fullmatch(r"\d*\.?\d+", delay):
        raise ValueError(f"delay: {delay!r} must be a number >= 0")
    names = [full_name(name, namespace) for name in (SCAN, CAMERA_POSE, GOAL_POSE)]
    command = [
        "ros2",
        "bag",
        "play",
        bag,
        "--clock",
        "100",
        "--rate",
        rate,
        "--delay",
        delay,
        "--topics",
        *names,
    ]
    ends = [Shutdown(reason="the bag has ended")] if is_true("exit_when_done", given) else None
    return process("rosbag2_player", command, on_exit=ends)
