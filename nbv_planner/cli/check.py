"""Check a running system before its first goal: poses, scans, tolerances, stamps, transforms,
publishers.
"""

from __future__ import annotations

import argparse

from nbv_planner.cli.options import add_domain, add_namespace, positive_number, require_ros
from nbv_planner.episode.run_info import RunParameters, parameters_from_file
from nbv_planner.report.preflight import Row, Verdict, rows_of

EXIT_FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--seconds",
        type=positive_number,
        default=5.0,
        metavar="S",
        help="how long to listen (default: %(default)g)",
    )
    parser.add_argument(
        "--params-file",
        metavar="F",
        help="ROS 2 parameter file (YAML) while no planner runs that publishes run_info",
    )
    add_namespace(parser)
    add_domain(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    given = parameters_from_file(arguments.params_file) if arguments.params_file else None
    require_ros("nbv-planner check listens to running nodes", arguments.domain)
    from nbv_planner.ros.io.listener import observed

    system = observed(arguments.seconds, arguments.namespace, arguments.domain, given)
    known = system.parameters or given
    if known is None:
        print(
            "note: no run_info has come and no --params-file is given: judged by the default"
            " parameters"
        )
    rows = rows_of(system, known or RunParameters({}))
    _print_table(rows)
    verdicts = [row.verdict for row in rows]
    print(
        f"{verdicts.count(Verdict.FAIL)} failed, {verdicts.count(Verdict.WARN)} warnings,"
        f" {len(rows)} checks"
    )
    return EXIT_FAILED if Verdict.FAIL in verdicts else 0


def _print_table(rows: list[Row]) -> None:
    """Print the rows in columns, with advice below those that did not pass."""
    cells = [
        ("", "check", "found", "asked"),
        *((row.verdict.value, row.name, row.found, row.asked) for row in rows),
    ]
    widths = [min(max(len(line[column]) for line in cells), 40) for column in range(4)]
    for line, row in zip(cells, [None, *rows], strict=True):
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
        if row is not None and row.advice and row.verdict is not Verdict.PASS:
            print(f"      look at: {row.advice}")
