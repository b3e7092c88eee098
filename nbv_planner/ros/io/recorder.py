"""Recording where there is no `ros2 bag`: writes serialised messages as received into a bag."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from nbv_planner.bags.reader import knows_type
from nbv_planner.bags.writer import BagWriter, profiles_for_bag
from nbv_planner.episode import messages
from nbv_planner.episode.messages import RECORDED_TOPICS, RecordedTopic
from nbv_planner.errors import BagError
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.graph import importable, type_named
from nbv_planner.ros.core.running import separate_context


def offered_of(asked: QoSProfile, publishers: Sequence[Any]) -> QoSProfile:
    """The requested quality of service, lowered to what all publishers of a topic offer."""
    offers = [asked, *(info.qos_profile for info in publishers)]
    reliable = all(offer.reliability == ReliabilityPolicy.RELIABLE for offer in offers)
    profile = qos.reliable(asked.depth) if reliable else qos.sensor_data(asked.depth)
    if all(offer.durability == DurabilityPolicy.TRANSIENT_LOCAL for offer in offers):
        profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
    return profile


NAME = "bag_recorder"
"""Name of the recorder's node."""
# Seconds between two flushes, and between two syncs: a killed recorder loses no more than the
# first, a power failure no more than the second.
_FLUSH_PERIOD, _SYNC_PERIOD = 0.1, 2.0
_LOOK_PERIOD = 0.2
# Topics without which an episode cannot be analysed; seconds after which goals are recorded even if
# they are missing.
_EPISODE = (
    messages.SCAN,
    messages.CAMERA_POSE,
    messages.SURFACE,
    messages.CANDIDATES,
    messages.ITERATION,
)
_HOLD_PERIOD = 5.0


class BagRecorder(Node):
    """Writes every message of some topics into a bag.

    It subscribes immediately with the known quality of service of the topic (transient local for
    what is latched, so that a late recorder gets every iteration), and falls back to what the
    publishers offer.
    """

    def __init__(
        self,
        writer: BagWriter,
        topics: Sequence[RecordedTopic],
        other_names: Sequence[str] = (),
        *,
        namespace: str = "",
        goals_last: bool = False,
        **kwargs: Any,
    ) -> None:
        """Subscribe to topics of known type, and to those with `other_names` once they have a
        publisher.

        With `goals_last` the goals are subscribed to only once the other topics have been found, so
        that a planner that waits for this recorder (`goal_subscribers`) begins only when every
        message is recorded. The `cli_args` of Node may rename topics.

        Raises:
            BagError: the type of a topic is not known.
        """
        super().__init__(NAME, namespace=namespace, **kwargs)
        self._writer = writer
        self.counts: Counter[str] = Counter()  #: messages written by full topic name.
        self._subscriptions_of: dict[str, tuple[str, Any]] = {}
        self._unknown = list(other_names)
        self._held_back = [
            topic for topic in topics if goals_last and topic.name == messages.GOAL_POSE
        ]
        self._hold_until = math.inf
        for topic in importable(topics):
            if topic not in self._held_back:
                self._subscribe_known(topic)
        self.create_timer(_LOOK_PERIOD, self.look)
        self.create_timer(_FLUSH_PERIOD, self._writer.flush)
        self.create_timer(_SYNC_PERIOD, partial(self._writer.flush, durable=True))

    @property
    def silent(self) -> list[str]:
        """Full names of the topics without a message so far."""
        return sorted({*self._subscriptions_of, *self._unknown} - set(self.counts))

    def look(self) -> None:
        """Subscribe to topics that have appeared, and lower the quality of service where publishers
        offer less.
        """
        if self._held_back and self._found_enough():
            self._subscribe_known(self._held_back.pop())
        types = dict(self.get_topic_names_and_types()) if self._unknown else {}
        for name in [name for name in self._unknown if name in types]:
            self._unknown.remove(name)
            publishers = self.get_publishers_info_by_topic(name)
            most = qos.latched(1000) if publishers else qos.reliable(1000)
            try:
                self._subscribe(name, types[name][0], offered_of(most, publishers))
            except BagError as error:
                self.get_logger().error(str(error))
        for name, (kind, subscription) in list(self._subscriptions_of.items()):
            asked = subscription.qos_profile
            profile = offered_of(asked, self.get_publishers_info_by_topic(name))
            if profile != asked:
                self.destroy_subscription(subscription)
                self._subscribe(name, kind, profile)

    def _found_enough(self) -> bool:
        """Whether the topics of an episode have all been found, or the wait for them has timed
        out.
        """
        now = time.monotonic()
        entries = self._subscriptions_of.items()
        found = {name for name, (_, subscription) in entries if subscription.get_publisher_count()}
        wanted = {self.resolve_topic_name(name) for name in _EPISODE} & set(self._subscriptions_of)
        if found:
            self._hold_until = min(self._hold_until, now + _HOLD_PERIOD)
        return wanted <= found or now > self._hold_until

    def _subscribe_known(self, topic: RecordedTopic) -> None:
        profile = qos.latched(topic.depth) if topic.latched else qos.reliable(topic.depth)
        self._subscribe(self.resolve_topic_name(topic.name), topic.type, profile)

    def _subscribe(self, name: str, kind: str, profile: QoSProfile) -> None:
        if not knows_type(kind):
            raise BagError(
                f"{name}: the definition of {kind} is not known, so it cannot be recorded"
            )
        receive = partial(self._on_message, name, kind)
        subscription = self.create_subscription(type_named(kind), name, receive, profile, raw=True)
        self._subscriptions_of[name] = (kind, subscription)

    def _on_message(self, name: str, kind: str, data: bytes) -> None:
        if name not in self._writer:
            depth = self._subscriptions_of[name][1].qos_profile.depth
            # their depth is not known
            offers = [info.qos_profile for info in self.get_publishers_info_by_topic(name)]
            kinds = {(int(profile.reliability), int(profile.durability)) for profile in offers}
            self._writer.add_topic(name, kind, profiles_for_bag(kinds, depth))
        self._writer.write(name, self.get_clock().now().nanoseconds, data)
        self.counts[name] += 1


_TELL_PERIOD = 10.0


def record_until(
    ended: Callable[[], bool],
    writer: BagWriter,
    names: Sequence[str],
    namespace: str,
    tell: Callable[[str], None],
    remappings: Sequence[str] = (),
    topics: Sequence[RecordedTopic] = RECORDED_TOPICS,
) -> tuple[dict[str, int], list[str]]:
    """Record the `topics` of the nodes, and those with further full `names`, on the domain of the
    environment.

    It ends when `ended` says so, which is called between two messages, at least five times a
    second. The remappings are rules `old:=new` by which the nodes' topics are renamed, as ROS has
    them; `tell` receives lines of progress. Returns the numbers of messages by full topic name, and
    the topics without a message.
    """
    with separate_context() as executor:
        full_names = ["/" + name.lstrip("/") for name in names]
        renamed = ["--ros-args", *(word for rule in remappings for word in ("--remap", rule))]
        recorder = BagRecorder(
            writer,
            topics,
            full_names,
            namespace=namespace,
            goals_last=True,
            cli_args=renamed,
        )
        executor.add_node(recorder)
        tell(f"recording to {writer.path}/ until Ctrl-C")
        told = time.monotonic()
        while not ended():
            executor.spin_once(timeout_sec=0.2)
            if not recorder.counts and time.monotonic() - told > _TELL_PERIOD:
                told = time.monotonic()
                tell(f"no message yet; waiting for {', '.join(recorder.silent)}")
        return dict(recorder.counts), recorder.silent
