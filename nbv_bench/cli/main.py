"""The program `nbv-bench`; imports only the requested subcommand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from nbv_planner.cli.main import EXIT_BAD_INPUT, Subcommand, run_program, with_signals
from nbv_planner.errors import install_hint

SUBCOMMANDS = {
    name: Subcommand("study", text, f"nbv_bench.cli.{name}")
    for name, text in (
        (
            "bench",
            "judge planners on frozen objects, with uniform, random and the optimum for comparison",
        ),
        ("experiment", "run a sweep of planners, objects, protocols and seeds in parallel"),
        ("report", "report on a sweep, or compare several bags, episodes and sweeps"),
        ("optimum", "compute the least number of views for each object, with proof"),
        ("explain", "draw what each objective counts, regret and field of view for an episode"),
    )
}
"""The subcommands in the order of the help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns its exit code, see :func:`nbv_planner.cli.main.run_program`."""
    about = "Judge next-best-view planners: sweeps, frozen objects, rivals and the optimum."
    try:
        return with_signals(partial(run_program, "nbv-bench", about, SUBCOMMANDS), argv)
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        print(f"nbv-bench: error: cannot import pandas: {install_hint('bench')}", file=sys.stderr)
        return EXIT_BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
