"""Subscribes to the nodes of an episode to log or to check it, and calls their services; publishes
nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from nbv_planner.clouds import sensor_messages
from nbv_planner.clouds.space_messages import DepthReader
from nbv_planner.episode import messages
from nbv_planner.episode.log import READERS, READERS_IN_SPACE, EpisodeLog
from nbv_planner.episode.run_info import RunParameters, parameters_from_msg
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    OpticalPoses,
    SpaceMapperParameters,
)
from nbv_planner.errors import InputRejectedError, NbvPlannerError
from nbv_planner.report.preflight import System, settings_as_declared
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.graph import importable, type_named
from nbv_planner.ros.core.running import separate_context
from nbv_planner.ros.io.conversions import POSE_TYPES
from nbv_planner.ros.solid_check import depth_topics
from nbv_planner.settings import from_mapping
from nbv_planner.view.live import LiveEpisode
from nbv_planner.world.camera_mount import PoseSettings


class EpisodeListener(Node):
    """Passes messages to a log; unusable ones are skipped, with one warning for each reason.

    Latched topics are subscribed to as latched, so that a listener started late still gets them.
    """

    def __init__(
        self,
        name: str,
        log: EpisodeLog,
        others: Callable[[int], QoSProfile] = qos.sensor_data,
        without: Collection[str] = (),
        **kwargs: Any,
    ) -> None:
        """Open the topics, below the namespace of this node, except those `without` a subscription.

        `others` gives the profile by depth of the topics that are not latched; best effort never
        slows a publisher down.
        """
        super().__init__(name, **kwargs)
        self.log = log
        self._rejected: set[str] = set()
        for topic in importable(messages.RECORDED_TOPICS):
            if topic.name not in (*without, messages.DIAGNOSTICS):
                profile = (qos.latched if topic.latched else others)(topic.depth)
                kind = type_named(topic.type)
                self.create_subscription(
                    kind, topic.name, partial(self._on_message, topic.name), profile
                )

    def _on_message(self, topic: str, msg: Any) -> None:
        try:
            self.log.take(topic, msg)
        except InputRejectedError as error:
            if f"{topic} {error.reason}" not in self._rejected:
                self._rejected.add(f"{topic} {error.reason}")
                self.get_logger().warning(f"{topic}: left out ({error.reason}): {error}")


@contextmanager
def listening(live: LiveEpisode, namespace: str, domain: int | None) -> Iterator[None]:
    """Pass on the messages of the nodes in `namespace` in a separate thread; Ctrl-C is left to the
    caller.

    `domain` is the ROS domain id, None for that of the environment.
    """
    with separate_context(domain) as executor:
        executor.add_node(EpisodeListener(f"nbv_view_{os.getpid()}", live, namespace=namespace))
        thread = threading.Thread(target=executor.spin, name="listener", daemon=True)
        thread.start()
        try:
            yield
        finally:
            executor.shutdown()
            thread.join()


# Part of the time of a check for which it waits for run_info, which has the names of the topics.
_FOR_NAMES = 0.4


class SystemListener(Node):
    """Collects what the pre-flight check judges."""

    def __init__(self, given: RunParameters | None, **kwargs: Any) -> None:
        """Listen for the parameters and the diagnostics; `given` parameters count until run_info
        has come.
        """
        super().__init__(f"nbv_check_{os.getpid()}", **kwargs)
        self.system = System()
        self._given = given
        self.create_subscription(String, messages.RUN_INFO, self._on_run_info, qos.latched(10))
        kind = type_named(messages.DIAGNOSTIC_ARRAY)
        self.create_subscription(
            kind, messages.DIAGNOSTICS, self._on_diagnostics, qos.sensor_data(100)
        )

    def _on_run_info(self, msg: String) -> None:
        # The check says that it judges by the parameters of run_info from here on.
        with suppress(InputRejectedError):
            self.system.parameters = parameters_from_msg(msg)
        if "use_sim_time: true" in msg.data:
            self.set_parameters([Parameter("use_sim_time", value=True)])

    def _on_diagnostics(self, msg: Any) -> None:
        prefix = self.get_namespace().strip("/")
        for status in msg.status:
            space, _, name = status.name.rpartition("/")
            if space == prefix:
                self.system.nodes[name] = status.level == status.OK, status.message

    def open_topics(self) -> None:
        """Subscribe to scans and poses, by the names and types that the parameters give."""
        known = self.system.parameters or self._given or RunParameters({})
        planner = known.nodes.get("nbv_planner") or known.nodes.get("surface_mapper") or {}
        self._poses = from_mapping(OpticalPoses if known.in_space else PoseSettings, planner)
        types = {messages.SCAN: type_named(messages.LASER_SCAN)}
        self._readers: dict[str, Callable[[Any], Any]] = dict(READERS)
        if known.in_space:
            mapper = settings_as_declared(
                known, SOLID_NODES, SpaceMapperParameters, "surface_mapper"
            )
            reader = DepthReader(known.config_in_space().sensor)
            kinds = {one.name: one.type for one in messages.RECORDED_IN_SPACE}
            types = {name: type_named(kinds[name]) for name in reversed(depth_topics(mapper))}
            self._readers = READERS_IN_SPACE | {name: partial(reader.take, name) for name in types}
        types[messages.CAMERA_POSE] = POSE_TYPES[self._poses.pose_type]
        self._names = {
            name: known.topics.get(name, self.resolve_topic_name(name))
            for name in (*types, messages.GOAL_POSE)
        }
        for topic, kind in types.items():
            self.create_subscription(
                kind, self._names[topic], partial(self._on_message, topic), qos.sensor_data(100)
            )

    def _on_message(self, topic: str, msg: Any) -> None:
        try:
            value = self._readers[topic](msg)
        except InputRejectedError as error:
            self.system.refused.setdefault(topic, []).append(f"{error.reason}: {error}")
            return
        if value is None:  # a calibration
            return
        stamp = sensor_messages.to_nanoseconds(msg.header.stamp)
        age = (self.get_clock().now().nanoseconds - stamp) * 1e-9
        frame = msg.header.frame_id
        if topic == messages.CAMERA_POSE:
            self.system.poses.append((stamp, age, frame, self._poses.camera(value)))
        else:
            self.system.scans.append((stamp, age, frame, value))

    def count(self) -> None:
        """Count publishers and subscribers."""
        self.system.publishers = {
            topic: self.count_publishers(name) for topic, name in self._names.items()
        }
        self.system.subscribers = {
            topic: self.count_subscribers(name) for topic, name in self._names.items()
        }


def observed(
    seconds: float, namespace: str, domain: int | None, given: RunParameters | None
) -> System:
    """Listen to a running system for `seconds`; see :func:`listening` and
    :class:`SystemListener`.
    """
    with separate_context(domain) as executor:
        node = SystemListener(given, namespace=namespace)
        begin = time.monotonic()
        executor.add_node(node)
        while not node.system.parameters and time.monotonic() < begin + _FOR_NAMES * seconds:
            executor.spin_once(timeout_sec=0.1)
        node.open_topics()
        while time.monotonic() < begin + seconds:
            executor.spin_once(timeout_sec=0.1)
        node.count()
        return node.system


def called(
    service: str, namespace: str, domain: int | None, seconds: float, *, switch: bool = False
) -> tuple[bool, str]:
    """Call a service of a running node, with true for a `switch`; returns its success and message.

    Raises:
        NbvPlannerError: no node offers the service, or answers, within `seconds`.
    """
    kind = SetBool if switch else Trigger
    with separate_context(domain) as executor:
        node = Node("nbv_planner_operator", namespace=namespace)
        executor.add_node(node)
        client = node.create_client(kind, service)
        name = node.resolve_service_name(service)
        found = _spun_until(executor, client.service_is_ready, seconds)
        if not found:
            others = sorted(
                {
                    f"{space.rstrip('/')}/{one}"
                    for one, space in node.get_node_names_and_namespaces()
                }
            )
            running = (
                ", ".join(other for other in others if other != node.get_fully_qualified_name())
                or "none"
            )
            raise NbvPlannerError(
                f"no node offers the service {name} within {seconds:g} s (see --namespace,"
                f" --domain); running nodes: {running}"
            )
        answer = client.call_async(kind.Request(**({"data": True} if switch else {})))
        if not _spun_until(executor, answer.done, seconds):
            raise NbvPlannerError(f"{name} has not answered within {seconds:g} s")
        return answer.result().success, answer.result().message


def _spun_until(
    executor: SingleThreadedExecutor, condition: Callable[[], bool], seconds: float
) -> bool:
    """Spin until `condition` holds, at most for so many `seconds`; returns whether it does."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)
    return holds
