"""One self-contained page of HTML (no script, nothing loaded), and its tables and pictures as
files.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from nbv_planner.report.tables import Table

GENERATOR = '<meta name="generator" content="nbv_planner">'
"""Line that identifies a page of this package."""


@dataclass(frozen=True)
class Picture:
    """A picture in both formats."""

    name: str  #: name of its files, without suffix.
    title: str  #: one line.
    caption: str  #: what is shown, and what bands and marks mean.
    png: bytes  #: content of the PNG file.
    svg: bytes  #: content of the SVG file.
    folded: bool = False  #: whether the page shows it on demand only.


@dataclass(frozen=True)
class Animation:
    """A moving picture, the content of a GIF file."""

    title: str
    caption: str
    gif: bytes


@dataclass(frozen=True)
class Listing:
    """Preformatted text under a title, folded."""

    title: str
    text: str


@dataclass(frozen=True)
class Folded:
    """A table that is shown on demand."""

    table: Table


Block = Table | Picture | Animation | Folded | Listing


@dataclass(frozen=True)
class Section:
    """A chapter of the page."""

    key: str  #: its anchor: letters, digits, hyphens.
    title: str  #: its heading.
    blocks: Sequence[Block]  #: its content.


def render_page(
    title: str, lead: str, sections: Sequence[Section], notes: Sequence[str] = ()
) -> str:
    """Render the page, with `notes` at its head; every text is escaped: a name of an object or an
    error stays text.
    """
    template = resources.files("nbv_planner.report") / "page.html"
    return Template(template.read_text(encoding="utf-8")).substitute(
        generator=GENERATOR,
        title=escape(title),
        lead=escape(lead),
        notes="\n".join(f'<p class="warning">{escape(note)}</p>' for note in notes),
        contents="\n".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in sections),
        body="\n".join(
            "\n".join(
                [
                    f'<section id="{s.key}">\n<h2>{escape(s.title)}</h2>',
                    *map(_block, s.blocks),
                    "</section>",
                ]
            )
            for s in sections
        ),
    )


def _block(block: Block) -> str:
    if isinstance(block, Folded):
        return _folded(block.table.title, _table(block.table))
    if isinstance(block, Listing):
        return _folded(block.title, f"<pre>{escape(block.text)}</pre>")
    if isinstance(block, Animation):
        return _titled(block.title, _figure(block.title, block.caption, "gif", block.gif))
    if isinstance(block, Picture):
        # The smaller of both files; as an image, so that the ids of two SVGs cannot collide.
        vector = len(block.svg) <= len(block.png)
        figure = _figure(
            block.title, block.caption, *(("svg+xml", block.svg) if vector else ("png", block.png))
        )
        return (_folded if block.folded else _titled)(block.title, figure)
    return _titled(block.title, _table(block))


def _titled(title: str, body: str) -> str:
    return f"<h3>{escape(title)}</h3>\n{body}"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{body}\n</details>"


def _table(table: Table) -> str:
    """Numbers flush right, and the note below; a table without rows is only its note."""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    if not table.rows:
        return note
    kinds = [
        ' class="number"' if table.is_number(index) else "" for index in range(len(table.columns))
    ]
    head = _row("th", kinds, [column.title for column in table.columns])
    body = "\n".join(_row("td", kinds, texts) for texts in table.texts())
    return (
        f'<div class="wide"><table>\n<thead>{head}</thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>\n{note}"
    )


def _row(tag: str, kinds: Sequence[str], texts: Sequence[str]) -> str:
    # A mean may be above its interval in a narrow column, which is not broken itself.
    whole = (
        text.replace(", ", ",\u00a0") if kind else text
        for kind, text in zip(kinds, texts, strict=True)
    )
    cells = (
        f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in zip(kinds, whole, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _figure(title: str, caption: str, kind: str, content: bytes) -> str:
    data = base64.b64encode(content).decode("ascii")
    return (
        f'<figure><img alt="{escape(title)}" src="data:image/{kind};base64,{data}">\n'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


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
    """Write tables as one JSON file: `tables` by name, and further content.

    Raises:
        OSError: it cannot be written.
    """
    content = {**more, "tables": {table.name: table.to_json() for table in tables}}
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
