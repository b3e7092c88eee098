"""Keeps the state of a node in a file: resumed at start, written in a worker thread."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rclpy.task import Future

from nbv_planner.episode.parameters import MapFile, SavingSettings, StateFile, fixed_settings
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
    before what follows.

    A file that cannot be resumed is renamed (`<file>.refused`) and counted
    (`dropped.state.<reason>`), and the node starts without it: a restarted robot has to continue,
    and the planner detects the missing views.
    """

    def __init__(
        self, node: BaseNode, kind: str, file: type[MapFile | StateFile], *settings: object
    ) -> None:
        """Read the parameters, without reading the file.

        The kind is the content of the file in words, `file` declares the parameter with its path
        (empty to save nothing), and the state depends on the `settings`.
        """
        self._node, self._saving = node, read_settings(node, SavingSettings)
        ((self._parameter, path),) = dataclasses.asdict(read_settings(node, file)).items()
        self.path = at_home(path) if path else None  #: the file, or None if nothing is saved.
        #: whether to save without a request.
        self.autosave = self._saving.autosave and self.path is not None
        self._lock = threading.Lock()
        self._saves, self._milliseconds, self._restored = 0, 0.0, False
        self._journal = self.path and Journal(
            self.path, kind, fixed_settings(*settings), self._saving.episode
        )
        self._records: list[Any] = []
        self._written, self._anew = 0, True
        self._files = Worker(node)
        self.pending = 0  #: number of writings that the node has not been told of yet.

    def restore(self, apply: Callable[[list[Any]], None]) -> None:
        """At start, `apply` the records of the file, if it exists and is to be resumed; the next
        ones go behind.
        """
        if self.path is None or not self._saving.restore:
            return
        try:
            self._load(apply)
        except StateFileError as error:
            if error.reason != "missing":
                with contextlib.suppress(OSError):
                    if self.path.is_file():
                        self.path.replace(self.path.with_name(self.path.name + _REFUSED))
                self._node.drop(f"state.{error.reason}", f"starts without the saved state: {error}")
            return
        self._restored = True
        self._count_torn()
        self._node.get_logger().info(f"resumed from {self.path}")

    def _timed(self, write: Callable[[], object]) -> StateFileError | None:
        """Write; returns the error, if any, for :meth:`took` in the node's thread."""
        started = time.monotonic()
        try:
            write()
        except StateFileError as error:
            return error
        self._saves, self._milliseconds = self._saves + 1, 1e3 * (time.monotonic() - started)
        return None

    def took(self, error: StateFileError | None) -> None:
        """Count and log an error of writing, if any."""
        if error is not None:
            self._node.drop(f"state.{error.reason}", str(error))

    def diagnosis(self) -> dict[str, object]:
        """Values for `/diagnostics`; none if nothing is saved."""
        if self.path is None:
            return {}
        return {
            "restored": self._restored,
            "saves": self._saves,
            "save_milliseconds": self._milliseconds,
        }

    def _named_path(self) -> Path:
        if self.path is None:
            raise StateFileError(
                "no_file", f"no file is named: start the node with the parameter {self._parameter}"
            )
        return self.path

    def _load(self, apply: Callable[[list[Any]], None], *, any_episode: bool = False) -> None:
        records = self._read(any_episode=any_episode)
        with self._blamed():
            apply(records)
        self._adopt(records, anew=any_episode)

    def _read(self, *, any_episode: bool) -> list[Any]:
        self._named_path()
        assert self._journal
        return self._journal.read(any_episode=any_episode)

    @contextlib.contextmanager
    def _blamed(self) -> Iterator[None]:
        """Whatever the records lead to is an error of the file."""
        try:
            yield
        except StateFileError as error:
            raise StateFileError(error.reason, f"{self.path}: {error}") from error
        except NbvPlannerError as error:
            raise StateFileError("content", f"{self.path}: {error}") from error
        # a file must not end the node, or it would end it again at every restart
        except Exception as error:
            raise StateFileError(
                "content", f"{self.path}: {type(error).__name__}: {reason(error)}"
            ) from error

    def _adopt(self, records: Sequence[Any], *, anew: bool) -> None:
        """Go on behind the records of a file, or write them anew."""
        with self._lock:
            self._records, self._written, self._anew = list(records), len(records), anew

    async def replace(self, read: Callable[[list[Any]], T], apply: Callable[[T], None]) -> None:
        """`read` the records of the file in another thread, whatever episode it is of, and `apply`
        what they say here.

        The file becomes one of this episode.

        Raises:
            StateFileError: it does not exist or cannot be used; names the file. Nothing is changed.
        """
        records = await self._files.run(partial(self._read, any_episode=True))
        with self._blamed():
            apply(await self._files.run(partial(read, records)))
        self._adopt(records, anew=True)
        self._count_torn()

    def _count_torn(self) -> None:
        """Count a torn line of the file that has been read."""
        if self._journal and self._journal.torn:
            self._node.drop(
                "state.torn",
                f"{self.path}: {self._journal.torn} bytes of a torn last line are left out",
            )

    def note(self, records: Sequence[Any], *, anew: bool = False) -> None:
        """Let :meth:`write` write `records` behind the others, or `anew` in place of them; in any
        thread.
        """
        if self._journal is None:
            return
        with self._lock:
            self._records, self._anew = (
                [
                    *([] if anew else self._records),
                    *records,
                ],
                self._anew or anew,
            )

    def write(self) -> StateFileError | None:
        """Write what has been noted, in any thread; returns the error, if any, for :meth:`took`.

        After an error the next attempt writes a file anew.
        """
        with self._lock:
            try:
                self._named_path()
            except StateFileError as error:
                return error
            assert self._journal
            if self._anew:
                error = self._timed(partial(self._journal.begin, self._records))
            else:
                error = self._timed(partial(self._journal.append, self._records[self._written :]))
            self._anew = error is not None
            self._written = len(self._records)
            return error

    def submit(self, done: Callable[[], None]) -> None:
        """Write what has been noted in the thread of the files, then call `done` in the node's."""
        self.pending += 1
        self._files.submit(self.write, partial(self._finish, done))

    def _finish(self, done: Callable[[], None], error: StateFileError | None) -> None:
        self.pending -= 1
        self.took(error)
        done()

    def flushed(self) -> Future:
        """Done once all that has been submitted is written."""
        return self._files.run(lambda: None)

    def save(self) -> Future:
        """Write a file anew with all records; the result is the error, if any."""
        self._anew = True
        return self._files.run(self.write)

    def close(self) -> None:
        """End the thread; what has been noted is written, if it is to be saved."""
        self._files.stop()
        if self.autosave and (self._anew or self._written < len(self._records)) and self._records:
            self.write()
