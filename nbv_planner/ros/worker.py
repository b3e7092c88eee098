"""One thread beside a node's own, so that long computations hold up no message, service or parameter."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

from rclpy.exceptions import InvalidHandle
from rclpy.executors import SingleThreadedExecutor

if TYPE_CHECKING:
    from rclpy.node import Node

T = TypeVar("T")

# Computes, and returns what is left to do in the node's thread.
Job = Callable[[], Callable[[], None]]

# Seconds that a job may take which holds up the node.
_BRIEF = 0.01
# Number of jobs alike by which the next one is judged.
_JUDGED = 3
# Seconds that a node which ends waits for a computation under way.
_PATIENCE = 0.5


class Worker:
    """Computes jobs one after another, long ones in a thread of its own, and gives each result to the node's thread.

    The node's state belongs to the thread that spins it: a job gets values that nobody changes, or an object that
    nobody else touches until its result is there. So no lock is needed, and nothing half-updated can be seen.

    A job like the last ones, any of the last three of which took less than 10 ms, is computed in the node's own thread,
    as a task of its executor behind the callback that submits it: that holds up nothing for long, and saves the
    hand-over to another thread and back and the struggle of both for Python's global lock. Any of three, since one may
    have taken longer only because other programs had the processor.

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
        self._node = node
        self._here = 0  # those of them that are computed in the node's thread
        self._turns: deque[Callable[[], None]] = deque()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._results: deque[Callable[[], None]] = deque()
        self._last: tuple[object, tuple[float, ...]] = (None, ())
        self._stopped = False
        self._guard = node.create_guard_condition(self._deliver)
        self._thread = threading.Thread(target=self._run, name=f"{node.get_name()} worker", daemon=True)

    def submit(self, work: Callable[[], T], done: Callable[[T], None], *, like: object = None) -> None:
        """Have `work` computed and then `done` called with its result in the node's thread.

        What `work` raises is raised there too.

        Args:
            work: the job.
            done: takes its result.
            like: jobs one after another for which these are equal take about as long; None: nobody knows how long.
        """
        executor, job = self._node.executor, partial(self._compute, work, done, like)
        # Other executors would run a task beside the callbacks. And no job runs beside another, or overtakes it.
        here = self._is_brief(like) and self._here == self.pending and isinstance(executor, SingleThreadedExecutor)
        turn = partial(self._compute_here if here else self._compute_beside, job)
        self.pending += 1
        self._here += here
        if here or self._turns:
            self._turns.append(turn)
            executor.create_task(self._take_turn)
        else:
            turn()

    def _take_turn(self) -> None:
        self._turns.popleft()()

    def _compute_here(self, job: Job) -> None:
        deliver = job()
        self.pending -= 1
        self._here -= 1
        if not self._stopped:
            deliver()

    def _compute_beside(self, job: Job) -> None:
        if not self._thread.is_alive():
            self._thread.start()
        self._jobs.put(lambda: self._hand_back(job()))

    def _is_brief(self, like: object) -> bool:
        last, seconds = self._last
        return like is not None and like == last and min(seconds) < _BRIEF

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

    def _compute(self, work: Callable[[], T], done: Callable[[T], None], like: object) -> Callable[[], None]:
        """Compute, and return what is left to do with the result in the node's thread."""
        started = time.perf_counter()
        try:
            result = work()
        except BaseException as error:
            caught = error
            return lambda: _raise(caught)
        finally:
            self._note(like, time.perf_counter() - started)
        return lambda: done(result)

    def _note(self, like: object, seconds: float) -> None:
        last, before = self._last
        self._last = like, (*(before if like == last else ()), seconds)[-_JUDGED:]

    def _hand_back(self, deliver: Callable[[], None]) -> None:
        self._results.append(deliver)
        if not self._stopped:
            with contextlib.suppress(InvalidHandle):  # the node has been destroyed meanwhile
                self._guard.trigger()

    def _deliver(self) -> None:
        while self._results:
            self.pending -= 1
            self._results.popleft()()


def _raise(error: BaseException) -> NoReturn:
    raise error


def end_process(code: int) -> NoReturn:
    """End the process with exit code `code` at once, even in the middle of a computation.

    A computation in LAPACK cannot be interrupted, nor can the threads of the middleware: the interpreter's own clean-up
    would take the memory from under them.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
