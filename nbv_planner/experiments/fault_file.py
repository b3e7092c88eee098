"""Reading a fault campaign from YAML. Everything is checked before anything runs; errors name file and line."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from nbv_planner.config_files import named_file
from nbv_planner.episode_config import config_from_parameters
from nbv_planner.experiments.located_yaml import Located, read_located
from nbv_planner.faults.campaign import REFERENCE, Campaign, Case
from nbv_planner.faults.kinds import FAULTS, Fault
from nbv_planner.node_settings import NODE_SETTINGS, DepthCameraParameters
from nbv_planner.settings import Setting, check_value, settings_of
from nbv_planner.simulation import Simulation

KEYS = ("name", "seed", "time_limit", "parameters", "cases")
"""Keys of a campaign file; `cases` is required."""

CASE_KEYS = ("faults", "repeats", "parameters", "expect_reference")
"""Keys of a case."""

# The campaign itself decides these.
_TAKEN = {"map_file", "state_file", "wait_for_start", "run_info_nodes", "exit_when_done", "autostart"}
_SEED = Setting("Seed.", minimum=0, maximum=2**53)
_REPEATS = Setting("Number of runs.", minimum=1, maximum=10_000)
_TIME_LIMIT = Setting("Time after which a run is given up.", unit="s", minimum=1.0, maximum=3600.0)
_EXPECT = Setting("Whether the runs must end as the reference does.")

T = TypeVar("T")


def load_campaign(name: str) -> Campaign:
    """Read and check a campaign.

    Args:
        name: a YAML file, or the name of a campaign that comes with the package.

    Raises:
        ConfigFileError: it cannot be read, or something in it is not allowed; names the file and the line.
    """
    path = named_file(name, "campaign", "config/faults/standard.yaml")
    text, root = read_located(path)
    entries = root.known_mapping("key", KEYS)
    if "cases" not in entries:
        raise root.error("'cases' is missing")
    parameters = _parameters(entries["parameters"]) if "parameters" in entries else {}
    campaign = Campaign(
        name=entries["name"].text() if "name" in entries else path.stem,
        cases=(Case(REFERENCE), *_cases(entries["cases"])),
        parameters=parameters,
        seed=_scalar(entries, "seed", 0, _SEED),
        time_limit=_scalar(entries, "time_limit", 60.0, _TIME_LIMIT),
        text=text,
    )
    for case in campaign.cases:
        entry = entries["cases"] if case.name == REFERENCE else entries["cases"].mapping()[case.name]
        with entry.blamed():
            given = campaign.parameters_of(case)
            shape = given.get("depth_camera", {}).get("object", DepthCameraParameters().object)
            Simulation(config_from_parameters(given, object=shape, protocol="sensor"))
    return campaign


def _scalar(entries: dict[str, Located], key: str, default: T, meta: Setting) -> T:
    """Value of `key`, checked, or the default."""
    if key not in entries:
        return default
    with entries[key].named("").blamed():
        value: T = check_value(key, entries[key].scalar(), default, meta)
    return value


def _parameters(entry: Located) -> dict[str, dict[str, Any]]:
    """Parameters by node; those of `all` are given to every node that has them."""
    found: dict[str, dict[str, Any]] = {node: {} for node in NODE_SETTINGS}
    sections = entry.known_mapping("node", ("all", *NODE_SETTINGS))
    for section in sorted(sections, key=lambda name: name != "all"):
        nodes = list(NODE_SETTINGS) if section == "all" else [section]
        known = {node: _known(node) for node in nodes}
        names = {name for of_node in known.values() for name in of_node}
        for name, value in sections[section].known_mapping("parameter", names).items():
            for node in (node for node in nodes if name in known[node]):
                with value.named("").blamed():
                    found[node][name] = check_value(name, value.value(), *known[node][name])
    return {node: values for node, values in found.items() if values}


def _known(node: str) -> dict[str, tuple[Any, Setting]]:
    """Parameters of a node that a campaign may set: default and description by name."""
    return {
        name: (default, meta) for cls in NODE_SETTINGS[node] for name, default, meta in settings_of(cls)
        if name not in _TAKEN
    }


def _cases(entry: Located) -> list[Case]:
    cases = entry.mapping()
    if not cases:
        raise entry.error("must have at least one case, 'name: {faults: [...]}'")
    return [_case(name, case) for name, case in cases.items()]


def _case(name: str, entry: Located) -> Case:
    if not re.fullmatch(r"[a-z0-9_]+", name) or name == REFERENCE:
        raise entry.error(f"{name!r} is no name of a case: small letters, digits and _, and not {REFERENCE}")
    entries = entry.known_mapping("key", CASE_KEYS)
    if "faults" not in entries:
        raise entry.error("'faults' is missing")
    return Case(
        name,
        tuple(_fault(item) for item in entries["faults"].sequence()),
        _scalar(entries, "repeats", 1, _REPEATS),
        _parameters(entries["parameters"]) if "parameters" in entries else {},
        _scalar(entries, "expect_reference", False, _EXPECT),
    )


def _fault(entry: Located) -> Fault:
    """One fault, `{kind: ..., ...}`."""
    entries = entry.mapping()
    if "kind" not in entries:
        raise entry.error(f"'kind' is missing; one of {', '.join(FAULTS)}")
    kind = entries["kind"].text()
    if kind not in FAULTS:
        raise entries["kind"].error(f"unknown kind of fault {kind!r}; known: {', '.join(FAULTS)}")
    known = {name: (default, meta) for name, default, meta in settings_of(FAULTS[kind])}
    values = {}
    for name, value in entry.known_mapping("setting", {"kind", *known}).items():
        if name != "kind":
            with value.named("").blamed():
                values[name] = check_value(name, value.scalar(), *known[name])
    with entry.blamed():
        return FAULTS[kind](**values)
