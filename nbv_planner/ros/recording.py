"""Recording until it is to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rclpy.executors import SingleThreadedExecutor

from nbv_planner.bags.writer import BagWriter
from nbv_planner.ros.own_context import ros_of_its_own
from nbv_planner.ros.recorder import BagRecorder
from nbv_planner.topics import RECORDED_TOPICS

_TELL_PERIOD = 10.0


def record_until(
    ended: Callable[[], bool], writer: BagWriter, names: Sequence[str], namespace: str, tell: Callable[[str], None]
) -> tuple[dict[str, int], list[str]]:
    """Record on the domain of the environment.

    Args:
        ended: whether to end; asked between two messages, five times a second at least.
        writer: takes the messages.
        names: further topics by full name.
        namespace: namespace of the nodes.
        tell: called with a line of text now and then.

    Returns:
        Numbers of messages by full topic name, and the topics on which nothing came.
    """
    with ros_of_its_own():
        full_names = ["/" + name.lstrip("/") for name in names]
        recorder = BagRecorder(writer, RECORDED_TOPICS, full_names, namespace=namespace, goals_last=True)
        executor = SingleThreadedExecutor()
        executor.add_node(recorder)
        tell(f"recording to {writer.path}/ until Ctrl-C")
        told = time.monotonic()
        while not ended():
            executor.spin_once(timeout_sec=0.2)
            if not recorder.counts and time.monotonic() - told > _TELL_PERIOD:
                told = time.monotonic()
                tell(f"nothing yet; waiting for {', '.join(recorder.silent)}")
        return dict(recorder.counts), recorder.silent
