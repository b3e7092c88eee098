"""What the ROS graph shows of a topic: its publishers, and why endpoints are not connected."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from nbv_planner.episode.messages import RecordedTopic

# Topics that every node has; their other endpoints are not checked.
_BY_RCLPY = {"/parameter_events", "/rosout", "/clock"}
# Each policy with its lesser and greater value: a subscription that requests more than is offered
# is not connected.
_POLICIES = {
    "RELIABILITY": ("reliability", ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE),
    "DURABILITY": ("durability", DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL),
}
# Name of a discovered node whose name is not known yet.
_UNKNOWN = "_NODE_NAMESPACE_UNKNOWN_/_NODE_NAME_UNKNOWN_"
_NAMESAKE = (
    "another node is also called {}: either one of a second launch, which must end or get another"
    " namespace, or one that was killed a moment ago and is still listed"
)


def type_name(kind: type) -> str:
    """Name of a message type as the graph has it, for example sensor_msgs/msg/LaserScan."""
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"


def type_named(name: str) -> type:
    """Message type of that name, the inverse of :func:`type_name`."""
    package, _, message = name.partition("/msg/")
    return getattr(importlib.import_module(f"{package}.msg"), message)


def importable(topics: Iterable[RecordedTopic]) -> list[RecordedTopic]:
    """The topics whose message type is installed; that of maps may not be."""
    return [topic for topic in topics if importlib.util.find_spec(topic.type.partition("/")[0])]


def qos_text(profile: QoSProfile) -> str:
    """Describe a quality of service, for example: reliable, transient local."""
    return f"{_policy_text(profile.reliability)}, {_policy_text(profile.durability)}"


def unmet(offered: QoSProfile, requested: QoSProfile) -> list[str]:
    """Describe the policies in which a subscription requests more than a publisher offers."""
    return [
        f"{policy} (offered {_policy_text(less)}, requested {_policy_text(more)})"
        for policy, (name, less, more) in _POLICIES.items()
        if getattr(offered, name) == less and getattr(requested, name) == more
    ]


class Sources:
    """Publishers of an input that must come from one source only.

    Publishers of different names are seen in the graph. The nodes of two launches have the same
    names; so has a restarted node, whose old publisher stays in the graph for the lease of the
    middleware. The sequence numbers of the messages distinguish these cases: those of one publisher
    only rise, so they fall once for each new publisher, and repeatedly where two send. CycloneDDS
    has no such numbers; there rclpy 10 names the publisher of each message, and one that has been
    followed by another returns only where two send.
    """

    def __init__(self) -> None:
        self.matched = 0  #: number of publishers when the graph was looked at last.
        self._ids: set[bytes] = set()
        self._names: list[str] = []
        self._number, self._falls = 0, 0
        self._senders: list[bytes] = []

    def look(self, node: Node, subscription: Any) -> str:
        """Check the graph; returns :meth:`problem`."""
        self.matched = subscription.get_publisher_count()
        publishers = [
            info
            for info in node.get_publishers_info_by_topic(subscription.topic_name)
            if not any(_wrong(subscription, [info], publishing=True))
        ]
        ids = {bytes(info.endpoint_gid) for info in publishers}
        self._falls = 0 if self._ids - ids else max(0, self._falls - len(ids - self._ids))
        self._ids = ids
        self._names = sorted({full_node_name(info) for info in publishers} - {_UNKNOWN})
        return self.problem(subscription.topic_name)

    def take(self, info: Mapping[str, Any]) -> None:
        """Store what rclpy knows about a message: its sequence number or its publisher, if any."""
        number = info["publication_sequence_number"]
        publisher = info.get("publisher_gid")
        if number is not None:
            self._falls += number <= self._number
            self._number = number
        elif publisher is not None:
            sender = bytes(publisher["data"])
            self._falls += sender in self._senders[:-1]
            self._senders = [*(one for one in self._senders if one != sender), sender]

    def problem(self, topic: str) -> str:
        """Message that names the publishers of `topic` if there are several sources, else empty."""
        if len(self._ids) < 2 or (len(self._names) < 2 and self._falls < 2):
            return ""
        alike = f"{len(self._ids)} nodes that are all called {''.join(self._names)}"
        who = " and ".join(self._names) if len(self._names) > 1 else alike
        return (
            f"{topic} is published by {who}: its messages are dropped until only one is left; end"
            " the others, or give them another namespace"
        )


def mismatches(node: Node) -> dict[str, list[str]]:
    """Problems of the topics of `node` by full topic name, and that of its name by its full name.

    Topics without a problem are omitted.
    """
    name = node.get_fully_qualified_name()
    alike = [
        f"{space.rstrip('/')}/{other}" for other, space in node.get_node_names_and_namespaces()
    ].count(name) - 1
    found: dict[str, list[str]] = {name: [_NAMESAKE.format(name)] if alike > 0 else []}
    for publishing, endpoints, others in (
        (True, node.subscriptions, node.get_publishers_info_by_topic),
        (False, node.publishers, node.get_subscriptions_info_by_topic),
    ):
        for mine in endpoints:
            if (topic := mine.topic_name) not in _BY_RCLPY:
                found.setdefault(topic, []).extend(
                    _wrong(mine, others(topic), publishing=publishing)
                )
    return {topic: problems for topic, problems in found.items() if problems}


def _wrong(mine: Any, others: Iterable[Any], *, publishing: bool) -> Iterator[str]:
    """Describe why the endpoints `others` of a topic of this node are not connected."""
    does = "publishes" if publishing else "subscribes to"
    expected = type_name(mine.msg_type)
    for other in others:
        who = full_node_name(other)
        if other.topic_type != expected:
            yield f"{who} {does} {mine.topic_name} as {other.topic_type}, this node has {expected}"
            continue
        qualities = (other.qos_profile, mine.qos_profile)
        for policy in unmet(*(qualities if publishing else qualities[::-1])):
            yield f"{who} {does} {mine.topic_name} with incompatible quality of service: {policy}"


def full_node_name(info: Any) -> str:
    """Full name of the node of an endpoint."""
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"


def _policy_text(policy: Any) -> str:
    return str(policy.name).lower().replace("_", " ")
