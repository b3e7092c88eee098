"""Picture of a series of cuts: all outlines, and what each took."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from nbv_planner.geometry import TWO_PI
from nbv_planner.report.ahead.cut_series import CutSeries
from nbv_planner.report.figures.style import LABEL_SIZE, MEAN, style_axes


def draw_series(series: CutSeries) -> Figure:
    """Outlines of the finished cuts, coloured by their height, and the views of each."""
    rows, outlines = series.rows, series.outlines()
    heights = np.array([row.height for row in rows])
    shades = ScalarMappable(Normalize(heights.min(), heights.max()), colormaps["viridis"])
    figure = Figure(figsize=(9.0, 4.5), layout="constrained")
    plan, views = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    angle = TWO_PI / len(outlines[0]) * np.arange(len(outlines[0]) + 1)
    for height, radius in zip(heights, outlines, strict=True):
        around = np.append(radius, radius[0])
        plan.plot(
            around * np.cos(angle), around * np.sin(angle), color=shades.to_rgba(height), lw=1.0
        )
    plan.set_aspect("equal")
    style_axes(plan, "x (m)", "y (m)")
    figure.colorbar(shades, ax=plan, shrink=0.8).set_label("height (m)", fontsize=LABEL_SIZE)
    step = float(np.diff(heights).min())
    views.barh(heights, [row.views for row in rows], 0.7 * step, color=MEAN)
    style_axes(views, "views until the end", "height of the cut (m)")
    return figure
