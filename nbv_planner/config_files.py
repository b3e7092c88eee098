"""ROS 2 parameter files, read without ROS: the same YAML serves nodes, simulation and command line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nbv_planner.errors import ConfigFileError, SettingError
from nbv_planner.node_settings import NODE_SETTINGS
from nbv_planner.settings import check_value, settings_of

Parameters = dict[str, dict[str, Any]]
"""Parameter values by node name and parameter name."""

_QOS = "qos_overrides"


class YamlLoader(yaml.SafeLoader):
    """Safe loader that reads `1e-3` as a number, as ROS does; YAML 1.1 wants `1.0e-3`."""


YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def load_parameters(path: str | Path) -> Parameters:
    """Read a ROS 2 parameter file for the three nodes and check every value in it.

    Sections are `/**` (all nodes) and the node names, each with `ros__parameters`; a node's own section wins.
    Overrides of the quality of service are kept under their full names, as `qos_overrides./scan.publisher.depth`.

    Raises:
        ConfigFileError: the file cannot be read, or a section, key or value is not allowed; the message names the
            file, the section, the key, the value and what is allowed.
    """
    content = _content(path)
    parameters: Parameters = {node: {} for node in NODE_SETTINGS}
    for section in sorted(content, key=lambda name: str(name) != "/**"):
        values = _section(path, str(section), content[section])
        for node in _nodes_of(path, str(section)):
            parameters[node].update(_checked(f"{path}: {section}", node, values))
    return parameters


def takes_simulated_time(path: str | Path) -> bool:
    """Whether a ROS 2 parameter file asks any node for `use_sim_time`, which :func:`load_parameters` leaves out.

    Raises:
        ConfigFileError: the file cannot be read.
    """
    content = _content(path)
    return any(_section(path, str(name), content[name]).get("use_sim_time") is True for name in content)


def _content(path: str | Path) -> Mapping[str, Any]:
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=YamlLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigFileError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    if not isinstance(content, Mapping):
        raise ConfigFileError(f"{path}: must be a mapping of node names")
    return content


def _section(path: str | Path, name: str, content: Any) -> Mapping[str, Any]:
    values = content.get("ros__parameters") if isinstance(content, Mapping) else None
    if not isinstance(values, Mapping) or set(content) != {"ros__parameters"}:
        raise ConfigFileError(f"{path}: section {name!r} must hold 'ros__parameters:' with values below it")
    return values


def _nodes_of(path: str | Path, section: str) -> list[str]:
    if section == "/**":
        return list(NODE_SETTINGS)
    name = section.rsplit("/", 1)[-1]
    if name == "turntable":  # it checks its parameters itself
        return []
    if name not in NODE_SETTINGS:
        raise ConfigFileError(f"{path}: unknown section {section!r}; known: /**, {', '.join(NODE_SETTINGS)}")
    return [name]


def _checked(where: str, node: str, values: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: (default, meta) for cls in NODE_SETTINGS[node] for name, default, meta in settings_of(cls)}
    checked = {}
    for key, value in values.items():
        if key == "use_sim_time":  # for whoever starts the nodes to say
            continue
        if key.partition(".")[0] == _QOS:
            checked.update(_flat(key, value))
            continue
        if key not in known:
            raise ConfigFileError(f"{where}: {node} has no parameter {key!r}; known: {', '.join(sorted(known))}")
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
    checkout = Path(__file__).resolve().parent.parent
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p] + [Path(sys.prefix)]
    places = [checkout / relative, *(prefix / "share" / "nbv_planner" / relative for prefix in prefixes)]
    for place in places:
        if place.is_file():
            return place
    raise ConfigFileError(f"{relative} is not installed; looked for " + ", ".join(str(place) for place in places))


def named_file(name: str, kind: str, known: str) -> Path:
    """Find a file, or by its name alone one of those that come with the package.

    Args:
        name: a path, or a name without ending.
        kind: what such a file is called in an error.
        known: one of those that come with the package, for example `config/experiments/thesis.yaml`.

    Raises:
        ConfigFileError: there is neither; lists those that come with the package.
    """
    path, example = Path(name), Path(known)
    if path.is_file() or path.name != name or path.suffix:
        return path
    try:
        return shared_file(str(example.with_stem(name)))
    except ConfigFileError as error:
        names = ", ".join(sorted(file.stem for file in shared_file(known).parent.glob("*.yaml")))
        raise ConfigFileError(f"there is no file and no {kind} {name!r}; known {kind}s: {names}") from error
