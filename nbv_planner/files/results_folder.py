"""Results on disk: files written atomically and read with care, and folders that are moved into
place at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import AbstractContextManager
from itertools import chain, count
from pathlib import Path
from typing import Any

from nbv_planner.errors import NbvPlannerError, ResultsError, reason
from nbv_planner.system import held_signals, read_regular

RECORD_FILE = "episode.json"
"""Marks the results folder of an episode."""
TEMPORARY = ".tmp"
"""Ending of files that are being written."""


class ResultsFolder(AbstractContextManager["ResultsFolder"]):
    """Context manager that yields a folder to write into and moves it into place by :meth:`commit`.

    Until then the final path does not change; what is not committed is removed.
    """

    def __init__(self, path: str | Path, *, force: bool = False, marker: str = RECORD_FILE) -> None:
        """Refuse at once what could not be written later to `path`, the final one.

        With `force` an older results folder there, known by the file `marker`, is replaced; any
        other folder never is.

        Raises:
            ResultsError: the path exists or cannot be written.
        """
        self.path = Path(path)
        self._force, self._marker = force, marker
        try:
            self._check_replaceable()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix=f".{self.path.name}-", dir=self.path.parent))
        except ResultsError:
            raise
        except OSError as error:
            raise ResultsError(
                f"cannot write to {self.path.parent}: {error.strerror}; choose a folder that can be"
                " written"
            ) from error

    def _check_replaceable(self) -> None:
        path = self.path
        if not os.path.lexists(path):
            return
        if not path.is_dir():
            raise ResultsError(f"{path} is not a folder; choose another results folder")
        if path.resolve() == Path.cwd():
            raise ResultsError(f"{path} is the current folder; choose another results folder")
        if any(path.iterdir()) and not self._force:
            raise ResultsError(f"{path} exists; choose another folder or replace it with --force")
        if any(path.iterdir()) and not (path / self._marker).is_file():
            raise ResultsError(
                f"{path} is not a results folder (no {self._marker}); it is not replaced"
            )

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with held_signals():
            shutil.rmtree(self.folder, ignore_errors=True)
        # a full disk
        if isinstance(error, OSError) and not isinstance(error, (NbvPlannerError, BrokenPipeError)):
            raise ResultsError(f"{error.filename or self.path}: {reason(error)}") from error

    def commit(self) -> None:
        """Move the folder to its path, or to a numbered one if another process has taken it
        meanwhile.
        """
        with held_signals():
            self.folder.chmod(0o755)
            try:
                self._check_replaceable()
            except ResultsError:
                self.path = fresh_folder(self.path.parent, self.path.name)
            if not self.path.exists():
                self.folder.rename(self.path)
                return
            old = Path(tempfile.mkdtemp(prefix=f".{self.path.name}-old-", dir=self.path.parent))
            self.path.rename(old / "results")
            self.folder.rename(self.path)
            shutil.rmtree(old)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: beside its path, then moved there.

    A process that is killed meanwhile may leave a hidden file that ends in :data:`TEMPORARY`.
    """
    beside = path.with_name(f".{path.name}{TEMPORARY}")
    with held_signals():
        beside.write_bytes(
            content.encode("utf-8", "replace") if isinstance(content, str) else content
        )
        beside.replace(path)


_LARGEST = 2**26  # bytes of a record


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        ResultsError: it cannot be read, is no regular file or too large, or holds something else.
    """
    try:
        text = read_regular(path, _LARGEST)
        content = json.loads(text)
        if b"\\ud" in text.lower():  # half a character, which no other file can hold
            json.dumps(content, ensure_ascii=False).encode()
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"cannot read {path}: {reason(error)}") from error
    if not isinstance(content, dict):
        raise ResultsError(
            f"cannot read {path}: holds a {type(content).__name__}, must be an object"
        )
    return content


def fresh_folder(parent: str | Path, name: str) -> Path:
    """First of `parent/name`, `parent/name-2`, `parent/name-3`, ... that does not exist."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(path for each in names if not os.path.lexists(path := Path(parent) / each))
