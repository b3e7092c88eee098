"""Tables and pictures as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def write_json(path: Path, tables: Sequence[Table], **more: Any) -> None:
    """Write tables as one JSON file: `tables` by name, and whatever else is given.

    Raises:
        OSError: it cannot be written.
    """
    content = {**more, "tables": {table.name: table.to_json() for table in tables}}
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
