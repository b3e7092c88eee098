"""Settings: frozen dataclasses whose fields carry unit, range and description.

One declaration serves the Python API, the command line, the YAML files and the ROS parameter
descriptors: see :func:`setting` for a field, :func:`check_settings` for its checks, and
:func:`from_mapping` for building an instance from untyped input.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from nbv_planner.errors import SettingError, UnknownNameError

T = TypeVar("T")
_GIVEN = {str: "text", float: "a number with a fraction", int: "an integer", bool: "true or false", list: "a list",
          tuple: "a list", type(None): "empty", dict: "a section"}
_KEY = "nbv_planner.setting"
_TYPE_NAMES = {float: "a number", int: "an integer", str: "a string", bool: "true or false", tuple: "a list of numbers"}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is known about one setting apart from its name and default."""

    description: str  #: one sentence, without the unit.
    unit: str = ""  #: SI unit symbol, empty if there is none.
    minimum: float | None = None  #: lower bound, or None.
    maximum: float | None = None  #: upper bound, or None.
    minimum_allowed: bool = True  #: whether `minimum` itself is allowed.
    maximum_allowed: bool = True  #: whether `maximum` itself is allowed.
    choices: tuple[str, ...] = ()  #: the allowed strings, empty if any string is.
    read_only: bool = True  #: whether a running node refuses to change it.
    scale: str = ""  #: length of the scene that it is in proportion to, see :mod:`nbv_planner.world.scale`, or none.
    #: whether it can be given when the process starts only, never by a message: paths of files.
    start_only: bool = False

    def allowed(self) -> str:
        """State the allowed values in words, for error messages and tables."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        parts = []
        if self.minimum is not None:
            parts.append(f"{'>=' if self.minimum_allowed else '>'} {self.minimum:g}")
        if self.maximum is not None:
            parts.append(f"{'<=' if self.maximum_allowed else '<'} {self.maximum:g}")
        return " and ".join(parts)

    def admits(self, value: float) -> bool:
        """Whether the number `value` lies inside the bounds."""
        above = self.minimum is None or (value >= self.minimum if self.minimum_allowed else value > self.minimum)
        below = self.maximum is None or (value <= self.maximum if self.maximum_allowed else value < self.maximum)
        return above and below


def setting(
    default: T, description: str, *, unit: str = "", ge: float | None = None, gt: float | None = None,
    le: float | None = None, lt: float | None = None, choices: Iterable[str] = (), read_only: bool = True,
    start_only: bool = False, scale: str = "",
) -> T:
    """Declare a dataclass field with a default, a description and its allowed values.

    The bounds are named as in comparisons: `ge`/`gt` is the least value (inclusive/exclusive), `le`/`lt` the
    greatest. The default's type is the type of the setting. With a `scale` it is the value in the default scene.
    """
    meta = Setting(
        description, unit, gt if ge is None else ge, lt if le is None else le, minimum_allowed=gt is None,
        maximum_allowed=lt is None, choices=tuple(choices), read_only=read_only, start_only=start_only, scale=scale,
    )
    return dataclasses.field(default=default, metadata={_KEY: meta})  # type: ignore[no-any-return]


def settings_of(cls: type) -> Iterator[tuple[str, Any, Setting]]:
    """Yield `(name, default, Setting)` for every field of `cls` that :func:`setting` declares."""
    for field in dataclasses.fields(cls):
        if _KEY in field.metadata:
            yield field.name, field.default, field.metadata[_KEY]


def check_value(name: str, value: Any, default: Any, meta: Setting) -> Any:
    """Return `value` converted to the type of `default`.

    Integers are accepted where a real number is expected, nothing else is converted.

    Raises:
        SettingError: wrong type, not finite, or not among the allowed values; the message names the setting,
            the value and what is allowed.
    """
    kind = type(default)
    if isinstance(value, np.generic):
        value = value.item()
    if kind is float and type(value) is int:
        value = float(value)
    if kind is tuple and isinstance(value, (list, tuple)):
        return tuple(check_value(f"{name}[{i}]", v, 0.0, meta) for i, v in enumerate(value))
    if type(value) is not kind:
        given = _GIVEN.get(type(value), "no plain value")
        raise SettingError(f"{name}: {value!r} is {given}, expected {_TYPE_NAMES[kind]}")
    if kind is str and meta.choices and value not in meta.choices:
        raise SettingError(f"{name}: {value!r} is not known; must be {meta.allowed()}")
    if kind is float and not math.isfinite(value):
        raise SettingError(f"{name}: {value!r} is not a finite number{_must_be(meta)}")
    if kind in (int, float) and not meta.admits(value):
        raise SettingError(f"{name}: {value!r} is out of range{_must_be(meta)}")
    return value


def _must_be(meta: Setting) -> str:
    allowed = meta.allowed()
    return f"; must be {allowed} {meta.unit}".rstrip() if allowed else ""


def check_settings(instance: Any) -> None:
    """Check every field of a settings dataclass by :func:`check_value`; call it from `__post_init__`."""
    for name, default, meta in settings_of(type(instance)):
        object.__setattr__(instance, name, check_value(name, getattr(instance, name), default, meta))


class Settings:
    """Base of frozen dataclasses whose fields are all checked, see :func:`check_settings`, and nothing else is."""

    def __post_init__(self) -> None:
        check_settings(self)


def from_mapping(cls: type[T], values: Mapping[str, Any]) -> T:
    """Build settings class `cls` from those entries of `values` that it declares; others are ignored.

    Raises:
        SettingError: an entry is not allowed.
    """
    names = {name for name, _, _ in settings_of(cls)}
    return cls(**{key: value for key, value in values.items() if key in names})


def refuse_unknown(values: Iterable[str], classes: Iterable[type], where: str) -> None:
    """Refuse names in `values` that no settings class in `classes` declares.

    Raises:
        SettingError: names the unknown key, `where` it was found, and all known keys.
    """
    known = sorted({name for cls in classes for name, _, _ in settings_of(cls)})
    for key in values:
        if key not in known:
            raise SettingError(f"{where}: {UnknownNameError('parameter', key, known)}")
