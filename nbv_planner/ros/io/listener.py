"""Subscribes to the nodes of an episode to log it; publishes nothing."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

from nbv_planner.episode import messages
from nbv_planner.episode.log import EpisodeLog, LiveEpisode
from nbv_planner.errors import InputRejectedError
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.inputs import type_named


class EpisodeListener(Node):
    """Passes messages to a log; unusable ones are skipped, with one warning for each reason.

    Latched topics are subscribed to as latched, so that a listener started late still gets them.
    """

    def __init__(
        self, name: str, log: EpisodeLog, others: Callable[[int], QoSProfile] = qos.sensor_data,
        without: Collection[str] = (), **kwargs: Any,
    ) -> None:
        """Open the topics, below the namespace of this node, except those `without` a subscription.

        `others` gives the profile by depth of the topics that are not latched; best effort never slows a publisher
        down.
        """
        super().__init__(name, **kwargs)
        self.log = log
        self._rejected: set[str] = set()
        for topic in messages.RECORDED_TOPICS:
            if topic.name not in (*without, messages.DIAGNOSTICS):
                profile = (qos.latched if topic.latched else others)(topic.depth)
                kind = type_named(topic.type)
                self.create_subscription(kind, topic.name, partial(self._on_message, topic.name), profile)

    def _on_message(self, topic: str, msg: Any) -> None:
        try:
            self.log.take(topic, msg)
        except InputRejectedError as error:
            if f"{topic} {error.reason}" not in self._rejected:
                self._rejected.add(f"{topic} {error.reason}")
                self.get_logger().warning(f"{topic}: left out ({error.reason}): {error}")


@contextlib.contextmanager
def listening(live: LiveEpisode, namespace: str, domain: int | None) -> Iterator[None]:
    """Pass the messages of the nodes in `namespace` on in a separate thread, leaving Ctrl-C to the caller.

    `domain` is the ROS domain id, None for that of the environment.
    """
    context = Context()
    rclpy.init(args=[], context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    name = f"nbv_view_{os.getpid()}"
    node = EpisodeListener(name, live, context=context, namespace=namespace, use_global_arguments=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)

    def spin() -> None:
        with contextlib.suppress(ExternalShutdownException):
            executor.spin()

    thread = threading.Thread(target=spin, name="listener", daemon=True)
    thread.start()
    try:
        yield
    finally:
        executor.shutdown()
        thread.join()
        node.destroy_node()
        context.try_shutdown()
