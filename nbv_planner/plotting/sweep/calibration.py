"""How often the surface lies in the band, against how often it should."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panel_title, panels, plain

_WIDTH, _HEIGHT = 5.2, 4.2
_DIAGONAL: style.Style = {"color": style.CAMERA, "linewidth": 1.0, "zorder": 2, "label": "perfect calibration"}


def draw_calibration(
    levels: Sequence[float], inside: Mapping[str, FloatArray], by_angle: Mapping[str, FloatArray],
    styles: Mapping[str, style.Style],
) -> Figure:
    """Draw measured over nominal frequency, and the frequency inside the band by polar angle.

    Args:
        levels: nominal frequencies, shape (K,), 0 to 1.
        inside: measured frequencies by label of the planner, each of shape (K,), 0 to 1.
        by_angle: frequency inside the band by label, each of shape (B,): equal bins from 0 to 2π.
        styles: line styles by label.
    """
    figure, (curves, angles) = panels(1, 2, width=_WIDTH, height=_HEIGHT, legend=_legend(inside, styles))
    _draw_curves(curves, levels, inside, styles)
    _draw_by_angle(angles, by_angle)
    return figure


def _legend(labels: Iterable[str], styles: Mapping[str, style.Style]) -> list[Artist]:
    """Below the panels, where no curve is in its way."""
    lines = [
        Line2D([], [], color=styles[label]["color"], linestyle=styles[label]["linestyle"], linewidth=1.4,
               label=plain(label))
        for label in labels
    ]
    return [Line2D([], [], **_DIAGONAL), *lines]


def _draw_curves(
    axes: Axes, levels: Sequence[float], inside: Mapping[str, FloatArray], styles: Mapping[str, style.Style]
) -> None:
    style.style_axes(axes, "nominal frequency (%)", "measured frequency (%)")
    axes.set(xlim=(0.0, 100.0), ylim=(0.0, 100.0), aspect="equal", xticks=range(0, 101, 20), yticks=range(0, 101, 20))
    axes.plot([0.0, 100.0], [0.0, 100.0], **_DIAGONAL)
    for label, measured in inside.items():
        line = styles[label]
        axes.plot(
            100.0 * np.asarray(levels), 100.0 * measured, color=line["color"], linestyle=line["linestyle"],
            linewidth=1.4, zorder=3, label=plain(label),
        )
    panel_title(axes, "all angles")


def _draw_by_angle(axes: Axes, by_angle: Mapping[str, FloatArray]) -> None:
    """Draw a row of cells per planner; light is seldom, dark is often."""
    values = 100.0 * np.vstack(list(by_angle.values()))
    low = 10.0 * np.floor(min(90.0, float(np.nanmin(values))) / 10.0)
    edges = np.linspace(0.0, TWO_PI, values.shape[1] + 1)
    rows = np.arange(len(values) + 1) - 0.5
    mesh = axes.pcolormesh(edges, rows, values, cmap="cividis_r", vmin=low, vmax=100.0, rasterized=True)
    style.style_axes(axes, "polar angle φ (rad)", "")
    axes.grid(False)
    style.style_angle_axis(axes)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_yticks(range(len(values)), labels=[plain(label) for label in by_angle])
    axes.tick_params(axis="y", length=0)
    panel_title(axes, "inside the band, by angle")
    bar = axes.figure.colorbar(mesh, ax=axes, orientation="horizontal", fraction=0.06, pad=0.02)
    bar.set_label("angles inside the band (%)", fontsize=style.LABEL_SIZE)
    bar.ax.tick_params(labelsize=style.TICK_SIZE)
