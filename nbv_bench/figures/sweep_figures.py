"""Figures of a sweep: intervals by planner, coverage curves, calibration of the band, quality
against time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import panel_title, panels, plain, planner_styles
from nbv_planner.report.tables import CoverageBand, MeanInterval

_ROW_HEIGHT = 0.27
_MARGIN_HEIGHT = 0.75
_NOTE_X = 1.02
_VALUE: style.Style = {"markersize": 7.0, "markeredgewidth": 0, "linestyle": "none", "zorder": 4}
_BAR: style.Style = {"linewidth": 1.8, "zorder": 3}
_POINT: style.Style = {
    "marker": "o",
    "markersize": 3.5,
    "markeredgewidth": 0,
    "linestyle": "none",
    "alpha": 0.3,
    "zorder": 2,
}
_MARK: style.Style = {
    "linestyle": "none",
    "marker": "v",
    "markersize": 4.5,
    "markerfacecolor": "white",
    "markeredgecolor": style.TRUTH,
    "markeredgewidth": 0.9,
    "zorder": 5,
}


@dataclass(frozen=True)
class Dot:
    """A value with its interval."""

    label: str  #: what the row is called.
    mean: MeanInterval  #: the value; NaN if there is none.
    note: str = ""  #: text at the right of the row, for example the number of N/A.
    points: Sequence[float] = ()  #: single values behind it, drawn faintly.


@dataclass(frozen=True)
class DotPanel:
    """Rows under one axis."""

    xlabel: str  #: quantity and unit.
    dots: Sequence[Dot]  #: the rows from top to bottom.
    #: where a vertical line stands (the reference, or no difference), None for none.
    line: float | None = None
    #: published values by label, drawn hollow.
    marks: Mapping[str, float] = field(default_factory=dict)


def draw_dots(
    content: Sequence[DotPanel], styles: Mapping[str, style.Style] | None = None
) -> Figure:
    """Draw panels, at least one, side by side, whose rows have the same labels.

    The `styles` are colour and marker by label; without them all rows look the same.
    """
    height = _MARGIN_HEIGHT + _ROW_HEIGHT * len(content[0].dots)
    legend = [
        Line2D([], [], **_VALUE, marker="o", color=style.CAMERA, label="mean"),
        Line2D([], [], **_BAR, color=style.CAMERA, label="95 % confidence interval"),
        Line2D([], [], **_POINT, color=style.CAMERA, label="single objects"),
    ]
    if any(panel.marks for panel in content):
        legend.append(Line2D([], [], **_MARK, label="published"))
    figure, axes = panels(len(content), len(content), width=4.4, height=height, legend=legend)
    for place, (panel, part) in enumerate(zip(axes, content, strict=True)):
        style.style_axes(panel, part.xlabel, "")
        panel.grid(False, axis="y")
        panel.set_ylim(len(part.dots) - 0.4, -0.6)
        labels = [plain(dot.label) for dot in part.dots] if place == 0 else []
        panel.set_yticks(range(len(labels)), labels=labels)
        panel.tick_params(axis="y", length=0)
        if part.line is not None:
            panel.axvline(part.line, color=style.CAMERA, linewidth=1.0, linestyle="--", zorder=1.5)
        for row, dot in enumerate(part.dots):
            _draw_dot(panel, row, dot, (styles or {}).get(dot.label, _PLAIN))
            if dot.label in part.marks:  # a little above the row: both are seen where they agree
                panel.plot(part.marks[dot.label], row - 0.28, **_MARK, label="published")
        if all(math.isnan(dot.mean.mean) for dot in part.dots):
            panel.set_xticks([])
            style.note(panel, "nothing to compare")
    return figure


_PLAIN: style.Style = {"color": style.MEAN, "marker": "o"}


def _draw_dot(axes: Axes, row: int, dot: Dot, look: style.Style) -> None:
    color, mean = look["color"], dot.mean
    axes.plot(dot.points, [row] * len(dot.points), **_POINT, color=color, label=f"points {row}")
    axes.plot([mean.low, mean.high], [row, row], **_BAR, color=color, label=f"interval {row}")
    axes.plot(
        [mean.mean], [row], **_VALUE, marker=look["marker"], color=color, label=f"value {row}"
    )
    axes.text(
        _NOTE_X,
        row,
        plain(dot.note),
        transform=axes.get_yaxis_transform(),
        va="center",
        fontsize=style.TICK_SIZE,
        color=style.CAMERA,
    )


_MOST_COLUMNS = 4
_BAND_ALPHA = 0.25


def draw_coverage_curves(bands: Mapping[str, CoverageBand], reference: str | None) -> Figure:
    """Draw mean and band of each planner, at least one, by its label, with the mean of the
    reference.

    The `reference` is the label of the omniscient greedy planner, None if it is not there.
    """
    # as many in each row, if possible
    columns = math.ceil(len(bands) / math.ceil(len(bands) / _MOST_COLUMNS))
    styles = planner_styles(list(bands), reference)
    legend: list[Artist] = [
        Line2D([], [], color=style.CAMERA, linewidth=1.4, label="mean"),
        Patch(facecolor=style.CAMERA, alpha=_BAND_ALPHA, label="where 80 % of the episodes lie"),
        Line2D([], [], color=style.TARGET, linestyle="--", label=f"{100 * FULL_ENOUGH:.0f} %"),
    ]
    known = {label: band for label, band in bands.items() if label == reference}
    for label in known:
        look = style.curve(styles[label])
        legend.append(Line2D([], [], **look, label=f"mean of {plain(label)}"))
    figure, axes = panels(len(bands), columns, width=2.9, height=2.35, share=True, legend=legend)
    for place, (panel, (label, band)) in enumerate(zip(axes, bands.items(), strict=True)):
        panel.fill_between(
            np.arange(len(band.mean)),
            100.0 * band.low,
            100.0 * band.high,
            color=styles[label]["color"],
            alpha=_BAND_ALPHA,
            linewidth=0,
            label="band",
        )
        for name, one in {label: band, **known}.items():
            panel.plot(100.0 * one.mean, **style.curve(styles[name]), label=plain(name))
        panel_title(panel, label)
        left, bottom = place % columns == 0, place + columns >= len(bands)
        style.style_axes(
            panel, "number of views" if bottom else "", "true coverage (%)" if left else ""
        )
        panel.set(ylim=(0.0, 104.0), yticks=(0, 25, 50, 75, 100))
        panel.margins(x=0.0)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        panel.tick_params(labelbottom=bottom, labelleft=left)
        style.level_line(panel, 100.0 * FULL_ENOUGH, "target")
    return figure


@dataclass(frozen=True)
class Mark:
    """A point with its intervals, which are not drawn where they are NaN."""

    x: MeanInterval
    y: MeanInterval
    text: str = ""  #: what stands beside it.
    hollow: bool = False  #: whether it lacks episodes.


# Offset of the texts of a line from their points, along x and y: lines cross where they share a
# point.
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_APART = 5.0  # points (1/72 inch)
_IN_A_ROW = 3
Lines = Mapping[str, Sequence[Mark]]
"""Points of a panel by their label, joined by a line."""


def draw_marks(
    contents: Mapping[str, Lines],
    xlabel: str,
    ylabel: str,
    *,
    reference: str | None = None,
    level: float | None = None,
    times: bool = False,
    share: bool = False,
) -> Figure:
    """Draw a panel, at least one, for each entry by its title, with a horizontal line at the
    `level`; points with the same label look alike in all of them.

    The `reference` is the label of the omniscient greedy planner; `times` makes the x-axis that of
    times, `share` gives all panels the same axes.
    """
    labels = list(dict.fromkeys(label for lines in contents.values() for label in lines))
    styles = planner_styles(labels, reference)
    legend = [
        Line2D([], [], **look, markersize=5.0, label=plain(label)) for label, look in styles.items()
    ]
    columns = min(_IN_A_ROW, len(contents))
    width = 7.0 if len(contents) == 1 else 4.2
    figure, axes = panels(
        len(contents), columns, width=width, height=4.0, share=share, legend=legend
    )
    for place, (panel, (title, lines)) in enumerate(zip(axes, contents.items(), strict=True)):
        (style.style_time_axis if times else style.style_axes)(
            panel, xlabel, ylabel if place % columns == 0 else ""
        )
        panel_title(panel, title)
        panel.margins(x=0.1)
        if level is not None:
            style.level_line(panel, level, "line", style.CAMERA)
        for label, marks in lines.items():
            _draw_marks(panel, label, marks, styles[label], labels.index(label))
    return figure


def _draw_marks(
    axes: Axes, label: str, marks: Sequence[Mark], look: style.Style, number: int
) -> None:
    color = look["color"]
    right, up = _SIDES[number % len(_SIDES)]
    at = [[mark.x.mean for mark in marks], [mark.y.mean for mark in marks]]
    axes.plot(*at, **style.curve(look), label=label)
    for mark in marks:
        x, y = mark.x, mark.y
        axes.plot([x.low, x.high], [y.mean, y.mean], color=color, linewidth=1.2, alpha=0.5)
        axes.plot([x.mean, x.mean], [y.low, y.high], color=color, linewidth=1.2, label="interval")
        axes.plot(
            [x.mean],
            [y.mean],
            color=color,
            marker=look["marker"],
            markerfacecolor="white" if mark.hollow else color,
            markersize=5.0,
            label=f"value {label}",
        )
        if not mark.text:
            continue
        axes.annotate(
            plain(mark.text),
            (x.mean, y.mean),
            (_APART * right, _APART * up),
            textcoords="offset points",
            ha="left" if right > 0 else "right",
            va="bottom" if up > 0 else "top",
            color=color,
            fontsize=style.TICK_SIZE,
        )
