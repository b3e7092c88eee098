"""Verb `reindex`: a whole bag out of one whose recorder was killed, or of a damaged one."""

from __future__ import annotations

import argparse

from nbv_planner.bags.bag import Bag
from nbv_planner.bags.repair import copy_bag
from nbv_planner.bags.writer import STORAGES, BagWriter
from nbv_planner.cli.bag_options import megabytes_read


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("reindex", help="copy all that can be read of a damaged bag into a whole one")
    parser.add_argument("bag", metavar="BAG", help="folder of a bag, or one of its files (.mcap, .db3)")
    parser.add_argument("--out", metavar="BAG", required=True, help="folder of the new bag")
    parser.add_argument("--storage", choices=STORAGES, default="mcap", help="format of its file (default: mcap)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    bag = Bag(arguments.bag)
    with BagWriter(arguments.out, arguments.storage) as writer, megabytes_read(bag) as progress:
        counts, remarks = copy_bag(bag, writer, progress)
    for remark in remarks:
        print(f"bag: {remark}")
    print(f"{counts.total()} messages of {len(counts)} topics: {arguments.out}/")
    return 0
