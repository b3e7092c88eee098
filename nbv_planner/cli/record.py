"""Verb `record`: the topics of the nodes into a bag, where there is no `ros2 bag`."""

from __future__ import annotations

import argparse
import signal
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from nbv_planner.bags.writer import STORAGES, BagWriter
from nbv_planner.cli.ros_access import require_ros


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser("record", help="record the topics of the nodes into a bag, until Ctrl-C")
    parser.add_argument("--out", metavar="BAG", help="folder of the bag (default: bag_<date>_<time>)")
    parser.add_argument("--storage", choices=STORAGES, default="mcap", help="format of its file (default: mcap)")
    parser.add_argument("--namespace", default="", metavar="NS", help="namespace of the nodes (default: none)")
    parser.add_argument(
        "--topics", nargs="+", metavar="TOPIC", default=[],
        help="further topics, by full name, beside those from which an episode can be understood",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the verb."""
    require_ros("ros2 bag record does the same where ROS 2 is installed")
    from nbv_planner.ros.recording import record_until_interrupted

    path = Path(arguments.out or datetime.now().strftime("bag_%Y%m%d_%H%M%S"))
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with BagWriter(path, arguments.storage) as writer:
            counts, silent = record_until_interrupted(writer, arguments.topics, arguments.namespace, _tell)
    finally:
        signal.signal(signal.SIGTERM, before)
    for name, number in sorted(counts.items()):
        print(f"  {name}: {number} messages")
    if silent:
        print(f"nothing came on {', '.join(silent)}")
    print(f"bag: {path}/")
    return 0


def _tell(text: str) -> None:
    print(text, flush=True)


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt
