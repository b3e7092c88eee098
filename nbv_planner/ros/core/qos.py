"""Quality of service of each kind of topic."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from nbv_planner.errors import SettingError

OVERRIDES = "qos_overrides."
_CHOICES = {"history": ("keep_last", "keep_all"), "reliability": ("reliable", "best_effort")}
_DEPTH_MAX = 2**31 - 1


def reliable(depth: int = 10) -> QoSProfile:
    """Reliable and volatile: late subscribers do not receive past messages."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=ReliabilityPolicy.RELIABLE
    )


def latched(depth: int = 1) -> QoSProfile:
    """Reliable and transient local: late subscribers receive the last `depth` messages."""
    profile = reliable(depth)
    profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
    return profile


def sensor_data(depth: int = 20) -> QoSProfile:
    """Best effort, for scans: connects to reliable and best-effort publishers alike."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT
    )


def check_override(name: str, value: object) -> None:
    """Check the value of a `qos_overrides.` parameter, which rclpy itself does by assertions, if at
    all.

    Raises:
        SettingError: names the parameter, the value and what is allowed.
    """
    policy = name.rpartition(".")[2]
    if policy == "depth":
        good = type(value) is int and 0 <= value <= _DEPTH_MAX
        allowed = f"an integer >= 0 and <= {_DEPTH_MAX}"
    elif policy in _CHOICES:
        good = str(value).lower() in _CHOICES[policy]
        allowed = "one of " + ", ".join(_CHOICES[policy])
    else:
        raise SettingError(
            f"{name}: {policy!r} cannot be overridden; must be one of depth, {', '.join(_CHOICES)}"
        )
    if not good:
        raise SettingError(f"{name}: {value!r} is not allowed; must be {allowed}")
