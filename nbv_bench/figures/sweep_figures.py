"""Figures of a sweep: intervals by planner, coverage curves, calibration of the band, quality
against time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
    rows = len(content[0].dots)
    height = _MARGIN_HEIGHT + _ROW_HEIGHT * rows
    figure, axes = panels(
        len(content), len(content), width=4.4, height=height, legend=_dots_legend(content)
    )
    for place, (panel, part) in enumerate(zip(axes, content, strict=True)):
        _draw_panel(panel, part, styles or {}, with_labels=place == 0)
    return figure


def _dots_legend(content: Sequence[DotPanel]) -> list[Artist]:
    dots = [dot for panel in content for dot in panel.dots]
    handles: list[Artist] = [
        Line2D([], [], **{**_VALUE, "marker": "o"}, color=style.CAMERA, label="mean")
    ]
    if any(math.isfinite(dot.mean.low) for dot in dots):
        handles.append(Line2D([], [], **_BAR, color=style.CAMERA, label="95 % confidence interval"))
    if any(len(dot.points) for dot in dots):
        handles.append(Line2D([], [], **_POINT, color=style.CAMERA, label="single objects"))
    if any(panel.marks for panel in content):
        handles.append(Line2D([], [], **_MARK, label="published"))
    return handles


def _draw_panel(
    axes: Axes, part: DotPanel, styles: Mapping[str, style.Style], *, with_labels: bool
) -> None:
    style.style_axes(axes, part.xlabel, "")
    axes.grid(False, axis="y")
    axes.set_ylim(len(part.dots) - 0.4, -0.6)
    labels = [plain(dot.label) for dot in part.dots] if with_labels else []
    axes.set_yticks(range(len(part.dots)) if with_labels else [], labels=labels)
    axes.tick_params(axis="y", length=0)
    if part.line is not None:
        axes.axvline(
            part.line, color=style.CAMERA, linewidth=1.0, linestyle="--", zorder=1.5, label="line"
        )
    for row, dot in enumerate(part.dots):
        line = styles.get(dot.label, {})
        color = line.get("color", style.MEAN)
        axes.plot(dot.points, [row] * len(dot.points), **_POINT, color=color, label=f"points {row}")
        if math.isfinite(dot.mean.low):
            axes.plot(
                [dot.mean.low, dot.mean.high],
                [row, row],
                **_BAR,
                color=color,
                label=f"interval {row}",
            )
        if math.isfinite(dot.mean.mean):
            marker = line.get("marker", "o")
            axes.plot(
                [dot.mean.mean], [row], **_VALUE, marker=marker, color=color, label=f"value {row}"
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
    # Further values stand a little above the rows, so that both can be seen where they agree.
    rows = {dot.label: row for row, dot in enumerate(part.dots)}
    known = [(value, rows[label] - 0.28) for label, value in part.marks.items() if label in rows]
    if known:
        axes.plot(*zip(*known, strict=True), **_MARK, label="published")
    if not any(math.isfinite(dot.mean.mean) for dot in part.dots):
        axes.set_xticks([])
        style.note(axes, "nothing to compare")


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
    legend = _curves_legend(reference if reference in bands else None)
    figure, axes = panels(len(bands), columns, width=2.9, height=2.35, share=True, legend=legend)
    for place, (panel, (label, band)) in enumerate(zip(axes, bands.items(), strict=True)):
        panel.fill_between(
            np.arange(len(band.mean)),
            100.0 * band.low,
            100.0 * band.high,
            color=styles[label]["color"],
            alpha=_BAND_ALPHA,
            linewidth=0,
            zorder=2,
            label="band",
        )
        _draw_mean(panel, band, styles[label], label=plain(label))
        panel_title(panel, label)
        if reference is not None and reference in bands and label != reference:
            _draw_mean(panel, bands[reference], styles[reference], label=plain(reference))
        _style_panel(panel, left=place % columns == 0, bottom=place + columns >= len(bands))
    return figure


def _curves_legend(reference: str | None) -> list[Artist]:
    handles: list[Artist] = [
        Line2D([], [], color=style.CAMERA, linewidth=1.4, label="mean"),
        Patch(facecolor=style.CAMERA, alpha=_BAND_ALPHA, label="where 80 % of the episodes lie"),
        Line2D(
            [],
            [],
            color=style.TARGET,
            linewidth=1.0,
            linestyle="--",
            label=f"{100 * FULL_ENOUGH:.0f} %",
        ),
    ]
    if reference is not None:
        line = planner_styles([reference], reference)[reference]
        handles.append(Line2D([], [], **style.curve(line), label=f"mean of {plain(reference)}"))
    return handles


def _draw_mean(axes: Axes, band: CoverageBand, line: style.Style, label: str) -> None:
    axes.plot(
        np.arange(len(band.mean)), 100.0 * band.mean, **style.curve(line), zorder=3, label=label
    )


def _style_panel(axes: Axes, *, left: bool, bottom: bool) -> None:
    style.style_axes(axes, "number of views" if bottom else "", "true coverage (%)" if left else "")
    axes.set(ylim=(0.0, 104.0), yticks=(0, 25, 50, 75, 100))
    axes.set_xlim(left=0.0)
    axes.margins(x=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.tick_params(labelbottom=bottom, labelleft=left)
    style.level_line(axes, 100.0 * FULL_ENOUGH, "target")


def _legend(looks: Mapping[str, style.Style], **more: Any) -> list[Artist]:
    return [Line2D([], [], **look, **more, label=plain(label)) for label, look in looks.items()]


@dataclass(frozen=True)
class TradeOff:
    """A point."""

    label: str  #: what it is called.
    milliseconds: float  #: median time of a decision.
    slow: float  #: time below which 95 % of the decisions stay, milliseconds.
    quality: MeanInterval  #: its value, and the interval if there is one.


def draw_tradeoff(
    points: Sequence[TradeOff], ylabel: str, styles: Mapping[str, style.Style], line: float
) -> Figure:
    """Draw the points, at least one, with positive times, over a logarithmic time axis; `line` is a
    horizontal line.

    The `ylabel` is the quality and its unit, the `styles` are colour and marker by label.
    """
    looks: dict[str, style.Style] = {
        point.label: {
            "color": styles[point.label]["color"],
            "marker": styles[point.label]["marker"],
            "markersize": 6.5,
            "markeredgewidth": 0,
            "linestyle": "none",
        }
        for point in points
    }
    figure, (axes,) = panels(1, 1, width=7.0, height=4.2, legend=_legend(looks))
    style.style_time_axis(
        axes, "time of a decision (ms): median, and the time below which 95 % stay", ylabel
    )
    style.level_line(axes, line, "line", style.CAMERA)
    for point in points:
        look = looks[point.label]
        value = point.quality.mean
        axes.plot(
            [point.milliseconds, point.slow],
            [value, value],
            color=look["color"],
            linewidth=0.9,
            alpha=0.5,
        )
        _draw_interval(axes, point, color=look["color"], linewidth=1.6)
        axes.plot([point.milliseconds], [value], **look, label=f"value {point.label}")
    return figure


def _draw_interval(axes: Axes, point: TradeOff, **look: Any) -> None:
    if math.isfinite(point.quality.low):
        axes.plot([point.milliseconds] * 2, [point.quality.low, point.quality.high], **look)


# Offset of the values of a line from their points, along x and y: lines cross where they share a
# planner.
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_APART = 5.0  # points (1/72 inch)
Lines = Mapping[str, Sequence[TradeOff]]
"""Points by the name of the number that is varied, by its rising value; their labels are the
values.
"""


def draw_tradeoff_lines(contents: Mapping[str, Lines], ylabel: str, line: float) -> Figure:
    """Draw a panel per planner, at least one, with its lines by its title; all have the same axes.

    Times are positive; the `ylabel` is the quality and its unit, `line` a horizontal line.
    """
    names = list(dict.fromkeys(name for lines in contents.values() for name in lines))
    looks = planner_styles(names, None)
    legend = _legend(looks, markersize=5.0)
    number = len(contents)
    figure, axes = panels(number, number, width=4.6, height=4.0, share=True, legend=legend)
    for panel, (title, lines) in zip(axes, contents.items(), strict=True):
        style.style_time_axis(
            panel, "median processor time of a decision (ms)", ylabel if panel is axes[0] else ""
        )
        panel_title(panel, title)
        style.level_line(panel, line, "line", style.CAMERA)
        panel.margins(x=0.1)
        for name, points in lines.items():
            _draw_line(panel, name, points, looks[name], _SIDES[names.index(name) % len(_SIDES)])
    return figure


def _draw_line(
    axes: Axes, name: str, points: Sequence[TradeOff], look: style.Style, side: tuple[int, int]
) -> None:
    color = look["color"]
    (right, up) = side
    for point in points:
        _draw_interval(axes, point, color=color, linewidth=1.0, alpha=0.35)
        axes.annotate(
            plain(point.label),
            (point.milliseconds, point.quality.mean),
            (_APART * right, _APART * up),
            textcoords="offset points",
            ha="left" if right > 0 else "right",
            va="bottom" if up > 0 else "top",
            color=color,
            fontsize=style.TICK_SIZE,
        )
    times = [point.milliseconds for point in points]
    values = [point.quality.mean for point in points]
    axes.plot(times, values, **look, linewidth=1.3, markersize=5.0, markeredgewidth=0, label=name)


Course = Mapping[str, Sequence[tuple[float, MeanInterval, int]]]
"""By planner its points over what varies: value, quality, and number of episodes without it."""
_IN_A_ROW = 3


def draw_sensitivity(
    contents: Mapping[str, Course], ylabel: str, styles: Mapping[str, style.Style], line: float
) -> Figure:
    """Draw a panel for each thing that varies, at least one, with a line per planner; a hollow
    point lacks episodes.

    The `ylabel` is the quality and its unit, the `styles` are by planner, `line` is a horizontal
    line.
    """
    legend = _legend(styles, markersize=5.0)
    columns = min(_IN_A_ROW, len(contents))
    figure, axes = panels(len(contents), columns, width=3.6, height=3.0, legend=legend)
    for place, (panel, (title, course)) in enumerate(zip(axes, contents.items(), strict=True)):
        style.style_axes(panel, plain(title), ylabel if place % columns == 0 else "")
        style.level_line(panel, line, "line", style.CAMERA)
        for label, points in course.items():
            look = styles[label]
            known = [(value, mean, lost) for value, mean, lost in points if mean.cases]
            values = [value for value, _, _ in known]
            means = [mean.mean for _, mean, _ in known]
            panel.plot(values, means, **style.curve(look), label=label)
            for value, mean, lost in known:
                panel.plot([value] * 2, [mean.low, mean.high], color=look["color"], linewidth=1.6)
                face = "white" if lost else look["color"]
                panel.plot(
                    [value],
                    [mean.mean],
                    color=look["color"],
                    marker=look["marker"],
                    markerfacecolor=face,
                    markersize=5.0,
                    label=f"value {label}",
                )
    return figure


Exchange = Mapping[str, tuple[MeanInterval, MeanInterval]]
"""Views and seconds by what took them."""


def draw_views_and_seconds(
    contents: Mapping[str, Exchange], styles: Mapping[str, style.Style]
) -> Figure:
    """Draw a panel per cost model, at least one, with seconds over views; the `styles` are by
    label.
    """
    labels = list(dict.fromkeys(label for points in contents.values() for label in points))
    looks = {
        label: {**_VALUE, **{key: styles[label][key] for key in ("color", "marker")}}
        for label in labels
    }
    number = len(contents)
    figure, axes = panels(number, number, width=4.4, height=3.8, legend=_legend(looks))
    for panel, (title, points) in zip(axes, contents.items(), strict=True):
        style.style_axes(panel, "views to 95 %", "time to 95 % (s)" if panel is axes[0] else "")
        panel_title(panel, title)
        for label, (views, seconds) in points.items():
            color = looks[label]["color"]
            panel.plot([views.low, views.high], [seconds.mean] * 2, color=color, linewidth=1.2)
            panel.plot([views.mean] * 2, [seconds.low, seconds.high], color=color, linewidth=1.2)
            panel.plot([views.mean], [seconds.mean], **looks[label], label=f"value {label}")
        panel.set_ylim(bottom=0.0)
        panel.set_xlim(left=0.0)
    return figure
