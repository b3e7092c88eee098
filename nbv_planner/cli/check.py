"""Check a running system before its first goal: poses, scans, tolerances, stamps, transforms,
publishers.
"""

from __future__ import annotations

import argparse

from nbv_planner.cli.options import add_domain, add_namespace, positive_number, require_ros
from nbv_planner.episode.run_info import RunParameters, parameters_from_file
from nbv_planner.report.preflight import Outcome, PreflightCheck, checks_of

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
        help="ROS 2 parameter file (YAML), if no running planner publishes run_info",
    )
    add_namespace(parser)
    add_domain(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    given = parameters_from_file(arguments.params_file) if arguments.params_file else None
    require_ros("nbv-planner check listens to running nodes", arguments.domain)
    from nbv_planner.ros.io.listener import observed
    from nbv_planner.ros.solid_check import space_checks_of

    system = observed(arguments.seconds, arguments.namespace, arguments.domain, given)
    known = system.parameters or given
    if known is None:
        print(
            "note: no run_info has come and no --params-file is given: judged by the default"
            " parameters"
        )
    if known is not None and known.in_space:
        checks = space_checks_of(system, known)
    else:
        checks = checks_of(system, known or RunParameters({}))
    _print_table(checks)
    outcomes = [check.outcome for check in checks]
    print(
        f"{outcomes.count(Outcome.FAIL)} failed, {outcomes.count(Outcome.WARN)} warnings,"
        f" {len(checks)} checks"
    )
    return EXIT_FAILED if Outcome.FAIL in outcomes else 0


def _print_table(checks: list[PreflightCheck]) -> None:
    """Print the checks in columns, with advice below those that did not pass."""
    cells = [
        ("", "check", "found", "required"),
        *((check.outcome.value, check.name, check.measured, check.asked) for check in checks),
    ]
    widths = [min(max(len(line[column]) for line in cells), 40) for column in range(4)]
    for line, check in zip(cells, [None, *checks], strict=True):
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
        if check is not None and check.advice and check.outcome is not Outcome.PASS:
            print(f"      look at: {check.advice}")
