"""Quality of service of a recorder: what publishers offer, and what to ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from nbv_planner.ros import qos


def offered(publishers: Sequence[Any]) -> QoSProfile | None:
    """The least that the publishers of a topic offer, None without any."""
    profiles = [info.qos_profile for info in publishers]
    if not profiles:
        return None
    least = qos.reliable(1000)
    if any(profile.reliability != ReliabilityPolicy.RELIABLE for profile in profiles):
        least.reliability = ReliabilityPolicy.BEST_EFFORT
    if all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in profiles):
        least.durability = DurabilityPolicy.TRANSIENT_LOCAL
    return least


def weaker_than(asked: QoSProfile, least: QoSProfile | None) -> QoSProfile | None:
    """What to ask for where publishers offer less than `asked`; None where all offer enough."""
    if least is None:
        return None
    reliable = asked.reliability == ReliabilityPolicy.RELIABLE
    latched = asked.durability == DurabilityPolicy.TRANSIENT_LOCAL
    still_reliable = reliable and least.reliability == ReliabilityPolicy.RELIABLE
    still_latched = latched and least.durability == DurabilityPolicy.TRANSIENT_LOCAL
    if (still_reliable, still_latched) == (reliable, latched):
        return None
    profile = qos.reliable(asked.depth) if still_reliable else qos.sensor_data(asked.depth)
    profile.durability = DurabilityPolicy.TRANSIENT_LOCAL if still_latched else DurabilityPolicy.VOLATILE
    return profile


def kinds_of(publishers: Sequence[Any]) -> set[tuple[int, int]]:
    """Reliability and durability that the publishers of a topic offer, as numbers; their depth is not told."""
    return {(int(p.qos_profile.reliability), int(p.qos_profile.durability)) for p in publishers}
