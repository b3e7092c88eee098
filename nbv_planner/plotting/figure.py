"""Lays out the panels of an episode in one figure."""

from __future__ import annotations

import textwrap

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from nbv_planner.plotting import style
from nbv_planner.plotting.coverage import draw_coverage
from nbv_planner.plotting.episode_content import EpisodeContent
from nbv_planner.plotting.objective import draw_objective
from nbv_planner.plotting.polar import draw_polar
from nbv_planner.plotting.world import draw_world

SIZE = (12.0, 7.2)
"""Width and height of the figure, inches."""

_TITLE_WIDTH = 140
_YLABEL_X = -0.13  # the same for all panels, so that their labels line up


def draw_figure(content: EpisodeContent) -> Figure:
    """Draw the episode up to the view `content.shown`.

    The figure has its own Agg canvas and is not known to pyplot: it can be made without a display and in any thread.
    """
    figure = Figure(figsize=SIZE)
    FigureCanvasAgg(figure)
    draw_panels(figure, content)
    return figure


def draw_panels(figure: Figure, content: EpisodeContent) -> None:
    """Draw all panels into an empty figure; the first of its axes is the world view."""
    # Fixed places instead of a layout engine: quicker, and the frames of an animation do not jump.
    world = figure.add_axes((0.05, 0.135, 0.50, 0.785))
    draw_world(world, content)
    right = figure.add_gridspec(3, 1, left=0.632, right=0.985, bottom=0.065, top=0.905, hspace=0.42,
                                height_ratios=(1.35, 1.0, 0.75))
    for row, draw in enumerate((draw_polar, draw_objective, draw_coverage)):
        axes = figure.add_subplot(right[row])
        draw(axes, content)
        axes.yaxis.set_label_coords(_YLABEL_X, 0.5)
    title = textwrap.fill(content.title, _TITLE_WIDTH, max_lines=2, placeholder=" …").replace("$", r"\$")
    figure.suptitle(title, x=0.012, y=0.985, ha="left", va="top", fontsize=style.TITLE_SIZE)
    _draw_legend(figure, content)


def _draw_legend(figure: Figure, content: EpisodeContent) -> None:
    """Put one legend for all panels below the world view, where no data lies."""
    dots: style.Style = {"markersize": 4.0}
    cameras: style.Style = {"linestyle": "none", "marker": "v", "markeredgewidth": 0}
    handles = [
        Line2D([], [], **style.TRUTH_LINE, label="true contour"),
        Line2D([], [], **style.MEAN_LINE, label="posterior mean"),
        Patch(facecolor=style.BAND, alpha=style.BAND_ALPHA, label="confidence band"),
        Line2D([], [], **{**style.HIT_DOTS, **dots}, label="hits"),
        Line2D([], [], **{**style.LAST_HIT_DOTS, **dots}, label="hits of last view"),
        Line2D([], [], **cameras, color=style.CAMERA, markersize=6, label="views, numbered"),
        Line2D([], [], **cameras, color=style.LAST, markersize=7, label="last view, its cone"),
        Line2D([], [], color=style.FAINT, linewidth=0.8, linestyle=":", label="bounds of the radius"),
    ]
    if content.shape is None:
        handles = handles[1:]
    figure.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.30, 0.0), ncol=4, fontsize=style.TICK_SIZE,
        frameon=False, columnspacing=1.6, handlelength=1.8,
    )
