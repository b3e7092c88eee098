"""List the objectives and their properties, the planners, or the parameters of the nodes as
Markdown tables.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from nbv_planner.cli.options import one_of
from nbv_planner.episode.parameters import BESIDE, NODE_SETTINGS
from nbv_planner.planning.objectives import OBJECTIVE_PLUGINS, REQUIREMENTS, known_objectives
from nbv_planner.planning.planners import PLANNER_PLUGINS, PLANNERS
from nbv_planner.settings import Plugins, Setting, settings_of
from nbv_planner.world.scale import proportion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "list", type=one_of("list", LISTS), metavar="|".join(LISTS), help="what to list"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the list, and a warning for each plug-in that cannot be used."""
    print(LISTS[arguments.list]())
    for broken in _PLUGINS[arguments.list].broken if arguments.list in _PLUGINS else ():
        print(f"warning: {broken}", file=sys.stderr)
    return 0


def objective_table() -> str:
    """A line for each objective: the requirements it fulfils, and what is proved about its
    regret.
    """
    known = known_objectives()
    wide = max(map(len, known)) + 2
    lines = [
        "requirements (y met, o partly, n not, - not judged): "
        + ", ".join(f"R{i} {name}" for i, name in enumerate(REQUIREMENTS, start=1)),
        f"{'id':{wide}}{'name':32}{'R1..R6':8}{'needs the object':18}regret",
    ]
    for info in known.values():
        needs = "yes" if info.needs_truth else "no"
        caveat = f"; {info.caveat}" if info.caveat else ""
        lines.append(
            f"{info.id:{wide}}{info.name:32}{info.requirements or '-':8}{needs:18}"
            f"{info.proof}{caveat}"
        )
    return "\n".join(lines)


def planner_table() -> str:
    """A line for each planner: the package it comes from."""
    packages = {
        **dict.fromkeys(PLANNERS, "nbv_planner"),
        **{n: p.package for n, p in PLANNER_PLUGINS.usable.items()},
    }
    return "\n".join(
        [f"{'planner':20}package", *(f"{name:20}{package}" for name, package in packages.items())]
    )


_WHEN = {
    "turntable": "where a table turns the object",
    "scan_maker": "where the sensor sends no LaserScan",
}


def parameter_tables() -> str:
    """Tables of all parameters: those that all nodes share first, then those of each node."""
    shared = [
        cls
        for cls in NODE_SETTINGS["depth_camera"]
        if all(cls in classes for classes in NODE_SETTINGS.values())
    ]
    parts = [_table("All nodes (shared geometry is given once, under `/**`)", shared)]
    parts += [
        _table(f"`{node}`", [c for c in classes if c not in shared])
        for node, classes in NODE_SETTINGS.items()
    ]
    parts += [
        _table(f"`{node}`, {when}", [c for c in BESIDE[node] if c not in shared])
        for node, when in _WHEN.items()
    ]
    return "\n\n".join(parts)


LISTS = {"objectives": objective_table, "planners": planner_table, "parameters": parameter_tables}
"""The lists."""
_PLUGINS: dict[str, Plugins] = {"objectives": OBJECTIVE_PLUGINS, "planners": PLANNER_PLUGINS}


def _table(title: str, classes: list[type]) -> str:
    rows = [
        _row(name, default, meta) for cls in classes for name, default, meta in settings_of(cls)
    ]
    head = [
        "| parameter | default | unit | allowed | at run time | meaning |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([f"**{title}**", "", *head, *rows])


def _row(name: str, default: Any, meta: Setting) -> str:
    allowed = meta.allowed().replace("|", "\\|")
    changeable = "no" if meta.read_only else "yes"
    follows = f" ({proportion(default, meta)})" if meta.scale else ""
    return (
        f"| `{name}` | {_text(default)}{follows} | {meta.unit} | {allowed} | {changeable} |"
        f" {meta.description} |"
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{v:.6g}" for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
