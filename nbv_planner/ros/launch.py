"""What the launch files share: arguments, nodes, their restart, and recording."""

from __future__ import annotations

import atexit
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    GroupAction,
    OpaqueFunction,
    Shutdown,
)
from launch.events.process import ProcessExited
from launch.logging import get_logger
from launch.substitutions import LaunchConfiguration, TextSubstitution
from launch_ros.actions import Node, SetRemap
from launch_ros.ros_adapters import get_ros_node
from launch_ros.utilities import make_namespace_absolute, prefix_namespace
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient

from launch import LaunchContext, LaunchDescription
from nbv_planner.episode.messages import RECORDED_IN_SPACE, RECORDED_TOPICS, full_name
from nbv_planner.episode.parameter_files import (
    Parameters,
    lay_over,
    load_parameters,
    shared_file,
    values_for,
)
from nbv_planner.episode.parameters import STATE_FILES, PlannerSettings
from nbv_planner.errors import ConfigFileError
from nbv_planner.files.located_yaml import dumped, read_located
from nbv_planner.mapping.scan_making import SCAN_SOURCES
from nbv_planner.planning.objectives import EXPECTED, OBJECTIVE_PLUGINS, TRUTH_OBJECTIVES
from nbv_planner.planning.planners import planner_names
from nbv_planner.planning.planners.decision_settings import PLANNER_CHOICE, named_choice
from nbv_planner.planning.view_space import VIEW_SPACES
from nbv_planner.ros.io.recorder import NAME
from nbv_planner.session.questions import SessionSettings
from nbv_planner.system import at_home, python_command
from nbv_planner.thesis import OBJECTIVES

PLANNING = ("surface_mapper", "nbv_planner")
Renaming = tuple[str, str]
"""A topic's old and new name."""
_QOS_FILE = "config/rosbag/record_qos.yaml"
# What ends writes what it has when it receives SIGINT; seconds until the next, harder signal.
_PATIENCE = "15"


def has_rosbag2() -> bool:
    """Whether `ros2 bag` is installed."""
    return find_spec("ros2bag") is not None


def names_here(context: LaunchContext, namespace: str) -> tuple[str, list[Renaming]]:
    """Full namespace of the nodes below that of an including launch, and the rules by which it
    renames topics.
    """
    configurations = context.launch_configurations
    full = make_namespace_absolute(prefix_namespace(configurations.get("ros_namespace"), namespace))
    return full, list(configurations.get("ros_remaps", []))


def record_process(
    namespace: str,
    renamed: Sequence[Renaming],
    bag_path: str,
    subscribers: int,
    *,
    use_sim_time: bool,
    space: bool = False,
) -> ExecuteProcess:
    """Record the topics of the nodes in `namespace`: by `ros2 bag`, or where that is missing by
    this package.

    Their namespace is full, and their topics are `renamed`. Without `bag_path` the bag has date and
    time in its name. The planner waits for so many `subscribers` when the recorder has ended.
    """
    path = Path(bag_path or datetime.now().strftime("bag_%Y%m%d_%H%M%S"))
    planner = full_name("nbv_planner", namespace)
    on_exit = partial(_without_recorder, planner, subscribers, None if path.exists() else path)
    if not has_rosbag2():
        rules = [f"--remap={old}:={new}" for old, new in renamed]
        command = [
            *python_command("nbv_planner.cli.main"),
            "bag",
            "record",
            "--namespace",
            namespace,
            *(["--space"] if space else []),
            *rules,
        ]
        return process("recorder", [*command, "--out", str(path)], on_exit=on_exit)
    topics = RECORDED_IN_SPACE if space else RECORDED_TOPICS
    names = "|".join(re.escape(topic.full_name(namespace, renamed)) for topic in topics)
    # By a pattern: the option for lists of names has another form in each distribution.
    command = [
        "ros2",
        "bag",
        "record",
        "--storage",
        "mcap",
        "--output",
        str(path),
        "--regex",
        f"^({names})$",
        "--qos-profile-overrides-path",
        str(qos_overrides(namespace, renamed)),
    ]
    return process(
        "recorder", command + (["--use-sim-time"] if use_sim_time else []), on_exit=on_exit
    )


def _without_recorder(
    planner: str, subscribers: int, bag: Path | None, event: ProcessExited, context: LaunchContext
) -> None:
    """Log what is lost, make the launch fail at its end, and release a planner that still waits for
    the recorder.
    """
    if context.is_shutdown:
        return
    kept = f"messages until then are in {bag}" if bag and bag.exists() else "nothing was recorded"
    get_logger(event.process_name).error(
        f"RECORDING STOPPED: the recorder has ended with exit code {event.returncode}; {kept}"
    )
    context.asyncio_loop.call_exception_handler(
        {"message": "This launch will end with exit code 1."}
    )
    node = get_ros_node(context)
    client = AsyncParameterClient(node, planner)
    changes = [Parameter("recorder", value=""), Parameter("goal_subscribers", value=subscribers)]

    def release() -> None:
        if client.services_are_ready():
            timer.cancel()
            client.set_parameters(changes)

    timer = node.create_timer(0.2, release)


def qos_overrides(namespace: str, renamed: Sequence[Renaming]) -> Path:
    """A file of the shipped overrides for topics, with their names as they are in `namespace`.

    Raises:
        ConfigFileError: the shipped file is not installed.
    """
    overrides = read_located(shared_file(_QOS_FILE))[1].plain()
    here = {
        full_name(name.lstrip("/"), namespace, renamed): dict(qos)
        for name, qos in overrides.items()
    }
    return _written("record_qos_", here)


def _written(prefix: str, content: Any) -> Path:
    """Write a file that is there as long as this process, for nodes that are restarted."""
    with tempfile.NamedTemporaryFile(
        "w", prefix=prefix, suffix=".yaml", delete=False, encoding="utf-8"
    ) as file:
        file.write(dumped(content))
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return Path(file.name)


def planner_parameters(given: Mapping[str, str], node_name: str = "nbv_planner") -> dict[str, Any]:
    """Parameters of the planner, or another node, in the files; none of a file with unknown
    content, left unread.
    """
    found: Parameters = {node_name: {}}
    for file in filter(None, (given["shipped"], given["params_file"])):
        with suppress(ConfigFileError):
            lay_over(found, load_parameters(file))
    return found[node_name]


def _given_values(given: Mapping[str, str], name: str) -> dict[str, Any]:
    """Values of the given file for a node; none of a file that only ROS can read."""
    with suppress(ConfigFileError):
        return values_for(given["params_file"], name)
    return {}


def process(name: str, command: list[str], on_exit: object = None) -> ExecuteProcess:
    """A command whose output is shown, with time to write its buffers when the launch ends."""
    return ExecuteProcess(
        cmd=[[TextSubstitution(text=part)] for part in command],
        name=name,
        output="screen",
        on_exit=on_exit,
        sigterm_timeout=_PATIENCE,
    )


# Seconds before a node is restarted, unless the launch ends first.
_DELAY = 1.0
# Exit code of a node whose parameters are not allowed.
_REFUSED = 2
_LAUNCHED = time.strftime("launch %Y-%m-%d %H:%M:%S")
_FROM_FILE = "; empty: as in params_file"
ARGUMENTS = {
    "namespace": ("", "Namespace of the nodes and their topics."),
    "use_sim_time": ("false", "Take the time from /clock (true, false)."),
    "log_level": ("info", "Lowest severity that is logged (debug, info, warn, error, fatal)."),
    "objective": (
        "",
        (
            f"Objective: {', '.join([*OBJECTIVES, EXPECTED, *OBJECTIVE_PLUGINS.names])}"
            f" ({', '.join(TRUTH_OBJECTIVES)} know the object: nbv-planner simulate only);"
            f" that of planner greedy where the planner has none{_FROM_FILE}."
        ),
    ),
    "planner": ("", f"Planner: {', '.join(planner_names())}{_FROM_FILE}."),
    "view_space": (
        "",
        (
            f"Where the camera may stand: {', '.join(VIEW_SPACES)} (around the object, at distances"
            " from annulus_min to annulus_max, looking past its centre too; the poses of"
            f" view_file){_FROM_FILE}."
        ),
    ),
    "map": (
        "",
        f"Map of the ground (YAML file as of map_server), whose occupied cells the robot"
        f" avoids{_FROM_FILE}.",
    ),
    "world": (
        "",
        f"File with the position of the object, walls and pose errors{_FROM_FILE}.",
    ),
    "radius_max": (
        "",
        f"Greatest radius of the object, m{_FROM_FILE}; lengths not given there are derived from"
        f" it.",
    ),
    "view_distance": ("", f"Distance of the camera from the centre, m{_FROM_FILE}."),
    "noise_std": ("", f"Standard deviation of a range, m{_FROM_FILE}."),
    "max_views": ("", f"Number of views after which it ends{_FROM_FILE}."),
    "object": ("", f"True object, for example polygon:star or ellipse:a=6,b=4{_FROM_FILE}."),
    "seed": ("", f"Seed of the simulated sensor noise{_FROM_FILE}."),
    "record": (
        "false",
        "Record a bag of all topics that show the episode (true, false).",
    ),
    "bag_path": ("", "Folder of the bag that is recorded; empty: bag_<date>_<time>."),
    "exit_when_done": ("false", "End the launch when the planner is done (true, false)."),
    "respawn": ("false", "Restart a node that has failed or was killed (true, false)."),
    "state_folder": (
        "",
        (
            "Folder in which the nodes save their state, to resume it after a restart; empty: as in"
            " params_file."
        ),
    ),
    "episode": (
        "",
        "Name of the episode whose saved state is resumed; empty: a new one at each launch.",
    ),
    "regions": (
        "",
        f"File of regions with weights, if only parts of the outline matter{_FROM_FILE}.",
    ),
    "prior_outline": (
        "",
        f"Outline that the object should have, for example that of the cut below{_FROM_FILE}.",
    ),
    "outline_folder": (
        time.strftime("results/launch_%Y%m%d_%H%M%S"),
        "Folder for outline and map at the end, unless params_file names one; empty: none.",
    ),
    "enclave": (
        "",
        "SROS 2 enclave that contains those of the nodes, for example /nbv_planner; empty: none.",
    ),
    "scan_source": (
        "",
        (
            f"Messages of the sensor ({', '.join(SCAN_SOURCES)}): scan_maker converts all but"
            f" laser_scan into scans{_FROM_FILE}."
        ),
    ),
    "rviz": ("false", "Start RViz too, with the displays of this package (true, false)."),
}
"""Launch arguments by name: default and description."""


def _whole(path: str) -> str:
    """The absolute path, which does not depend on where a node is started."""
    return str(at_home(path).resolve())


# Arguments that are paths of files, by the parameter that takes them.
_FILES = {"map": "ground_map", "world": "world_file", "regions": "region_file"}
_SCENE = {"radius_max": float, "view_distance": float}
_MAP = {"map": _whole}
_OVERRIDES: dict[str, dict[str, Callable[[str], Any]]] = {
    "depth_camera": {
        "object": str,
        "world": _whole,
        "seed": int,
        "noise_std": float,
        **_MAP,
        **_SCENE,
    },
    "surface_mapper": {"noise_std": float, "prior_outline": _whole, **_MAP, **_SCENE},
    "nbv_planner": {
        "objective": str,
        "planner": str,
        "view_space": str,
        "max_views": int,
        "regions": _whole,
        **_MAP,
        **_SCENE,
    },
    "turntable": _SCENE,
    "scan_maker": {"scan_source": str, **_SCENE},
}


def declared(arguments: Mapping[str, tuple[str, str]]) -> list[DeclareLaunchArgument]:
    """Declarations of arguments by name, each with default and description."""
    return [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in arguments.items()
    ]


def parameter_file(config: str, more: str = "") -> dict[str, tuple[str, str]]:
    """The argument for the parameter file, by default `config` (a name below config/)."""
    return {
        "params_file": (
            str(shared_file(f"config/{config}")),
            f"Parameter file (YAML) of the nodes{more}.",
        )
    }


def description(
    config: str,
    nodes: Sequence[str],
    topics: Sequence[str] = (),
    *,
    arguments: Mapping[str, tuple[str, str]] | None = None,
    beside: Sequence[Any] = (),
) -> LaunchDescription:
    """Describe a launch of `nodes`, and of scan_maker where asked for, with `<topic>_topic` for
    each of the `topics`.

    A given parameter file is laid over the shipped `config` (a name below config/). Further
    `arguments` have a default and a description each; `beside` is what else is started.
    """
    able = nodes if "depth_camera" in nodes else [*nodes, "scan_maker"]
    unused = {name for names in _OVERRIDES.values() for name in names}
    unused -= {name for node in able for name in _OVERRIDES.get(node, ())}
    used = {name: value for name, value in ARGUMENTS.items() if name not in unused}
    named = {
        f"{topic.strip('/')}_topic": (topic, f"Name to which the topic {topic} is remapped.")
        for topic in topics
    }
    renamed = [
        SetRemap(src=topic, dst=LaunchConfiguration(name))
        for name, topic in zip(named, topics, strict=True)
    ]
    file = parameter_file(
        config, f"; parameters that it does not name are as in the shipped {config}"
    )
    start = OpaqueFunction(function=_nodes, args=[file["params_file"][0], list(nodes)])
    started = GroupAction([*renamed, *beside, start]) if renamed else start
    return LaunchDescription([*declared({**file, **used, **named, **(arguments or {})}), started])


def given_arguments(context: LaunchContext, more: Sequence[str] = ()) -> dict[str, str]:
    """Values of the arguments by name; empty for what a launch file does not have.

    Raises:
        ValueError: an argument of version 1 is given, which launch itself would ignore.
        FileNotFoundError: the parameter file does not exist.
    """
    if "room" in context.launch_configurations:
        raise ValueError("room:= is now world:=, which takes the same file")
    names = (*ARGUMENTS, "params_file", *more)
    given = {name: LaunchConfiguration(name, default="").perform(context) for name in names} | {
        "shipped": ""
    }
    if not Path(given["params_file"]).is_file():
        raise FileNotFoundError(f"params_file: {given['params_file']} is not a file")
    return given


def _nodes(context: LaunchContext, shipped: str, names: Sequence[str]) -> list[ExecuteProcess]:
    given = {**given_arguments(context), "shipped": shipped}
    more = [rviz(given)] if is_true("rviz", given) else []
    source = given["scan_source"] or _given_values(given, "scan_maker").get(
        "scan_source", "laser_scan"
    )
    if source != "laser_scan" and "depth_camera" not in names:
        more.append(node("scan_maker", given))
    if not is_true("record", given):
        return [*(node(name, given) for name in names), *more]
    parameters = planner_parameters(given)
    others = int(parameters.get("goal_subscribers", SessionSettings().goal_subscribers))
    names_of_topics = names_here(context, given["namespace"])
    sim_time = is_true("use_sim_time", given)
    recorder = record_process(
        *names_of_topics,
        given["bag_path"],
        others,
        use_sim_time=sim_time,
        space=is_space(given),
    )
    # No message is lost, however long the recorder takes to start.
    waits = {
        "goal_subscribers": others + 1,
        "recorder": "rosbag2_recorder" if has_rosbag2() else NAME,
    }
    return [
        recorder,
        *(node(name, given, waits if name == "nbv_planner" else None) for name in names),
        *more,
    ]


def node(
    name: str,
    given: dict[str, str],
    fixed: Mapping[str, Any] | None = None,
    remappings: Sequence[Any] = (),
) -> Node:
    """One node: shipped parameter file first, then the given one, the given arguments, and the
    fixed parameters.
    """
    overrides: dict[str, Any] = {"use_sim_time": is_true("use_sim_time", given), **(fixed or {})}
    if given["state_folder"] and name in STATE_FILES:
        folder = Path(_whole(given["state_folder"]))
        folder.mkdir(parents=True, exist_ok=True)
        parameter, file = STATE_FILES[name]
        overrides.update({parameter: str(folder / file), "episode": given["episode"] or _LAUNCHED})
    if name == "surface_mapper" and (folder_here := _outline_folder(given)):
        overrides["outline_folder"] = folder_here
    typed = {
        _FILES.get(key, key): _typed(key, given[key], kind)
        for key, kind in _OVERRIDES.get(name, {}).items()
        if given[key]
    }
    chosen = {}
    if name == "nbv_planner":
        chosen["planner"] = planner_parameters(given).get("planner", PlannerSettings().planner)
        typed |= named_choice(
            {key: typed[key] for key in PLANNER_CHOICE if key in typed}, chosen["planner"]
        )
    files = [given["params_file"]]
    if given["shipped"] not in ("", *files):
        # Under `/**`: ROS goes by section before it goes by file, and any section of the given file
        # is to win.
        base = {"/**": {"ros__parameters": {**values_for(given["shipped"], name), **chosen}}}
        files.insert(0, str(_written("shipped_", base)))
    overrides.update(typed)
    ends = is_true("exit_when_done", given)
    respawn = is_true("respawn", given)
    if ends and name == "nbv_planner":
        overrides["exit_when_done"] = True
    # That of a node is below the launch's, as the generated policy has it.
    enclave = ["--enclave", f"{given['enclave'].rstrip('/')}/{name}"] if given["enclave"] else []
    return Node(
        package="nbv_planner",
        executable=name,
        name=name,
        namespace=given["namespace"],
        output="screen",
        parameters=[*files, overrides],
        remappings=list(remappings),
        arguments=["--ros-args", "--log-level", given["log_level"], *enclave],
        # Small factorisations are slower on several BLAS threads than on one.
        additional_env={"OPENBLAS_NUM_THREADS": "1"},
        sigterm_timeout=_PATIENCE,
        respawn=respawn,
        respawn_delay=_DELAY,
        on_exit=partial(_on_exit, ends, respawn),
    )


def _typed(name: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        expected = "an integer" if kind is int else "a number"
        raise ValueError(f"{name}: {text!r} must be {expected}") from error


def _outline_folder(given: Mapping[str, str]) -> str:
    """Where the mapper writes the outline: the argument, unless that is the default and a file
    names a folder.
    """
    asked = given["outline_folder"]
    in_file = planner_parameters(given, "surface_mapper").get("outline_folder")
    left = asked == ARGUMENTS["outline_folder"][0] and in_file
    return _whole(asked) if asked and not left else ""


def is_space(given: Mapping[str, str]) -> bool:
    """Whether the nodes are those in space, by the shipped or the given parameter file."""
    shipped = Path(given["shipped"]).parent.name == "space"
    return shipped or _given_values(given, "nbv_planner").get("dimension") == 3


def rviz(given: dict[str, str]) -> Node:
    """RViz in the nodes' namespace: its topic names are relative. Closing it leaves the nodes
    running.
    """
    layout = "solid" if is_space(given) else "nbv_planner"
    return Node(
        package="rviz2",
        executable="rviz2",
        name="rviz",
        namespace=given["namespace"],
        output="log",
        parameters=[{"use_sim_time": is_true("use_sim_time", given)}],
        arguments=["--display-config", str(shared_file(f"rviz/{layout}.rviz"))],
    )


def _on_exit(
    ends: bool, respawn: bool, event: ProcessExited, context: LaunchContext
) -> list[Shutdown]:
    """After a node has ended: the launch `ends` with it, unless `respawn` restarts the node after a
    failure.

    Raises:
        RuntimeError: the node has failed and is not restarted, or would fail again in the same way.
    """
    if not context.is_shutdown and respawn and event.returncode == _REFUSED:
        raise RuntimeError(f"{event.process_name} has refused its parameters (see its output)")
    if context.is_shutdown or not ends or (respawn and event.returncode):
        return []
    if event.returncode:
        raise RuntimeError(f"{event.process_name} has ended with exit code {event.returncode}")
    return [Shutdown(reason=f"{event.process_name} has ended")]


def is_true(name: str, given: Mapping[str, str]) -> bool:
    """Whether an argument is true.

    Raises:
        ValueError: it is neither true nor false.
    """
    text = (given.get(name) or "false").lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}: {given[name]!r} must be true or false")
    return text == "true"
