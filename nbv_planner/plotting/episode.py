"""Pictures of an episode: one figure, or an animation view by view."""

from __future__ import annotations

import os
from collections.abc import Sequence

from matplotlib.figure import Figure

from nbv_planner.evaluation.records import Step, ViewRecord
from nbv_planner.objects import PolarObject
from nbv_planner.plotting.animation import save_animation
from nbv_planner.plotting.episode_content import EpisodeContent
from nbv_planner.plotting.figure import draw_figure
from nbv_planner.scene import Scene

_DPI = 150


def plot_episode(
    steps: Sequence[Step], views: Sequence[ViewRecord], shape: PolarObject | None, scene: Scene, title: str
) -> Figure:
    """Draw a whole episode: world view, polar view, objective over the view angle, coverage.

    Args:
        steps: the views as they were taken; may be empty.
        views: the same views judged against the true object; empty if that is not known.
        shape: the true object, None if it is not known.
        scene: bounds, view circle and cone.
        title: what stands above the picture.

    Returns:
        A figure that is not known to pyplot.
    """
    return draw_figure(EpisodeContent(steps, views, shape, scene, title, shown=len(steps)))


def save_picture(path: str | os.PathLike[str], figure: Figure) -> None:
    """Write the figure to `path` as PNG.

    Raises:
        OSError: the file cannot be written.
    """
    figure.savefig(path, format="png", dpi=_DPI)


__all__ = ["plot_episode", "save_animation", "save_picture"]
