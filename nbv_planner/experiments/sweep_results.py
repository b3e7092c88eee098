"""The results folder of a sweep, as later steps read it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbv_planner.errors import ResultsError
from nbv_planner.experiments.cases import MEASURES
from nbv_planner.experiments.sweep import EPISODE, Case, case_identities, case_slug

FORMAT = "nbv_planner sweep"
FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"
SWEEP_FILE = "sweep.yaml"
FAILURES_FOLDER = "failures"
"""One file per case that ended in an error: `case`, `error`, `traceback`."""


@dataclass(frozen=True)
class SweepResults:
    """What has been kept of a sweep, in the order of its cases whatever the order in which they were run.

    Attributes:
        folder: the results folder.
        manifest: `format`, `format_version`, `sweep` (all settings), `versions`, `cases` (their number).
        measured: records by measure; each holds its `case`.
        failures: `case`, `error` and `traceback` of each case that ended in an error.
    """

    folder: Path
    manifest: dict[str, Any]
    measured: dict[str, list[dict[str, Any]]]
    failures: list[dict[str, Any]]

    @property
    def episodes(self) -> list[dict[str, Any]]:
        """Records of the episodes."""
        return self.measured.get(EPISODE, [])


def read_sweep(folder: str | Path) -> SweepResults:
    """Read the results folder of a sweep, finished or not.

    Raises:
        ResultsError: it is none, is of another format version, or a file in it cannot be read.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    cases = case_identities(manifest["sweep"])
    slugs = {
        measure: [f"{case_slug(measure, case)}.json" for case in cases]
        for measure in manifest["sweep"]["measure"]
        if measure in MEASURES
    }
    measured = {measure: _read_all(folder / MEASURES[measure].folder, names) for measure, names in slugs.items()}
    failures = [failure for names in slugs.values() for failure in _read_all(folder / FAILURES_FOLDER, names)]
    return SweepResults(folder, manifest, measured, failures)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read `manifest.json`.

    Raises:
        ResultsError: there is none, or it is not one that this version of the package can read.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise ResultsError(f"{folder} is not the results folder of a sweep (no {MANIFEST_FILE})")
    manifest = _read(path)
    if manifest.get("format") != FORMAT:
        raise ResultsError(f"{path}: format is {manifest.get('format')!r}, must be {FORMAT!r}")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise ResultsError(
            f"{path}: format_version is {manifest.get('format_version')!r}, this version of the package reads "
            f"{FORMAT_VERSION}"
        )
    return manifest


def holds_case(path: Path, case: Case) -> bool:
    """Whether the file is there, whole, and belongs to the case."""
    try:
        return bool(_read(path).get("case") == case.as_dict())
    except ResultsError:
        return False


def _read_all(folder: Path, names: Iterable[str]) -> list[dict[str, Any]]:
    """Those of the files that are there."""
    return [_read(folder / name) for name in names if (folder / name).exists()]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from error
    if not isinstance(content, dict):
        raise ResultsError(f"cannot read {path}: holds a {type(content).__name__}, must be an object")
    return content
