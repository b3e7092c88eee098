"""The parts of a sweep file, each checked value by value; errors name the line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

from nbv_planner.episode_config import EpisodeConfig
from nbv_planner.errors import UnknownNameError
from nbv_planner.experiments.located_yaml import Located
from nbv_planner.experiments.sweep_groups import GROUPS, read_group, refuse_not_taken
from nbv_planner.objects import OBJECT_SETS, parse_object
from nbv_planner.scene import Scene
from nbv_planner.settings import Setting, check_value

T = TypeVar("T")

_COUNT = Setting("Number of seeds.", minimum=1, maximum=100_000)
_SEED = Setting("A seed.", minimum=0, maximum=2**53)


def read_objects(entry: Located, scene: Scene) -> dict[str, Located]:
    """Objects as text, each with the place where it stands; each is built once.

    They are a set by its name, or a list of objects and names of sets.

    Raises:
        ConfigFileError: an object is not allowed, or given twice.
    """
    if not entry.is_sequence and entry.text() not in OBJECT_SETS:
        raise entry.error(f"{entry.text()!r} must be a set ({', '.join(OBJECT_SETS)}) or a list of objects")
    places = entry.sequence() if entry.is_sequence else [entry]
    items = [(text, place) for place in places for text in OBJECT_SETS.get(place.text(), (place.text(),))]
    for text, item in items:
        with item.blamed():
            parse_object(text, scene)
    return _each_once(items)


def _each_once(items: Iterable[tuple[T, Located]]) -> dict[T, Located]:
    found: dict[T, Located] = {}
    for value, item in items:
        if value in found:
            raise item.error(f"{value!r} is given twice, first in line {found[value].line}")
        found[value] = item
    return found


def read_settings(entry: Located) -> EpisodeConfig:
    """Return the default configuration of an episode with the settings of a sweep on top.

    Raises:
        ConfigFileError: a group, a field or a value is not allowed.
    """
    values: dict[str, Any] = {}
    for name, group in entry.known_mapping("group", [f.name for f in dataclasses.fields(EpisodeConfig)]).items():
        refuse_not_taken(group, name)
        values[name] = read_group(group, GROUPS[name], name) if name in GROUPS else group.scalar()
        if name not in GROUPS:
            with group.named(entry.path).blamed():
                EpisodeConfig(**{name: values[name]})
    with entry.blamed():
        return EpisodeConfig(**values)


def read_names(entry: Located, kind: str, known: Iterable[str]) -> tuple[str, ...]:
    """Names of a `kind` of thing that must be known.

    Raises:
        ConfigFileError: one is not, or is given twice.
    """
    items = [(str(item.scalar()), item) for item in entry.sequence()]
    for name, item in items:
        if name not in known:
            raise item.error(UnknownNameError(kind, name, known))
    return tuple(_each_once(items))


def read_seeds(entry: Located) -> tuple[int, ...]:
    """Seeds: a count N for 0 to N - 1, or a list.

    Raises:
        ConfigFileError: a number is not allowed, or a seed given twice.
    """
    if not entry.is_sequence:
        with entry.named("").blamed():
            return tuple(range(check_value("seeds", entry.scalar(), 0, _COUNT)))
    items: list[tuple[int, Located]] = []
    for item in entry.sequence():
        with item.blamed():
            items.append((check_value("seed", item.scalar(), 0, _SEED), item))
    return tuple(_each_once(items))
