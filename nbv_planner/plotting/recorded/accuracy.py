"""How the belief of one episode comes nearer to the true surface, view by view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbv_planner.evaluation.records import ViewRecord
from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panel_title, panels

_WIDTH, _HEIGHT = 4.4, 3.2


def draw_accuracy(views: Sequence[ViewRecord]) -> Figure:
    """Draw the error of the mean contour, and the regret, after each view.

    Args:
        views: the views judged against the true object, at least one.
    """
    figure, (errors, regrets) = panels(1, 2, width=_WIDTH, height=_HEIGHT)
    numbers = np.arange(1, len(views) + 1)
    style.style_axes(errors, "number of views", "error (m)")
    lines = (("rmse", "RMSE", style.MEAN, "-"), ("hausdorff", "Hausdorff distance", style.LAST, "--"))
    for name, label, color, dash in lines:
        values = [getattr(view, name) for view in views]
        errors.plot(numbers, values, color=color, linestyle=dash, linewidth=1.4, marker="o", markersize=3, label=label)
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
