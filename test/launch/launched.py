"""What a launch file would start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml
from launch.actions import ExecuteProcess
from launch.launch_description_sources import get_launch_description_from_python_launch_file
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription

ROOT = Path(__file__).parents[2]


def described(name: str) -> LaunchDescription:
    return get_launch_description_from_python_launch_file(
        str(ROOT / "launch" / f"{name}.launch.py")
    )


def started(name: str, **given: str) -> tuple[list[ExecuteProcess], dict[str, Node]]:
    """What a launch file starts with these arguments: processes that are no nodes, and nodes by
    executable.
    """
    context = LaunchContext(argv=[])
    context.launch_configurations.update(given)
    found = [action for entity in described(name).entities for action in _below(entity, context)]
    others = [action for action in found if not isinstance(action, Node)]
    return others, {
        str(action.node_executable): action for action in found if isinstance(action, Node)
    }


def nodes(name: str, **given: str) -> dict[str, Node]:
    return started(name, **given)[1]


def files_of(node: Node) -> list[str]:
    """Parameter files of a node in order."""
    return [argument for argument, is_file in node._Node__expanded_parameter_arguments if is_file]


def parameters(node: Node) -> dict:
    """What the last parameter file of a node, made from the arguments, says."""
    (section,) = yaml.safe_load(Path(files_of(node)[-1]).read_text()).values()
    return section["ros__parameters"]


def _below(entity, context: LaunchContext) -> Iterator[ExecuteProcess]:
    """Processes in order, nodes among them; what is renamed is so where it holds, also within a
    group.
    """
    for action in entity.visit(context) or []:
        if isinstance(action, Node):
            action._perform_substitutions(context)
        if isinstance(action, ExecuteProcess):
            yield action
        else:
            yield from _below(action, context)
