"""Run episodes in worlds that differ from the declared one, and judge their outcomes by the
truth.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from campaigns.lies import ERROR, Row, Run, attempt
from campaigns.lies_folder import KINDS_FILE, ROWS_FILE, TABLE_FILE, LiesFolder
from campaigns.running import run_all
from campaigns.scenarios import HALVES, PLANNERS, SCENARIOS, USUAL_PLANNERS, Scenario
from nbv_bench.cli.experiment import add_back_end, check_back_end
from nbv_planner.cli.options import one_of, whole_number
from nbv_planner.errors import SettingError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "scenarios",
        metavar="KIND",
        nargs="*",
        default=["*"],
        help="kinds of lies, with * and ? for more of them (default: all)",
    )
    parser.add_argument(
        "--half",
        type=one_of("half", (*HALVES, "both")),
        default="both",
        metavar="NAME",
        help="tuning, test or both (default: both)",
    )
    add_run_options(parser, seeds=3)


def add_run_options(parser: argparse.ArgumentParser, seeds: int) -> None:
    """Add the options that lies and honest worlds share."""
    parser.add_argument(
        "--planners",
        nargs="+",
        type=one_of("planner", tuple(PLANNERS)),
        default=USUAL_PLANNERS,
        metavar="NAME",
        help=f"of {', '.join(PLANNERS)} (default: {' '.join(USUAL_PLANNERS)})",
    )
    parser.add_argument(
        "--seeds",
        type=whole_number(1),
        default=seeds,
        metavar="N",
        help="number of seeds (default: %(default)s)",
    )
    parser.add_argument(
        "--first-seed",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="the first of them, as of runs that nothing was chosen on (default: %(default)s)",
    )
    parser.add_argument(
        "--plain", action="store_true", help="with the plain mapper (robust: false)"
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="results folder, new or empty unless --resume"
    )
    parser.add_argument("--resume", action="store_true", help="continue: keep finished runs")
    add_back_end(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    halves = HALVES if arguments.half == "both" else (arguments.half,)
    rows = run_scenarios(_chosen(arguments.scenarios, halves), arguments)
    what = Counter(part for row in rows for part in row.what_is_wrong)
    print(
        f"{sum(row.wrong for row in rows)} of {len(rows)} runs are wrong successes ({what['seen']}"
        f" seen too little, {what['band']} outside the band); {what['RMSE']} are farther off than"
        " half the width of the band"
    )
    return exit_code(rows)


def _chosen(kinds: Sequence[str], halves: Sequence[str]) -> list[Scenario]:
    """Scenarios of the kinds.

    Raises:
        SettingError: there is none of a kind.
    """
    known = {scenario.kind for scenario in SCENARIOS}
    for kind in kinds:
        if not fnmatch.filter(known, kind):
            raise SettingError(
                f"kind: {kind!r} is not known; must be one of {', '.join(sorted(known))}"
            )
    return [
        scenario
        for scenario in SCENARIOS
        if scenario.half in halves
        and any(fnmatch.fnmatchcase(scenario.kind, kind) for kind in kinds)
    ]


def run_scenarios(scenarios: Sequence[Scenario], arguments: argparse.Namespace) -> list[Row]:
    """Run the unfinished episodes of the scenarios with the planners and seeds asked for; returns
    all rows.
    """
    check_back_end(arguments)
    runs = [
        Run(scenario, planner, seed, not arguments.plain)
        for scenario in scenarios
        for planner in arguments.planners
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    ]
    with LiesFolder(arguments.out, runs, resume=arguments.resume) as folder:
        run_all(attempt, folder.unfinished(), arguments, "runs", folder.keep)
        found: list[Row] = folder.outcomes()
    seconds = sum(row.seconds for row in found)
    files = ", ".join(
        str(Path(arguments.out, name)) for name in (KINDS_FILE, TABLE_FILE, ROWS_FILE)
    )
    print(f"{seconds / 60.0:.1f} minutes of processor time: {files}")
    return found


def exit_code(rows: Sequence[Row]) -> int:
    """1 if a run failed with an error that the package should not have."""
    failed = [row for row in rows if row.reason == ERROR]
    for row in failed:
        print(f"{row.scenario}, {row.planner}, seed {row.seed}: {row.said[0]}")
    return 1 if failed else 0
