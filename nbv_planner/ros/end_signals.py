"""SIGINT and SIGTERM end a node between two callbacks, never in the middle of one."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.exceptions import InvalidHandle

if TYPE_CHECKING:
    from rclpy.guard_condition import GuardCondition
    from rclpy.node import Node

KINDS = (signal.SIGINT, signal.SIGTERM)


class NodeFinished(Exception):  # noqa: N818 (no error: the node has done its work)
    """Raised in a callback to end the process cleanly."""


class EndSignals:
    """Takes the signals while a node lives; a context manager, to be entered in the main thread before ROS is begun.

    rclpy's own handling ends ROS in a second thread while the node's thread uses it, and Python's KeyboardInterrupt
    comes between any two instructions, such as taking hold of an entity and noting that it is held. Of 114 nodes ended
    so while they were taking messages, one broke its heap and one hung. Here a signal wakes a thread that sleeps, which
    wakes the node's executor, which calls a callback that raises :class:`NodeFinished`.

    What comes after the end is ignored: a launcher and the terminal may both send SIGINT.
    """

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._came = threading.Event()
        self._guard: GuardCondition | None = None
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)

    def __enter__(self) -> EndSignals:
        """Take the signals."""
        # Python writes each signal's number to it at once, whatever the main thread is waiting for.
        self._written, self._read = socket.socketpair()
        self._written.setblocking(False)
        self._before = signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        for kind in KINDS:
            signal.signal(kind, _left_to_the_thread)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ignore the signals from now on."""
        for each in KINDS:
            signal.signal(each, signal.SIG_IGN)
        signal.set_wakeup_fd(self._before)
        self._written.close()
        self._thread.join()
        self._read.close()

    def end(self, node: Node) -> None:
        """Have whatever spins `node` end with :class:`NodeFinished` at a signal, at one that came before too."""
        # A group of its own: a callback that waits for something must not hold it up.
        self._guard = node.create_guard_condition(_finish, callback_group=ReentrantCallbackGroup())
        if self._came.is_set():
            self._guard.trigger()

    def _listen(self) -> None:
        while self._read.recv(1):
            self._came.set()
            if self._guard is not None:
                with contextlib.suppress(InvalidHandle):  # the node has been destroyed meanwhile
                    self._guard.trigger()


def _left_to_the_thread(*_: object) -> None:
    """Do nothing; without a handler of Python's the thread would not hear of the signal."""


def _finish() -> None:
    raise NodeFinished
