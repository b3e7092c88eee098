"""Options that the verbs about bags share, and the bag that they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbv_planner.bags.analysed import Analysis
from nbv_planner.bags.analysis import analyse
from nbv_planner.bags.bag import Bag, Progress
from nbv_planner.bags.run_parameters import RunParameters, parameters_from_file
from nbv_planner.bags.topics import parse_mapping
from nbv_planner.cli.progress_line import ProgressLine
from nbv_planner.results import fresh_folder

_MEGABYTE = 1e6


def add_bag_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a verb's parser."""
    parser.add_argument("--map", action="append", default=[], metavar="OLD:=NEW",
                        help="topic OLD of the bag is the nodes' topic NEW, for example /robot/lidar:=scan; repeatable")
    parser.add_argument("--namespace", metavar="NS", help="namespace of the nodes (default: found out)")
    parser.add_argument("--episode", type=int, metavar="N",
                        help="episode of a bag in which the planner was reset, from 1 (default: the last one)")
    parser.add_argument("--params-file", metavar="F", help="ROS 2 parameter file for a bag without run_info")


def named_analysis(path: str, arguments: argparse.Namespace) -> Analysis:
    """Analyse the bag at `path` as the options say, with progress.

    Raises:
        NbvPlannerError: it cannot be read, or an option does not fit it.
    """
    bag = Bag(path)
    with megabytes_read(bag) as progress:
        return analyse(
            bag, mapping=parse_mapping(arguments.map), namespace=arguments.namespace,
            parameters=given_parameters(arguments), episode=arguments.episode, progress=progress,
        )


@contextmanager
def megabytes_read(bag: Bag) -> Iterator[Progress]:
    """Show how much of a bag has been read."""
    total, shown = max(1, round(bag.size / _MEGABYTE)), -1
    line = ProgressLine(total, f"MB of {bag.path.name}")

    def show(fraction: float) -> None:
        nonlocal shown
        if round(fraction * total) != shown:
            shown = round(fraction * total)
            line.show(shown)

    try:
        yield show
    finally:
        line.end()


def given_parameters(arguments: argparse.Namespace) -> RunParameters | None:
    """Parameters from the file that was given.

    Raises:
        NbvPlannerError: it cannot be read.
    """
    return None if arguments.params_file is None else parameters_from_file(arguments.params_file)


def output_folder(arguments: argparse.Namespace, verb: str, bag: str) -> Path:
    """The folder that was asked for, or a fresh one below results/."""
    return Path(arguments.out) if arguments.out else fresh_folder("results", f"{verb}-{Path(bag).resolve().stem}")
