"""The executables of the nodes. ROS is imported late, so that a signal during start-up ends them
cleanly.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from functools import partial
from itertools import pairwise

from nbv_planner.errors import NbvPlannerError
from nbv_planner.system import signals_end_process

NODES = ("depth_camera", "surface_mapper", "nbv_planner")
_CLASSES = {
    "depth_camera": "DepthCamera",
    "surface_mapper": "SurfaceMapperNode",
    "nbv_planner": "NbvPlannerNode",
    "turntable": "TurntableNode",
    "scan_maker": "ScanMakerNode",
}
_IN_SPACE = {
    "depth_camera": ("solid_camera", "SolidCamera"),
    "surface_mapper": ("solid_mapper", "SolidMapper"),
    "nbv_planner": ("solid_planner", "SolidPlanner"),
}
"""Module and class by node, where its parameters have `dimension: 3`."""
_HELP = """\
{name} is a ROS 2 node of the package nbv_planner; it runs until Ctrl-C:
  ros2 run nbv_planner {name} --ros-args --params-file FILE -p NAME:=VALUE
  (-p comes after FILE; where FILE has a section of the node, write -p {name}:NAME:=VALUE)
  ros2 launch nbv_planner planner.launch.py --show-args
Parameters: docs/reference/parameters.md, or nbv-planner show parameters
The command is nbv-planner, with a hyphen: nbv-planner --help
"""


def _run(name: str) -> None:
    arguments = sys.argv[1:]
    while "--ros-args" in arguments:  # those of ROS end with --
        begin = arguments.index("--ros-args")
        end = arguments.index("--", begin) if "--" in arguments[begin:] else len(arguments)
        del arguments[begin : end + 1]
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(_HELP.format(name=name))
        sys.exit(0)
    if arguments:
        hint = (
            f"{name} is a node and takes only --ros-args ... (see {name} --help); the command is"
            " nbv-planner"
        )
        sys.stderr.write(f"{name}: error: unexpected argument {arguments[0]!r}; {hint}\n")
        sys.exit(2)
    _start(name)


def _start(name: str) -> None:
    with signals_end_process(0):
        from nbv_planner.ros.core.running import run_node
        from nbv_planner.ros.core.worker import end_process

        own = _IN_SPACE[name] if is_in_space(name) else (name, _CLASSES[name])
        module = importlib.import_module(f"nbv_planner.ros.nodes.{own[0]}")
    try:
        end_process(run_node(getattr(module, own[1])))
    except KeyboardInterrupt:  # before the node installs its signal handlers
        sys.exit(0)


def is_in_space(name: str) -> bool:
    """Whether the parameters that the command line gives a node are those of one in space."""
    from nbv_planner.episode.parameter_files import values_for

    dimension = 2
    for flag, value in pairwise(sys.argv):
        if flag == "--params-file":
            with suppress(NbvPlannerError):  # the node says what is wrong with it
                dimension = values_for(value, name).get("dimension", dimension)
        elif flag in ("-p", "--param") and value.rpartition(":=")[0].endswith("dimension"):
            dimension = 3 if value.endswith(":=3") else dimension
    return dimension == 3 and name in _IN_SPACE


depth_camera, surface_mapper, nbv_planner, turntable, scan_maker = (
    partial(_run, name) for name in _CLASSES
)
"""Run the node of that name."""


def main() -> None:
    """Run the node that the first argument names."""
    if len(sys.argv) < 2 or sys.argv[1] not in _CLASSES:
        sys.exit(
            f"usage: python -m nbv_planner.ros.executables {{{','.join(_CLASSES)}}} [--ros-args"
            " ...]"
        )
    _run(sys.argv.pop(1))


if __name__ == "__main__":
    main()
