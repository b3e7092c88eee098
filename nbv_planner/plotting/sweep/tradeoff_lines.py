"""Quality against time while one number is varied: a line per number, a panel per planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panel_title, panels, plain
from nbv_planner.plotting.sweep.planner_style import planner_styles
from nbv_planner.plotting.sweep.tradeoff import TradeOff, style_time_axis

_WIDTH, _HEIGHT = 4.6, 4.0
# On which side of their points the values of a line stand, along x and y: lines cross where they share a planner.
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_APART = 5.0  # points (1/72 inch)

Lines = Mapping[str, Sequence[TradeOff]]
"""Points by the name of the number that is varied, by its rising value; their labels are the values."""


def draw_tradeoff_lines(contents: Mapping[str, Lines], ylabel: str, line: float) -> Figure:
    """Draw a panel per planner; all have the same axes.

    Args:
        contents: by title of the panel, at least one, its lines; times are positive.
        ylabel: quality and its unit.
        line: where a horizontal line stands.
    """
    names = list(dict.fromkeys(name for lines in contents.values() for name in lines))
    looks = planner_styles(names, None)
    legend = [Line2D([], [], **looks[name], markersize=5.0, label=plain(name)) for name in names]
    figure, axes = panels(1, len(contents), width=_WIDTH, height=_HEIGHT, share=True, legend=legend)
    for panel, (title, lines) in zip(axes, contents.items(), strict=True):
        style_time_axis(panel, "median processor time of a decision (ms)", ylabel if panel is axes[0] else "")
        panel_title(panel, title)
        panel.axhline(line, color=style.CAMERA, linewidth=1.0, linestyle="--", zorder=1.5, label="line")
        panel.margins(x=0.1)
        for name, points in lines.items():
            _draw_line(panel, name, points, looks[name], _SIDES[names.index(name) % len(_SIDES)])
    return figure


def _draw_line(
    axes: Axes, name: str, points: Sequence[TradeOff], look: style.Style, side: tuple[int, int]
) -> None:
    color, (right, up) = look["color"], side
    for point in points:
        if point.low is not None and point.high is not None:
            axes.plot([point.milliseconds] * 2, [point.low, point.high], color=color, linewidth=1.0, alpha=0.35)
        axes.annotate(
            plain(point.label), (point.milliseconds, point.value), (_APART * right, _APART * up),
            textcoords="offset points", ha="left" if right > 0 else "right", va="bottom" if up > 0 else "top",
            color=color, fontsize=style.TICK_SIZE,
        )
    times, values = [point.milliseconds for point in points], [point.value for point in points]
    axes.plot(times, values, **look, linewidth=1.3, markersize=5.0, markeredgewidth=0, label=name)
