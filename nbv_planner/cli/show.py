"""List the objectives and their properties, the planners, or the parameters of the nodes (`space`:
of those in space) as Markdown tables.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nbv_planner.cli.options import one_of
from nbv_planner.episode.parameters import NODES, parameters_of
from nbv_planner.episode.solid.solid_settings import SOLID_NODES
from nbv_planner.planning.objectives import OBJECTIVE_PLUGINS, REQUIREMENTS, known_objectives
from nbv_planner.planning.planners import PLANNER_PLUGINS, PLANNERS
from nbv_planner.settings import Plugins, Setting
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


def parameter_tables(nodes: Mapping[str, tuple[type, ...]] = NODES) -> str:
    """Tables of all parameters of nodes: those that several have first, then those of each, and of
    plug-ins.
    """
    known = {node: parameters_of(classes) for node, classes in nodes.items()}
    tables: dict[str, dict[str, Any]] = {_SEVERAL: {}}
    for node, rows in known.items():
        for name, row in rows.items():
            alone = sum(name in others for others in known.values()) == 1
            title = _PLUGGED if "." in name else f"`{node}`" if alone else _SEVERAL
            tables.setdefault(title, {})[name] = row
    return "\n\n".join(map(_table, tables, tables.values()))


_SEVERAL = "Several nodes: give them once, under `/**`"
_PLUGGED = "Plug-ins: declared where they are used"
LISTS: dict[str, Callable[[], str]] = {
    "objectives": objective_table,
    "planners": planner_table,
    "parameters": parameter_tables,
    "space": partial(parameter_tables, SOLID_NODES),
}
"""The lists."""
_PLUGINS: dict[str, Plugins] = {"objectives": OBJECTIVE_PLUGINS, "planners": PLANNER_PLUGINS}


def _table(title: str, rows: dict[str, Any]) -> str:
    head = ["|parameter|default|allowed|meaning, and when to change it|", "|---|---|---|---|"]
    lines = (_row(name, default, meta) for name, (default, meta) in rows.items())
    return "\n".join([f"**{title}**", "", *head, *lines])


def _row(name: str, default: Any, meta: Setting) -> str:
    live = "" if meta.read_only else " (live)"
    value = f"{_text(default)} {meta.unit}".rstrip()
    follows = f" = {proportion(default, meta)}" if meta.scale else ""
    return f"|`{name}`{live}|{value}{follows}|{_WIDE.sub('', meta.allowed())}|{meta.description}|"


# Bounds that are those of any use of a unit say nothing.
_WIDE = re.compile(r">= -1e\+\d+ and <= 1e\+\d+| and <= [19][.0-9]*e\+\d+|(?<=>)=(?= 1e-(12|09))")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{v:.6g}" for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
