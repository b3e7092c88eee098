"""Random maps, polygons and beliefs: no goal and no path lies in an occupied, inflated or
possibly-object cell.

Each case is a ground with an object of which only an upper confidence bound is known, 40 places to
look from and up to two paths. All is checked by brute force over the cells of the map, the edges of
the polygons and the sectors of the belief; nor may a place be barred that is farther than two
diagonals of a cell from everything.
"""

from __future__ import annotations

import argparse

import numpy as np

from campaigns.grounds import judged, random_case
from nbv_planner.cli.main import EXIT_INTERRUPTED
from nbv_planner.cli.options import whole_number
from nbv_planner.cli.output import ProgressLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--cases",
        type=whole_number(1),
        default=1000,
        metavar="N",
        help="number of random grounds with beliefs (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="seed of the first case (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand: 0 if there was no fault, else 1; 130 after Ctrl-C."""
    line = ProgressLine(arguments.cases, "cases")
    done = goals = barred = paths = 0
    faulty = list[str]()
    try:
        for seed in range(arguments.seed, arguments.seed + arguments.cases):
            rng = np.random.default_rng(seed)
            outcome = judged(random_case(rng), rng)
            goals = goals + outcome.goals
            barred = barred + outcome.barred
            paths = paths + outcome.paths
            faulty += [f"case {seed}: {fault}" for fault in outcome.faults]
            done += 1
            line.show(done)
    except KeyboardInterrupt:
        pass
    line.end()
    for fault in faulty:
        print(f"fault: {fault}")
    print(
        f"{done} cases: {goals} goals allowed, {barred} barred, {paths} paths; {len(faulty)} faults"
    )
    return 1 if faulty else EXIT_INTERRUPTED if done < arguments.cases else 0
