"""Growth of times and sizes in double logarithmic panels, in which a power law is a straight line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panel_title, panels, plain
from nbv_planner.plotting.sweep.planner_style import planner_styles

_WIDTH, _HEIGHT = 3.7, 3.0
_FEW_DECADES = 300.0


@dataclass(frozen=True)
class GrowthPanel:
    """One panel.

    Attributes:
        title: what it shows.
        xlabel: what grows, with its unit.
        ylabel: what is measured, with its unit.
        curves: by label, abscissae and ordinates, all positive.
    """

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]


def draw_growth(contents: Sequence[GrowthPanel], reference: str | None = None) -> Figure:
    """Draw panels beside each other; a label has the same line in all of them.

    Args:
        contents: the panels, at least one.
        reference: label of what the others are compared with.
    """
    labels = list(dict.fromkeys(label for content in contents for label in content.curves))
    styles = planner_styles(labels, reference)
    figure, axes = panels(1, len(contents), width=_WIDTH, height=_HEIGHT, legend=_legend(styles))
    for panel, content in zip(axes, contents, strict=True):
        _draw_panel(panel, content, styles)
    return figure


def _legend(styles: Mapping[str, style.Style]) -> list[Artist]:
    return [Line2D([], [], **_line(look), label=plain(label)) for label, look in styles.items()]


def _line(look: style.Style) -> style.Style:
    return {**look, "linewidth": 1.3, "markersize": 4.0, "markeredgewidth": 0}


def _draw_panel(axes: Axes, content: GrowthPanel, styles: Mapping[str, style.Style]) -> None:
    style.style_axes(axes, content.xlabel, content.ylabel)
    for label, (x, y) in content.curves.items():
        axes.plot(x, y, **_line(styles[label]), label=plain(label))
    for axis, set_scale, column in ((axes.xaxis, axes.set_xscale, 0), (axes.yaxis, axes.set_yscale, 1)):
        set_scale("log")
        values = [value for curve in content.curves.values() for value in curve[column]]
        _tick(axis, max(values) / min(values))
    panel_title(axes, content.title)


def _tick(axis: Axis, span: float) -> None:
    """Plain numbers over a few decades, with 2 and 5 between; powers of ten over more."""
    if span < _FEW_DECADES:
        axis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0), numticks=12))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
