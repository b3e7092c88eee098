"""Rows of measurements as text: columns with titles, three significant digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_GAP = 2
_LEAST_WIDTH = 8


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        key: where its values stand in a row.
        title: its header, with the unit.
    """

    key: str
    title: str

    @property
    def width(self) -> int:
        """Width on a terminal, in characters."""
        return max(len(self.title), _LEAST_WIDTH) + _GAP


def number_text(value: Any) -> str:
    """Write a value: three significant digits, whole numbers in full, a dash for nothing."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"
    return str(value)


def line(columns: Sequence[Column], row: Mapping[str, Any] | None = None) -> str:
    """Write a row for a terminal; the header without one."""
    texts = (column.title if row is None else number_text(row.get(column.key)) for column in columns)
    return "".join(text.rjust(column.width) for column, text in zip(columns, texts, strict=True))


def markdown(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """Write a Markdown table; columns that hold a text are flush left."""
    body = [[number_text(row.get(column.key)) for column in columns] for row in rows]
    texts = [any(isinstance(row.get(column.key), str) for row in rows) for column in columns]
    rule = [":---" if text else "---:" for text in texts]
    lines = [[column.title for column in columns], rule, *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
