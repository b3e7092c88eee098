"""Start ROS, run a node until Ctrl-C or SIGTERM, and end both cleanly."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from nbv_planner.errors import RosUnavailableError
from nbv_planner.ros.core.managed_node import REFUSALS
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.system import held_signals, ignored_after

# Seconds between two checks for signals.
_SIGNAL_PERIOD = 0.1


def _init(args: list[str] | None, domain: int | None = None) -> None:
    """Initialise ROS without its handling of signals.

    Raises:
        RosUnavailableError: it refuses the arguments or the environment; says why.
    """
    # rcl would write many lines about it
    if not any(map(os.environ.get, ("ROS_LOG_DIR", "ROS_HOME", "HOME"))):
        raise RosUnavailableError("ROS has no folder for its logs; set HOME or ROS_LOG_DIR")
    try:
        rclpy.init(args=args, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    # rclpy raises a plain RCLError, for a parameter file it cannot parse, too
    except Exception as error:
        raise RosUnavailableError(
            re.sub(r", at /\S+:\d+$", "", str(error).splitlines()[0])
        ) from error


@contextmanager
def separate_context(domain: int | None = None) -> Iterator[SingleThreadedExecutor]:
    """ROS in this process, with its executor; Ctrl-C is left to the caller. Without `domain`, the
    environment gives the domain.

    Raises:
        RosUnavailableError: ROS refuses the environment; says why.
    """
    with ExitStack() as ended:
        # an executor whose constructor was interrupted raises when it is collected
        with held_signals():
            _init([], domain)
            ended.callback(rclpy.try_shutdown)
            executor = SingleThreadedExecutor()
            # else it logs an error when it is collected after ROS has shut down
            ended.callback(executor.shutdown)
        yield executor


def run_node(create: Callable[[], Node], args: list[str] | None = None) -> int:
    """Initialise ROS, construct a node, spin it until Ctrl-C or SIGTERM, and clean up.

    rclpy's own handling of signals shuts ROS down in a second thread while the node's thread uses
    it, and Python's KeyboardInterrupt is raised between any two instructions, such as acquiring an
    entity and recording that. Of 114 nodes ended like this while they received messages, one
    corrupted its heap and one hung. Here the loop itself checks for signals. Only the first one has
    an effect: a launcher and the terminal may both send SIGINT.

    Returns:
        Exit code: 0, or 2 if the parameters or the topic names are not usable (one line on stderr
        says why).
    """
    signals: list[int] = []
    with ignored_after(lambda number, _: signals.append(number)):
        try:
            _init(args)
        except RosUnavailableError as error:
            return _refuse(str(error))
        try:
            _spin(create, signals)
        except SystemExit:  # by a callback: the node has finished
            pass
        except REFUSALS as error:
            return _refuse(str(error))
        finally:
            rclpy.try_shutdown()
    return 0


def _spin(create: Callable[[], Node], signals: Sequence[int]) -> None:
    node = create()
    try:
        executor = SingleThreadedExecutor()
        # Exclude existing objects from garbage collection, which would take tens of milliseconds.
        gc.collect()
        gc.freeze()
        executor.add_node(node)
        while not signals:
            try:
                executor.spin_once(timeout_sec=_SIGNAL_PERIOD)
            except Exception as error:
                if not isinstance(node, BaseNode) or not rclpy.ok():
                    raise
                node.callback_failed(error)
    finally:
        node.destroy_node()


def _refuse(message: str) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return 2
