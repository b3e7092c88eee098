"""Run episodes in worlds that are as declared, and count the false alarms."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from campaigns.lies import Row
from campaigns.lies_command import add_run_options, exit_code, run_scenarios
from campaigns.scenarios import honest
from nbv_planner.cli.options import one_of
from nbv_planner.world.objects import OBJECT_SETS

# Ends that are an alarm by themselves.
_RED = ("DOUBTFUL", "FAILED", "REFUSED", "NO_SCAN")
_USUAL = ("thesis", "random_test", "real")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--sets",
        nargs="+",
        type=one_of("set", tuple(OBJECT_SETS)),
        default=_USUAL,
        metavar="NAME",
        help=f"sets of objects, of {', '.join(OBJECT_SETS)} (default: {' '.join(_USUAL)})",
    )
    add_run_options(parser, seeds=10)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    rows = run_scenarios(honest({name: OBJECT_SETS[name] for name in arguments.sets}), arguments)
    for name in arguments.sets:
        print(alarms(name, [row for row in rows if row.scenario.endswith(f"-{name}")]))
    print(alarms("all", rows))
    return exit_code(rows)


def alarms(name: str, rows: Sequence[Row]) -> str:
    """How many episodes raised an alarm: red if it ended them, amber at another end, passing if it
    was withdrawn.
    """
    red = sum(row.reason in _RED for row in rows)
    amber = sum(bool(row.said) and row.reason not in _RED for row in rows)
    passing = sum(
        row.doubted is not None and not row.said and row.reason not in _RED for row in rows
    )
    wrong = sum(row.wrong for row in rows)
    share = (red + amber + passing) / max(len(rows), 1)
    counts = f"{amber} amber, {red} red, {passing} passing ({share:.2%} false alarms)"
    return f"{name}: {len(rows)} episodes, {counts}, {wrong} wrong successes"
