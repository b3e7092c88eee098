"""Colours, font sizes and axes that all pictures share."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nbv_planner.colors import BAND, CAMERA, FAINT, HIT, LAST, MEAN, TARGET, TRUTH
from nbv_planner.geometry import TWO_PI

BAND_ALPHA = 0.3
TITLE_SIZE = 11.0
LABEL_SIZE = 9.0
TICK_SIZE = 8.0

HIT_SIZE = 1.4
LAST_HIT_SIZE = 2.0

Style = dict[str, Any]
"""Keyword arguments of a line."""

TRUTH_LINE: Style = {"color": TRUTH, "linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 5}
MEAN_LINE: Style = {"color": MEAN, "linewidth": 1.3, "zorder": 4}
# A little wider than the mean, under which they lie: measurements without noise show as its rim.
HIT_DOTS: Style = {
    "color": HIT, "linestyle": "none", "marker": "o", "markersize": HIT_SIZE, "markeredgewidth": 0, "zorder": 3
}
LAST_HIT_DOTS: Style = {**HIT_DOTS, "color": LAST, "markersize": LAST_HIT_SIZE, "zorder": 3.5}


def style_axes(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Label the axes, and set the sizes here so that a user's matplotlibrc does not change the picture."""
    axes.set_xlabel(xlabel, fontsize=LABEL_SIZE, labelpad=2)
    axes.set_ylabel(ylabel, fontsize=LABEL_SIZE)
    axes.tick_params(which="both", labelsize=TICK_SIZE)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def style_angle_axis(axes: Axes) -> None:
    """Let x run over the circle once, with ticks at quarter turns."""
    axes.set_xlim(0.0, TWO_PI)
    axes.set_xticks(np.arange(5) * (np.pi / 2.0), labels=["0", "π/2", "π", "3π/2", "2π"])


def note(axes: Axes, text: str) -> None:
    """Say in the middle of the axes why there is nothing to see."""
    axes.grid(False)
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=LABEL_SIZE, color=CAMERA
    )


__all__ = [
    "BAND", "BAND_ALPHA", "CAMERA", "FAINT", "HIT", "HIT_DOTS", "LABEL_SIZE", "LAST", "LAST_HIT_DOTS", "MEAN",
    "MEAN_LINE", "TARGET", "TICK_SIZE", "TITLE_SIZE", "TRUTH", "TRUTH_LINE", "Style", "note", "style_angle_axis",
    "style_axes",
]
