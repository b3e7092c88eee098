"""Figures without pyplot: their panels, their title, and how they are written."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nbv_planner.plotting import style

__all__ = ["Figure", "panel_title", "panels", "plain", "png_bytes", "svg_bytes"]

PNG_DPI = 150
_LEGEND_COLUMNS, _LEGEND_LINE, _LEGEND_MARGIN = 6, 0.18, 0.14
# The salt makes the ids in the file, and so the file, the same every time.
_SVG = {"svg.hashsalt": "nbv_planner", "svg.fonttype": "path"}


def panels(
    rows: int, columns: int, *, width: float, height: float, share: bool = False, legend: Sequence[Artist] = ()
) -> tuple[Figure, list[Axes]]:
    """Make a figure of `rows` × `columns` panels, each `width` × `height` inches with its labels.

    The figure has its own Agg canvas and is not known to pyplot: it can be made without a display and in any thread.

    Args:
        rows: number of rows.
        columns: number of columns.
        width: width of a panel, inches.
        height: height of a panel, inches.
        share: whether all panels have the same axes.
        legend: what is explained below all panels; nothing if empty.

    Returns:
        The figure and its panels, row by row.
    """
    body = rows * height
    lines = math.ceil(len(legend) / _LEGEND_COLUMNS)
    foot = _LEGEND_MARGIN + _LEGEND_LINE * lines if legend else 0.0
    figure = Figure(figsize=(columns * width, body + foot), layout="constrained")
    FigureCanvasAgg(figure)
    # A part of its own: the layout gives a legend of the whole figure no room before matplotlib 3.7.
    upper: Any = figure
    if legend:
        parts: Any = figure.subfigures(2, 1, height_ratios=(body, foot))
        upper, lower = parts
        lower.legend(
            handles=list(legend), loc="center", ncol=min(len(legend), _LEGEND_COLUMNS), fontsize=style.TICK_SIZE,
            frameon=False, handlelength=2.6,
        )
    axes = upper.subplots(rows, columns, sharex=share, sharey=share, squeeze=False)
    return figure, list(np.ravel(axes))


def plain(text: str) -> str:
    """Text in which nothing is taken for a formula."""
    return text.replace("$", r"\$")


def panel_title(axes: Axes, text: str) -> None:
    """Put a title over the left end of a panel."""
    axes.set_title(plain(text), loc="left", fontsize=style.LABEL_SIZE, pad=4)


def png_bytes(figure: Figure) -> bytes:
    """Return the figure as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=PNG_DPI)
    return file.getvalue()


def svg_bytes(figure: Figure) -> bytes:
    """Return the figure as SVG, without the date, the same every time."""
    file = io.BytesIO()
    with matplotlib.rc_context(_SVG):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return _numbered(file.getvalue())


def _numbered(svg: bytes) -> bytes:
    """Replace ids of clips and markers, digests in which the last digits of the layout show, by running numbers."""
    numbers: dict[bytes, bytes] = {}

    def number(found: re.Match[bytes]) -> bytes:
        return numbers.setdefault(found[0], b"id%d" % len(numbers))

    return re.sub(rb"\b[pm][0-9a-f]{10}\b", number, svg)
