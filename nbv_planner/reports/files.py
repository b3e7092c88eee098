"""Tables and pictures as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nbv_planner.reports.page import Picture
from nbv_planner.reports.table import Table


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Write each table as CSV and Markdown.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        (folder / f"{table.name}.csv").write_text(table.to_csv(), encoding="utf-8", newline="")
        (folder / f"{table.name}.md").write_text(table.to_markdown(), encoding="utf-8")


def write_pictures(folder: Path, pictures: Sequence[Picture]) -> None:
    """Write each picture as PNG and SVG; without any there is no folder.

    Raises:
        OSError: a file cannot be written.
    """
    if pictures:
        folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        (folder / f"{picture.name}.png").write_bytes(picture.png)
        (folder / f"{picture.name}.svg").write_bytes(picture.svg)
