"""Colours, fonts, axes and labels that all figures share, and figures as files."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import cKDTree

from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.report.colors import BAND, CAMERA, FAINT, HIT, LAST, MEAN, TARGET, TRUTH
from nbv_planner.report.page import Picture
from nbv_planner.world.pose import CameraPose, Poses

# the others are made here
__all__ = ["BAND", "CAMERA", "FAINT", "HIT", "LAST", "MEAN", "TARGET", "TRUTH"]
BAND_ALPHA = 0.3
TITLE_SIZE = 11.0
LABEL_SIZE = 9.0
TICK_SIZE = 8.0
Style = dict[str, Any]
"""Keyword arguments of a line."""
REGION_ALPHA = 0.45
REGION_LINE: Style = {"linewidth": 8.0, "zorder": 1.9}
TRUTH_LINE: Style = {"color": TRUTH, "linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 5}
MEAN_LINE: Style = {"color": MEAN, "linewidth": 1.3, "zorder": 4}
GUESSED_LINE: Style = {**MEAN_LINE, "linestyle": ":", "linewidth": 1.1}
# A little wider than the mean drawn above them: measurements without noise show at its edges.
HIT_DOTS: Style = {
    "color": HIT,
    "linestyle": "none",
    "marker": "o",
    "markersize": 1.4,
    "markeredgewidth": 0,
    "zorder": 3,
}
LAST_HIT_DOTS: Style = {**HIT_DOTS, "color": LAST, "markersize": 2.0, "zorder": 3.5}


def style_axes(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Label the axes, and set the sizes here so that a user's matplotlibrc does not change the
    picture.
    """
    axes.set_xlabel(xlabel, fontsize=LABEL_SIZE, labelpad=2)
    axes.set_ylabel(ylabel, fontsize=LABEL_SIZE)
    axes.tick_params(which="both", labelsize=TICK_SIZE)
    axes.grid(True, color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def style_angle_axis(axes: Axes) -> None:
    """Let x run over the circle once, with ticks at quarter turns."""
    axes.set_xlim(0.0, TWO_PI)
    axes.set_xticks(np.arange(5) * (np.pi / 2.0), labels=["0", "π/2", "π", "3π/2", "2π"])


def level_line(axes: Axes, level: float, label: str, color: str = TARGET) -> None:
    """Draw a dashed horizontal line behind the data."""
    axes.axhline(level, color=color, linewidth=1.0, linestyle="--", zorder=1.5, label=label)


def style_time_axis(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Label the axes and let times run logarithmically along x."""
    style_axes(axes, xlabel, ylabel)
    axes.set_xscale("log")
    set_log_ticks(axes.xaxis)


def set_log_ticks(axis: Axis, steps: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Label a logarithmic axis with plain numbers at `steps` of each decade."""
    axis.set_major_locator(LogLocator(base=10.0, subs=steps, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def note(axes: Axes, text: str) -> None:
    """Write in the middle of the axes why they are empty."""
    axes.grid(False)
    axes.text(
        0.5,
        0.5,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=LABEL_SIZE,
        color=CAMERA,
    )


# The GIF format has 256; the last one says "as in the frame before".
_COLORS = 255
# More of them than there are areas would leave the blends too few: with 128 they are off by a third
# more.
_EXACT = 64
# Image.Dither.NONE and Image.Quantize.MAXCOVERAGE, names that Pillow 9.0 (Ubuntu 22.04) does not
# have.
_NO_DITHER = 0
_MAX_COVERAGE = 1


def common_palette(samples: Iterable[Image.Image]) -> FloatArray:
    """Find colours for all frames from a few RGB `samples`, shape (K, 3), 0 to 255.

    A quarter are the most frequent ones as they are, so that faint areas keep their tints; the
    others cover the blends on the edges of lines and letters, which median cut would mix with the
    areas.
    """
    count: Counter[tuple[int, int, int]] = Counter()
    for sample in samples:
        count.update(
            {color: number for number, color in sample.getcolors(sample.width * sample.height)}
        )
    exact = np.array([color for color, _ in count.most_common(_EXACT)], dtype=float)
    blends = np.array(list(count), dtype=np.uint8)[np.newaxis]
    covering = Image.fromarray(blends).quantize(
        _COLORS - len(exact), method=_MAX_COVERAGE, dither=_NO_DITHER
    )
    return np.vstack([exact, np.reshape(covering.getpalette(), (-1, 3))])[:_COLORS]


def apply_palette(image: Image.Image, palette: FloatArray) -> Image.Image:
    """Replace each colour of an RGB image by the nearest one of the palette.

    Pillow's own mapping uses only the upper six bits, which turns white into grey.
    """
    packed = np.asarray(image).astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    colors, index = np.unique(packed, return_inverse=True)
    rgb = np.column_stack([colors >> 16, (colors >> 8) & 255, colors & 255])
    nearest: NDArray[np.uint8] = cKDTree(palette).query(rgb)[1].astype(np.uint8)
    indexed = Image.fromarray(nearest[index].reshape(packed.shape))
    indexed.putpalette(palette.astype(np.uint8).tobytes())
    return indexed


# Distance of the numbers from the views as a part of the view circle's radius; more along x, where
# they are wide.
_DISTANCE_X, _DISTANCE_Y = 0.09, 0.078
# Length along the circle of a number of two digits, as a part of the circle's radius.
_ROOM = 0.085


def label_views(axes: Axes, views: Sequence[CameraPose], size: float = 1.0, rows: int = 1) -> None:
    """Write the numbers of the views, from 1 in the order taken, behind each of them, in further
    `rows` those that have no room in the first; `size` is how much larger than in a picture of its
    own they are beside the view circle.
    """
    poses, left = Poses.of(views), np.arange(len(views))
    for row in range(1, rows + 1):
        shown = views_with_label(poses.chosen(left), size)
        for index, (x, y) in zip(left[shown], poses.position[left[shown]], strict=True):
            color, weight = (LAST, "bold") if index == len(views) - 1 else (CAMERA, "normal")
            axes.text(
                (1.0 + row * _DISTANCE_X * size) * x,
                (1.0 + row * _DISTANCE_Y * size) * y,
                str(index + 1),
                ha="center",
                va="center",
                fontsize=TICK_SIZE,
                color=color,
                fontweight=weight,
                zorder=8,
            )
        left = np.delete(left, shown)


def views_with_label(views: Poses, size: float = 1.0) -> list[int]:
    """Indices of the views that get a number: the last one, then in order of views those that have
    room.
    """
    chosen: list[int] = []
    x, y = views.position.T
    room = 2.0 * math.sin(0.5 * _ROOM * size) * views.distance.max(initial=0.0)
    for index in sorted(range(len(views)), key=lambda i: (i != len(views) - 1, i)):
        if (np.hypot(x[chosen] - x[index], y[chosen] - y[index]) >= room).all():
            chosen.append(index)
    return sorted(chosen)


# Okabe and Ito's palette without black, which the reference has, and yellow, which is too light on
# white.
_PLANNER_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_REFERENCE: Style = {"color": "#000000", "linestyle": (0, (4, 2)), "marker": "*"}


def planner_styles(labels: Sequence[str], reference: str | None) -> dict[str, Style]:
    """Line styles by label, in the order of `labels`; black dashes for the reference.

    Colours repeat after seven planners, with another dash, so that up to 28 all differ.
    """
    others = [label for label in labels if label != reference]
    styles = dict.fromkeys(labels, _REFERENCE)
    for index, label in enumerate(others):
        turn, color = divmod(index, len(_PLANNER_COLORS))
        styles[label] = {
            "color": _PLANNER_COLORS[color],
            "linestyle": _DASHES[turn % len(_DASHES)],
            "marker": _MARKERS[(color + turn) % len(_MARKERS)],
        }
    return styles


def curve(line: Style) -> Style:
    """Look of a whole curve in one of the :func:`planner_styles`: without its marker."""
    return {"color": line["color"], "linestyle": line["linestyle"], "linewidth": 1.4}


PNG_DPI = 150
# A fixed salt makes the ids in the file, and so the file, reproducible.
_SVG = {"svg.hashsalt": "nbv_planner", "svg.fonttype": "path"}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw by matplotlib's own settings inside the block, whatever a user's matplotlibrc says; the
    backend stays.
    """
    with matplotlib.style.context("default"):
        yield


def png_bytes(figure: Figure) -> bytes:
    """Return the figure as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=PNG_DPI)
    return file.getvalue()


def svg_bytes(figure: Figure) -> bytes:
    """Return the figure as SVG, without the date, reproducibly."""
    file = io.BytesIO()
    with matplotlib.rc_context(_SVG):
        figure.savefig(file, format="svg", metadata={"Date": None})
    numbers: dict[bytes, bytes] = {}
    # Ids of clips and markers are digests in which the last digits of the layout show.
    return re.sub(
        rb"\b[pm][0-9a-f]{10}\b",
        lambda found: numbers.setdefault(found[0], b"id%d" % len(numbers)),
        file.getvalue(),
    )


def picture(
    name: str, title: str, caption: str, figure: Figure, *, folded: bool = False
) -> Picture:
    """Write the figure in both formats."""
    return Picture(name, title, caption, png_bytes(figure), svg_bytes(figure), folded)


def file_name(text: str) -> str:
    """Make a part of a file name of any text."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")


# Columns of a legend below panels, and its height in inches: a line, and what is added to all.
_LEGEND_COLUMNS, _LEGEND_LINE, _LEGEND_MARGIN = 6, 0.18, 0.14


def panels(
    count: int,
    columns: int,
    *,
    width: float,
    height: float,
    share: bool = False,
    legend: Sequence[Artist] = (),
) -> tuple[Figure, list[Axes]]:
    """Make a figure of `count` panels in rows of `columns`, each `width` × `height` inches with its
    labels.

    Returns both; `share` gives all panels the same axes, the `legend` stands below them, if any.
    The figure has its own
    Agg canvas and is not known to pyplot: it can be made without a display and in any thread.
    """
    rows = math.ceil(count / columns)
    body = rows * height
    lines = math.ceil(len(legend) / _LEGEND_COLUMNS)
    foot = _LEGEND_MARGIN + _LEGEND_LINE * lines if legend else 0.0
    figure = Figure(figsize=(columns * width, body + foot), layout="constrained")
    FigureCanvasAgg(figure)
    # A separate part: before matplotlib 3.7 the layout reserves no room for a legend of the whole
    # figure.
    upper: Any = figure
    if legend:
        parts: Any = figure.subfigures(2, 1, height_ratios=(body, foot))
        upper, lower = parts
        lower.legend(
            handles=list(legend),
            loc="center",
            ncol=min(len(legend), _LEGEND_COLUMNS),
            fontsize=TICK_SIZE,
            frameon=False,
            handlelength=2.6,
        )
    axes = list(np.ravel(upper.subplots(rows, columns, sharex=share, sharey=share, squeeze=False)))
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def plain(text: str) -> str:
    """Text with escaped formula signs."""
    return text.replace("$", r"\$")


def panel_title(axes: Axes, text: str) -> None:
    """Put a title over the left end of a panel."""
    axes.set_title(plain(text), loc="left", fontsize=LABEL_SIZE, pad=4)
