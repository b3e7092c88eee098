"""Measure speed and memory, and make the tables of the documents that no sweep gives:
`python -m benchmarks`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from nbv_planner.cli.main import Subcommand, run_program, with_signals

SUBCOMMANDS = {
    name: Subcommand(group, text, f"benchmarks.{module}")
    for group, name, text, module in (
        ("measure", "run", "speed and memory against the obvious implementations", "bench"),
        (
            "measure",
            "bag",
            "time and memory of nbv-planner analyze on an hour of scans",
            "bench_bag",
        ),
        ("measure", "messages", "conversion of messages, with rclpy", "bench_messages"),
        (
            "tables",
            "theory",
            "docs/explanation/theory.md: regret, bound and band coverage",
            "theory_sweep",
        ),
        (
            "tables",
            "robust",
            "docs/explanation/robustness.md: the sweeps robust and robust_parts",
            "robust_tables",
        ),
    )
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit code."""
    return with_signals(partial(run_program, "python -m benchmarks", __doc__, SUBCOMMANDS), argv)


if __name__ == "__main__":
    sys.exit(main())
