"""Verb `record`: the topics of the nodes into a bag, where there is no `ros2 bag`."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

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
    from nbv_planner.ros.recording import record_until

    path = Path(arguments.out or datetime.now().strftime("bag_%Y%m%d_%H%M%S"))
    with _noted_signals() as came, BagWriter(path, arguments.storage) as writer:
        counts, silent = record_until(came, writer, arguments.topics, arguments.namespace, _tell)
    for name, number in sorted(counts.items()):
        print(f"  {name}: {number} messages")
    if silent:
        print(f"nothing came on {', '.join(silent)}")
    print(f"bag: {path}/")
    return 0


def _tell(text: str) -> None:
    print(text, flush=True)


@contextmanager
def _noted_signals() -> Iterator[Callable[[], bool]]:
    """Give whether SIGINT or SIGTERM has come; neither cuts short the writing of a message, or of the bag's end."""
    came: list[int] = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, lambda number, _: came.append(number)) for kind in kinds]
    try:
        yield lambda: bool(came)
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
