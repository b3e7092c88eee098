"""Settings: frozen dataclasses whose fields carry unit, range and description.

One declaration serves the Python API, the command line, the YAML files and the ROS parameter
descriptors: see :func:`setting` for a field, :func:`check_settings` for its checks, and
:func:`from_mapping` for building an instance from untyped input. Installed packages add choices and
the settings of these: see :class:`Plugins`.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import metadata
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import numpy as np

from nbv_planner.errors import SettingError, UnknownNameError, or_of_a_package, shown

T = TypeVar("T")
_GIVEN = {
    str: "text",
    float: "a number with a fraction",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    tuple: "a list",
    type(None): "empty",
    dict: "a section",
}
_KEY = "nbv_planner.setting"
_OWN = "nbv_planner"
_DOT = "."  # between a section and what is in it
_GREATEST = int(np.finfo(float).max)
_GREATEST_INTEGER = 2**63 - 1
# Bounds that a setting does not state, by its unit: least positive number (for those that must be >
# 0), and greatest. They are wider than any use; beyond them squares and ratios of settings are no
# finite numbers any more.
_MOST = 1e9
_BOUNDS = {"m": (1e-12, _MOST), "s": (1e-9, _MOST), "rad": (1e-9, 1e3), "m/m": (1e-9, 1.0)}
_TYPE_NAMES = {
    float: "a number",
    int: "an integer",
    str: "a string",
    bool: "true or false",
    tuple: "a list of numbers",
}


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
    #: length of the scene that it is in proportion to, see :mod:`nbv_planner.world.scale`, or none.
    scale: str = ""
    #: whether it can be given when the process starts only, never by a message: paths of files.
    start_only: bool = False
    ros: bool = True  #: whether nodes have it as a parameter; else it is of the Python API alone.

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
        above = self.minimum is None or (
            value >= self.minimum if self.minimum_allowed else value > self.minimum
        )
        below = self.maximum is None or (
            value <= self.maximum if self.maximum_allowed else value < self.maximum
        )
        return above and below


def setting(
    default: T,
    description: str,
    *,
    unit: str = "",
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    choices: Iterable[str] = (),
    read_only: bool = True,
    start_only: bool = False,
    scale: str = "",
    ros: bool = True,
) -> T:
    """Declare a dataclass field with a default, a description and its allowed values.

    The bounds are named as in comparisons: `ge`/`gt` is the least value (inclusive/exclusive),
    `le`/`lt` the greatest. Numbers have both: where one is not given, or is `gt=0`, it is that of
    any use of the unit. The default's type is the type of the setting. With a `scale` it is the
    value in the default scene.
    """
    if type(default) in (int, float, tuple):
        least, most = _BOUNDS.get(unit, (1e-9, _MOST))
        if gt == 0.0:
            ge = least
            gt = None
        ge = -most if ge is None and gt is None else ge
        le = most if le is None and lt is None else le
    meta = Setting(
        description,
        unit,
        gt if ge is None else ge,
        lt if le is None else le,
        minimum_allowed=gt is None,
        maximum_allowed=lt is None,
        choices=tuple(choices),
        read_only=read_only,
        start_only=start_only,
        scale=scale,
        ros=ros,
    )
    return dataclasses.field(default=default, metadata={_KEY: meta})  # type: ignore[no-any-return]


def python_setting(default: T, description: str, **bounds: Any) -> T:
    """Declare a field as :func:`setting` does, which no node has as a parameter: a setting of the
    Python API alone.
    """
    return setting(default, description, ros=False, **bounds)


def settings_of(cls: type) -> Iterator[tuple[str, Any, Setting]]:
    """Yield `(name, default, Setting)` of every field that :func:`setting` declares, then of the
    plug-ins it may name.

    These have the parameter `<plugin>.<field>`; their names are among the choices of the field that
    names one.
    """
    groups: Mapping[str, Plugins] = getattr(cls, "plugins", {})
    for field in dataclasses.fields(cls):
        if _KEY in field.metadata:
            meta = field.metadata[_KEY]
            if field.name in groups:
                meta = dataclasses.replace(meta, choices=(*meta.choices, *groups[field.name].names))
            yield field.name, field.default, meta
    for plugin in {
        plugin.name: plugin for group in groups.values() for plugin in group.usable.values()
    }.values():
        yield from plugin.settings()


def check_value(name: str, value: Any, default: Any, meta: Setting) -> Any:
    """Return `value` converted to the type of `default`.

    Integers are accepted where a real number is expected, nothing else is converted.

    Raises:
        SettingError: wrong type, not finite, or not among the allowed values; the message names the
            setting, the value and what is allowed.
    """
    kind = type(default)
    if isinstance(value, np.generic):
        value = value.item()
    if kind is float and type(value) is int:
        value = float(value) if abs(value) <= _GREATEST else math.inf if value > 0 else -math.inf
    if kind is tuple and isinstance(value, (list, tuple)):
        return tuple(check_value(f"{name}[{i}]", v, 0.0, meta) for i, v in enumerate(value))
    if type(value) is not kind:
        given = _GIVEN.get(type(value), "no plain value")
        raise SettingError(f"{name}: {shown(value)} is {given}, expected {_TYPE_NAMES[kind]}")
    if kind is str and meta.choices and value not in meta.choices:
        package = or_of_a_package(name.rpartition("_")[2])  # phase_one_objective is an objective
        raise SettingError(
            f"{name}: {shown(value)} is not known; must be {meta.allowed()}{package}"
        )
    if kind is float and not math.isfinite(value):
        raise SettingError(f"{name}: {shown(value)} is not a finite number{_must_be(meta)}")
    if kind is int and not -_GREATEST_INTEGER <= value <= _GREATEST_INTEGER:
        raise SettingError(f"{name}: {shown(value)} is out of range; must be an integer of 64 bits")
    if kind in (int, float) and not meta.admits(value):
        raise SettingError(f"{name}: {shown(value)} is out of range{_must_be(meta)}")
    return value


def _must_be(meta: Setting) -> str:
    allowed = meta.allowed()
    return f"; must be {allowed} {meta.unit}".rstrip() if allowed else ""


def check_settings(instance: Any) -> None:
    """Check every field of a settings dataclass by :func:`check_value`; call it from
    `__post_init__`.
    """
    for name, default, meta in settings_of(type(instance)):
        if _DOT not in name:
            object.__setattr__(
                instance, name, check_value(name, getattr(instance, name), default, meta)
            )


class Settings:
    """Base of frozen dataclasses whose fields are all checked, see :func:`check_settings`, and
    nothing else is.

    Raises:
        SettingError: a value has the wrong type, or is not allowed.
    """

    def __post_init__(self) -> None:
        check_settings(self)


@dataclasses.dataclass(frozen=True)
class PluggedSettings(Settings):
    """Settings that may name plug-ins, each of which has a section with settings of its own.

    Raises:
        SettingError: as of :class:`Settings`; also a plug-in that is named and broken, or an
        unknown section.
    """

    plugins: ClassVar[Mapping[str, Plugins]] = {}
    """By field: the plug-ins that it may name."""
    #: what is given of the sections, by parameter `<plugin>.<field>`, in order and without
    #: defaults.
    sections: tuple[tuple[str, Any], ...] = dataclasses.field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        known = {
            name: (default, meta) for name, default, meta in settings_of(type(self)) if _DOT in name
        }
        given = dict(self.sections)
        refuse_unknown(given, [type(self)], "sections")
        values = {name: check_value(name, value, *known[name]) for name, value in given.items()}
        kept = tuple(
            sorted((name, value) for name, value in values.items() if value != known[name][0])
        )
        object.__setattr__(self, "sections", kept)
        for name, group in self.plugins.items():
            if getattr(self, name) in group.names:
                group.named(getattr(self, name))


def value_of(settings: Any, name: str, default: Any) -> Any:
    """Value of a setting, also of one in a section, where it has the `default` unless it is
    given.
    """
    return dict(settings.sections).get(name, default) if _DOT in name else getattr(settings, name)


def plain_settings(settings: Any) -> dict[str, Any]:
    """The values by name; of plug-ins those of the ones that are named."""
    named = {getattr(settings, name) for name in getattr(settings, "plugins", {})}
    return {
        name: value_of(settings, name, default)
        for name, default, _ in settings_of(type(settings))
        if _DOT not in name or name.partition(_DOT)[0] in named
    }


def changed(settings: T, values: Mapping[str, Any]) -> T:
    """The settings with other values by name, also such in sections."""
    own = {name: value for name, value in values.items() if _DOT not in name}
    if len(own) < len(values):
        before = dict(settings.sections)  # type: ignore[attr-defined]
        own["sections"] = {
            **before,
            **{name: value for name, value in values.items() if _DOT in name},
        }
    return dataclasses.replace(settings, **own)  # type: ignore[type-var]


@dataclasses.dataclass(frozen=True)
class Plugin:
    """What an installed package registers under a name: a class, or the reason why it cannot be
    used.
    """

    name: str
    package: str
    cls: Any = None
    error: str = ""
    version: str = ""  #: of the package; empty for what this package or this process registers.

    def __str__(self) -> str:
        return f"{self.name} of package {self.package}: {self.error}" if self.error else self.name

    def settings(self) -> Iterator[tuple[str, Any, Setting]]:
        """Yield `(parameter, default, Setting)` of each; a parameter is `<plugin>.<field>`."""
        for name, default, meta in settings_of(self.cls) if issubclass(self.cls, Settings) else ():
            yield f"{self.name}{_DOT}{name}", default, meta

    def build(self, settings: object = None) -> Any:
        """Build it with the values of its section of the `settings`, or with its defaults."""
        section = self.name + _DOT
        given = dict(getattr(settings, "sections", ()))
        return self.cls(
            **{
                name[len(section) :]: value
                for name, value in given.items()
                if name.startswith(section)
            }
        )


@dataclasses.dataclass(eq=False)
class Plugins:
    """What installed packages register in a group of entry points; read once, and each loaded when
    it is needed.

    An entry point is a class that is built without arguments, or a :class:`Settings` dataclass,
    whose settings become parameters. A plug-in that cannot be used is kept with the reason, and
    everything else works.
    """

    #: what each is, in messages; with an `s` the name of the group, `nbv_planner.planners`.
    kind: str
    taken: Collection[str]  #: names that are not free.
    #: what keeps a class from being one by this name; empty if nothing does.
    problem: Callable[[str, Any], str]

    @cached_property
    def _entries(self) -> tuple[metadata.EntryPoint | SimpleNamespace, ...]:
        found = metadata.entry_points(group=f"nbv_planner.{self.kind}s")
        return tuple(sorted(found, key=lambda entry: (entry.name, entry.value)))

    @property
    def names(self) -> tuple[str, ...]:
        """Available names, without loading anything."""
        return tuple(dict.fromkeys(one.name for one in self._entries if one.name not in self.taken))

    @cached_property
    def all(self) -> tuple[Plugin, ...]:
        """Every plug-in, loaded, also the broken ones."""
        number = Counter(entry.name for entry in self._entries)
        return tuple(self._plugin(entry, number[entry.name]) for entry in self._entries)

    def register(self, name: str, cls: type) -> None:
        """Have a class under this name in this process, in place of an earlier one; worker
        processes do not have it.

        Raises:
            SettingError: it cannot be used.
        """
        entry = SimpleNamespace(name=name, value="this process", dist=None, load=lambda: cls)
        plugin = self._plugin(entry, 1)
        if plugin.error:
            raise SettingError(f"{self.kind} {plugin}")
        self._entries = (*(one for one in self._entries if one.name != name), entry)
        self.all = (*(one for one in self.all if one.name != name), plugin)

    @property
    def usable(self) -> dict[str, Plugin]:
        """Those that are not broken, by name."""
        return {plugin.name: plugin for plugin in self.all if not plugin.error}

    @property
    def broken(self) -> list[str]:
        """What is wrong with each of the others, in one line."""
        return [f"{self.kind} {plugin}" for plugin in self.all if plugin.error]

    def named(self, name: str) -> Plugin:
        """The plug-in of this name.

        Raises:
            UnknownNameError: it does not exist. SettingError: it is broken; names the package and
            what is wrong.
        """
        found = next((plugin for plugin in self.all if plugin.name == name), None)
        if found is None or name in self.taken:
            raise UnknownNameError(self.kind, name, [*self.taken, *self.names])
        if found.error:
            raise SettingError(f"{self.kind} {found}")
        return found

    def version_of(self, name: str) -> dict[str, str]:
        """Version of the package that registers this name, by the package; empty if none of another
        does.
        """
        plugin = self.usable.get(name)
        return {plugin.package: plugin.version} if plugin and plugin.version else {}

    def _plugin(self, entry: metadata.EntryPoint | SimpleNamespace, number: int) -> Plugin:
        """What an entry point gives; one whose name is not free is not loaded."""
        package = entry.dist.metadata["Name"] if entry.dist else entry.value
        if package.replace("-", "_") == _OWN:
            return self._loaded(entry, _OWN)
        if entry.name in self.taken:
            return Plugin(
                entry.name,
                package,
                error=f"the name belongs to nbv_planner; give the {self.kind} another",
            )
        if number > 1:
            return Plugin(
                entry.name,
                package,
                error=f"{number} plug-ins have this name; only one may be installed",
            )
        return self._loaded(entry, package, entry.dist.version if entry.dist else "")

    def _loaded(
        self, entry: metadata.EntryPoint | SimpleNamespace, package: str, version: str = ""
    ) -> Plugin:
        try:
            cls = entry.load()
            wrong = _no_plugin(entry.name, cls) or self.problem(entry.name, cls)
        except (Exception, SystemExit) as error:
            wrong = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return (
            Plugin(entry.name, package, error=wrong)
            if wrong
            else Plugin(entry.name, package, cls, version=version)
        )


def _no_plugin(name: str, cls: Any) -> str:
    """What keeps an object from being a plug-in of any kind, empty if nothing does."""
    if not name.isidentifier():
        return "the name must consist of letters, digits and underscores"
    if not isinstance(cls, type):
        return f"must be a class, not {type(cls).__name__}"
    if dataclasses.is_dataclass(cls) and not issubclass(cls, Settings):
        return "a plug-in with fields must be a subclass of nbv_planner.settings.Settings"
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    if plain := [one.name for one in fields if _KEY not in one.metadata]:
        return f"its fields must be declared by nbv_planner.settings.setting: {', '.join(plain)}"
    cls()
    return ""


def from_mapping(cls: type[T], values: Mapping[str, Any]) -> T:
    """Build settings class `cls` from those entries of `values` that it declares; others are
    ignored.

    Raises:
        SettingError: an entry is not allowed.
    """
    if not isinstance(values, Mapping):
        raise SettingError(
            f"{cls.__name__}: {shown(values)} is not allowed; must be values by name"
        )
    names = {name for name, _, _ in settings_of(cls)}
    older = renamed(names)
    known = {older.get(key, key): value for key, value in values.items()}
    own = {key: value for key, value in known.items() if key in names and _DOT not in key}
    if sections := {key: value for key, value in known.items() if key in names and _DOT in key}:
        own["sections"] = sections
    return cls(**own)


def refuse_unknown(values: Iterable[str], classes: Iterable[type], where: str) -> None:
    """Refuse names in `values` that no settings class in `classes` declares.

    Raises:
        SettingError: names the unknown key, `where` it was found, and all known keys.
    """
    known = sorted({name for cls in classes for name, _, _ in settings_of(cls)})
    older = renamed(known)
    for key in values:
        if key in older:
            raise SettingError(f"{where}: {key} is now {older[key]}")
        if key not in known:
            raise SettingError(f"{where}: {UnknownNameError('parameter', key, known)}")


def renamed(names: Collection[str]) -> dict[str, str]:
    """Parameters of plug-ins among the `names` by what they were called in version 1,
    `<plugin>_<field>`.
    """
    older = {name.replace(_DOT, "_", 1): name for name in names if _DOT in name}
    return {name: now for name, now in older.items() if name not in names}
