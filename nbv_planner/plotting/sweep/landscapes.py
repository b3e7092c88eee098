"""Objectives over the candidate views, one row per objective and one column per decision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from nbv_planner.evaluation.landscapes import Landscape
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panel_title, panels

_WIDTH, _HEIGHT = 3.5, 1.25
_TOP = 1.42
_GAIN_COLOR = "#CFCFCF"
_CHOICE: style.Style = {
    "color": style.LAST, "marker": "v", "markersize": 6.0, "markeredgewidth": 0, "linestyle": "none"
}


def draw_landscapes(rows: Sequence[Sequence[Landscape]]) -> Figure:
    """Draw the landscapes, each scaled to a greatest value of 1, over the true gain, scaled alike.

    Args:
        rows: for each decision the landscapes of the objectives, in the same order everywhere.
    """
    decisions, objectives = len(rows), len(rows[0])
    figure, axes = panels(
        objectives, decisions, width=_WIDTH, height=_HEIGHT + 0.6 / objectives, share=True, legend=_legend()
    )
    for place, panel in enumerate(axes):
        row, column = divmod(place, decisions)
        _draw_landscape(panel, rows[column][row], top=row == 0, left=column == 0, bottom=row == objectives - 1)
    return figure


def _draw_landscape(axes: Axes, content: Landscape, *, top: bool, left: bool, bottom: bool) -> None:
    style.style_axes(axes, "view angle θ (rad)" if bottom else "", content.objective if left else "")
    style.style_angle_axis(axes)
    axes.set(ylim=(0.0, _TOP), yticks=(0.0, 0.5, 1.0))
    axes.tick_params(labelbottom=bottom, labelleft=left)
    order = np.argsort(content.angle, kind="stable")
    angle, value, gain = content.angle[order], _scaled(content.value)[order], _scaled(content.gain)[order]
    axes.fill_between(*_closed(angle, gain), color=_GAIN_COLOR, linewidth=0, zorder=1, label="true gain")
    axes.plot(*_closed(angle, value), color=style.MEAN, linewidth=1.3, zorder=3, label="objective")
    choice = content.choice
    axes.plot(
        [content.angle[choice] % TWO_PI], [_scaled(content.value)[choice]], **_CHOICE, zorder=4, clip_on=False,
        label="its choice",
    )
    axes.text(
        0.5, 0.975, f"brings {content.gain[choice]:.0f} of at most {content.gain.max():.0f} new points",
        transform=axes.transAxes, ha="center", va="top", fontsize=style.TICK_SIZE, color=style.CAMERA,
    )
    if top:
        panel_title(axes, f"view {content.decision}")


def _scaled(values: FloatArray) -> FloatArray:
    """Values with a greatest one of 1, none below 0; all 0 if none is positive."""
    top = float(values.max())
    return np.maximum(values, 0.0) / top if top > 0.0 else np.zeros_like(values)


def _closed(angle: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Go around the circle once, back to the first candidate."""
    return np.append(angle, angle[0] + TWO_PI), np.append(value, value[0])


def _legend() -> list[Artist]:
    return [
        Line2D([], [], color=style.MEAN, linewidth=1.3, label="objective, scaled to 1"),
        Patch(facecolor=_GAIN_COLOR, label="true gain (new surface points), scaled to 1"),
        Line2D([], [], **_CHOICE, label="candidate it prefers"),
    ]
