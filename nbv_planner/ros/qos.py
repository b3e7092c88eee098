"""Quality of service of each kind of topic (spec 06)."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions


def reliable(depth: int = 10) -> QoSProfile:
    """Reliable and volatile: who joins late does not get what is past."""
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=ReliabilityPolicy.RELIABLE)


def latched(depth: int = 1) -> QoSProfile:
    """Reliable and transient local: who joins late gets the last `depth` messages."""
    profile = reliable(depth)
    profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
    return profile


def sensor_data(depth: int = 20) -> QoSProfile:
    """Best effort, for scans: connects to reliable and best-effort publishers alike."""
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


def overridable() -> QoSOverridingOptions:
    """Let history, depth and reliability be overridden by `qos_overrides.` parameters."""
    return QoSOverridingOptions.with_default_policies()
