"""A table of results: full precision as CSV, rounded as text."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nbv_planner.evaluation.statistics import MeanInterval

Cell = str | int | float | MeanInterval | None
"""A value, or a mean with its interval; None where there is none (N/A)."""

MISSING = "N/A"


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: its header in CSV, for programs.
        title: its header for people.
        digits: decimals for people; of no meaning for texts and counts.
        interval: whether it holds means with intervals; in CSV these are three columns, `name`, `name_low` and
            `name_high`.
        words: what people read in place of some texts.
    """

    name: str
    title: str
    digits: int = 3
    interval: bool = False
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Headers in CSV."""
        return [f"{self.name}{end}" for end in ("", "_low", "_high")] if self.interval else [self.name]

    def values(self, cell: Cell) -> list[str | int | float | None]:
        """Values in CSV, one for each of `names`; None for what is not finite or not there."""
        if isinstance(cell, MeanInterval):
            return [_finite(number) for number in (cell.mean, cell.low, cell.high)]
        value = _finite(cell) if isinstance(cell, float) else cell
        return [value, *(None for _ in self.names[1:])]

    def text(self, cell: Cell) -> str:
        """Write a value for people."""
        texts = [self._text(value) for value in self.values(cell)]
        known = len(texts) == 3 and MISSING not in texts
        return f"{texts[0]} [{texts[1]}, {texts[2]}]" if known else texts[0]

    def _text(self, value: str | int | float | None) -> str:
        if value is None:
            return MISSING
        if isinstance(value, float):
            text = f"{value:.{self.digits}f}"
            return text.lstrip("-") if float(text) == 0.0 else text
        return self.words.get(value, value) if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Table:
    """A table with what a reader has to know about it.

    Attributes:
        name: name of its file, without suffix.
        title: one line.
        note: how it was computed and what was left out; may be empty.
        columns: the columns.
        rows: one tuple per row, as long as `columns`. A number that is not finite counts as N/A.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        """Check the rows.

        Raises:
            ValueError: a row is shorter or longer than the header.
        """
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"table {self.name}: a row has {len(wrong[0])} cells, must have {len(self.columns)}")

    def column(self, name: str) -> list[Cell]:
        """Values of the column called `name` in CSV."""
        index = [column.name for column in self.columns].index(name)
        return [row[index] for row in self.rows]

    def is_number(self, index: int) -> bool:
        """Whether the column `index` holds numbers, and so reads best flush right."""
        return bool(self.rows) and not any(isinstance(row[index], str) for row in self.rows)

    def texts(self) -> list[list[str]]:
        """All rows as people read them."""
        return [[column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows]

    def to_csv(self) -> str:
        """Every digit; an empty cell where there is no value."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name for column in self.columns for name in column.names])
        for row in self.rows:
            values = [value for column, cell in zip(self.columns, row, strict=True) for value in column.values(cell)]
            writer.writerow(["" if value is None else value for value in values])
        return file.getvalue()

    def to_json(self) -> list[dict[str, str | int | float | None]]:
        """Rows as plain values by header, every digit; None where there is no value."""
        rows = []
        for row in self.rows:
            pairs = zip(self.columns, row, strict=True)
            named = (zip(column.names, column.values(cell), strict=True) for column, cell in pairs)
            rows.append({name: value for values in named for name, value in values})
        return rows

    def to_markdown(self) -> str:
        """Title, table with rounded numbers, note."""
        head = [column.title for column in self.columns]
        rule = ["---:" if self.is_number(index) else ":---" for index in range(len(head))]
        lines = [_line(head, _markdown), _line(rule, str), *(_line(row, _markdown) for row in self.texts())]
        note = [_markdown(self.note), ""] if self.note else []
        return "\n".join([f"## {_markdown(self.title)}", "", *lines, "", *note])


def _finite(number: float) -> float | None:
    """Plain number, None if it is not finite."""
    return float(number) if math.isfinite(number) else None


def _line(cells: Sequence[str], escape: Callable[[str], str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def _markdown(text: str) -> str:
    """One line in which nothing is taken for markup."""
    text = " ".join(text.split())
    for character in "\\`*_<|":
        text = text.replace(character, "\\" + character)
    return text
