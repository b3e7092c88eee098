"""Record the topics of the nodes into a bag until Ctrl-C, where `ros2 bag` is not installed."""

from __future__ import annotations

import argparse
import functools
from datetime import datetime
from pathlib import Path

from nbv_planner.bags.writer import BagWriter
from nbv_planner.cli.options import add_namespace, add_storage, matching, require_ros
from nbv_planner.episode.messages import RECORDED_IN_SPACE, RECORDED_TOPICS
from nbv_planner.system import held_signals

_NAME = r"~?/?[A-Za-z_][\w/]*"
_RULE = rf"(\w+:)?{_NAME}:={_NAME}"
_PROBLEM = "must have the form old:=new, for example scan:=/lidar/scan"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--out", metavar="BAG", help="folder of the bag (default: bag_<date>_<time>)"
    )
    add_storage(parser)
    add_namespace(parser)
    parser.add_argument(
        "--topics",
        nargs="+",
        metavar="TOPIC",
        default=[],
        help="further topics, by full name, in addition to those of an episode",
    )
    parser.add_argument(
        "--space",
        action="store_true",
        help="the topics of nodes in space: images with their calibration, clouds",
    )
    parser.add_argument(
        "--remap",
        action="append",
        type=matching(_RULE, _PROBLEM),
        metavar="OLD:=NEW",
        default=[],
        help=("remapping of a topic of the nodes, for example scan:=/lidar/scan; repeatable"),
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    require_ros("ros2 bag record does the same where ROS 2 is installed")
    from nbv_planner.ros.io.recorder import record_until

    path = Path(arguments.out or datetime.now().strftime("bag_%Y%m%d_%H%M%S"))
    # A signal interrupts neither the writing of a message nor that of the bag's end.
    with held_signals() as came, BagWriter(path, arguments.storage) as writer:
        counts, silent = record_until(
            lambda: bool(came),
            writer,
            arguments.topics,
            arguments.namespace,
            functools.partial(print, flush=True),
            arguments.remap,
            RECORDED_IN_SPACE if arguments.space else RECORDED_TOPICS,
        )
        came.clear()  # the normal end of a recording
    for name, number in sorted(counts.items()):
        print(f"  {name}: {number} messages")
    if silent:
        print(f"nothing received on {', '.join(silent)}")
    print(f"bag: {path}/")
    return 0
