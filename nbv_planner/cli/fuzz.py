"""Verb `fuzz`: send malformed and hostile messages to the nodes' callbacks."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter

from nbv_planner.cli.ros_access import require_ros
from nbv_planner.errors import SettingError


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("fuzz", help="send malformed and hostile messages to the nodes' callbacks")
    parser.add_argument("--count", type=int, default=10_000, help="number of hostile messages (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the messages (default: %(default)s)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb: 0 if every message was dropped for a reason or taken by right, else 1."""
    if arguments.count < 1 or arguments.seed < 0:
        raise SettingError("--count must be >= 1 and --seed >= 0")
    require_ros("nothing can be sent to nodes without ROS")
    from nbv_planner.ros.fuzzing.campaign import run_campaign
    from nbv_planner.ros.runner import free_domain_id, isolated_environment

    domain = free_domain_id()
    os.environ.update(isolated_environment(domain))
    tally = run_campaign(arguments.count, arguments.seed, domain, _say_progress)
    print(file=sys.stderr)
    for title in ("sent", "dropped", "taken", "beams"):
        _print_counts(title, getattr(tally, title))
    for fault in tally.faults:
        print(f"fault: {fault}")
    print(f"{sum(tally.sent.values())} hostile messages, {len(tally.faults)} faults")
    return 1 if tally.faults else 0


def _say_progress(sent: int) -> None:
    print(f"\r{sent} messages", end="", file=sys.stderr, flush=True)


def _print_counts(title: str, counts: Counter[str]) -> None:
    print(f"{title}: {sum(counts.values())}")
    for name, number in sorted(counts.items()):
        print(f"  {name}: {number}")
