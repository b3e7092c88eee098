"""The results folder of a sweep while it is run: each file is written whole, finished cases are not run again."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import TracebackType
from typing import Any

from nbv_planner.errors import ResultsError
from nbv_planner.evaluation.records import versions
from nbv_planner.experiments.cases import MEASURES, Outcome
from nbv_planner.experiments.folder_lock import FolderLock, holds_results
from nbv_planner.experiments.sweep import Case, Sweep, first_difference
from nbv_planner.experiments.sweep_results import (
    FAILURES_FOLDER,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST_FILE,
    SWEEP_FILE,
    holds_case,
    read_manifest,
)
from nbv_planner.results import TEMPORARY, write_whole

"""All that a run can leave that was killed before it had begun."""


class SweepFolder:
    """Context manager for a results folder that this process alone writes into.

    Attributes:
        path: the folder.
        notes: what the user should know of a folder that is gone on with.
    """

    def __init__(self, path: str | Path, sweep: Sweep, *, resume: bool = False) -> None:
        """Refuse at once what could not be written later.

        Args:
            path: the folder; made if it is not there.
            sweep: what is run.
            resume: whether to go on with a folder in which this sweep was begun.

        Raises:
            ResultsError: the folder holds something else, another sweep or another format version, or something and
                `resume` is not set.
        """
        self.path = Path(path)
        self.notes: list[str] = []
        self._sweep, self._resume = sweep, resume
        self._cases = sweep.cases()
        self._stack = contextlib.ExitStack()
        self._check()

    def _check(self) -> None:
        if not self.path.exists() or (self.path.is_dir() and not holds_results(self.path, SWEEP_FILE)):
            return
        if not self.path.is_dir():
            raise ResultsError(f"{self.path} is not a folder; choose another results folder")
        if not self._resume:
            raise ResultsError(f"{self.path} is not empty; go on with it by --resume or choose another folder")
        manifest = read_manifest(self.path)
        difference = first_difference(manifest["sweep"], self._sweep.as_dict())
        if difference:
            raise ResultsError(f"{self.path} holds another sweep: {difference}; choose another folder")
        changed = first_difference(manifest["versions"], versions())
        self.notes = [f"{self.path} was begun with other versions: {changed}"] if changed else []

    def __enter__(self) -> SweepFolder:
        """Take hold of the folder, remove what a killed run has left half-written, and describe the sweep.

        Raises:
            ResultsError: another process writes into the folder, or it cannot be written.
        """
        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(FolderLock(self.path))
                self._check()
                self._remove_half_written()
                self._describe()
            except OSError as error:
                raise self._cannot_write(error) from error
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the folder."""
        self._stack.close()

    def _cannot_write(self, error: OSError) -> ResultsError:
        if isinstance(error, ResultsError):
            return error
        return ResultsError(f"cannot write to {self.path}: {error.strerror}; choose a folder that can be written")

    def _remove_half_written(self) -> None:
        for folder in ("", FAILURES_FOLDER, *(measure.folder for measure in MEASURES.values())):
            for path in (self.path / folder).glob(f".*{TEMPORARY}"):
                path.unlink()

    def _describe(self) -> None:
        """Write the sweep and the manifest; the manifest last, so that it stands for both."""
        if (self.path / MANIFEST_FILE).exists():
            return
        write_whole(self.path / SWEEP_FILE, self._sweep.text)
        self._write(
            self.path / MANIFEST_FILE,
            {
                "format": FORMAT, "format_version": FORMAT_VERSION, "sweep": self._sweep.as_dict(),
                "versions": versions(), "cases": len(self._cases),
            },
        )

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        write_whole(path, json.dumps(content, indent=1, allow_nan=False) + "\n")

    @property
    def number_of_cases(self) -> int:
        """Number of cases of the sweep, finished or not."""
        return len(self._cases)

    def unfinished(self) -> list[Case]:
        """Cases of the sweep without a whole result, failed ones included."""
        return [case for case in self._cases if not holds_case(self._place(case), case)]

    def _place(self, case: Case) -> Path:
        return self.path / MEASURES[case.measure].folder / f"{case.slug}.json"

    def failure_path(self, case: Case) -> Path:
        """Where the error of a case is kept."""
        return self.path / FAILURES_FOLDER / f"{case.slug}.json"

    def keep(self, outcome: Outcome) -> None:
        """Write the result of a case; an older error of it goes when it has succeeded.

        Raises:
            ResultsError: the folder cannot be written.
        """
        path = self.failure_path(outcome.case) if outcome.failed else self._place(outcome.case)
        try:
            path.parent.mkdir(exist_ok=True)
            self._write(path, outcome.content)
            if not outcome.failed:
                self.failure_path(outcome.case).unlink(missing_ok=True)
        except OSError as error:
            raise self._cannot_write(error) from error
