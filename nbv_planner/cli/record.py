"""Verb `record`: the topics of the nodes into a bag, where there is no `ros2 bag`."""

from __future__ import annotations

import argparse
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from nbv_planner.bags.writer import STORAGES, BagWriter
from nbv_planner.cli.ros_access import require_ros
from nbv_planner.topics import RECORDED_TOPICS

_TELL_PERIOD = 10.0


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
    path = Path(arguments.out or datetime.now().strftime("bag_%Y%m%d_%H%M%S"))
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with BagWriter(path, arguments.storage) as writer:
            counts, silent = _record(writer, arguments)
    finally:
        signal.signal(signal.SIGTERM, before)
    for name, number in sorted(counts.items()):
        print(f"  {name}: {number} messages")
    if silent:
        print(f"nothing came on {', '.join(silent)}")
    print(f"bag: {path}/")
    return 0


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _record(writer: BagWriter, arguments: argparse.Namespace) -> tuple[dict[str, int], list[str]]:
    """Record until Ctrl-C; returns the numbers of messages, and the topics on which nothing came."""
    from rclpy.executors import SingleThreadedExecutor

    from nbv_planner.ros.episode_run import ros_of_its_own
    from nbv_planner.ros.recorder import BagRecorder

    names = ["/" + name.lstrip("/") for name in arguments.topics]
    with ros_of_its_own():
        recorder = BagRecorder(writer, RECORDED_TOPICS, names, namespace=arguments.namespace)
        executor = SingleThreadedExecutor()
        executor.add_node(recorder)
        print(f"recording to {writer.path}/ until Ctrl-C", flush=True)
        told = time.monotonic()
        try:
            while True:
                executor.spin_once(timeout_sec=0.2)
                if not recorder.counts and time.monotonic() - told > _TELL_PERIOD:
                    told = time.monotonic()
                    print(f"nothing yet; waiting for {', '.join(recorder.silent)}", flush=True)
        except KeyboardInterrupt:
            return dict(recorder.counts), recorder.silent
