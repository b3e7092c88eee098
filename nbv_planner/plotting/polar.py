"""Polar view: radius over polar angle."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from nbv_planner.geometry import wrap_angle
from nbv_planner.outlines import close_belief
from nbv_planner.plotting import style
from nbv_planner.plotting.episode_content import EpisodeContent, true_contour


def draw_polar(axes: Axes, content: EpisodeContent) -> None:
    """Draw true contour, mean, band and hits over the polar angle, and the view angles along the top."""
    style.style_axes(axes, "polar angle φ (rad)", "radius (m)")
    style.style_angle_axis(axes)
    axes.set_ylim(*_radius_limits(content))
    for bound in (content.scene.radius_min, content.scene.radius_max):
        axes.axhline(bound, color=style.FAINT, linewidth=0.8, linestyle=":", zorder=1)
    if content.shape is not None:
        axes.plot(*true_contour(content.shape), **style.TRUTH_LINE, label="true contour")
    if content.belief is not None:
        curve = close_belief(content.belief)
        axes.fill_between(
            curve.angle, curve.lower, curve.upper, color=style.BAND, alpha=style.BAND_ALPHA, linewidth=0, zorder=2,
            label="confidence band",
        )
        axes.plot(curve.angle, curve.mean, **style.MEAN_LINE, label="mean")
    axes.plot(content.earlier_hits.angle, content.earlier_hits.radius, **style.HIT_DOTS, label="hits")
    axes.plot(content.last_hits.angle, content.last_hits.radius, **style.LAST_HIT_DOTS, label="hits of the last view")
    _mark_views(axes, content)


def _radius_limits(content: EpisodeContent) -> tuple[float, float]:
    """Room for the bounds and for the band after every view, so that the frames of an animation agree."""
    low = min([content.scene.radius_min, *(float(step.belief.lower.min()) for step in content.steps)])
    high = max([content.scene.radius_max, *(float(step.belief.upper.max()) for step in content.steps)])
    margin = 0.06 * (high - low)
    return max(0.0, low - margin), high + margin


def _mark_views(axes: Axes, content: EpisodeContent) -> None:
    """Put a triangle per view on the upper edge, pointing down, the last one emphasised."""
    angle = wrap_angle(np.array([step.view_angle for step in content.shown_steps]))
    for part, color, size, label in (
        (angle[:-1], style.CAMERA, 5.0, "earlier views"),
        (angle[-1:], style.LAST, 7.0, "last view"),
    ):
        axes.plot(
            part, np.full(len(part), 1.03), color=color, linestyle="none", marker="v", markersize=size,
            markeredgewidth=0, transform=axes.get_xaxis_transform(), clip_on=False, zorder=6, label=label,
        )
