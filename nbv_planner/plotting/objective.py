"""Objective over the view angle, decision by decision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nbv_planner.evaluation.records import Step
from nbv_planner.geometry import TWO_PI, FloatArray, wrap_angle
from nbv_planner.plotting import style
from nbv_planner.plotting.episode_content import EpisodeContent

# Values further below the largest one are cut off: an objective may be 0, which a log axis cannot show.
_LEAST_RATIO = 1e-4
_FAINT_ALPHA, _FAINT_ALPHA_SUM = 0.45, 6.0


def draw_objective(axes: Axes, content: EpisodeContent) -> None:
    """Draw the objective of the last decision, those of earlier ones faintly, and the views chosen.

    The axis is logarithmic, for the objective falls over orders of magnitude in the course of an episode.
    """
    style.style_axes(axes, "view angle θ (rad)", "objective (its own unit)")
    style.style_angle_axis(axes)
    limits = _value_limits(content.steps)
    if limits is None or not content.shown:
        axes.set_yticks([])
        style.note(axes, "no decision yet" if not content.shown else "the objective is 0 everywhere")
        return
    _log_axis(axes, *limits)
    *earlier, last = content.shown_steps
    alpha = min(_FAINT_ALPHA, _FAINT_ALPHA_SUM / len(content.steps))
    for step in earlier:
        axes.plot(*_curve(step, limits[0]), color=style.FAINT, alpha=alpha, linewidth=0.8, zorder=2)
    axes.plot(*_curve(last, limits[0]), color=style.LAST, linewidth=1.4, zorder=4, label="last decision")
    _mark_choices(axes, content.shown_steps, limits[0])
    axes.set_title(
        "last decision and its view; grey: earlier ones", loc="right", fontsize=style.TICK_SIZE, color=style.CAMERA,
        pad=4,
    )


def _mark_choices(axes: Axes, steps: Sequence[Step], least: float) -> None:
    """Mark the chosen views at the value the planner saw there."""
    angle = wrap_angle(np.array([step.view_angle for step in steps]))
    value = np.maximum([step.objective_value for step in steps], least)
    dots: style.Style = {"linestyle": "none", "marker": "o", "clip_on": False}
    axes.plot(
        angle[:-1], value[:-1], color=style.CAMERA, markersize=3.5, markeredgewidth=0, zorder=5, **dots,
        label="earlier views",
    )
    axes.plot(
        angle[-1:], value[-1:], color=style.LAST, markersize=6.5, markeredgecolor="white", markeredgewidth=0.8,
        zorder=6, **dots, label="last view",
    )


def _curve(step: Step, least: float) -> tuple[FloatArray, FloatArray]:
    """Candidates in rising angle, around the circle, and the objective there, not below `least`."""
    order = np.argsort(step.candidates)
    angle, value = step.candidates[order], np.maximum(step.utilities[order], least)
    return np.append(angle, angle[:1] + TWO_PI), np.append(value, value[:1])


def _value_limits(steps: Sequence[Step]) -> tuple[float, float] | None:
    """Limits that hold every decision, a decade at least; None without a positive value."""
    values = np.concatenate([[0.0], *(np.append(step.utilities, step.objective_value) for step in steps)])
    values = values[np.isfinite(values) & (values > 0.0)]
    if not len(values):
        return None
    high = float(values.max())
    low = max(float(values.min()), _LEAST_RATIO * high)
    return min(low / 1.5, high / 12.0), high * 1.3


def _log_axis(axes: Axes, low: float, high: float) -> None:
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    ticks = (1.0, 2.0, 5.0) if high / low < 300.0 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(base=10.0, subs=ticks, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
