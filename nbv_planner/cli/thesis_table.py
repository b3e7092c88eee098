"""Verb `thesis-table`: the thesis's 22 objects, next to its published table 7.1."""

from __future__ import annotations

import argparse
import os
import sys

from nbv_planner.errors import SettingError
from nbv_planner.experiments.thesis_table import TABLE_PLANNERS, published_table, run_table, thesis_objects


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("thesis-table", help="rerun the thesis's 22 objects and compare with its table 7.1")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="number of processes")
    parser.add_argument(
        "--tie-tolerance", type=float, default=0.0, metavar="X",
        help="relative difference below which two utilities count as equal and the first candidate wins "
        "(default: 0, the plain maximum, as in the thesis)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    if arguments.workers < 1:
        raise SettingError(f"--workers: {arguments.workers} is out of range; must be >= 1")
    if not 0.0 <= arguments.tie_tolerance < 1.0:
        raise SettingError(f"--tie-tolerance: {arguments.tie_tolerance} is out of range; must be >= 0 and < 1")
    rows = run_table(
        TABLE_PLANNERS, thesis_objects(), arguments.workers, tie_tolerance=arguments.tie_tolerance, progress=_progress
    )
    print(file=sys.stderr)
    published = published_table()
    print("Each cell: this package (published).\n")
    print("| planner | T95 relative to greedy | objects below 95 % | T relative | coverage | regret |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        old = published[row.planner]
        print(
            f"| {row.planner} | {row.t95_percent:.1f} % ({old.t95_percent:.0f} %) "
            f"| {row.not_reached} ({old.not_reached}) | {row.t_percent:.1f} % ({old.t_percent:.0f} %) "
            f"| {row.rec_percent:.1f} % ({old.rec_percent:.0f} %) | {row.regret:.2f} ({old.regret:.2f}) |"
        )
    return 0


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total:
        print(f"\r{done} of {total} episodes", end="", file=sys.stderr, flush=True)
