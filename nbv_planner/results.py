"""A results folder: written beside its place and moved there when it is complete."""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from nbv_planner.errors import ResultsError
from nbv_planner.evaluation.records import EpisodeRecord, Step, ViewRecord

RECORD_FILE = "episode.json"
TEMPORARY = ".tmp"
"""Ending of files that are being written."""


class ResultsFolder:
    """Context manager that gives a folder to write into and puts it in place by :meth:`commit`.

    Until then nothing is seen at the final place; what is not committed is removed.
    """

    def __init__(self, path: str | Path, *, force: bool = False, marker: str = RECORD_FILE) -> None:
        """Refuse at once what could not be written later.

        Args:
            path: the final place.
            force: whether an older results folder there is replaced. Any other folder never is.
            marker: name of the file by which a results folder of this kind is known.

        Raises:
            ResultsError: the place is taken or cannot be written.
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
                f"cannot write to {self.path.parent}: {error.strerror}; choose a folder that can be written"
            ) from error

    def _check_replaceable(self) -> None:
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise ResultsError(f"{self.path} is not a folder; choose another results folder")
        if self.path.resolve() == Path.cwd():
            raise ResultsError(f"{self.path} is the current folder; choose another results folder")
        if any(self.path.iterdir()) and not self._force:
            raise ResultsError(f"{self.path} exists; choose another folder or replace it with --force")
        if any(self.path.iterdir()) and not (self.path / self._marker).is_file():
            raise ResultsError(f"{self.path} is not a results folder (no {self._marker}); it is not replaced")

    def __enter__(self) -> ResultsFolder:
        """Begin to write."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove what was not committed."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def commit(self) -> None:
        """Put the folder in its place, or beside it if somebody else has taken it meanwhile."""
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
    """Write a file of which nobody ever sees a part: beside its place, then moved there.

    A process that is killed meanwhile may leave a hidden file that ends in :data:`TEMPORARY`.
    """
    beside = path.with_name(f".{path.name}{TEMPORARY}")
    beside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    beside.replace(path)


def fresh_folder(parent: str | Path, name: str) -> Path:
    """First of `parent/name`, `parent/name-2`, `parent/name-3`, ... that does not exist."""
    candidate, number = Path(parent) / name, 1
    while os.path.lexists(candidate):
        number += 1
        candidate = Path(parent) / f"{name}-{number}"
    return candidate


def write_record(folder: Path, record: EpisodeRecord) -> None:
    """Write `episode.json` and `views.csv`."""
    text = json.dumps(record.to_json(), indent=2, allow_nan=False)
    (folder / RECORD_FILE).write_text(text + "\n", encoding="utf-8")
    with (folder / "views.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(ViewRecord)])
        writer.writeheader()
        writer.writerows(asdict(view) for view in record.views)


def write_beliefs(folder: Path, steps: Sequence[Step]) -> None:
    """Write `beliefs.npz`: grid, belief after each view, candidates and objective values, hits; one row per view."""
    if not steps:
        return
    beliefs: dict[str, Any] = {
        name: np.stack([getattr(step.belief, name) for step in steps])
        for name in ("mean", "std", "lower", "upper", "hits")
    }
    number = np.concatenate([np.full(len(step.measurements), i) for i, step in enumerate(steps, start=1)])
    np.savez_compressed(
        folder / "beliefs.npz",
        angle=steps[0].belief.angle,
        candidates=steps[0].candidates,
        utilities=np.stack([step.utilities for step in steps]),
        measured_angle=np.concatenate([step.measurements.angle for step in steps]),
        measured_radius=np.concatenate([step.measurements.radius for step in steps]),
        measured_view=number,
        **beliefs,
    )
