"""A worker thread for a node, so that long computations delay no message, service or parameter."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from rclpy.exceptions import InvalidHandle
from rclpy.task import Future

if TYPE_CHECKING:
    from rclpy.node import Node


T = TypeVar("T")
# Seconds for which an ending node waits for a running computation.
_PATIENCE = 0.5


class Worker:
    """Computes jobs one after another in its own thread, and passes each result to the node's
    thread.

    The node's state belongs to the thread that spins it: a job receives immutable values, or an
    object that it owns until its result is passed on. So no lock is needed, and no partial update
    is visible.

    A separate thread, not a MultiThreadedExecutor: that of rclpy 7.1 and 9.1 hands out a callback
    that waits for a thread over and over, and would need locks around everything. The two switches
    of the thread cost 0.1 ms.

    A computation that holds Python's global lock still blocks the node: scipy's triangular solve
    does, so that a dense posterior stops everything for the time of that solve.
    """

    def __init__(self, node: Node) -> None:
        self.pending = 0  #: number of jobs whose result the node has not received yet.
        # in the order in which they were submitted
        self._beside: deque[tuple[futures.Future[Any], Callable[[Any], None]]] = deque()
        self._stopped = False
        self._guard = node.create_guard_condition(self._deliver)
        self._pool = futures.ThreadPoolExecutor(1, f"{node.get_name()} worker")

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Compute `work`, then call `done` with its result in the node's thread.

        Exceptions of `work` are raised there too.
        """
        self.pending += 1
        if not self._stopped:
            computed = self._pool.submit(work)
            self._beside.append((computed, done))
            computed.add_done_callback(self._wake)

    def run(self, work: Callable[[], T]) -> Future:
        """As :meth:`submit`, with the result, or the exception, as a future to await."""
        result = Future()

        def attempt() -> Callable[[], None]:
            try:
                return partial(result.set_result, work())
            except Exception as error:
                return partial(result.set_exception, error)

        self.submit(attempt, lambda deliver: deliver())
        return result

    def stop(self) -> None:
        """End the thread; pending results are discarded."""
        self._stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        futures.wait([job for job, _ in self._beside if not job.cancelled()], _PATIENCE)

    def _wake(self, _: object = None) -> None:
        if not self._stopped:
            with suppress(InvalidHandle):  # the node has been destroyed meanwhile
                self._guard.trigger()

    def _deliver(self) -> None:
        try:
            while not self._stopped and self._beside and self._beside[0][0].done():
                computed, done = self._beside.popleft()
                self.pending -= 1
                done(computed.result())
        except BaseException:  # must not keep the others back
            self._wake()
            raise


def end_process(code: int) -> NoReturn:
    """End the process with exit code `code` at once, even in the middle of a computation.

    A computation in LAPACK cannot be interrupted, nor can the threads of the middleware: the
    interpreter's own clean-up would take the memory from under them.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
