"""ROS 2 parameter files, read without ROS: the same YAML serves nodes, simulation and command
line.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nbv_planner.episode.parameters import (
    BESIDE,
    NODE_SETTINGS,
    NODES,
    PlannerSettings,
    no_parameter,
    parameters_of,
)
from nbv_planner.episode.solid.solid_settings import SOLID_NODES
from nbv_planner.errors import ConfigFileError, UnknownNameError, cut, did_you_mean, shown
from nbv_planner.files.located_yaml import Located, dumped, located, read_located
from nbv_planner.planning.planners.decision_settings import PLANNER_CHOICE, named_choice
from nbv_planner.settings import Setting, check_value

Parameters = dict[str, dict[str, Any]]
"""Parameter values by node name and parameter name."""
_QOS = "qos_overrides"
_VALUES = "ros__parameters"
_LONGEST_NAME = 200
_ALL = ("**", "*")
"""Names of sections that hold for any node."""


def load_parameters(
    path: str | Path, *, every: bool = False, nodes: Mapping[str, tuple[type, ...]] = NODE_SETTINGS
) -> Parameters:
    """Read a ROS 2 parameter file for the three nodes and check every value in it; with `every`
    setting that of a recorded run, which may hold what is no parameter any more. The `nodes` have
    these settings classes.

    Sections are `/**` (all nodes that have the parameter) and the node names, each with
    `ros__parameters`; own win. Namespaces may be nested, and sections of other packages are left
    out, see :func:`sections_of_others`. Overrides of the quality of service are kept under their
    full names, as `qos_overrides./scan.publisher.depth`.

    Raises:
        ConfigFileError: the file cannot be read, or a section, key or value is not allowed; the
            message names the file, the section, the key, the value and what is allowed.
    """
    parameters: Parameters = {node: {} for node in nodes}
    for section, values in _sections(path):
        others = names_of_all(every) if _last(section) in _ALL else set()
        for node in _nodes_of(section, values):
            parameters[node].update(
                _checked(parameters_of(nodes[node], every=every), _entries(values), others)
            )
    return parameters


def lay_over(parameters: Parameters, given: Parameters) -> None:
    """Replace values by those `given`, of the same nodes; see :func:`named_choice` for an objective
    alone.
    """
    for node in parameters.keys() & given.keys():
        named = {name: given[node][name] for name in PLANNER_CHOICE if name in given[node]}
        chosen = named_choice(named, parameters[node].get("planner", PlannerSettings().planner))
        parameters[node].update({**given[node], **chosen})


def set_parameters(
    parameters: Parameters,
    changes: Iterable[str],
    *,
    ros: bool = False,
    nodes: Mapping[str, tuple[type, ...]] = NODES,
) -> None:
    """Lay `NAME=VALUE` over the values of all nodes that have the setting, `NODE.NAME=VALUE` over
    those of one.

    With `ros` it must be a parameter of a node, for nodes are to take it. Nodes that are not in
    `parameters` are left out. The value is read as in a parameter file; none is "".

    Raises:
        ConfigFileError: no such node or parameter, or the value is not allowed; the message repeats
            the change.
    """
    given: Parameters = {node: {} for node in parameters}
    each = {node: parameters_of(nodes[node], every=not ros) for node in given}
    for change in changes:
        where = f"--set {cut(change)}"
        name, _, text = change.partition("=")
        meant = list(given)
        known = {own for node in meant for own in each[node]}
        if "." in name and not name.startswith(_QOS) and name not in known:
            *meant, name = name.split(".", 1)
            if meant[0] not in given:
                raise ConfigFileError(f"{where}: {UnknownNameError('node', meant[0], given)}")
            known = set(each[meant[0]])
        value = located(text or "''", where, has_lines=False)
        if name not in known and not name.startswith(_QOS):
            raise value.error(_unknown(name, known))
        for node in meant:
            given[node].update(_checked(each[node], [(name, value)], known))
    lay_over(parameters, given)


def names_of_all(every: bool = False) -> set[str]:
    """Every name that may stand under `/**`: parameters of any node, in the plane or in space."""
    classes = (*NODES.values(), *SOLID_NODES.values())
    return {name for one in classes for name in parameters_of(one, every=every)}


def _unknown(name: str, known: Collection[str]) -> str:
    for classes in NODES.values():
        if words := no_parameter(name, classes):
            return words
    if owners := [node for node in NODE_SETTINGS if name in parameters_of(NODES[node])]:
        return f"unknown parameter {shown(name)}: it is one of {' and '.join(owners)}"
    return (
        f"unknown parameter {shown(name)}; docs/reference/parameters.md lists"
        f" all{did_you_mean(name, known)}"
    )


def takes_simulated_time(path: str | Path) -> bool:
    """Whether a ROS 2 parameter file sets `use_sim_time` for any node, which
    :func:`load_parameters` leaves out.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    return any(
        name == "use_sim_time" and value.plain() is True
        for _, values in _sections(path)
        for name, value in values.entries()
    )


def check_sections(path: str | Path, full_name: str) -> str:
    """Check that a ROS 2 parameter file reaches a node: ROS itself skips the sections of others
    silently.

    The file may hold sections of any other nodes too; returns which belong to no node of this
    package, empty if none.

    Raises:
        ConfigFileError: the sections that the node was meant to take, by their names, are for other
            namespaces or misspelt.
    """
    own = _last(full_name)
    names = {section: _last(section) for section, _ in _sections(path)}
    unknown = _unknown_sections(names, own)
    mine = [section for section, name in names.items() if own in (name, unknown.get(section))]
    patterns = (  # as ROS reads a section: * is any name, ** any number of names
        re.escape("/" + section.lstrip("/")).replace(r"/\*\*", r"(/\w+)*").replace(r"/\*", r"/\w+")
        for section in mine
    )
    if mine and not any(re.fullmatch(pattern, full_name) for pattern in patterns):
        words = f"section {shown(mine[0])} does not apply to {full_name}; did you mean '/**/{own}'?"
        raise ConfigFileError(f"{path}: {words}")
    return _of_others(path, unknown)


def sections_of_others(path: str | Path) -> str:
    """Which sections of a ROS 2 parameter file are of no node of this package, in words; empty if
    none is.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    return _of_others(
        path, _unknown_sections({section: _last(section) for section, _ in _sections(path)})
    )


def _unknown_sections(names: Mapping[str, str], *own: str) -> dict[str, str]:
    """Sections whose names are of no node, each with the node of which the name may be a
    misspelling, or empty.
    """
    return {
        section: next(iter(difflib.get_close_matches(name[:_LONGEST_NAME], NODES, n=1)), "")
        for section, name in names.items()
        if "*" not in name and name not in (*own, *NODES)
    }


def _of_others(path: str | Path, unknown: Mapping[str, str]) -> str:
    words = [
        f"{shown(name)}" + (f" (did you mean {meant}?)" if meant else "")
        for name, meant in unknown.items()
    ]
    unused = f"{path}: sections not used, since no node of this package has them"
    return f"{unused}: {', '.join(words)}" if words else ""


def shared_parameters(path: str | Path) -> set[str]:
    """Names under `/**`, which are not meant for each node alone.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    return {
        name
        for section, values in _sections(path)
        if _last(section) in _ALL
        for name, _ in _entries(values)
    }


def _entries(values: Located) -> Iterator[tuple[str, Located]]:
    """Parameters of a section; those of a plug-in, which has one of its own within, by their full
    names.
    """
    for key, entry in values.entries():
        if entry.is_mapping and key != _QOS:
            yield from ((f"{key}.{name}", inner) for name, inner in entry.entries())
        else:
            yield key, entry


def _last(section: str) -> str:
    """Name of the node in that of a section."""
    return section.rpartition("/")[2]


def _sections(path: str | Path) -> list[tuple[str, Located]]:
    """Names and values of the sections, those of all nodes first; namespaces may be nested, as in
    ROS.
    """
    _, content = read_located(path)
    if not content.is_mapping:
        raise content.error(
            f"must be a mapping of the names of nodes, each with '{_VALUES}:' below it"
        )
    return sorted(_sections_in(content), key=lambda section: _last(section[0]) not in _ALL)


def _sections_in(content: Located, above: str = "") -> Iterator[tuple[str, Located]]:
    for key, entry in content.entries():
        name = f"{above}{key}"
        inside = dict(entry.entries()) if entry.is_mapping else {}
        values = inside.get(_VALUES)
        if values is None and inside and all(one.is_mapping for one in inside.values()):
            yield from _sections_in(entry, f"{name}/")
        elif values is None or not values.is_mapping or len(inside) > 1:
            raise entry.named("").error(
                f"section {shown(name)} must hold '{_VALUES}:' with values below it"
            )
        else:
            yield name, values.named(name)


def _nodes_of(section: str, values: Located) -> list[str]:
    """Nodes of this package that a section is for; none for one of another package."""
    name = _last(section)
    if name in _ALL:
        return list(NODE_SETTINGS)
    if name in BESIDE:  # they check their parameters themselves
        return []
    if name not in NODE_SETTINGS and _unknown_sections({section: name})[section]:
        raise values.named("").error(UnknownNameError("section", section, ["/**", *NODE_SETTINGS]))
    return [name] if name in NODE_SETTINGS else []


def _checked(
    known: Mapping[str, tuple[Any, Setting]],
    values: Iterable[tuple[str, Located]],
    others: Collection[str],
) -> dict[str, Any]:
    """The values that the node, of which all are `known`, takes; those of `others` are for other
    nodes.
    """
    checked: dict[str, Any] = {}
    for key, entry in values:
        if key == "use_sim_time":  # it is set by who starts the nodes
            continue
        if key.partition(".")[0] == _QOS:
            checked.update(_flat(key, entry.plain()))
            continue
        place = entry.named(entry.path.rpartition(".")[0])
        if key not in known:
            if key in others:
                continue
            raise place.error(_unknown(key, others or known))
        value = entry.plain()
        with place.errors_here():
            checked[key] = check_value(key, value, *known[key])
    return checked


def _flat(key: str, value: Any) -> dict[str, Any]:
    """Parameters of nested mappings by their full names; the nodes themselves check those of
    ROS.
    """
    if not isinstance(value, Mapping):
        return {key: value}
    return {
        name: leaf
        for part, inner in value.items()
        for name, leaf in _flat(f"{key}.{part}", inner).items()
    }


def values_for(path: str | Path, node: str) -> dict[str, Any]:
    """What a parameter file holds for one node in any namespace, unchecked.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    found = [values for section, values in _sections(path) if _last(section) in (*_ALL, node)]
    return {name: value for values in found for name, value in values.plain().items()}


def dump_parameters(parameters: Parameters) -> str:
    """Write parameters as a ROS 2 parameter file."""
    plain = {
        node: {
            "ros__parameters": {
                k: list(v) if isinstance(v, tuple) else v for k, v in values.items()
            }
        }
        for node, values in parameters.items()
        if values
    }
    return dumped(plain)


def shared_file(relative: str) -> Path:
    """Find an installed file of the package, for example `config/simulation.yaml`.

    It is looked for in the source checkout, in the prefixes of a sourced ROS workspace, and in
    Python's own prefix.

    Raises:
        ConfigFileError: lists where it was looked for.
    """
    checkout = Path(__file__).resolve().parents[2]
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p] + [
        Path(sys.prefix)
    ]
    places = [
        checkout / relative,
        *(prefix / "share" / "nbv_planner" / relative for prefix in prefixes),
    ]
    for place in places:
        if place.is_file():
            return place
    raise ConfigFileError(
        f"{relative} is not installed; looked for " + ", ".join(str(place) for place in places)
    )


def named_file(name: str, kind: str, known: str) -> Path:
    """Find a file, or by its name alone (without ending) one of those that come with the package
    beside a `known` one.

    Raises:
        ConfigFileError: there is neither; lists those that come with the package.
    """
    path, example = Path(name), Path(known)
    if (path.exists() and not path.is_dir()) or path.name != name or path.suffix:
        return path
    try:
        return shared_file(str(example.with_stem(name)))
    except ConfigFileError as error:
        names = sorted(file.stem for file in shared_file(known).parent.glob("*.yaml"))
        listed = f"{', '.join(names)}{did_you_mean(name, names)}"
        raise ConfigFileError(
            f"there is no file and no {kind} {name!r}; known {kind}s: {listed}"
        ) from error
