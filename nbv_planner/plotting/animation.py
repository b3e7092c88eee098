"""The course of an episode as an animated GIF, one frame per view."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from nbv_planner.evaluation.records import Step, ViewRecord
from nbv_planner.objects import PolarObject
from nbv_planner.plotting.episode_content import EpisodeContent
from nbv_planner.plotting.figure import draw_figure
from nbv_planner.plotting.palette import apply_palette, common_palette
from nbv_planner.scene import Scene

_DPI = 100
_FRAME_MILLISECONDS = 770
_LAST_FRAME_MILLISECONDS = 4000


def save_animation(
    path: str | os.PathLike[str],
    steps: Sequence[Step],
    views: Sequence[ViewRecord],
    shape: PolarObject | None,
    scene: Scene,
    title: str,
) -> None:
    """Write an animated GIF to `path`: a frame per view, or a single one if there is no view.

    The arguments are those of :func:`nbv_planner.plotting.episode.plot_episode`.

    Raises:
        OSError: the file cannot be written.
    """

    def frame(shown: int) -> Image.Image:
        return _rendered(draw_figure(EpisodeContent(steps, views, shape, scene, title, shown)))

    numbers = range(1, len(steps) + 1) if steps else range(1)
    samples = {number: frame(number) for number in {numbers[0], numbers[len(numbers) // 2], numbers[-1]}}
    # One palette for all frames keeps colours steady, and keeps out of the file what did not change.
    palette = common_palette(samples.values())
    first, *others = (apply_palette(samples.get(number) or frame(number), palette) for number in numbers)
    first.save(
        path, format="GIF", save_all=True, append_images=others, loop=0,
        duration=[_FRAME_MILLISECONDS] * len(others) + [_LAST_FRAME_MILLISECONDS],
    )


def _rendered(figure: Figure) -> Image.Image:
    """Draw the figure into an image."""
    figure.set_dpi(_DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
