"""Quality against time: one point per planner, with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panels, plain

_WIDTH, _HEIGHT = 7.0, 4.2


@dataclass(frozen=True)
class TradeOff:
    """A point.

    Attributes:
        label: what it is called.
        milliseconds: median time of a decision.
        slow: time below which 95 % of the decisions stay, milliseconds.
        value: quality.
        low: lower end of its interval, None without interval.
        high: upper end of its interval, None without interval.
    """

    label: str
    milliseconds: float
    slow: float
    value: float
    low: float | None = None
    high: float | None = None


def draw_tradeoff(points: Sequence[TradeOff], ylabel: str, styles: Mapping[str, style.Style], line: float) -> Figure:
    """Draw the points over a logarithmic time axis.

    Args:
        points: at least one, with positive times.
        ylabel: quality and its unit.
        styles: colour and marker by label.
        line: where a horizontal line stands.
    """
    looks = {point.label: _marker(styles[point.label]) for point in points}
    legend = [Line2D([], [], **look, label=plain(label)) for label, look in looks.items()]
    figure, (axes,) = panels(1, 1, width=_WIDTH, height=_HEIGHT, legend=legend)
    style_time_axis(axes, "time of a decision (ms): median, and the time below which 95 % stay", ylabel)
    axes.axhline(line, color=style.CAMERA, linewidth=1.0, linestyle="--", zorder=1.5, label="line")
    for point in points:
        _draw_point(axes, point, looks[point.label])
    return figure


def style_time_axis(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Label the axes and let times run logarithmically along x."""
    style.style_axes(axes, xlabel, ylabel)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0), numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _marker(look: style.Style) -> style.Style:
    return {
        "color": look["color"], "marker": look["marker"], "markersize": 6.5, "markeredgewidth": 0, "linestyle": "none"
    }


def _draw_point(axes: Axes, point: TradeOff, look: style.Style) -> None:
    color, value = look["color"], point.value
    axes.plot([point.milliseconds, point.slow], [value, value], color=color, linewidth=0.9, alpha=0.5)
    if point.low is not None and point.high is not None:
        axes.plot([point.milliseconds] * 2, [point.low, point.high], color=color, linewidth=1.6)
    axes.plot([point.milliseconds], [value], **look, label=f"value {point.label}")
