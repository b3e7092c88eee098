"""What the launch files share: described arguments, and nodes that take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription
from nbv_planner.config_files import shared_file
from nbv_planner.planning.objectives import EXPECTED, OBJECTIVES
from nbv_planner.planning.planners import PLANNERS, PlannerSettings
from nbv_planner.planning.planners.settings import named_choice
from nbv_planner.ros import launch_respawn
from nbv_planner.ros.launch_bags import (
    planner_parameters,
    play_process,
    record_process,
    recorder_node,
    subscribers_awaited,
)

_FROM_FILE = "; empty: as in params_file"
_ARGUMENTS = {
    "namespace": ("", "Namespace of the nodes and their topics."),
    "use_sim_time": ("false", "Take the time from /clock (true, false)."),
    "log_level": ("info", "Least severity that is logged (debug, info, warn, error, fatal)."),
    "objective": (
        "", f"Objective: {', '.join([*OBJECTIVES, EXPECTED])}; of greedy where that planner has none{_FROM_FILE}."
    ),
    "planner": ("", f"Planner: {', '.join(PLANNERS)}{_FROM_FILE}."),
    "object": ("", f"True object, for example polygon:star or ellipse:a=6,b=4{_FROM_FILE}."),
    "seed": ("", f"Seed of the simulated sensor noise{_FROM_FILE}."),
    "record": ("false", "Record a bag of everything from which the episode can be understood (true, false)."),
    "bag_path": ("", "Folder of the bag that is recorded; empty: bag_<date>_<time>."),
    "exit_when_done": ("false", "End the launch when the planner is done (true, false)."),
    **launch_respawn.ARGUMENTS,
    "enclave": ("", "Enclave of SROS 2 that holds those of the nodes, for example /nbv_planner; empty: none."),
    "rviz": ("false", "Start RViz too, with the displays of this package (true, false)."),
}
_OVERRIDES = {
    "depth_camera": {"object": str, "seed": int},
    "surface_mapper": {},
    "nbv_planner": {"objective": str, "planner": str},
}


def description(config: str, nodes: Sequence[str]) -> LaunchDescription:
    """Describe a launch of `nodes` with the parameter file `config` (a name below config/) as default."""
    unused = {name for node, names in _OVERRIDES.items() if node not in nodes for name in names}
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in _ARGUMENTS.items()
        if name not in unused
    ]
    file = DeclareLaunchArgument(
        "params_file", default_value=str(shared_file(f"config/{config}")),
        description="Parameter file (YAML) of the nodes.",
    )
    return LaunchDescription([file, *arguments, OpaqueFunction(function=_nodes, args=[list(nodes)])])


def replay_description() -> LaunchDescription:
    """Describe a launch in which a bag is played to mapper and planner.

    The mapper listens to the recorded goals, at which the recorded camera stood. The planner decides anew, and its
    goals go to `replay/goal_pose`; it goes on as long as it sends the camera where it went.
    """
    names = ("params_file", "namespace", "log_level", "objective", "planner", "exit_when_done")
    config = str(shared_file("config/robot.yaml"))
    described = {**_ARGUMENTS, "params_file": (config, "Parameter file (YAML) of the nodes; take the recorded one.")}
    arguments = [
        DeclareLaunchArgument("bag", description="Folder of the bag."),
        DeclareLaunchArgument("rate", default_value="1.0", description="How many times as fast as recorded."),
        DeclareLaunchArgument("delay", default_value="5.0", description="Seconds before the bag, for nodes to start."),
        *(DeclareLaunchArgument(name, default_value=described[name][0], description=described[name][1])
          for name in names),
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=_replay)])


def _replay(context: LaunchContext) -> list[ExecuteProcess]:
    given = _given(context, ("bag", "rate", "delay"))
    given["use_sim_time"] = "true"
    ends = [Shutdown(reason="the bag has ended")] if _truth("exit_when_done", given) else None
    planner = {"wait_for_start": False, "goal_subscribers": 0}
    return [
        play_process(given["bag"], given["namespace"], given["rate"], given["delay"], ends),
        _node("surface_mapper", given),
        _node("nbv_planner", given, planner, [("goal_pose", "replay/goal_pose")]),
    ]


def _given(context: LaunchContext, more: Sequence[str] = ()) -> dict[str, str]:
    """Values of the arguments by name; empty for what a launch file does not have.

    Raises:
        FileNotFoundError: the parameter file does not exist.
    """
    names = (*_ARGUMENTS, "params_file", *more)
    given = {name: LaunchConfiguration(name, default="").perform(context) for name in names}
    if not Path(given["params_file"]).is_file():
        raise FileNotFoundError(f"params_file: {given['params_file']} is not a file")
    return given


def _nodes(context: LaunchContext, names: Sequence[str]) -> list[ExecuteProcess]:
    given = _given(context)
    viewer = [_rviz(given)] if _truth("rviz", given) else []
    if not _truth("record", given):
        return [*(_node(name, given) for name in names), *viewer]
    others, sim_time = subscribers_awaited(given["params_file"]), _truth("use_sim_time", given)
    recorder = record_process(given["namespace"], given["bag_path"], others, use_sim_time=sim_time)
    # So nothing is missed, however long the recorder takes to start.
    waits = {"goal_subscribers": others + 1, "recorder": recorder_node()}
    return [recorder, *(_node(name, given, waits if name == "nbv_planner" else None) for name in names), *viewer]


def _node(
    name: str, given: dict[str, str], fixed: Mapping[str, Any] | None = None, remappings: Sequence[Any] = ()
) -> Node:
    """One node: parameter file first, then the arguments that were given, then what is fixed."""
    overrides: dict[str, Any] = {"use_sim_time": _truth("use_sim_time", given), **(fixed or {})}
    overrides.update(launch_respawn.state_parameters(name, given))
    typed = {key: _typed(kind, key, given) for key, kind in _OVERRIDES[name].items() if given[key]}
    overrides.update(_choice(typed, given["params_file"]) if name == "nbv_planner" else typed)
    ends, respawn = _truth("exit_when_done", given), _truth("respawn", given)
    if ends and name == "nbv_planner":
        overrides["exit_when_done"] = True
    return Node(
        package="nbv_planner",
        executable=name,
        name=name,
        namespace=given["namespace"],
        parameters=[given["params_file"], overrides],
        remappings=list(remappings),
        arguments=["--ros-args", "--log-level", given["log_level"], *enclave_arguments(name, given)],
        # Small factorisations are slower on several BLAS threads than on one.
        additional_env={"OPENBLAS_NUM_THREADS": "1"},
        output="screen",
        respawn=respawn,
        respawn_delay=launch_respawn.DELAY,
        on_exit=_end if ends else launch_respawn.check_exit if respawn else None,
    )


def _choice(named: Mapping[str, Any], params_file: str) -> dict[str, str]:
    """Planner and objective that the arguments name, beside the planner of the file."""
    return named_choice(named, planner_parameters(params_file).get("planner", PlannerSettings().planner))


def enclave_arguments(name: str, given: dict[str, str]) -> list[str]:
    """The enclave of a node below the launch's, as the generated policy has it."""
    return ["--enclave", f"{given['enclave'].rstrip('/')}/{name}"] if given["enclave"] else []


def _rviz(given: dict[str, str]) -> Node:
    """RViz in the nodes' namespace: its topic names are relative. Closing it leaves the nodes running."""
    return Node(
        package="rviz2",
        executable="rviz2",
        name="rviz",
        namespace=given["namespace"],
        parameters=[{"use_sim_time": _truth("use_sim_time", given)}],
        arguments=["--display-config", str(shared_file("rviz/nbv_planner.rviz"))],
        output="log",
    )


def _end(event: ProcessExited, context: LaunchContext) -> list[Shutdown]:
    """End the launch when the planner is done; when any node fails for good, with exit code 1.

    Raises:
        RuntimeError: the node has failed and is not started again, or would fail in the same way.
    """
    if context.is_shutdown:
        return []
    if event.returncode and _truth("respawn", context.launch_configurations):
        return launch_respawn.check_exit(event, context)
    if event.returncode:
        raise RuntimeError(f"{event.process_name} has ended with exit code {event.returncode}")
    return [Shutdown(reason=f"{event.process_name} has ended")]


def _typed(kind: type, name: str, given: dict[str, str]) -> Any:
    try:
        return kind(given[name])
    except ValueError as error:
        raise ValueError(f"{name}: {given[name]!r} must be an integer") from error


def _truth(name: str, given: Mapping[str, str]) -> bool:
    text = (given.get(name) or "false").lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}: {given[name]!r} must be true or false")
    return text == "true"
