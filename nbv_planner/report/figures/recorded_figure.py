"""Recorded episodes: accuracy of the belief and coverage, view by view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nbv_planner.episode.records import FULL_ENOUGH, ViewColumn, ViewRecord
from nbv_planner.files.results_folder import write_whole
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.known.deviation import Deviation
from nbv_planner.known.deviation_report import DeviationReport
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import panel_title, panels, plain, planner_styles


def draw_accuracy(views: Sequence[ViewRecord]) -> Figure:
    """Draw the error of the mean contour, unless it is known nowhere, as where a direction has
    several surfaces, and the regret, after each of the judged `views`, at least one.
    """
    errors = [ViewColumn.rmse.each(views), ViewColumn.hausdorff.each(views)]
    count = 2 if np.isfinite(errors).any() else 1
    figure, axes = panels(count, count, width=4.4, height=3.2)
    if count == 2:
        _draw_errors(axes[0], views)
    regrets = axes[-1]
    numbers = np.arange(1, len(views) + 1)
    style.style_axes(regrets, "number of views", "surface points")
    regrets.bar(
        numbers, [view.greedy_gain for view in views], color=style.FAINT, label="best candidate"
    )
    regrets.bar(
        numbers,
        [view.new_points for view in views],
        color=style.MEAN,
        width=0.5,
        label="view taken",
    )
    regrets.legend(fontsize=style.TICK_SIZE, frameon=False)
    panel_title(regrets, "new points: taken, and at best")
    for one in axes:
        one.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    return figure


def _draw_errors(axes: Axes, views: Sequence[ViewRecord]) -> None:
    style.style_axes(axes, "number of views", "error (m)")
    lines = ((ViewColumn.rmse, style.MEAN, "-"), (ViewColumn.hausdorff, style.LAST, "--"))
    for column, color, dash in lines:
        axes.plot(
            np.arange(1, len(views) + 1),
            column.each(views),
            color=color,
            linestyle=dash,
            linewidth=1.4,
            marker="o",
            markersize=3,
            label=column.title,
        )
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=style.TICK_SIZE, frameon=False)
    panel_title(axes, "mean contour against the true one")


# Curves whose names leave room for them inside the panel; those of more stand below it.
_MOST_INSIDE = 8


def draw_coverage_overlay(curves: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the coverage of episodes as steps in one panel; each line ends in a mark where its
    episode ends.

    At least one curve by its label: coverage after each view, 0 to 1, NaN where it is not known.
    """
    styles = planner_styles(list(curves), None)
    crowded = len(curves) > _MOST_INSIDE
    legend = [
        Line2D([], [], **line, markersize=5, label=plain(label)) for label, line in styles.items()
    ]
    figure, (axes,) = panels(1, 1, width=7.6, height=3.8, legend=legend if crowded else ())
    style.style_axes(axes, "number of views", "coverage (%)")
    most = max(len(coverage) for coverage in curves.values())
    axes.set(ylim=(0.0, 104.0), xlim=(0.0, max(1.0, 1.02 * most)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    style.level_line(axes, 100.0 * FULL_ENOUGH, f"{100 * FULL_ENOUGH:.0f} %")
    for label, line in styles.items():
        percent = 100.0 * np.concatenate([[0.0], curves[label]])
        axes.plot(
            np.arange(len(percent)),
            percent,
            **style.curve(line),
            drawstyle="steps-post",
            marker=line["marker"],
            markersize=5,
            markevery=[len(percent) - 1],
            zorder=3,
            label=plain(label),
            clip_on=False,
        )
    if not crowded:
        axes.legend(loc="lower right", fontsize=style.TICK_SIZE, frameon=False)
    return figure


_DIAGONAL: style.Style = {
    "color": style.CAMERA,
    "linewidth": 1.0,
    "zorder": 2,
    "label": "perfect calibration",
}


def draw_calibration(
    levels: Sequence[float],
    inside: Mapping[str, FloatArray],
    by_angle: Mapping[str, FloatArray],
    styles: Mapping[str, style.Style],
) -> Figure:
    """Draw measured over nominal frequency, and the frequency inside the band by polar angle.

    Args:
        levels: nominal frequencies, shape (K,), 0 to 1.
        inside: measured frequencies by label of the planner, each of shape (K,), 0 to 1.
        by_angle: frequency inside the band by label, each of shape (B,): equal bins from 0 to 2π.
        styles: line styles by label.
    """
    lines = (Line2D([], [], **style.curve(styles[label]), label=plain(label)) for label in inside)
    figure, (curves, angles) = panels(
        2, 2, width=5.2, height=4.2, legend=[Line2D([], [], **_DIAGONAL), *lines]
    )
    _draw_curves(curves, levels, inside, styles)
    _draw_by_angle(angles, by_angle)
    return figure


def _draw_curves(
    axes: Axes,
    levels: Sequence[float],
    inside: Mapping[str, FloatArray],
    styles: Mapping[str, style.Style],
) -> None:
    style.style_axes(axes, "nominal frequency (%)", "measured frequency (%)")
    axes.set(
        xlim=(0.0, 100.0),
        ylim=(0.0, 100.0),
        aspect="equal",
        xticks=range(0, 101, 20),
        yticks=range(0, 101, 20),
    )
    axes.plot([0.0, 100.0], [0.0, 100.0], **_DIAGONAL)
    for label, measured in inside.items():
        look = style.curve(styles[label])
        axes.plot(
            100.0 * np.asarray(levels), 100.0 * measured, **look, zorder=3, label=plain(label)
        )
    panel_title(axes, "all angles")


def _draw_by_angle(axes: Axes, by_angle: Mapping[str, FloatArray]) -> None:
    values = 100.0 * np.vstack(list(by_angle.values()))
    low = 10.0 * np.floor(min(90.0, float(np.nanmin(values))) / 10.0)
    edges = np.linspace(0.0, TWO_PI, values.shape[1] + 1)
    rows = np.arange(len(values) + 1) - 0.5
    mesh = axes.pcolormesh(
        edges, rows, values, cmap="cividis_r", vmin=low, vmax=100.0, rasterized=True
    )
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


# Widths of lines in points: what differs significantly is bold.
_THIN, _BOLD = 2.5, 5.0


def draw_deviation(deviation: Deviation, tolerance: float | None) -> Figure:
    """Draw the outline where it lies: red where material is outside of it, blue where it is
    missing, grey where it was not seen; bold, with the mean, where the object differs.
    """
    figure, (axes,) = style.panels(1, 1, width=6.4, height=5.6)
    style.style_axes(axes, "x (m)", "y (m)")
    axes.set_aspect("equal")
    shown = np.abs(deviation.mean[deviation.seen])
    most = max(float(shown.max(initial=0.0)), tolerance or 0.0, 1e-9)
    for part in deviation.nominal.loops:
        place = deviation.points[part]
        pieces = np.stack([place, np.roll(place, -1, axis=0)], axis=1)
        seen, bold = deviation.seen[part], deviation.significant[part]
        axes.add_collection(LineCollection(list(pieces[~seen]), colors=style.FAINT, linestyles=":"))
        colored = LineCollection(
            list(pieces[seen]),
            cmap="coolwarm",
            norm=TwoSlopeNorm(0.0, -most, most),
            linewidths=np.where(bold[seen], _BOLD, _THIN),
        )
        colored.set_array(deviation.mean[part][seen])
        axes.add_collection(colored)
    bar = figure.colorbar(colored, ax=axes, shrink=0.8)
    bar.set_label("deviation (m), positive: material outside", fontsize=style.LABEL_SIZE)
    bar.ax.tick_params(labelsize=style.TICK_SIZE)
    for one in deviation.stretches:
        axes.annotate(
            f"{one.mean:+.2g} m",
            (one.x, one.y),
            textcoords="offset points",
            xytext=(8, 8),
            fontsize=style.LABEL_SIZE,
        )
    axes.autoscale_view()
    title = f"{deviation.part_seen:.0%} seen, {len(deviation.stretches)} stretches differ"
    if tolerance is not None:
        title += f"; {deviation.verdict(tolerance).value} at {tolerance:g} m"
    style.panel_title(axes, title)
    return figure


def write_deviation(folder: Path, report: DeviationReport) -> list[Path]:
    """Write `deviation.png`, if anything of the outline was seen; returns what was written."""
    if not report.deviation.seen.any():
        return []
    place = folder / "deviation.png"
    write_whole(place, style.png_bytes(draw_deviation(report.deviation, report.tolerance)))
    return [place]
