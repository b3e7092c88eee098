"""Putting a report into its folder: new files are complete before old ones go."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nbv_planner.errors import ResultsError
from nbv_planner.experiments.sweep_results import MANIFEST_FILE
from nbv_planner.reports.files import write_pictures, write_tables
from nbv_planner.reports.page import GENERATOR, Picture
from nbv_planner.reports.table import Table

PAGE_FILE = "report.html"
TABLES_FOLDER = "tables"
FIGURES_FOLDER = "figures"


def write_report(folder: Path, tables: Sequence[Table], pictures: Sequence[Picture], page: str) -> None:
    """Write `report.html`, `tables/` and `figures/` into `folder`; those of an earlier report are replaced as a whole.

    Everything is written beside its place first and moved there at the end, the page first.

    Args:
        folder: a sweep results folder, an earlier report, or a folder that is new or empty.
        tables: each becomes a CSV and a Markdown file.
        pictures: each becomes a PNG and an SVG file; without any there is no `figures/`.
        page: the page.

    Raises:
        ResultsError: the folder holds something else, or cannot be written.
    """
    check_report_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".report-", dir=folder) as name:
            fresh, old = Path(name) / "new", Path(name) / "old"
            _write_files(fresh, tables, pictures, page)
            old.mkdir()
            for part in (PAGE_FILE, TABLES_FOLDER, FIGURES_FOLDER):
                _replace(folder / part, fresh / part, old / part)
    except OSError as error:
        raise ResultsError(
            f"cannot write to {folder}: {error.strerror}; choose another folder with --out"
        ) from error


def check_report_folder(folder: Path) -> None:
    """Refuse a folder in which a report would replace something else.

    Raises:
        ResultsError: says why.
    """
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise ResultsError(f"{folder} is not a folder; choose another one with --out")
    ours = (folder / MANIFEST_FILE).is_file() or _is_our_page(folder / PAGE_FILE)
    if not ours and any(folder.iterdir()):
        raise ResultsError(
            f"{folder} holds neither a sweep nor a report; choose another folder with --out, or a new one"
        )


def _is_our_page(path: Path) -> bool:
    return path.is_file() and GENERATOR in path.read_text(encoding="utf-8", errors="replace")


def _write_files(folder: Path, tables: Sequence[Table], pictures: Sequence[Picture], page: str) -> None:
    write_tables(folder / TABLES_FOLDER, tables)
    write_pictures(folder / FIGURES_FOLDER, pictures)
    (folder / PAGE_FILE).write_text(page, encoding="utf-8")


def _replace(place: Path, fresh: Path, old: Path) -> None:
    """Move `fresh` to its place, and what was there to `old`."""
    if place.is_dir():
        place.rename(old)
    if fresh.is_dir():
        fresh.rename(place)
    elif fresh.exists():
        os.replace(fresh, place)
