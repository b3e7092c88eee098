"""Groups of settings in a sweep file, each field checked by itself; errors name the line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.experiments.located_yaml import Located
from nbv_planner.settings import check_value, settings_of

T = TypeVar("T")

GROUPS: dict[str, Any] = {
    field.name: field.default_factory
    for field in dataclasses.fields(EpisodeConfig)
    if field.default_factory is not dataclasses.MISSING
}
"""Settings classes by the name of their group in the configuration of an episode."""

_NOT_TAKEN = {
    ("planner",): "is given by 'planners'",
    ("object",): "is given by 'objects'",
    ("protocol",): "is given by 'protocols'",
    ("sensor", "seed"): "is given by 'seeds'",
    ("planners", "planner_seed"): "is given by 'seeds'",
    ("termination", "max_duration"): "would let the figures depend on the speed of the machine; use max_views",
}
"""Groups and fields that a sweep does not take, and why."""


def refuse_not_taken(entry: Located, *keys: str) -> None:
    """Refuse a group, or a field of one, that stands elsewhere in a sweep or would spoil it."""
    if keys in _NOT_TAKEN:
        raise entry.error(_NOT_TAKEN[keys])


def read_group(entry: Located, cls: type[T], name: str) -> T:
    """Build a settings class from a mapping of its fields."""
    items = entry.known_mapping("parameter", [field for field, _, _ in settings_of(cls)])
    values = read_values(entry, items, cls, name)
    with entry.blamed():
        return cls(**values)


def read_values(entry: Located, items: Mapping[str, Located], cls: type, name: str) -> dict[str, Any]:
    """Values of some fields of a settings class, each checked by itself."""
    known = {field: (default, meta) for field, default, meta in settings_of(cls)}
    values: dict[str, Any] = {}
    for field, item in items.items():
        refuse_not_taken(item, name, field)
        content = item.value()
        with item.named(entry.path).blamed():
            values[field] = check_value(field, content, *known[field])
    return values
