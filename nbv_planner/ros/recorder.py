"""Recording where there is no `ros2 bag`: serialised messages as they come, into a bag."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from nbv_planner.bags.decoding import knows_type
from nbv_planner.bags.offered_qos import profiles_for_bag
from nbv_planner.bags.writer import BagWriter
from nbv_planner.errors import BagError
from nbv_planner.ros import qos
from nbv_planner.ros.recorder_qos import kinds_of, offered, weaker_than
from nbv_planner.topics import GOAL_POSE, RecordedTopic

# Seconds: a killed recorder loses no more than the first, a machine without power no more than the second.
_FLUSH_PERIOD, _SYNC_PERIOD = 0.1, 2.0
_LOOK_PERIOD = 0.2
# Without these an episode cannot be put together; seconds after which goals are recorded without them.
_EPISODE = ("/scan", "/camera_pose", "/surface", "/nbv_planner/candidates", "/nbv_planner/iteration")
_HOLD_PERIOD = 5.0


class BagRecorder(Node):
    """Writes every message of some topics into a bag.

    It subscribes at once with the quality of service that the topic is known to have (transient local for what is
    latched, so that a late recorder gets every iteration), and falls back to what the publishers really offer.

    Attributes:
        counts: messages written by full topic name.
    """

    def __init__(
        self, writer: BagWriter, topics: Sequence[RecordedTopic], other_names: Sequence[str] = (), *,
        namespace: str = "", goals_last: bool = False, **kwargs: Any,
    ) -> None:
        """Subscribe.

        Args:
            writer: takes the messages.
            topics: topics of known type.
            other_names: full names of further topics, whose types are those of their publishers.
            namespace: namespace of the nodes.
            goals_last: whether goals are subscribed to only once the other topics have been found, so that a planner
                that waits for this recorder (`goal_subscribers`) does not begin before nothing would be missed.
            kwargs: as for Node.

        Raises:
            BagError: the type of a topic is not known.
        """
        super().__init__("bag_recorder", namespace=namespace, **kwargs)
        self._writer = writer
        self.counts: Counter[str] = Counter()
        self._subscriptions_of: dict[str, tuple[str, Any]] = {}
        self._unknown = list(other_names)
        self._held_back = [topic for topic in topics if goals_last and topic.name == GOAL_POSE]
        self._hold_until: float | None = None
        for topic in topics:
            if topic not in self._held_back:
                self._subscribe_known(topic)
        self.create_timer(_LOOK_PERIOD, self.look)
        self.create_timer(_FLUSH_PERIOD, self._writer.flush)
        self.create_timer(_SYNC_PERIOD, partial(self._writer.flush, durable=True))

    @property
    def silent(self) -> list[str]:
        """Full names of the topics from which nothing has come."""
        return sorted({*self._subscriptions_of, *self._unknown} - set(self.counts))

    def look(self) -> None:
        """Find the types of topics that have appeared, and fall back where publishers offer less than is asked."""
        if self._held_back and self._found_enough():
            self._subscribe_known(self._held_back.pop())
        types = dict(self.get_topic_names_and_types()) if self._unknown else {}
        for name in [name for name in self._unknown if name in types]:
            self._unknown.remove(name)
            try:
                profile = offered(self.get_publishers_info_by_topic(name)) or qos.reliable(1000)
                self._subscribe(name, types[name][0], profile)
            except BagError as error:
                self.get_logger().error(str(error))
        for name, (kind, subscription) in list(self._subscriptions_of.items()):
            weaker = weaker_than(subscription.qos_profile, offered(self.get_publishers_info_by_topic(name)))
            if weaker is not None:
                self.destroy_subscription(subscription)
                self._subscribe(name, kind, weaker)

    def _found_enough(self) -> bool:
        """Whether the topics of an episode have all been found, or the wait for them has been long enough."""
        entries = self._subscriptions_of.items()
        found = {name for name, (_, subscription) in entries if subscription.get_publisher_count()}
        wanted = {name for name in self._subscriptions_of if name.endswith(_EPISODE)}
        if found:
            self._hold_until = self._hold_until or time.monotonic() + _HOLD_PERIOD
        return wanted <= found or (self._hold_until is not None and time.monotonic() > self._hold_until)

    def _subscribe_known(self, topic: RecordedTopic) -> None:
        profile = qos.latched(topic.depth) if topic.latched else qos.reliable(topic.depth)
        self._subscribe(topic.full_name(self.get_namespace()), topic.type, profile)

    def _subscribe(self, name: str, kind: str, profile: QoSProfile) -> None:
        if not knows_type(kind):
            raise BagError(f"{name}: the definition of {kind} is not known, so it cannot be recorded")
        package, _, message = kind.partition("/msg/")
        cls = getattr(importlib.import_module(f"{package}.msg"), message)
        subscription = self.create_subscription(cls, name, partial(self._on_message, name, kind), profile, raw=True)
        self._subscriptions_of[name] = (kind, subscription)

    def _on_message(self, name: str, kind: str, data: bytes) -> None:
        """Write a message as it came."""
        if name not in self._writer:
            depth = self._subscriptions_of[name][1].qos_profile.depth
            kinds = kinds_of(self.get_publishers_info_by_topic(name))
            self._writer.add_topic(name, kind, profiles_for_bag(kinds, depth))
        self._writer.write(name, self.get_clock().now().nanoseconds, data)
        self.counts[name] += 1
