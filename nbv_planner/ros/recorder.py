"""Recording where there is no `ros2 bag`: serialised messages as they come, into a bag."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from nbv_planner.bags.decoding import knows_type
from nbv_planner.bags.writer import BagWriter
from nbv_planner.errors import BagError
from nbv_planner.ros import qos
from nbv_planner.ros.own_context import ros_of_its_own
from nbv_planner.topics import GOAL_POSE, RECORDED_TOPICS, RecordedTopic

# Seconds: a killed recorder loses no more than the first, a machine without power no more than the second.
_FLUSH_PERIOD, _SYNC_PERIOD = 0.1, 2.0
_LOOK_PERIOD = 0.2
_TELL_PERIOD = 10.0
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
                self._subscribe(name, types[name][0], self._offered(name) or qos.reliable(1000))
            except BagError as error:
                self.get_logger().error(str(error))
        for name, (kind, subscription) in list(self._subscriptions_of.items()):
            wanted = subscription.qos_profile
            weaker = self._weaker(name, wanted)
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

    def _weaker(self, name: str, asked: QoSProfile) -> QoSProfile | None:
        """What to ask for where a publisher offers less than `asked`; None where all offer enough."""
        offered = self._offered(name)
        if offered is None:
            return None
        reliable = asked.reliability == ReliabilityPolicy.RELIABLE
        latched = asked.durability == DurabilityPolicy.TRANSIENT_LOCAL
        still_reliable = reliable and offered.reliability == ReliabilityPolicy.RELIABLE
        still_latched = latched and offered.durability == DurabilityPolicy.TRANSIENT_LOCAL
        if (still_reliable, still_latched) == (reliable, latched):
            return None
        profile = qos.reliable(asked.depth) if still_reliable else qos.sensor_data(asked.depth)
        profile.durability = DurabilityPolicy.TRANSIENT_LOCAL if still_latched else DurabilityPolicy.VOLATILE
        return profile

    def _offered(self, name: str) -> QoSProfile | None:
        """The least that the publishers of a topic offer, None without any."""
        profiles = [info.qos_profile for info in self.get_publishers_info_by_topic(name)]
        if not profiles:
            return None
        least = qos.reliable(1000)
        if any(profile.reliability != ReliabilityPolicy.RELIABLE for profile in profiles):
            least.reliability = ReliabilityPolicy.BEST_EFFORT
        if all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in profiles):
            least.durability = DurabilityPolicy.TRANSIENT_LOCAL
        return least

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
            self._writer.add_topic(name, kind, _for_bag(self.get_publishers_info_by_topic(name), depth))
        self._writer.write(name, self.get_clock().now().nanoseconds, data)
        self.counts[name] += 1


def _for_bag(publishers: Sequence[Any], depth: int) -> list[Any]:
    """What the publishers of a topic offer, each kind once, for whoever plays the bag; their depth is not told."""
    from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

    endless = QosTime(9223372036, 854775807)
    found = {(int(p.qos_profile.reliability), int(p.qos_profile.durability)) for p in publishers}
    return [
        Qos(
            QosHistory.KEEP_LAST, depth, QosReliability(reliability), QosDurability(durability), endless,
            endless, QosLiveliness.AUTOMATIC, endless, False,
        )
        for reliability, durability in sorted(found)
    ]


def record_until_interrupted(
    writer: BagWriter, names: Sequence[str], namespace: str, tell: Callable[[str], None]
) -> tuple[dict[str, int], list[str]]:
    """Record on the domain of the environment, until KeyboardInterrupt.

    Args:
        writer: takes the messages.
        names: further topics by full name.
        namespace: namespace of the nodes.
        tell: called with a line of text now and then.

    Returns:
        Numbers of messages by full topic name, and the topics on which nothing came.
    """
    with ros_of_its_own():
        full_names = ["/" + name.lstrip("/") for name in names]
        recorder = BagRecorder(writer, RECORDED_TOPICS, full_names, namespace=namespace, goals_last=True)
        executor = SingleThreadedExecutor()
        executor.add_node(recorder)
        tell(f"recording to {writer.path}/ until Ctrl-C")
        told = time.monotonic()
        try:
            while True:
                executor.spin_once(timeout_sec=0.2)
                if not recorder.counts and time.monotonic() - told > _TELL_PERIOD:
                    told = time.monotonic()
                    tell(f"nothing yet; waiting for {', '.join(recorder.silent)}")
        except KeyboardInterrupt:
            return dict(recorder.counts), recorder.silent
