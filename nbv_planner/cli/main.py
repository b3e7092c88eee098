"""Entry point of `nbv-planner`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

# Small factorisations are slower on several BLAS threads than on one, and rounding must not hang on their number;
# set before numpy is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

from nbv_planner import __version__
from nbv_planner.cli import (
    analyze,
    bench,
    compare,
    demo,
    experiment,
    faults,
    fuzz,
    objectives,
    optimum,
    parameter_tables,
    record,
    reindex,
    replay,
    report,
    security_policy,
    simulate,
    view,
)
from nbv_planner.errors import NbvPlannerError

_VERBS = (
    demo, simulate, view, record, analyze, replay, compare, reindex, experiment, report, optimum,
    bench, faults, fuzz, objectives, parameter_tables, security_policy,
)

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_NO_READER = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb.

    Returns:
        Exit code: 0, 2 for input that is not allowed (one line on stderr says why), 130 after Ctrl-C, 141 when whoever
        read the output (`head`, `less`) has gone, as for programs that SIGPIPE ends.
    """
    parser = argparse.ArgumentParser(
        prog="nbv-planner", description="Near-optimal next-best-view planning: reconstruct an object in few views."
    )
    parser.add_argument("--version", action="version", version=f"nbv-planner {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in _VERBS:
        verb.add_parser(verbs)
    arguments = parser.parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except NbvPlannerError as error:
        print(f"nbv-planner {arguments.verb}: error: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # What is still buffered would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NO_READER


if __name__ == "__main__":
    sys.exit(main())
