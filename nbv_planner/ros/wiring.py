"""What does not fit between a node's topics and those who share them: message types and quality of service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Topics that every node has; who shares them is not this node's business.
_BY_RCLPY = {"/parameter_events", "/rosout", "/clock"}
# Each policy with what is less and what is more: who requests more than is offered is not connected.
_POLICIES = {
    "RELIABILITY": ("reliability", ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE),
    "DURABILITY": ("durability", DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL),
}


def type_name(kind: type) -> str:
    """Name of a message type as the graph has it, for example sensor_msgs/msg/LaserScan."""
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"


def qos_words(profile: QoSProfile) -> str:
    """Say a quality of service in words, for example: reliable, transient local."""
    return f"{_words(profile.reliability)}, {_words(profile.durability)}"


def unmet(offered: QoSProfile, requested: QoSProfile) -> list[str]:
    """Policies in which a subscription requests more than a publisher offers, in words."""
    return [
        f"{policy} (offered {_words(less)}, requested {_words(more)})"
        for policy, (name, less, more) in _POLICIES.items()
        if getattr(offered, name) == less and getattr(requested, name) == more
    ]


def mismatches(node: Node) -> dict[str, list[str]]:
    """What is wrong on each topic of `node`, in words, by full topic name; topics that are all right are left out."""
    found: dict[str, list[str]] = {}
    for subscription in node.subscriptions:
        topic = subscription.topic_name
        others = node.get_publishers_info_by_topic(topic) if topic not in _BY_RCLPY else []
        found.setdefault(topic, []).extend(_wrong(subscription, others, publishing=True))
    for publisher in node.publishers:
        topic = publisher.topic_name
        others = node.get_subscriptions_info_by_topic(topic) if topic not in _BY_RCLPY else []
        found.setdefault(topic, []).extend(_wrong(publisher, others, publishing=False))
    return {topic: problems for topic, problems in found.items() if problems}


def _wrong(mine: Any, others: Iterable[Any], *, publishing: bool) -> Iterator[str]:
    """Say why the `others`, who publish what this node subscribes to or the other way round, are not connected."""
    does, expected = "publishes" if publishing else "subscribes to", type_name(mine.msg_type)
    for other in others:
        who = f"{other.node_namespace.rstrip('/')}/{other.node_name}"
        if other.topic_type != expected:
            yield f"{who} {does} {mine.topic_name} as {other.topic_type}, this node has {expected}"
            continue
        qualities = (other.qos_profile, mine.qos_profile)
        for policy in unmet(*(qualities if publishing else qualities[::-1])):
            yield f"{who} {does} {mine.topic_name} with incompatible quality of service: {policy}"


def _words(policy: Any) -> str:
    return str(policy.name).lower().replace("_", " ")
