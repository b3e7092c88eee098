"""Values with intervals, one row each: planners beside each other, or differences between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panels, plain

_ROW_HEIGHT, _MARGIN_HEIGHT = 0.27, 0.75
_WIDTH = 4.4
_NOTE_X = 1.02
_VALUE: style.Style = {"markersize": 7.0, "markeredgewidth": 0, "linestyle": "none", "zorder": 4}
_BAR: style.Style = {"linewidth": 1.8, "zorder": 3}
_POINT: style.Style = {
    "marker": "o", "markersize": 3.5, "markeredgewidth": 0, "linestyle": "none", "alpha": 0.3, "zorder": 2
}
_MARK: style.Style = {
    "linestyle": "none", "marker": "v", "markersize": 4.5, "markerfacecolor": "white",
    "markeredgecolor": style.TRUTH, "markeredgewidth": 0.9, "zorder": 5,
}


@dataclass(frozen=True)
class Dot:
    """A value with its interval.

    Attributes:
        label: what the row is called.
        value: the value, None if there is none.
        low: lower end of the interval, None without interval.
        high: upper end of the interval, None without interval.
        note: what stands at the right of the row, for example the number of N/A.
        points: single values behind it, drawn faintly.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    points: Sequence[float] = ()


@dataclass(frozen=True)
class DotPanel:
    """Rows under one axis.

    Attributes:
        xlabel: quantity and unit.
        dots: the rows from top to bottom.
        line: where a vertical line stands (the reference, or no difference), None for none.
        marks: further values by label, drawn hollow, for example published ones.
        marks_label: what they are.
    """

    xlabel: str
    dots: Sequence[Dot]
    line: float | None = None
    marks: Mapping[str, float] | None = None
    marks_label: str = ""


def draw_dots(content: Sequence[DotPanel], styles: Mapping[str, style.Style] | None = None) -> Figure:
    """Draw panels side by side whose rows have the same labels.

    Args:
        content: at least one panel.
        styles: colour and marker by label; without it all rows look the same.
    """
    rows = len(content[0].dots)
    height = _MARGIN_HEIGHT + _ROW_HEIGHT * rows
    figure, axes = panels(1, len(content), width=_WIDTH, height=height, legend=_legend(content))
    for place, (panel, part) in enumerate(zip(axes, content, strict=True)):
        _draw_panel(panel, part, styles or {}, with_labels=place == 0)
    return figure


def _legend(content: Sequence[DotPanel]) -> list[Artist]:
    """Explain what there is in any of the panels."""
    dots = [dot for panel in content for dot in panel.dots]
    handles: list[Artist] = [Line2D([], [], **{**_VALUE, "marker": "o"}, color=style.CAMERA, label="mean")]
    if any(dot.low is not None for dot in dots):
        handles.append(Line2D([], [], **_BAR, color=style.CAMERA, label="95 % confidence interval"))
    if any(len(dot.points) for dot in dots):
        handles.append(Line2D([], [], **_POINT, color=style.CAMERA, label="single objects"))
    handles += [
        Line2D([], [], **_MARK, label=label) for label in dict.fromkeys(p.marks_label for p in content if p.marks)
    ]
    return handles


def _draw_panel(axes: Axes, part: DotPanel, styles: Mapping[str, style.Style], *, with_labels: bool) -> None:
    style.style_axes(axes, part.xlabel, "")
    axes.grid(False, axis="y")
    axes.set_ylim(len(part.dots) - 0.4, -0.6)
    labels = [plain(dot.label) for dot in part.dots] if with_labels else []
    axes.set_yticks(range(len(part.dots)) if with_labels else [], labels=labels)
    axes.tick_params(axis="y", length=0)
    if part.line is not None:
        axes.axvline(part.line, color=style.CAMERA, linewidth=1.0, linestyle="--", zorder=1.5, label="line")
    for row, dot in enumerate(part.dots):
        _draw_dot(axes, row, dot, styles.get(dot.label, {}))
        axes.text(
            _NOTE_X, row, plain(dot.note), transform=axes.get_yaxis_transform(), va="center",
            fontsize=style.TICK_SIZE, color=style.CAMERA,
        )
    _draw_marks(axes, part)
    if all(dot.value is None for dot in part.dots):
        style.note(axes, "nothing to compare")


def _draw_dot(axes: Axes, row: int, dot: Dot, line: style.Style) -> None:
    color = line.get("color", style.MEAN)
    axes.plot(dot.points, [row] * len(dot.points), **_POINT, color=color, label=f"points {row}")
    if dot.low is not None and dot.high is not None:
        axes.plot([dot.low, dot.high], [row, row], **_BAR, color=color, label=f"interval {row}")
    if dot.value is not None:
        marker = line.get("marker", "o")
        axes.plot([dot.value], [row], **_VALUE, marker=marker, color=color, label=f"value {row}")


def _draw_marks(axes: Axes, part: DotPanel) -> None:
    """Draw the further values hollow, a little above the rows, so that both can be seen where they agree."""
    rows = {dot.label: row for row, dot in enumerate(part.dots)}
    known = [(value, rows[label] - 0.28) for label, value in (part.marks or {}).items() if label in rows]
    if known:
        axes.plot(*zip(*known, strict=True), **_MARK, label=part.marks_label)
