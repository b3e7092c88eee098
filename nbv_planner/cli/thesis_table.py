"""Verb `thesis-table`: the thesis's 22 objects, next to its published table 7.1."""

from __future__ import annotations

import argparse
import os
import sys

from nbv_planner.errors import SettingError, UnknownNameError
from nbv_planner.experiments.thesis_table import (
    TABLE_PLANNERS,
    TableRow,
    published_table,
    run_table,
    thesis_objects,
)
from nbv_planner.planning.objectives import OBJECTIVES
from nbv_planner.planning.planners import PlannerSettings


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("thesis-table", help="rerun the thesis's 22 objects and compare with its table 7.1")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="number of processes")
    parser.add_argument(
        "--tie-tolerance", type=float, default=0.0, metavar="X",
        help="relative difference below which two utilities count as equal and the first candidate wins "
        "(default: 0, the plain maximum, as in the thesis)",
    )
    parser.add_argument(
        "--planners", default=",".join(TABLE_PLANNERS), metavar="A,B",
        help=f"published planners ({', '.join(TABLE_PLANNERS)}) or objectives for the greedy planner "
        "(default: the published ones)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.workers < 1:
        raise SettingError(f"--workers: {arguments.workers} is out of range; must be >= 1")
    if not 0.0 <= arguments.tie_tolerance < 1.0:
        raise SettingError(f"--tie-tolerance: {arguments.tie_tolerance} is out of range; must be >= 0 and < 1")
    rows = run_table(
        _planners(arguments.planners), thesis_objects(), arguments.workers, tie_tolerance=arguments.tie_tolerance,
        progress=_progress,
    )
    print(file=sys.stderr)
    published = published_table()
    print("Each cell: this package (published).\n")
    print("| planner | T95 relative to greedy | objects below 95 % | T relative | coverage | regret |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(_line(row, published.get(row.planner)))
    return 0


def _planners(names: str) -> dict[str, PlannerSettings]:
    """Planners by the names that were asked for.

    Raises:
        UnknownNameError: lists the known ones.
    """
    planners = {}
    for name in names.split(","):
        if name not in TABLE_PLANNERS and name not in OBJECTIVES:
            raise UnknownNameError("planner", name, {*TABLE_PLANNERS, *OBJECTIVES})
        planners[name] = TABLE_PLANNERS.get(name) or PlannerSettings(objective=name)
    return planners


def _line(row: TableRow, published: TableRow | None) -> str:
    """One line of the Markdown table; nothing in brackets where nothing is published."""
    cells = [
        (row.t95_percent, published and published.t95_percent, ".1f", ".0f", " %"),
        (row.not_reached, published and published.not_reached, "d", "d", ""),
        (row.t_percent, published and published.t_percent, ".1f", ".0f", " %"),
        (row.rec_percent, published and published.rec_percent, ".1f", ".0f", " %"),
        (row.regret, published and published.regret, ".2f", ".2f", ""),
    ]
    texts = [
        f"{ours:{fine}}{unit}" + ("" if theirs is None else f" ({theirs:{coarse}}{unit})")
        for ours, theirs, fine, coarse, unit in cells
    ]
    return "| " + " | ".join([row.planner, *texts]) + " |"


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total:
        print(f"\r{done} of {total} episodes", end="", file=sys.stderr, flush=True)
