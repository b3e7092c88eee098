"""Coverage over the number of views, one panel per planner."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from nbv_planner.evaluation.coverage_curves import CoverageBand
from nbv_planner.evaluation.metrics import FULL_ENOUGH
from nbv_planner.plotting import style
from nbv_planner.plotting.sweep.layout import panel_title, panels, plain
from nbv_planner.plotting.sweep.planner_style import planner_styles

_MOST_COLUMNS = 4
_WIDTH, _HEIGHT = 2.9, 2.35
_BAND_ALPHA = 0.25


def draw_coverage_curves(bands: Mapping[str, CoverageBand], reference: str | None) -> Figure:
    """Draw mean and band of each planner, beside the mean of the reference.

    Args:
        bands: by label of the planner, at least one.
        reference: label of the omniscient greedy planner, None if it is not there.
    """
    rows = math.ceil(len(bands) / _MOST_COLUMNS)
    columns = math.ceil(len(bands) / rows)
    styles = planner_styles(list(bands), reference)
    figure, axes = panels(
        rows, columns, width=_WIDTH, height=_HEIGHT, share=True,
        legend=_legend(reference if reference in bands else None),
    )
    for place, (panel, (label, band)) in enumerate(zip(axes, bands.items(), strict=False)):
        _draw_band(panel, label, band, styles[label])
        if reference is not None and reference in bands and label != reference:
            _draw_mean(panel, bands[reference], styles[reference], label=plain(reference))
        _style_panel(panel, left=place % columns == 0, bottom=place + columns >= len(bands))
    for panel in axes[len(bands):]:
        panel.remove()
    return figure


def _legend(reference: str | None) -> list[Artist]:
    """Explain what all panels have."""
    handles: list[Artist] = [
        Line2D([], [], color=style.CAMERA, linewidth=1.4, label="mean"),
        Patch(facecolor=style.CAMERA, alpha=_BAND_ALPHA, label="where 80 % of the episodes lie"),
        Line2D([], [], color=style.TARGET, linewidth=1.0, linestyle="--", label=f"{100 * FULL_ENOUGH:.0f} %"),
    ]
    if reference is not None:
        line = planner_styles([reference], reference)[reference]
        handles.append(
            Line2D([], [], color=line["color"], linestyle=line["linestyle"], linewidth=1.4,
                   label=f"mean of {plain(reference)}")
        )
    return handles


def _draw_band(axes: Axes, label: str, band: CoverageBand, line: style.Style) -> None:
    views = np.arange(len(band.mean))
    axes.fill_between(
        views, 100.0 * band.low, 100.0 * band.high, color=line["color"], alpha=_BAND_ALPHA, linewidth=0, zorder=2,
        label="band",
    )
    _draw_mean(axes, band, line, label=plain(label))
    panel_title(axes, label)


def _draw_mean(axes: Axes, band: CoverageBand, line: style.Style, label: str) -> None:
    axes.plot(
        np.arange(len(band.mean)), 100.0 * band.mean, color=line["color"], linestyle=line["linestyle"], linewidth=1.4,
        zorder=3, label=label,
    )


def _style_panel(axes: Axes, *, left: bool, bottom: bool) -> None:
    style.style_axes(axes, "number of views" if bottom else "", "true coverage (%)" if left else "")
    axes.set(ylim=(0.0, 104.0), yticks=(0, 25, 50, 75, 100))
    axes.set_xlim(left=0.0)
    axes.margins(x=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.tick_params(labelbottom=bottom, labelleft=left)
    axes.axhline(100.0 * FULL_ENOUGH, color=style.TARGET, linewidth=1.0, linestyle="--", zorder=1.5, label="target")
