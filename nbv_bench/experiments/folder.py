"""The results folder of a sweep: locked while it is written, each file written whole."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from nbv_bench.experiments.cases import MEASURES, Outcome
from nbv_bench.experiments.sweep import (
    Case,
    Shard,
    Sweep,
    dealt,
    first_difference,
)
from nbv_planner.errors import ResultsError, reason, shown
from nbv_planner.files.results_folder import TEMPORARY, read_json, write_whole
from nbv_planner.system import held_signals
from nbv_planner.versions import versions

FORMAT = "nbv_planner sweep"
FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"
SWEEP_FILE = "sweep.yaml"
FAILURES_FOLDER = "failures"
"""One file per case that ended in an error: `case`, `error`, `traceback`."""


def read_manifest(folder: Path, kind: type[RunFolder]) -> dict[str, Any]:
    """Read `manifest.json` in the folder of a `kind` of runs.

    Raises:
        ResultsError: it is missing, or this version of the package cannot read it.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise ResultsError(
            f"{folder} is not the results folder of a {kind.what} (no {MANIFEST_FILE})"
        )
    manifest = read_json(path)
    if manifest.get("format") != kind.format:
        raise ResultsError(
            f"{path}: format is {shown(manifest.get('format'))}, must be {kind.format!r}"
        )
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ResultsError(
            f"{path}: format_version is {shown(manifest.get('format_version'))}, this version of"
            f" the package reads {FORMAT_VERSION}"
        )
    return manifest


LOCK_FILE = ".lock"


@contextmanager
def folder_lock(folder: Path, shard: Shard | None = None, *, wait: bool = False) -> Iterator[None]:
    """Lock an existing folder for this process, or for it what a `shard` writes there; `wait` until
    it is free.

    The operating system releases the lock when the process ends in any way: a lock file left by a
    killed process blocks no other one. Worker processes do not inherit it.

    Raises:
        ResultsError: another process holds it, and is not waited for; names it.
        OSError: the folder cannot be written.
    """
    path = folder / (f"{LOCK_FILE}-{shard.number}-of-{shard.of}" if shard else LOCK_FILE)
    in_place = False
    while not in_place:  # its holder may remove it between opening and locking
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except (BlockingIOError, PermissionError) as error:
            holder = "another process"
            with file, suppress(ValueError, KeyError, TypeError):
                file.seek(0)
                content = json.loads(file.read(1000))
                holder = f"process {content['process']} on {content['machine']}"
            which = f", shard {shard}," if shard else ""
            raise ResultsError(f"{folder}{which} is being written by {holder}") from error
        with suppress(FileNotFoundError):
            in_place = os.path.samestat(os.fstat(file.fileno()), path.stat())
        if not in_place:
            file.close()
    file.truncate(0)
    json.dump({"process": os.getpid(), "machine": platform.node()}, file)
    file.flush()
    try:
        yield
    finally:
        with held_signals():
            path.unlink(missing_ok=True)
            file.close()


def holds_results(folder: Path, description: str) -> bool:
    """Whether `folder` holds more than the files of a run that was killed before its first result;
    `description` names the file that is written first.
    """
    names = (path.name for path in folder.iterdir())
    return any(
        not (name == description or name.startswith(LOCK_FILE) or name.endswith(TEMPORARY))
        for name in names
    )


_Entered = TypeVar("_Entered", bound="RunFolder")


class RunFolder:
    """Context manager for a folder of the results of many runs, into which only this process
    writes.

    Processes that run a shard each write into it at the same time: each the files of its own runs.
    """

    format: ClassVar[str]  #: of the manifest.
    what: ClassVar[str]  #: what is run, in one word: key of the manifest.
    description: ClassVar[str]  #: name of the file that holds `text`.
    folders: ClassVar[tuple[str, ...]] = ("runs",)  #: subfolders that are written into.

    def __init__(
        self,
        path: str | Path,
        content: Mapping[str, Any],
        text: str,
        *,
        resume: bool = False,
        shard: Shard | None = None,
        files: Collection[str] = (),
        packages: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        """Check at once that the results can be written later.

        A folder is created if it does not exist, and resumed only if `resume` is set and the same
        was begun in it: `content`, plain values for the manifest. The `text` is that of the file
        `description`; `extra` is more for the manifest, `packages` are versions of plug-ins. A
        `shard` continues what the others have begun; it writes the files of these names, `files`.

        Raises:
            ResultsError: the folder holds something else, another run, another number of shards or
                another format version, something and `resume` is not set, or shards of other
                versions.
        """
        self.path = Path(path)  #: the folder.
        self.notes: list[str] = []  #: what the user should know about a resumed folder.
        self._manifest = {
            "format": self.format,
            "format_version": FORMAT_VERSION,
            self.what: content,
            "versions": versions(**(packages or {})),
            **extra,
            **({"shards": shard.of} if shard else {}),
        }
        self._shard = shard
        self._files = files
        self._text = text
        self._resume = resume or shard is not None
        self._stack = ExitStack()
        self._check()

    @property
    def versions(self) -> dict[str, str]:
        """Versions that all results must have."""
        found: dict[str, str] = self._manifest["versions"]
        return found

    def _check(self) -> None:
        if not self.path.exists() or (
            self.path.is_dir() and not holds_results(self.path, self.description)
        ):
            return
        if not self.path.is_dir():
            raise ResultsError(f"{self.path} is not a folder; choose another results folder")
        if not self._resume:
            raise ResultsError(
                f"{self.path} is not empty; continue it with --resume or choose another folder"
            )
        manifest = read_manifest(self.path, type(self))
        difference = first_difference(manifest[self.what], self._manifest[self.what])
        if difference:
            raise ResultsError(
                f"{self.path} holds another {self.what}: {difference}; choose another folder"
            )
        if (shards := manifest.get("shards")) != self._manifest.get("shards"):
            begun = "without --shard" if shards is None else f"with --shard i/{shown(shards)}"
            raise ResultsError(
                f"{self.path} was begun {begun}; continue it like this or choose another folder"
            )
        changed = first_difference(manifest["versions"], self.versions)
        if changed and self._shard:
            raise ResultsError(
                f"{self.path} was begun with other versions: {changed}; all shards need the same"
            )
        self.notes = [f"{self.path} was begun with other versions: {changed}"] if changed else []

    def __enter__(self: _Entered) -> _Entered:
        """Lock the folder, remove incomplete files of a killed run, and describe what is run.

        Raises:
            ResultsError: another process writes into the folder, or it cannot be written.
        """
        with ExitStack() as stack, ExitStack() as beginning:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                if self._shard:
                    stack.enter_context(folder_lock(self.path, self._shard))
                (beginning if self._shard else stack).enter_context(
                    folder_lock(self.path, wait=bool(self._shard))
                )
                self._check()
                for name in ("", *self.folders):
                    for path in (self.path / name).glob(f".*{TEMPORARY}"):
                        if not self._shard or path.name[1:].removesuffix(TEMPORARY) in self._files:
                            path.unlink()
                self._describe()
            except OSError as error:
                raise self._cannot_write(error) from error
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _cannot_write(self, error: OSError) -> ResultsError:
        if isinstance(error, ResultsError):
            return error
        return ResultsError(
            f"cannot write to {self.path}: {reason(error)}; choose a folder that can be written"
        )

    def _describe(self) -> None:
        """Write what is run and the manifest; the manifest last, so that its presence implies
        both.
        """
        if (self.path / MANIFEST_FILE).exists():
            return
        write_whole(self.path / self.description, self._text)
        write_json(self.path / MANIFEST_FILE, self._manifest)


class SweepFolder(RunFolder):
    """The results folder of a sweep."""

    format = FORMAT
    what = "sweep"
    description = SWEEP_FILE
    folders = (FAILURES_FOLDER, *(measure.folder for measure in MEASURES.values()))

    def __init__(
        self,
        path: str | Path,
        sweep: Sweep,
        *,
        resume: bool = False,
        shard: Shard | None = None,
        **extra: Any,
    ) -> None:
        every = sweep.cases()
        share = dealt((case.slug for case in every), shard.of) if shard else {}
        self._cases = [case for case in every if not shard or share[case.slug] == shard.number]
        self.number_of_cases = len(self._cases)  #: of the sweep or the shard, finished or not.
        packages = dict(
            sorted(package for case in every for package in case.config.packages.items())
        )
        super().__init__(
            path,
            sweep.as_dict(),
            sweep.text,
            resume=resume,
            shard=shard,
            packages=packages,
            cases=len(every),
            files={f"{case.slug}.json" for case in self._cases} if shard else (),
            **extra,
        )

    def unfinished(self) -> list[Case]:
        """Cases of the sweep or the shard without a whole result, failed ones included."""
        return [case for case in self._cases if not self._is_finished(case)]

    def _is_finished(self, case: Case) -> bool:
        """Whether the file exists, is whole, and belongs to the case."""
        try:
            return bool(read_json(self._place(case)).get("case") == case.as_dict())
        except ResultsError:
            return False

    def _place(self, case: Case) -> Path:
        return self.path / MEASURES[case.measure].folder / f"{case.slug}.json"

    def failure_path(self, case: Case) -> Path:
        """Path of the error of a case."""
        return self.path / FAILURES_FOLDER / f"{case.slug}.json"

    def keep(self, outcome: Outcome) -> None:
        """Write the result of a case; an older error is removed when it has succeeded.

        Raises:
            ResultsError: the folder cannot be written.
        """
        path = self.failure_path(outcome.case) if outcome.failed else self._place(outcome.case)
        try:
            path.parent.mkdir(exist_ok=True)
            write_json(path, outcome.content)
            if not outcome.failed:
                self.failure_path(outcome.case).unlink(missing_ok=True)
        except OSError as error:
            raise self._cannot_write(error) from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically."""
    write_whole(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
