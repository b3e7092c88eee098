"""True coverage over the number of views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from nbv_planner.evaluation.metrics import FULL_ENOUGH
from nbv_planner.plotting import style
from nbv_planner.plotting.episode_content import EpisodeContent


def draw_coverage(axes: Axes, content: EpisodeContent) -> None:
    """Draw the coverage as steps, and the line at which an object counts as reconstructed."""
    estimate, known = content.estimated_coverage, content.true_coverage
    style.style_axes(axes, "number of views", "coverage (%)" if estimate else "true coverage (%)")
    axes.set(xlim=(0.0, max(1.0, 1.02 * len(content.steps))), ylim=(0.0, 104.0), yticks=(0, 25, 50, 75, 100))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    if known is None and not estimate:
        style.note(axes, "no true object to compare with")
        return
    axes.axhline(100.0 * FULL_ENOUGH, color=style.TARGET, linewidth=1.0, linestyle="--", zorder=2, label="target")
    axes.annotate(
        f"{FULL_ENOUGH:.0%}", (0.0, 100.0 * FULL_ENOUGH), xytext=(4, -2), textcoords="offset points", va="top",
        fontsize=style.TICK_SIZE, color=style.TARGET,
    )
    if known is not None:
        _draw_steps(axes, [(0, 0.0), *enumerate(known, start=1)], "coverage", color=style.TRUTH)
    if estimate:
        _draw_steps(axes, estimate, "estimate", color=style.MEAN, linestyle="--")
        names = "dashed: the planner's estimate" if known is None else "solid: true, dashed: the planner's estimate"
        axes.set_title(names, loc="right", fontsize=style.TICK_SIZE, color=style.CAMERA, pad=4)


def _draw_steps(axes: Axes, points: Sequence[tuple[int, float]], label: str, **line: Any) -> None:
    """Draw numbers of views and coverage (a fraction) as steps, with a dot at the newest."""
    number, fraction = zip(*points, strict=True)
    percent = [100.0 * value for value in fraction]
    axes.step(number, percent, where="post", linewidth=1.6, zorder=3, label=label, **line)
    if number[-1] > 0:
        axes.plot(number[-1], percent[-1], color=style.LAST, marker="o", markersize=5, clip_on=False, zorder=4)
