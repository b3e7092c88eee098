"""What a launch description would start."""

from __future__ import annotations

from collections.abc import Iterator

from launch.actions import ExecuteProcess
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription


def processes(description: LaunchDescription, context: LaunchContext) -> list[ExecuteProcess]:
    """Processes in order, nodes among them; what is renamed is so where it holds, also within a group."""
    return [found for entity in description.entities for found in _below(entity, context)]


def _below(entity, context: LaunchContext) -> Iterator[ExecuteProcess]:
    for action in entity.visit(context) or []:
        if isinstance(action, Node):
            action._perform_substitutions(context)
        if isinstance(action, ExecuteProcess):
            yield action
        else:
            yield from _below(action, context)
