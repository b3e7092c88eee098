"""What tables and figures show; a table of results: full precision as CSV, rounded as text."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from nbv_planner.episode.records import Quantity
from nbv_planner.geometry import FloatArray


@dataclass(frozen=True)
class MeanInterval:
    """A mean and its confidence interval."""

    mean: float  #: mean over objects of the mean over seeds; NaN without a case.
    low: float  #: lower end of the interval; NaN where there are too few seeds or objects for one.
    high: float  #: upper end, likewise.
    cases: int  #: number of values averaged.


Cell = str | int | float | MeanInterval | None
"""A value, or a mean with its interval; None where there is none (N/A)."""
MISSING = "N/A"
T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str  #: its header in CSV, for programs.
    title: str  #: its header for people.
    digits: int = 3  #: decimals for people; without effect on texts and counts.
    #: whether it holds means with intervals; in CSV these are three columns, `name`, `name_low` and
    #: `name_high`.
    interval: bool = False
    #: replacements of some texts for people.
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, quantity: Quantity, *, interval: bool = False) -> Column:
        """That of a column of the results."""
        return cls(quantity.name, quantity.heading, quantity.digits, interval)

    @property
    def names(self) -> list[str]:
        """Headers in CSV."""
        return (
            [f"{self.name}{end}" for end in ("", "_low", "_high")] if self.interval else [self.name]
        )

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
    """A table with its title and note."""

    name: str  #: name of its file, without suffix.
    title: str  #: one line.
    note: str  #: how it was computed and what was excluded; may be empty.
    columns: tuple[Column, ...]  #: the columns.
    #: one tuple per row, as long as `columns`. A number that is not finite counts as N/A.
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        """Refuse rows that are shorter or longer than the header."""
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(
                f"table {self.name}: a row has {len(wrong[0])} cells, must have {len(self.columns)}"
            )

    def records(self) -> list[dict[str, Cell]]:
        """Rows by the names of their columns in CSV."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def is_number(self, index: int) -> bool:
        """Whether the column `index` holds numbers, and is set flush right."""
        return bool(self.rows) and not any(isinstance(row[index], str) for row in self.rows)

    def texts(self) -> list[list[str]]:
        """All rows as people read them."""
        return [
            [column.text(cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    def to_csv(self) -> str:
        """Every digit; an empty cell where there is no value."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name for column in self.columns for name in column.names])
        for row in self.rows:
            values = [
                value
                for column, cell in zip(self.columns, row, strict=True)
                for value in column.values(cell)
            ]
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
        lines = [
            _line(head, _markdown),
            _line(rule, str),
            *(_line(row, _markdown) for row in self.texts()),
        ]
        note = [_markdown(self.note), ""] if self.note else []
        return "\n".join([f"## {_markdown(self.title)}", "", *lines, "", *note])


def table_of(
    name: str,
    title: str,
    note: str,
    columns: Sequence[tuple[Column, Callable[[T], Cell]]],
    items: Iterable[T],
) -> Table:
    """Make a table with a row per item; each column comes with what it shows of an item."""
    rows = tuple(tuple(cell(item) for _, cell in columns) for item in items)
    return Table(name, title, note, tuple(column for column, _ in columns), rows)


def _finite(number: float) -> float | None:
    """Plain number, None if it is not finite."""
    return float(number) if math.isfinite(number) else None


def _line(cells: Sequence[str], escape: Callable[[str], str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def _markdown(text: str) -> str:
    """Escape what Markdown would take as a mark; `_` inside of a name is none."""
    return re.sub(r"[\\`*<|]|\b_|_\b", r"\\\g<0>", " ".join(text.split()))


@dataclass(frozen=True, eq=False)
class CoverageBand:
    """Coverage after 0, 1, 2, ... views over a set of episodes."""

    mean: FloatArray  #: mean over the episodes, shape (V + 1,), 0 to 1.
    low: FloatArray  #: quantile 10 %, shape (V + 1,).
    high: FloatArray  #: quantile 90 %, shape (V + 1,).


_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Landscape:
    """An objective over the candidate views at one decision."""

    objective: str  #: its id.
    decision: int  #: number of the view that was chosen here, from 1.
    angle: FloatArray  #: candidate views, shape (V,), radians.
    value: FloatArray  #: the objective at each, in its own unit, shape (V,).
    gain: FloatArray  #: new surface points that each would have brought, shape (V,).

    @property
    def choice(self) -> int:
        """Index of the candidate that the objective prefers, the first of those that are equal up
        to rounding.
        """
        return int(np.argmax(self.value >= self.value.max() - _ROUNDING * abs(self.value.max())))
