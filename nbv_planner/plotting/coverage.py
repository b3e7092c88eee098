"""True coverage over the number of views."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from nbv_planner.evaluation.metrics import FULL_ENOUGH
from nbv_planner.plotting import style
from nbv_planner.plotting.episode_content import EpisodeContent


def draw_coverage(axes: Axes, content: EpisodeContent) -> None:
    """Draw the coverage as steps, and the line at which an object counts as reconstructed."""
    style.style_axes(axes, "number of views", "true coverage (%)")
    axes.set(xlim=(0.0, max(1.0, 1.02 * len(content.steps))), ylim=(0.0, 104.0), yticks=(0, 25, 50, 75, 100))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    if content.steps and not content.views:
        style.note(axes, "no true object to compare with")
        return
    axes.axhline(100.0 * FULL_ENOUGH, color=style.TARGET, linewidth=1.0, linestyle="--", zorder=2, label="target")
    axes.annotate(
        f"{FULL_ENOUGH:.0%}", (0.0, 100.0 * FULL_ENOUGH), xytext=(4, -2), textcoords="offset points", va="top",
        fontsize=style.TICK_SIZE, color=style.TARGET,
    )
    shown = content.views[: content.shown]
    percent = [0.0, *(100.0 * view.coverage for view in shown)]
    axes.step(range(len(percent)), percent, where="post", color=style.TRUTH, linewidth=1.6, zorder=3, label="coverage")
    if shown:
        axes.plot(len(shown), percent[-1], color=style.LAST, marker="o", markersize=5, clip_on=False, zorder=4)
