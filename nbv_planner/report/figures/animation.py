"""The figures of an episode one after the other, as an animation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from nbv_planner.report.figures.episode_figure import draw_figure
from nbv_planner.report.figures.style import apply_palette, common_palette

_GIF_DPI = 100
_FRAME_MILLISECONDS = 770
_LAST_FRAME_MILLISECONDS = 4000


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """A figure as red, green and blue, shape (height, width, 3)."""
    figure.set_dpi(_GIF_DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]


def save_animation(
    path: str | os.PathLike[str] | BinaryIO,
    frames: Sequence[Any],
    draw: Callable[[Any], Figure] = draw_figure,
) -> None:
    """Write an animated GIF of :func:`episode_frames` to `path`, or into a file that is open; or of
    other frames, each of which `draw` gives.

    Raises:
        OSError: the file cannot be written.
    """

    def frame(number: int) -> Image.Image:
        return Image.fromarray(pixels(draw(frames[number])))

    samples = {number: frame(number) for number in {0, len(frames) // 2, len(frames) - 1}}
    # One palette for all frames keeps colours constant, and unchanged areas out of the file.
    palette = common_palette(samples.values())
    first, *others = (
        apply_palette(samples.get(number) or frame(number), palette)
        for number in range(len(frames))
    )
    first.save(
        path,
        format="GIF",
        save_all=True,
        append_images=others,
        loop=0,
        duration=[_FRAME_MILLISECONDS] * len(others) + [_LAST_FRAME_MILLISECONDS],
    )
