"""One page of HTML that stands by itself: nothing is loaded from elsewhere, no script."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template

from nbv_planner.reports.table import Table

GENERATOR = '<meta name="generator" content="nbv_planner">'
"""Line by which a page is known to be ours."""


@dataclass(frozen=True)
class Picture:
    """A picture in both formats.

    Attributes:
        name: name of its files, without suffix.
        title: one line.
        caption: what is shown, and what bands and marks mean.
        png: content of the PNG file.
        svg: content of the SVG file.
        folded: whether the page shows it on demand only.
    """

    name: str
    title: str
    caption: str
    png: bytes
    svg: bytes
    folded: bool = False


@dataclass(frozen=True)
class Animation:
    """A moving picture.

    Attributes:
        title: one line.
        caption: what is shown.
        gif: content of the GIF file.
    """

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
    """A chapter of the page.

    Attributes:
        key: its anchor: letters, digits, hyphens.
        title: its heading.
        blocks: what stands in it.
    """

    key: str
    title: str
    blocks: Sequence[Block]


def render_page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Render the page; every text is escaped, so that a name of an object or an error stays text."""
    template = resources.files("nbv_planner.reports") / "page.html"
    return Template(template.read_text(encoding="utf-8")).substitute(
        generator=GENERATOR,
        title=escape(title),
        lead=escape(lead),
        contents="\n".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in sections),
        body="\n".join(_section(section) for section in sections),
    )


def _section(section: Section) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    return f'<section id="{section.key}">\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block) -> str:
    if isinstance(block, Folded):
        return _folded(block.table.title, _table(block.table))
    if isinstance(block, Listing):
        return _folded(block.title, f"<pre>{escape(block.text)}</pre>")
    if isinstance(block, Animation):
        return _titled(block.title, _figure(block.title, block.caption, "gif", block.gif))
    if isinstance(block, Picture):
        return _folded(block.title, _picture(block)) if block.folded else _titled(block.title, _picture(block))
    return _titled(block.title, _table(block))


def _titled(title: str, body: str) -> str:
    return f"<h3>{escape(title)}</h3>\n{body}"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{body}\n</details>"


def _table(table: Table) -> str:
    """Digits flush right, and the note below; a table without rows is its note alone."""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    if not table.rows:
        return note
    kinds = [' class="number"' if table.is_number(index) else "" for index in range(len(table.columns))]
    head = _row("th", kinds, [column.title for column in table.columns])
    body = "\n".join(_row("td", kinds, texts) for texts in table.texts())
    return f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n{note}'


def _row(tag: str, kinds: Sequence[str], texts: Sequence[str]) -> str:
    cells = (f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in zip(kinds, texts, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _picture(picture: Picture) -> str:
    """Put the smaller of both files into the page; as an image, so that the ids of two SVGs cannot meet."""
    vector = len(picture.svg) <= len(picture.png)
    kind, content = ("svg+xml", picture.svg) if vector else ("png", picture.png)
    return _figure(picture.title, picture.caption, kind, content)


def _figure(title: str, caption: str, kind: str, content: bytes) -> str:
    data = base64.b64encode(content).decode("ascii")
    return (
        f'<figure><img alt="{escape(title)}" src="data:image/{kind};base64,{data}">\n'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
