"""What the publishers of a recorded topic offered: whoever plays the bag has to offer the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

# Far longer than a description of many publishers, and still read in no time.
_LONGEST = 2**16
_RELIABILITY = {1: "RELIABLE", 2: "BEST_EFFORT"}
_DURABILITY = {1: "TRANSIENT_LOCAL", 2: "VOLATILE"}


def profiles_for_bag(kinds: Iterable[tuple[int, int]], depth: int) -> list[Any]:
    """Profiles for the description of a topic in a bag.

    Args:
        kinds: reliability and durability of its publishers, as numbers of rmw; each kind counts once.
        depth: depth of the history to offer.
    """
    from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

    endless = QosTime(9223372036, 854775807)
    return [
        Qos(
            QosHistory.KEEP_LAST, depth, QosReliability(reliability), QosDurability(durability), endless,
            endless, QosLiveliness.AUTOMATIC, endless, False,
        )
        for reliability, durability in sorted(set(kinds))
    ]


def described_profiles(text: str) -> list[Any]:
    """The profiles that a bag describes (YAML); none of what cannot be read."""
    try:
        items = yaml.safe_load(text) if len(text) <= _LONGEST else None
    except (yaml.YAMLError, RecursionError, ValueError):
        return []
    found = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    kinds = [(_number(item, "reliability", _RELIABILITY), _number(item, "durability", _DURABILITY)) for item in found]
    depths = [depth for item in found if type(depth := item.get("depth")) is int and 0 < depth < 2**31]
    return profiles_for_bag([(r, d) for r, d in kinds if r and d], max(depths, default=10))


def _number(item: Mapping[str, object], key: str, names: Mapping[int, str]) -> int:
    """Number of a policy that is given by number or by name; 0 if it is none."""
    value = item.get(key)
    return next((n for n, name in names.items() if value == n or str(value).upper() == name), 0)
