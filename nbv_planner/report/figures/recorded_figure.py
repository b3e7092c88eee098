"""Recorded episodes: accuracy of the belief and coverage, view by view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nbv_planner.episode.records import FULL_ENOUGH, ViewColumn, ViewRecord
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import planner_styles
from nbv_planner.report.figures.sweep_figures import panel_title, panels, plain


def draw_accuracy(views: Sequence[ViewRecord]) -> Figure:
    """Draw the error of the mean contour, and the regret, after each of the judged `views`, at least one."""
    figure, (errors, regrets) = panels(2, 2, width=4.4, height=3.2)
    numbers = np.arange(1, len(views) + 1)
    style.style_axes(errors, "number of views", "error (m)")
    lines = ((ViewColumn.rmse, style.MEAN, "-"), (ViewColumn.hausdorff, style.LAST, "--"))
    for column, color, dash in lines:
        errors.plot(
            numbers, column.each(views), color=color, linestyle=dash, linewidth=1.4, marker="o", markersize=3,
            label=column.title,
        )
    errors.set_ylim(bottom=0.0)
    errors.legend(fontsize=style.TICK_SIZE, frameon=False)
    panel_title(errors, "mean contour against the true one")
    style.style_axes(regrets, "number of views", "surface points")
    regrets.bar(numbers, [view.greedy_gain for view in views], color=style.FAINT, label="best candidate")
    regrets.bar(numbers, [view.new_points for view in views], color=style.MEAN, width=0.5, label="view taken")
    regrets.legend(fontsize=style.TICK_SIZE, frameon=False)
    panel_title(regrets, "new points: taken, and at best")
    for axes in (errors, regrets):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    return figure


# Curves whose names leave room for them inside the panel; those of more stand below it.
_MOST_INSIDE = 8


def draw_coverage_overlay(curves: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the coverage of episodes as steps in one panel; each line ends in a mark where its episode ends.

    At least one curve by its label: coverage after each view, 0 to 1, NaN where it is not known.
    """
    styles = planner_styles(list(curves), None)
    crowded = len(curves) > _MOST_INSIDE
    legend = [Line2D([], [], **line, markersize=5, label=plain(label)) for label, line in styles.items()]
    figure, (axes,) = panels(1, 1, width=7.6, height=3.8, legend=legend if crowded else ())
    style.style_axes(axes, "number of views", "coverage (%)")
    most = max(len(coverage) for coverage in curves.values())
    axes.set(ylim=(0.0, 104.0), xlim=(0.0, max(1.0, 1.02 * most)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    style.level_line(axes, 100.0 * FULL_ENOUGH, f"{100 * FULL_ENOUGH:.0f} %")
    for label, line in styles.items():
        percent = 100.0 * np.concatenate([[0.0], curves[label]])
        axes.plot(
            np.arange(len(percent)), percent, **style.curve(line), drawstyle="steps-post", marker=line["marker"],
            markersize=5, markevery=[len(percent) - 1], zorder=3, label=plain(label), clip_on=False,
        )
    if not crowded:
        axes.legend(loc="lower right", fontsize=style.TICK_SIZE, frameon=False)
    return figure
