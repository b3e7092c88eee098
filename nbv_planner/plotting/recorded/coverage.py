"""Coverage of single episodes over the number of views, in one panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbv_planner.evaluation.metrics import FULL_ENOUGH
from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panels, plain
from nbv_planner.plotting.sweep.planner_style import planner_styles

_WIDTH, _HEIGHT = 7.6, 3.8


@dataclass(frozen=True)
class CoverageCurve:
    """Coverage of one episode.

    Attributes:
        label: which episode, and whether true or estimated.
        coverage: after each view, 0 to 1; NaN where it is not known.
    """

    label: str
    coverage: Sequence[float]


def draw_coverage_overlay(curves: Sequence[CoverageCurve]) -> Figure:
    """Draw the coverage of episodes as steps over each other; each line ends in a mark where its episode ends.

    Args:
        curves: at least one; their labels differ.
    """
    figure, (axes,) = panels(1, 1, width=_WIDTH, height=_HEIGHT)
    style.style_axes(axes, "number of views", "coverage (%)")
    most = max(len(curve.coverage) for curve in curves)
    axes.set(ylim=(0.0, 104.0), xlim=(0.0, max(1.0, 1.02 * most)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    axes.axhline(100.0 * FULL_ENOUGH, color=style.TARGET, linewidth=1.0, linestyle="--", zorder=1.5,
                 label=f"{100 * FULL_ENOUGH:.0f} %")
    for label, line in planner_styles([curve.label for curve in curves], None).items():
        (curve,) = (curve for curve in curves if curve.label == label)
        percent = 100.0 * np.concatenate([[0.0], curve.coverage])
        axes.plot(
            np.arange(len(percent)), percent, color=line["color"], linestyle=line["linestyle"], linewidth=1.4,
            drawstyle="steps-post", marker=line["marker"], markersize=5, markevery=[len(percent) - 1], zorder=3,
            label=plain(label), clip_on=False,
        )
    axes.legend(loc="lower right", fontsize=style.TICK_SIZE, frameon=False)
    return figure
