"""Tables of the results in Markdown, between markers of a document whose other text is somebody's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nbv_planner.benchmarking.growth import growth_rows
from nbv_planner.benchmarking.parts import PARTS
from nbv_planner.benchmarking.record import Measured, full_rows, write_file, write_record
from nbv_planner.benchmarking.tables import Column, markdown
from nbv_planner.benchmarking.targets import TARGET_COLUMNS, target_rows
from nbv_planner.errors import ResultsError

DOCUMENT_FILE = "performance.md"

GROWTH_COLUMNS = (
    Column("smoothness", "ν"), Column("from", "from n"), Column("to", "to n"), Column("update", "slope of the time"),
    Column("megabytes", "slope of the memory"),
)
_TARGETS = "targets"
_TITLE = "# Performance\n"


def blocks(measured: Measured) -> dict[str, str]:
    """Generated text by marker: `targets`, and one for each measured part."""
    targets = target_rows(full_rows(measured))
    found = {_TARGETS: markdown(TARGET_COLUMNS, targets)} if targets else {}
    return found | {name: _part(name, part) for name, part in measured.items()}


def _part(name: str, part: dict[str, Any]) -> str:
    rows = [row for row in part["rows"] if PARTS[name].shown(row)]
    tables = [markdown(PARTS[name].columns, rows)]
    growth = growth_rows(part["rows"]) if name == "mapper" else []
    if growth:
        tables.append(markdown(GROWTH_COLUMNS, growth))
    return "\n\n".join([*tables, _provenance(part)])


def _provenance(part: dict[str, Any]) -> str:
    """What it was measured on."""
    machine = part["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    quick = "; quick sizes" if part["quick"] else ""
    return (
        f"*{machine['date']}; {machine['cpu']}, {machine['cores']} cores, load {machine['load']} at the start; "
        f"{versions}; {machine['blas_threads']} BLAS thread{quick}.*"
    )


def updated(text: str, measured: Measured) -> str:
    """Put the generated text between its markers in `text`; sections that are not there yet come at the end.

    Args:
        text: a document, empty for a new one.
        measured: the results.
    """
    document = text or _TITLE
    for name, block in blocks(measured).items():
        begin, end = _marker(name, "begin"), _marker(name, "end")
        whole = f"{begin}\n{block}\n{end}"
        if begin in document:
            pattern = f"{re.escape(begin)}.*?{re.escape(end)}"
            document = re.sub(pattern, lambda found, whole=whole: whole, document, flags=re.DOTALL)  # type: ignore[misc]
        else:
            title = PARTS[name].title if name in PARTS else "Targets"
            document = f"{document.rstrip()}\n\n## {title}\n\n{whole}\n"
    return document


def write_results(folder: Path, document: str, measured: Measured) -> None:
    """Write the file of results, and the document with its tables renewed.

    Raises:
        ResultsError: the folder cannot be written.
    """
    write_record(folder, measured)
    write_file(folder, DOCUMENT_FILE, updated(document, measured))


def _marker(name: str, end: str) -> str:
    return f"<!-- bench:{name}:{end} -->"


def read_document(folder: Path) -> str:
    """Read the document in a folder, empty if there is none.

    Raises:
        ResultsError: there is a document that nobody has prepared for these tables, or it cannot be read.
    """
    path = folder / DOCUMENT_FILE
    if not path.exists():
        return ""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from error
    if _marker(_TARGETS, "begin") not in text and not any(_marker(name, "begin") in text for name in PARTS):
        raise ResultsError(f"{path} has no marker such as {_marker('mapper', 'begin')}; choose another folder")
    return text
