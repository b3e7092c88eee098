"""Inject faults and untruths on purpose, and check the episodes: `python -m campaigns`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from nbv_planner.cli.main import Subcommand, run_program, with_signals

SUBCOMMANDS = {
    name: Subcommand("campaigns", text, f"campaigns.{name}_command")
    for name, text in (
        ("faults", "inject faults into the three nodes"),
        ("fuzz", "send malformed and hostile messages to the nodes"),
        ("lies", "run episodes in worlds other than declared"),
        ("honest", "count false alarms in worlds as declared"),
        ("calibrate", "record how good the estimated coverage is, and calibrate it"),
        ("bounds", "give the rollout part of the truth: what limits its number of views"),
        ("ground", "look for goals and paths in no-go areas of random grounds"),
        ("unknown", "compare unknown place and size with the known scene"),
        ("outlines", "reconstruct objects of any outline, and compare with the planner that knows"),
        ("prior", "compare episodes that know an outline with those that do not"),
        ("series", "compare series of cuts with the same cuts one by one"),
        ("deviation", "find bumps and dents, and what is none, against nominal outlines"),
        ("regions", "compare episodes of which a part of the outline matters with whole ones"),
        ("solids", "compare planners on solids in space"),
    )
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a campaign; returns the exit code."""
    return with_signals(partial(run_program, "python -m campaigns", __doc__, SUBCOMMANDS), argv)


if __name__ == "__main__":
    sys.exit(main())
