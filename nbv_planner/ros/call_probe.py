"""How long the nodes take to answer an operator while they work."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

from lifecycle_msgs.srv import GetState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool

# Seconds between two calls: often enough for a 99th percentile within minutes, seldom enough to be no load.
_PERIOD = 0.25


@dataclass(frozen=True, eq=False)
class Call:
    """A call that changes nothing.

    Attributes:
        kind: type of the service.
        service: its name.
        request: what is asked.
        milliseconds: how long the answers took that have come.
    """

    kind: type
    service: str
    request: Any
    milliseconds: list[float] = field(default_factory=list)


class CallProbe:
    """Makes calls of all kinds in turn, whether or not earlier ones have been answered, and notes how long they take.

    From the call to the answer in the caller, whose own executor takes a part of a millisecond of it.

    Attributes:
        calls: by what is asked.
        sent: number of calls made.
    """

    def __init__(self, node: Node) -> None:
        """Begin calling as soon as the services are there."""
        same = Parameter(
            name="goal_timeout", value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=60.0)
        )
        self.calls = {
            "pause": Call(SetBool, "nbv_planner/pause", SetBool.Request(data=False)),
            "set_parameter": Call(
                SetParameters, "nbv_planner/set_parameters", SetParameters.Request(parameters=[same])
            ),
            "planner_state": Call(GetState, "nbv_planner/get_state", GetState.Request()),
            "get_parameter": Call(
                GetParameters, "surface_mapper/get_parameters", GetParameters.Request(names=["grid_size"])
            ),
            "mapper_state": Call(GetState, "surface_mapper/get_state", GetState.Request()),
        }
        self.sent = 0
        self._clients = {name: node.create_client(call.kind, call.service) for name, call in self.calls.items()}
        self._turn = itertools.cycle(self.calls)
        node.create_timer(_PERIOD, self._next)

    def forget(self) -> None:
        """Begin anew: what has come so far was the warm-up."""
        self.sent = 0
        for call in self.calls.values():
            call.milliseconds.clear()

    def _next(self) -> None:
        name = next(self._turn)
        if self._clients[name].service_is_ready():
            self._send(name)

    def _send(self, name: str) -> None:
        call, began = self.calls[name], time.monotonic()
        self.sent += 1

        def answered(_: Future) -> None:
            call.milliseconds.append(1e3 * (time.monotonic() - began))

        self._clients[name].call_async(call.request).add_done_callback(answered)
