"""One thread beside a node's own, so that long computations hold up no message, service or parameter."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeVar

from rclpy.exceptions import InvalidHandle

if TYPE_CHECKING:
    from rclpy.node import Node

T = TypeVar("T")

# Seconds that a node which ends waits for a computation under way.
_PATIENCE = 0.5


class Worker:
    """Computes in a thread of its own, one job after another, and hands each result back to the node's thread.

    The node's state belongs to the thread that spins it: a job gets values that nobody changes, or an object that
    nobody else touches until its result is there. So no lock is needed, and nothing half-updated can be seen.

    A thread of its own, not a MultiThreadedExecutor: that of rclpy 7.1 and 9.1 hands out a callback that waits for a
    thread over and over (rclpy issue 1452), and would need locks around everything.

    What computes without letting go of Python's global lock still holds the node up: scipy's triangular solve does, so
    that a dense posterior stops everything for the time of that solve.

    Attributes:
        pending: number of jobs whose result the node has not got yet.
    """

    def __init__(self, node: Node) -> None:
        """Be ready; the thread starts with the first job."""
        self.pending = 0
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._results: deque[Callable[[], None]] = deque()
        self._stopped = False
        self._guard = node.create_guard_condition(self._deliver)
        self._thread = _WorkerThread(target=self._run, name=f"{node.get_name()} worker", daemon=True)

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Have `work` computed and then `done` called with its result in the node's thread.

        What `work` raises is raised there too.
        """
        if not self._thread.is_alive():
            self._thread.start()
        self.pending += 1
        self._jobs.put(lambda: self._compute(work, done))

    def stop(self) -> None:
        """End the thread; results that are not there yet are dropped."""
        self._stopped = True
        self._jobs.put(None)
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        for job in iter(self._jobs.get, None):
            if self._stopped:
                return
            job()

    def _compute(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        try:
            result = work()
        except BaseException as error:
            caught = error
            self._hand_back(lambda: _raise(caught))
        else:
            self._hand_back(lambda: done(result))

    def _hand_back(self, deliver: Callable[[], None]) -> None:
        self._results.append(deliver)
        if not self._stopped:
            with contextlib.suppress(InvalidHandle):  # the node has been destroyed meanwhile
                self._guard.trigger()

    def _deliver(self) -> None:
        while self._results:
            self.pending -= 1
            self._results.popleft()()


class _WorkerThread(threading.Thread):
    """Told from other threads by its type."""


def _raise(error: BaseException) -> NoReturn:
    raise error


def end_process(code: int) -> NoReturn:
    """End the process with exit code `code`, even in the middle of a computation.

    A computation in LAPACK cannot be interrupted; the interpreter's own clean-up would take the memory from under it.
    """
    if any(isinstance(thread, _WorkerThread) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
