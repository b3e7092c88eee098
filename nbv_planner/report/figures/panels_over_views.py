"""Panels of the figure of an episode: the objective of each decision, and the coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from nbv_planner.episode.records import FULL_ENOUGH, Step
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.report import outlines
from nbv_planner.report.figures import style
from nbv_planner.report.figures.episode_content import EpisodeContent

# Values further below the largest one are clipped: an objective may be 0, which a log axis cannot
# show.
_LEAST_RATIO = 1e-4


_FAINT_ALPHA, _FAINT_ALPHA_SUM = 0.45, 6.0


def draw_objective(axes: Axes, content: EpisodeContent) -> None:
    """Draw the objective of the last decision, those of earlier ones faintly, and the views chosen.

    The axis is logarithmic, since the objective falls by orders of magnitude during an episode; but
    for one with values below 0.
    """
    best = "; the best of all distances and headings" if content.free else ""
    style.style_axes(axes, f"view angle θ (rad){best}", "objective (its own unit)")
    style.style_angle_axis(axes)
    limits = _value_limits(content.steps)
    if limits is None or not content.shown:
        axes.set_yticks([])
        style.note(axes, "the objective is 0 everywhere" if content.shown else "no decision yet")
        return
    if limits[0] > 0.0:
        axes.set_yscale("log")
        style.set_log_ticks(
            axes.yaxis, (1.0, 2.0, 5.0) if limits[1] / limits[0] < 300.0 else (1.0,)
        )
    axes.set_ylim(*limits)
    *earlier, last = content.shown
    alpha = min(_FAINT_ALPHA, _FAINT_ALPHA_SUM / len(content.steps))
    for step in earlier:
        axes.plot(*_curve(step, limits[0]), color=style.FAINT, alpha=alpha, linewidth=0.8, zorder=2)
    axes.plot(
        *_curve(last, limits[0]), color=style.LAST, linewidth=1.4, zorder=4, label="last decision"
    )
    _mark_choices(axes, content.shown, limits[0])
    said = "last decision and its view; grey: earlier ones"
    axes.set_title(said, loc="right", fontsize=style.TICK_SIZE, color=style.CAMERA, pad=4)


def _mark_choices(axes: Axes, steps: Sequence[Step], least: float) -> None:
    """Mark the chosen views at their value of the objective."""
    angle = outlines.angles_of(steps)
    value = np.maximum([step.objective_value for step in steps], least)
    dots: style.Style = {"linestyle": "none", "marker": "o", "clip_on": False}
    axes.plot(
        angle[:-1],
        value[:-1],
        color=style.CAMERA,
        markersize=3.5,
        markeredgewidth=0,
        zorder=5,
        **dots,
        label="earlier views",
    )
    axes.plot(
        angle[-1:],
        value[-1:],
        color=style.LAST,
        markersize=6.5,
        markeredgecolor="white",
        markeredgewidth=0.8,
        zorder=6,
        **dots,
        label="last view",
    )


def _curve(step: Step, least: float) -> tuple[FloatArray, FloatArray]:
    """Candidates in rising angle, around the circle, and the objective there, not below `least`."""
    angle, value, _ = outlines.by_angle(
        step.candidates, step.utilities, np.ones(len(step.utilities), dtype=bool)
    )
    order = np.argsort(angle)
    angle = angle[order]
    value = np.maximum(value[order], least)
    return np.append(angle, angle[:1] + TWO_PI), np.append(value, value[:1])


def _value_limits(steps: Sequence[Step]) -> tuple[float, float] | None:
    """Limits that hold every decision: of positive values a decade at least; None if all are 0."""
    values = np.concatenate(
        [[0.0], *(np.append(_curve(step, -np.inf)[1], step.objective_value) for step in steps)]
    )
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if low < -_LEAST_RATIO * high:
        return low - 0.05 * (high - low), high + 0.05 * (high - low)
    if high <= 0.0:
        return None
    low = max(float(values[values > 0.0].min()), _LEAST_RATIO * high)
    return min(low / 1.5, high / 12.0), high * 1.3


def draw_coverage(axes: Axes, content: EpisodeContent) -> None:
    """Draw the coverage as steps, and the line at which an object counts as reconstructed."""
    known = content.true_coverage
    style.style_axes(axes, "number of views", "true coverage (%)")
    axes.set(
        xlim=(0.0, max(1.0, 1.02 * len(content.steps))),
        ylim=(0.0, 104.0),
        yticks=(0, 25, 50, 75, 100),
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    if known is None:
        style.note(axes, "no true object to compare with")
        return
    axes.axhline(
        100.0 * FULL_ENOUGH,
        color=style.TARGET,
        linewidth=1.0,
        linestyle="--",
        zorder=2,
        label="target",
    )
    axes.annotate(
        f"{FULL_ENOUGH:.0%}",
        (0.0, 100.0 * FULL_ENOUGH),
        xytext=(4, -2),
        textcoords="offset points",
        va="top",
        fontsize=style.TICK_SIZE,
        color=style.TARGET,
    )
    _draw_steps(axes, [(0, 0.0), *enumerate(known, start=1)], "coverage", color=style.TRUTH)
    if content.completeness:
        outline = [(0, 0.0), *enumerate(content.completeness, start=1)]
        _draw_steps(axes, outline, "completeness", color=style.TRUTH, linestyle=":")
        measured = "completeness" if content.regions is None else "completeness by weight"
        names = f"solid: surface points seen, dotted: outline measured ({measured})"
        axes.set_title(names, loc="right", fontsize=style.TICK_SIZE, color=style.CAMERA, pad=4)


def _draw_steps(axes: Axes, points: Sequence[tuple[int, float]], label: str, **line: Any) -> None:
    """Draw numbers of views and coverage (a fraction) as steps, with a dot at the newest."""
    number, fraction = zip(*points, strict=True)
    percent = [100.0 * value for value in fraction]
    axes.step(number, percent, where="post", linewidth=1.6, zorder=3, label=label, **line)
    if number[-1] > 0:
        axes.plot(
            number[-1],
            percent[-1],
            color=style.LAST,
            marker="o",
            markersize=5,
            clip_on=False,
            zorder=4,
        )
