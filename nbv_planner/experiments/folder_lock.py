"""A lock on a folder, so that two runners do not write into it at the same time."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from pathlib import Path
from types import TracebackType
from typing import IO

from nbv_planner.errors import ResultsError
from nbv_planner.results import TEMPORARY

LOCK_FILE = ".lock"


class FolderLock:
    """Context manager that holds a folder for this process.

    The operating system gives the lock back when the process ends, however it ends: a lock file that a killed process
    has left behind holds nobody up. Worker processes do not inherit it.
    """

    def __init__(self, folder: Path) -> None:
        """Lock `folder`, which must exist, on entry."""
        self._path = folder / LOCK_FILE
        self._file: IO[str] | None = None

    def __enter__(self) -> FolderLock:
        """Take the lock.

        Raises:
            ResultsError: another process holds it; says which.
            OSError: the folder cannot be written.
        """
        while self._file is None:
            file = self._path.open("a+", encoding="utf-8")
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                with file:
                    raise ResultsError(f"{self._path.parent} is being written by {_holder(file)}") from error
            if self._is_in_place(file):
                self._file = file
            else:  # its holder removed it between the opening and the locking
                file.close()
        self._file.truncate(0)
        json.dump({"process": os.getpid(), "machine": platform.node()}, self._file)
        self._file.flush()
        return self

    def _is_in_place(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lock back and leave no file."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None


def _holder(file: IO[str]) -> str:
    """Who wrote the lock file, in words."""
    file.seek(0)
    try:
        content = json.load(file)
        return f"process {content['process']} on {content['machine']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def holds_results(folder: Path, description: str) -> bool:
    """Whether `folder` holds more than a run leaves behind that is killed before its results have begun.

    Args:
        folder: an existing folder.
        description: name of the file that is written before the results begin.
    """
    names = (path.name for path in folder.iterdir())
    return any(name not in (LOCK_FILE, description) and not name.endswith(TEMPORARY) for name in names)
