"""ROS 2 parameter files, read without ROS: the same YAML serves nodes, simulation and command line."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.episode.parameters import BESIDE, IGNORED, NODE_SETTINGS
from nbv_planner.errors import ConfigFileError, SettingError, UnknownNameError, did_you_mean, reason
from nbv_planner.planning.planners import PlannerSettings
from nbv_planner.planning.planners.planner import PLANNER_CHOICE, named_choice
from nbv_planner.settings import Setting, check_value, settings_of
from nbv_planner.system import read_regular

Parameters = dict[str, dict[str, Any]]
"""Parameter values by node name and parameter name."""
_QOS = "qos_overrides"
_NODES = {**NODE_SETTINGS, **BESIDE}


class YamlLoader(yaml.SafeLoader):
    """Safe loader that reads `1e-3` as a number, as ROS does; YAML 1.1 requires `1.0e-3`."""


YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def load_parameters(path: str | Path) -> Parameters:
    """Read a ROS 2 parameter file for the three nodes and check every value in it.

    Sections are `/**` (all nodes that have the parameter) and the node names, each with `ros__parameters`; own win.
    Overrides of the quality of service are kept under their full names, as `qos_overrides./scan.publisher.depth`.

    Raises:
        ConfigFileError: the file cannot be read, or a section, key or value is not allowed; the message names the
            file, the section, the key, the value and what is allowed.
    """
    parameters: Parameters = {node: {} for node in NODE_SETTINGS}
    for section, values in _sections(path):
        others = names_of_all() if section == "/**" else set()
        for node in _nodes_of(path, section):
            parameters[node].update(_checked(f"{path}: {section}", node, values, others))
    return parameters


def lay_over(parameters: Parameters, given: Parameters) -> None:
    """Replace values by those `given`, of the same nodes; see :func:`named_choice` for an objective alone."""
    for node in parameters.keys() & given.keys():
        named = {name: given[node][name] for name in PLANNER_CHOICE if name in given[node]}
        chosen = named_choice(named, parameters[node].get("planner", PlannerSettings().planner))
        parameters[node].update({**given[node], **chosen})


def set_parameters(parameters: Parameters, changes: Iterable[str]) -> None:
    """Lay `NAME=VALUE` over the values of all nodes that have the parameter, `NODE.NAME=VALUE` over those of one.

    Nodes that are not in `parameters` are left out. The value is read as in a parameter file; none is "".

    Raises:
        ConfigFileError: no such node or parameter, or the value is not allowed; the message repeats the change.
    """
    given: Parameters = {node: {} for node in parameters}
    for change in changes:
        where, (name, _, text), nodes = f"--set {change}", change.partition("="), list(given)
        if "." in name and not name.startswith(_QOS):
            (*nodes, name) = name.split(".", 1)
            if nodes[0] not in given:
                raise ConfigFileError(f"{where}: {UnknownNameError('node', nodes[0], given)}")
        known = {own for node in nodes for own in _known(node)}
        if name not in known and not name.startswith(_QOS):
            raise _unknown(where, name, known)
        try:
            value = yaml.load(text, Loader=YamlLoader) if text else ""
        except yaml.YAMLError as error:
            raise ConfigFileError(f"{where}: {' '.join(str(error).split())}") from error
        for node in nodes:
            given[node].update(_checked(where, node, {name: value}, known))
    lay_over(parameters, given)


def names_of_all() -> set[str]:
    """Every name that may stand under `/**`: parameters of any node, also of older versions."""
    return set[str]().union(*map(_known, _NODES), *IGNORED.values())


@cache
def _known(node: str) -> dict[str, tuple[Any, Setting]]:
    return {name: (default, meta) for cls in _NODES[node] for name, default, meta in settings_of(cls)}


def _unknown(where: str, name: object, known: Iterable[str]) -> ConfigFileError:
    listed = f"docs/reference/parameters.md lists all{did_you_mean(name, known)}"
    return ConfigFileError(f"{where}: unknown parameter {str(name)!r}; {listed}")


def takes_simulated_time(path: str | Path) -> bool:
    """Whether a ROS 2 parameter file sets `use_sim_time` for any node, which :func:`load_parameters` leaves out.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    return any(values.get("use_sim_time") is True for _, values in _sections(path))


def check_sections(path: str | Path, full_name: str) -> str:
    """Check that a ROS 2 parameter file reaches a node: ROS itself skips the sections of others silently.

    The file may hold sections of any other nodes too; returns which belong to no node of this package, empty if none.

    Raises:
        ConfigFileError: the sections that the node was meant to take, by their names, are for other namespaces or
            misspelt.
    """
    own = full_name.rsplit("/", 1)[-1]
    names = {section: section.rsplit("/", 1)[-1] for section in _section_names(_content(path))}
    unknown = {  # with the node of which the name may be a misspelling
        section: next(iter(difflib.get_close_matches(name, _NODES, n=1)), "")
        for section, name in names.items() if "*" not in name and name not in (own, *_NODES)
    }
    mine = [section for section, name in names.items() if own in (name, unknown.get(section))]
    patterns = (  # as ROS reads a section: * is any name, ** any number of names
        re.escape("/" + section.lstrip("/")).replace(r"/\*\*", r"(/\w+)*").replace(r"/\*", r"/\w+") for section in mine
    )
    if mine and not any(re.fullmatch(pattern, full_name) for pattern in patterns):
        raise ConfigFileError(f"{path}: section {mine[0]!r} does not hold for {full_name}; did you mean '/**/{own}'?")
    listed = ", ".join(f"{name!r}" + (f" (did you mean {meant}?)" if meant else "") for name, meant in unknown.items())
    return f"{path}: of no node of this package, and not used: {listed}" if listed else ""


def _section_names(content: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Names of the sections of a parameter file, in which namespaces may be nested."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            name = f"{above}{key}"
            yield from [name] if "ros__parameters" in value else _section_names(value, f"{name}/")


def ignored_parameters(path: str | Path) -> list[str]:
    """Names of :data:`IGNORED` parameters in the own sections of a node; under `/**` they are meant for the mapper.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    own = [
        name for section, values in _sections(path) if section != "/**"
        for node in _nodes_of(path, section) for name in values if name in IGNORED.get(node, ())
    ]
    return list(dict.fromkeys(own))


def shared_parameters(path: str | Path) -> set[str]:
    """Names under `/**`, which are not meant for each node alone.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    section = _content(path).get("/**") or {}
    return set(section.get("ros__parameters") or ())


def _content(path: str | Path) -> Mapping[str, Any]:
    try:
        content = yaml.load(read_regular(path).decode("utf-8"), Loader=YamlLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigFileError(f"cannot read {path}: {' '.join(reason(error).split())}") from error
    if not isinstance(content, Mapping):
        raise ConfigFileError(f"{path}: must be a mapping of the names of nodes, each with 'ros__parameters:' below it")
    return content


def _sections(path: str | Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and values of the sections, that of all nodes first."""
    for name, content in sorted(_content(path).items(), key=lambda item: str(item[0]) != "/**"):
        values = content.get("ros__parameters") if isinstance(content, Mapping) else None
        if not isinstance(values, Mapping) or set(content) != {"ros__parameters"}:
            raise ConfigFileError(f"{path}: section {str(name)!r} must hold 'ros__parameters:' with values below it")
        yield str(name), values


def _nodes_of(path: str | Path, section: str) -> list[str]:
    if section == "/**":
        return list(NODE_SETTINGS)
    name = section.rsplit("/", 1)[-1]
    if name in BESIDE:  # they check their parameters themselves
        return []
    if name not in NODE_SETTINGS:
        raise ConfigFileError(f"{path}: {UnknownNameError('section', section, ['/**', *NODE_SETTINGS])}")
    return [name]


def _checked(where: str, node: str, values: Mapping[str, Any], others: Collection[str]) -> dict[str, Any]:
    """The values that the node takes; those of `others` are for other nodes."""
    known, checked = _known(node), {}
    for key, value in values.items():
        if key == "use_sim_time" or key in IGNORED.get(node, ()):  # the former is set by who starts the nodes
            continue
        if str(key).partition(".")[0] == _QOS:
            checked.update(_flat(key, value))
            continue
        if key not in known:
            if key in others:
                continue
            raise _unknown(where, key, others or known)
        try:
            checked[key] = check_value(key, value, *known[key])
        except SettingError as error:
            raise ConfigFileError(f"{where}: {error}") from error
    return checked


def _flat(key: str, value: Any) -> dict[str, Any]:
    """Parameters of nested mappings by their full names; the nodes themselves check those of ROS."""
    if not isinstance(value, Mapping):
        return {key: value}
    return {name: leaf for part, inner in value.items() for name, leaf in _flat(f"{key}.{part}", inner).items()}


def values_for(path: str | Path, node: str) -> dict[str, Any]:
    """What a parameter file holds for one node in any namespace, unchecked.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    found = [values for section, values in _sections(path) if section.rpartition("/")[2] in ("**", node)]
    return {name: value for values in found for name, value in values.items()}


def dump_parameters(parameters: Parameters) -> str:
    """Write parameters as a ROS 2 parameter file."""
    plain = {
        node: {"ros__parameters": {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}}
        for node, values in parameters.items()
        if values
    }
    return yaml.safe_dump(plain, sort_keys=False)


def shared_file(relative: str) -> Path:
    """Find an installed file of the package, for example `config/simulation.yaml`.

    It is looked for in the source checkout, in the prefixes of a sourced ROS workspace, and in Python's own prefix.

    Raises:
        ConfigFileError: lists where it was looked for.
    """
    checkout = Path(__file__).resolve().parents[2]
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p] + [Path(sys.prefix)]
    places = [checkout / relative, *(prefix / "share" / "nbv_planner" / relative for prefix in prefixes)]
    for place in places:
        if place.is_file():
            return place
    raise ConfigFileError(f"{relative} is not installed; looked for " + ", ".join(str(place) for place in places))


def named_file(name: str, kind: str, known: str) -> Path:
    """Find a file, or by its name alone (without ending) one of those that come with the package beside a `known` one.

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
        raise ConfigFileError(f"there is no file and no {kind} {name!r}; known {kind}s: {listed}") from error
