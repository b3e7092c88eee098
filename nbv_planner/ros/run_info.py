"""The `run_info` topic: all parameters of all nodes and the versions, so that a bag explains itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from rcl_interfaces.msg import ParameterEvent
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events
from std_msgs.msg import String

from nbv_planner.evaluation.records import versions
from nbv_planner.ros import qos


class RunInfo:
    """Collects the parameters of the other nodes as they appear, follows changes, and publishes what is known."""

    def __init__(self, node: Node, others: Sequence[str]) -> None:
        """Start collecting; `others` are names of nodes in the same namespace."""
        self._node = node
        self._publisher = node.create_publisher(
            String, "run_info", qos.latched(), qos_overriding_options=qos.overridable()
        )
        self._known: dict[str, dict[str, Any]] = {node.get_name(): self._own_parameters()}
        self._others = tuple(others)
        self._clients = {name: _ParameterClients(node, name) for name in others}
        self._asked: set[str] = set()
        self._publish()
        node.create_subscription(ParameterEvent, "/parameter_events", self._on_event, qos_profile_parameter_events)
        self._timer = node.create_timer(0.5, self._ask)

    def _own_parameters(self) -> dict[str, Any]:
        found = self._node.get_parameters_by_prefix("")
        return {name: _plain(parameter.value) for name, parameter in sorted(found.items())}

    def _ask(self) -> None:
        """Ask each node that has appeared for its parameter names; what has been answered needs no client any more."""
        for name, client in list(self._clients.items()):
            if name in self._known:
                self._clients.pop(name).destroy()
            elif name not in self._asked and client.are_ready():
                self._asked.add(name)
                names = client.names.call_async(ListParameters.Request())
                names.add_done_callback(lambda future, name=name: self._got_names(name, future))
        if not self._clients:
            self._timer.cancel()

    def _got_names(self, name: str, future: Any) -> None:
        names = sorted(future.result().result.names)
        values = self._clients[name].values.call_async(GetParameters.Request(names=names))
        values.add_done_callback(lambda done: self._got_values(name, names, done))

    def _got_values(self, name: str, names: list[str], future: Any) -> None:
        values = [_plain(parameter_value_to_python(value)) for value in future.result().values]
        self._known[name] = dict(zip(names, values, strict=True))
        self._publish()

    def _on_event(self, event: ParameterEvent) -> None:
        """Take in a change at run time; until a node has been asked, it is in what it will answer."""
        prefix = self._node.get_namespace().rstrip("/") + "/"
        known = self._known.get(event.node.removeprefix(prefix))
        changes = {
            changed.name: _plain(parameter_value_to_python(changed.value))
            for changed in (*event.new_parameters, *event.changed_parameters)
        }
        if known is not None and {**known, **changes} != known:
            known.update(changes)
            self._publish()

    def _publish(self) -> None:
        missing = [name for name in self._others if name not in self._known]
        info = {"versions": versions(), "nodes": self._known, "nodes_not_found_yet": missing}
        self._publisher.publish(String(data=yaml.safe_dump(info, sort_keys=False)))


class _ParameterClients:
    """The two services that are needed: every entity of a node costs time whenever it waits, and rclpy's has six."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self.names: Client = node.create_client(ListParameters, f"{name}/list_parameters")
        self.values: Client = node.create_client(GetParameters, f"{name}/get_parameters")

    def are_ready(self) -> bool:
        return self.names.service_is_ready() and self.values.service_is_ready()

    def destroy(self) -> None:
        self._node.destroy_client(self.names)
        self._node.destroy_client(self.values)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str, type(None))) else list(value)
