"""The file of results: `bench.json`."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbv_planner.benchmarking.growth import growth_rows
from nbv_planner.benchmarking.parts import PARTS
from nbv_planner.benchmarking.targets import target_rows
from nbv_planner.errors import ResultsError
from nbv_planner.results import write_whole

RECORD_FILE = "bench.json"
_FORMAT = "nbv_planner benchmark"
_FORMAT_VERSION = 1

Measured = dict[str, dict[str, Any]]
"""By part: `machine` (:func:`nbv_planner.benchmarking.machine.machine` before it), `quick`, `seconds` that it took, and
`rows`."""


def read_record(folder: Path) -> Measured:
    """Read the parts measured before; none if there is no file.

    Raises:
        ResultsError: the file is not one of this benchmark, or the folder is not a folder.
    """
    path = folder / RECORD_FILE
    if folder.exists() and not folder.is_dir():
        raise ResultsError(f"{folder} is not a folder; choose another one with --out")
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if (content["format"], content["format_version"]) != (_FORMAT, _FORMAT_VERSION):
            raise ValueError(f"its format is {content['format']} {content['format_version']}")
        parts: Measured = content["parts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(
            f"{path} is not a result of nbv-planner bench ({type(error).__name__}: {error}); choose another folder"
        ) from error
    return {name: parts[name] for name in PARTS if name in parts}


def write_record(folder: Path, measured: Measured) -> None:
    """Write the parts, with the growth of the mapper and the targets that they allow to judge.

    Raises:
        ResultsError: the folder cannot be written.
    """
    rows = full_rows(measured)
    content = {
        "format": _FORMAT, "format_version": _FORMAT_VERSION, "parts": measured,
        "growth": growth_rows(rows.get("mapper", [])), "targets": target_rows(rows),
    }
    write_file(folder, RECORD_FILE, json.dumps(content, indent=1, allow_nan=False) + "\n")


def prepare_folder(folder: Path) -> None:
    """Make the folder of the results, to find out before the first measurement that it cannot be written.

    Raises:
        ResultsError: it cannot.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def write_file(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file whole into a folder.

    Raises:
        ResultsError: the folder cannot be written.
    """
    with _writing(folder):
        write_whole(folder / name, content)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(f"cannot write to {folder}: {error.strerror}; choose another folder with --out") from error


def full_rows(measured: Measured) -> dict[str, list[dict[str, Any]]]:
    """Rows by part."""
    return {name: part["rows"] for name, part in measured.items()}
