"""How launch files wire the nodes to a robot, a turntable or a simulator: names of topics, and what stands beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from launch.actions import DeclareLaunchArgument, GroupAction, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, SetRemap

from launch import LaunchContext, LaunchDescription
from nbv_planner.ros.launch_support import description, enclave_arguments

_PLANNING = ("surface_mapper", "nbv_planner")


def simulator_description() -> LaunchDescription:
    """Describe a launch of mapper and planner beside a simulator."""
    return _wired("simulator.yaml", ("scan", "camera_pose", "goal_pose"))


def turntable_description() -> LaunchDescription:
    """Describe a launch of mapper, planner and `turntable`."""
    table = OpaqueFunction(function=_turntable)
    return _wired("turntable.yaml", ("scan", "joint_states", "joint_command"), beside=[table])


def _turntable(context: LaunchContext) -> list[Node]:
    """The table's node, in an enclave of its own if there are any."""
    given = {name: LaunchConfiguration(name).perform(context) for name in ("log_level", "enclave")}
    return [Node(
        package="nbv_planner", executable="turntable", name="turntable",
        namespace=LaunchConfiguration("namespace"),
        parameters=[LaunchConfiguration("params_file"), {"use_sim_time": LaunchConfiguration("use_sim_time")}],
        arguments=["--ros-args", "--log-level", given["log_level"], *enclave_arguments("turntable", given)],
        output="screen",
    )]  # fmt: skip


def nav2_description() -> LaunchDescription:
    """Describe a launch of mapper and planner beside Nav2, and of the transform that says where the object is."""
    place = {
        "map_frame": ("map", "Frame in which the object's place is given."),
        "object_frame": ("object", "Frame of the object; as in params_file."),
        "object_x": ("0.0", "Place of the object's centre, metres."),
        "object_y": ("0.0", "Place of the object's centre, metres."),
        "object_yaw": ("0.0", "Heading of the object's frame, radians."),
    }
    transform = Node(
        package="tf2_ros", executable="static_transform_publisher", name="object_place", output="screen",
        arguments=[
            "--x", LaunchConfiguration("object_x"), "--y", LaunchConfiguration("object_y"),
            "--yaw", LaunchConfiguration("object_yaw"), "--frame-id", LaunchConfiguration("map_frame"),
            "--child-frame-id", LaunchConfiguration("object_frame"),
        ],
    )  # fmt: skip
    return _wired("nav2.yaml", ("scan", "goal_pose"), place, [transform])


def _wired(
    config: str, topics: Sequence[str], arguments: dict[str, tuple[str, str]] | None = None,
    beside: Sequence[Any] = (),
) -> LaunchDescription:
    """Mapper and planner with topics that arguments may rename.

    Args:
        config: parameter file below config/.
        topics: topics for each of which there is an argument `<topic>_topic`.
        arguments: further arguments, each with default and description.
        beside: what else is started.
    """
    named = {f"{topic}_topic": (topic, f"Name that the topic {topic} has here.") for topic in topics}
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in {**named, **(arguments or {})}.items()
    ]
    renamed = [SetRemap(src=topic, dst=LaunchConfiguration(f"{topic}_topic")) for topic in topics]
    plain = description(config, _PLANNING).entities
    own = [entity for entity in plain if isinstance(entity, DeclareLaunchArgument)]
    started = [entity for entity in plain if not isinstance(entity, DeclareLaunchArgument)]
    return LaunchDescription([*own, *declared, GroupAction([*renamed, *beside, *started])])
