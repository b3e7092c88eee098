"""Send malformed and hostile messages to the nodes' callbacks, and count the outcomes."""

from __future__ import annotations

import argparse
import os
from collections import Counter

from nbv_planner.cli.main import EXIT_INTERRUPTED
from nbv_planner.cli.options import require_ros, whole_number
from nbv_planner.cli.output import ProgressLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--count",
        type=whole_number(1),
        default=10_000,
        metavar="N",
        help="number of hostile messages (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="seed of the messages (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand: 0 if every message was dropped with a reason or valid, else 1; 130 after
    Ctrl-C.
    """
    require_ros("nothing can be sent to nodes without ROS")
    from campaigns.fuzz import run_campaign
    from nbv_planner.ros.node_processes import free_domain_id, isolated_environment

    domain = free_domain_id()
    os.environ.update(isolated_environment(domain))
    line = ProgressLine(arguments.count, "messages")
    tally = run_campaign(arguments.count, arguments.seed, domain, line.show)
    line.end()
    for title in ("sent", "dropped", "taken", "beams"):
        _print_counts(title, getattr(tally, title))
    for fault in tally.faults:
        print(f"fault: {fault}")
    sent = sum(tally.sent.values())
    print(f"{sent} hostile messages, {len(tally.faults)} faults")
    return 1 if tally.faults else EXIT_INTERRUPTED if sent < arguments.count else 0


def _print_counts(title: str, counts: Counter[str]) -> None:
    print(f"{title}: {sum(counts.values())}")
    for name, number in sorted(counts.items()):
        print(f"  {name}: {number}")
