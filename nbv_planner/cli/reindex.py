"""Repair a bag that is damaged, or whose recorder was killed: copy all that can be read into a new
one.
"""

from __future__ import annotations

import argparse

from nbv_planner.bags.reader import Bag
from nbv_planner.bags.writer import copy_bag
from nbv_planner.cli.options import add_bag, add_storage
from nbv_planner.cli.output import megabytes_read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_bag(parser)
    parser.add_argument("--out", metavar="BAG", required=True, help="folder of the new bag")
    add_storage(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    bag = Bag(arguments.bag)
    with megabytes_read(bag) as progress:
        counts, remarks = copy_bag(bag, arguments.out, arguments.storage, progress)
    for remark in remarks:
        print(f"bag: {remark}")
    print(f"{counts.total()} messages of {len(counts)} topics: {arguments.out}/")
    return 0
