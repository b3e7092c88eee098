"""Verb `parameters`: the parameters of the nodes as Markdown tables, from their declarations."""

from __future__ import annotations

import argparse
from typing import Any

from nbv_planner.node_settings import NODE_SETTINGS, TURNTABLE_SETTINGS
from nbv_planner.settings import Setting, settings_of


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("parameters", help="print the parameters of the nodes as Markdown tables")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    print(parameter_tables())
    return 0


def parameter_tables() -> str:
    """Tables of all parameters: those that all nodes share first, then those of each node."""
    shared = [cls for cls in NODE_SETTINGS["depth_camera"] if all(cls in classes for classes in NODE_SETTINGS.values())]
    parts = [_table("All nodes (shared geometry is given once, under `/**`)", shared)]
    parts += [_table(f"`{node}`", [c for c in classes if c not in shared]) for node, classes in NODE_SETTINGS.items()]
    others = [cls for cls in TURNTABLE_SETTINGS if cls not in shared]
    return "\n\n".join([*parts, _table("`turntable`, where a table turns the object", others)])


def _table(title: str, classes: list[type]) -> str:
    rows = [_row(name, default, meta) for cls in classes for name, default, meta in settings_of(cls)]
    head = ["| parameter | default | unit | allowed | at run time | meaning |", "|---|---|---|---|---|---|"]
    return "\n".join([f"**{title}**", "", *head, *rows])


def _row(name: str, default: Any, meta: Setting) -> str:
    allowed = meta.allowed().replace("|", "\\|")
    changeable = "no" if meta.read_only else "yes"
    return f"| `{name}` | {_text(default)} | {meta.unit} | {allowed} | {changeable} | {meta.description} |"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{v:.6g}" for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
