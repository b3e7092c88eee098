"""Keeps the state of a node in a file: resumed at start, written in a worker thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rclpy.task import Future

from nbv_planner.episode.parameters import MapFile, StateFile, fixed_settings
from nbv_planner.errors import NbvPlannerError, StateFileError, reason
from nbv_planner.ros.core.node_parameters import read_settings
from nbv_planner.ros.core.worker import Worker
from nbv_planner.session.journal import Journal
from nbv_planner.system import at_home

if TYPE_CHECKING:
    from nbv_planner.ros.core.node import BaseNode

T = TypeVar("T")
# Suffix of a file that was not resumed: it is kept, and not overwritten by the next save.
_REFUSED = ".refused"


class JournalKeeper:
    """The journal of one node, to which records are added in another thread; each is on the disk
    before what follows from it is published.

    A file that cannot be resumed is renamed (`<file>.refused`) and counted
    (`dropped.state.<reason>`), and the node starts without it: a restarted robot has to continue,
    and the planner detects the missing views.
    """

    def __init__(
        self, node: BaseNode, kind: str, file: type[MapFile | StateFile], *settings: object
    ) -> None:
        """Read the parameters, without reading the file.

        The `kind` is the name of the content in the file, `file` declares the parameter with its
        path (empty to save nothing), and the state depends on the `settings`.
        """
        self._node = node
        (_, episode), (self._parameter, path) = vars(read_settings(node, file)).items()
        self.path = at_home(path) if path else None  #: the file, or None if nothing is saved.
        self._journal = self.path and Journal(self.path, kind, fixed_settings(*settings), episode)
        self._files = Worker(node)
        self.pending = 0  #: number of writes whose end the node has not received yet.
        #: number of writes, and time of the newest one.
        self._figures = {"restored": False, "saves": 0, "save_milliseconds": 0.0}
        self._lock = threading.Lock()
        self._adopt([], rewrite=True)

    def restore(self, apply: Callable[[list[Any]], None]) -> None:
        """At start, `apply` the records of the file, if it exists; further records are appended."""
        if self.path is None:
            return
        try:
            records = self._read()
            with self._as_file_errors():
                apply(records)
        except StateFileError as error:
            if error.reason != "missing":
                with suppress(OSError):
                    if self.path.is_file():
                        self.path.replace(self.path.with_name(self.path.name + _REFUSED))
                self._node.drop(f"state.{error.reason}", f"the saved state is not used: {error}")
            return
        self._adopt(records, rewrite=False)
        self._figures["restored"] = True
        self._count_torn()
        self._node.get_logger().info(f"resumed from {self.path}")

    def took(self, error: StateFileError | None) -> None:
        """Count and log the error of a write, if any."""
        if error is not None:
            self._node.drop(f"state.{error.reason}", str(error))

    def diagnosis(self) -> dict[str, object]:
        """Values for `/diagnostics`; none if nothing is saved."""
        return dict(self._figures) if self._journal else {}

    @property
    def _named(self) -> Journal:
        """The journal, if a file is named."""
        if self._journal is None:
            raise StateFileError(
                "no_file", f"no file given: start the node with the parameter {self._parameter}"
            )
        return self._journal

    def _adopt(self, records: Sequence[Any], *, rewrite: bool) -> None:
        """Append to the records of a file from now on, or rewrite it."""
        with self._lock:
            self._records = list(records)
            self._written = len(records)
            self._rewrite = rewrite

    def _read(self, *, any_episode: bool = False) -> list[Any]:
        return self._named.read(any_episode=any_episode)

    @contextmanager
    def _as_file_errors(self) -> Iterator[None]:
        """Raise any error that the records cause as one of the file: it must not end the node,
        which would meet it again at every restart.
        """
        try:
            yield
        except StateFileError as error:
            raise StateFileError(error.reason, f"{self.path}: {error}") from error
        except NbvPlannerError as error:
            raise StateFileError("content", f"{self.path}: {error}") from error
        except Exception as error:
            raise StateFileError(
                "content", f"{self.path}: {type(error).__name__}: {reason(error)}"
            ) from error

    async def replace(self, read: Callable[[list[Any]], T], apply: Callable[[T], None]) -> None:
        """`read` the records of the file, of whatever episode, in another thread, and `apply` the
        result in this one.

        The file becomes one of this episode.

        Raises:
            StateFileError: it does not exist or cannot be used; names the file. Nothing is changed.
        """
        records = await self._files.run(partial(self._read, any_episode=True))
        with self._as_file_errors():
            apply(await self._files.run(partial(read, records)))
        self._adopt(records, rewrite=True)
        self._count_torn()

    def _count_torn(self) -> None:
        """Count and log an incomplete last line of the file that has been read."""
        if torn := self._named.torn:
            self._node.drop(
                "state.torn",
                f"{self.path}: {torn} bytes of an incomplete last line are left out",
            )

    def note(self, records: Sequence[Any], *, rewrite: bool = False) -> None:
        """Let the next write append `records`, or `rewrite` the file with them alone; from any
        thread.
        """
        if self._journal is not None:
            with self._lock:
                self._records = [*([] if rewrite else self._records), *records]
                self._rewrite |= rewrite

    def write(self, *, rewrite: bool = False) -> StateFileError | None:
        """Write what has been noted, or `rewrite` the file, in any thread; returns the error, if
        any, for :meth:`took`.

        After an error the next call rewrites the file.
        """
        if self._journal is None:
            return None
        with self._lock:
            started = time.monotonic()
            number = len(self._records)
            try:
                if self._rewrite or rewrite:
                    self._journal.begin(self._records)
                else:
                    self._journal.append(self._records[self._written :])
            except StateFileError as error:
                self._rewrite, self._written = True, number
                return error
            self._rewrite, self._written = False, number
            self._figures["saves"] += 1
            self._figures["save_milliseconds"] = 1e3 * (time.monotonic() - started)
            return None

    def submit(self, done: Callable[[], None]) -> None:
        """Write what has been noted in the writer's thread, then call `done` in the node's
        thread.
        """
        self.pending += 1
        self._files.submit(self.write, partial(self._finish, done))

    def _finish(self, done: Callable[[], None], error: StateFileError | None) -> None:
        self.pending -= 1
        self.took(error)
        done()

    def flushed(self) -> Future:
        """Future that is done once all that has been submitted is written."""
        return self._files.run(lambda: None)

    async def save(self) -> None:
        """Rewrite the file with all records.

        Raises:
            StateFileError: no file is named, or it cannot be written.
        """
        _ = self._named
        error = await self._files.run(partial(self.write, rewrite=True))
        if error is not None:
            raise error

    def close(self) -> None:
        """End the thread; what has been noted is written, if it is to be saved."""
        self._files.stop()
        if self._records and (self._rewrite or self._written < len(self._records)):
            self.write()
