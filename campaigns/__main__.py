"""Inject faults and untruths on purpose, and check the episodes: `python -m campaigns`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from nbv_planner.cli.main import Subcommand, run_program, with_signals

SUBCOMMANDS = {
    "faults": Subcommand("campaigns", "inject faults into the three nodes", "campaigns.faults_command"),
    "fuzz": Subcommand("campaigns", "send malformed and hostile messages to the nodes", "campaigns.fuzz_command"),
    "lies": Subcommand("campaigns", "run episodes in worlds other than declared", "campaigns.lies_command"),
    "honest": Subcommand("campaigns", "count false alarms in worlds as declared", "campaigns.honest_command"),
    "calibrate": Subcommand(
        "campaigns", "record how good the estimated coverage is, and calibrate it", "campaigns.calibrate_command"
    ),
    "bounds": Subcommand(
        "campaigns", "tell the rollout part of the truth: what limits its number of views", "campaigns.bounds_command"
    ),
    "ground": Subcommand(
        "campaigns", "look for goals and paths in no-go areas of random grounds", "campaigns.ground_command"
    ),
    "unknown": Subcommand(
        "campaigns", "compare unknown place and size with the known scene", "campaigns.unknown_command"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a campaign; returns the exit code."""
    return with_signals(partial(run_program, "python -m campaigns", __doc__, SUBCOMMANDS), argv)


if __name__ == "__main__":
    sys.exit(main())
