"""Maps of objects with the views that a planner chose, and objectives over the candidate views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from nbv_planner.geometry import TWO_PI, FloatArray, polar_to_cartesian
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import panel_title, panels, plain
from nbv_planner.report.tables import Landscape

_COLUMNS = 5
_SIZE = 2.3
_CAMERA_SIZE = 3.2
_LIMIT = 1.64
_TITLE_ROOM = 0.42
"""Half of a map's side, and the room for the title above; these and the following as parts of the
view circle.
"""
_HALF_DIGIT = 0.066
_HALF_HEIGHT = 0.088
"""Half of the room that a digit takes, with its margin."""
_GAP = 0.05
_STEP = 0.06
"""Least distance of a number from the circle, and by how much it moves outwards until it is
free.
"""


@dataclass(frozen=True, eq=False)
class ViewMap:
    """An object and the views taken of it."""

    title: str  #: what stands above the map.
    #: closed lines of the true outlines, shape (2, n) each, metres; none if the object cannot be
    #: read any more.
    outlines: Sequence[FloatArray]
    views: Sequence[float]  #: view angles in the order taken, radians.
    view_distance: float  #: radius of the view circle, metres.
    #: of the views from the centre, metres; empty if all are on the circle.
    distances: Sequence[float] = ()

    @property
    def radius(self) -> float:
        """Radius of the circle outside of which the numbers stand, metres."""
        return max([self.view_distance, *self.distances])


def draw_view_maps(maps: Sequence[ViewMap]) -> Figure:
    """Draw the maps in rows of five, all on the same scale; at least one."""
    columns = min(_COLUMNS, len(maps))
    height = _SIZE * (1.0 + 0.5 * _TITLE_ROOM / _LIMIT)
    figure, axes = panels(len(maps), columns, width=_SIZE, height=height)
    largest = max(content.radius for content in maps)
    for panel, content in zip(axes, maps, strict=True):
        _draw_map(panel, content, largest)
    return figure


def _draw_map(axes: Axes, content: ViewMap, largest: float) -> None:
    limit = _LIMIT * largest
    top = limit + _TITLE_ROOM * largest
    axes.set(xlim=(-limit, limit), ylim=(-limit, top), aspect="equal", xticks=(), yticks=())
    axes.set_frame_on(False)
    axes.text(0.0, top, plain(content.title), ha="center", va="top", fontsize=style.TICK_SIZE)
    axes.add_patch(
        Circle(
            (0, 0), content.view_distance, fill=False, color=style.FAINT, linewidth=0.8, zorder=1
        )
    )
    for line in content.outlines:
        axes.fill(
            *line,
            facecolor="#EEF4F8",
            edgecolor=style.TRUTH,
            linewidth=0.9,
            zorder=2,
            label="true contour",
        )
    numbers = number_places(content.views)
    distances = content.distances or [content.view_distance] * len(content.views)
    # A dot for each view and, where that has a place, its number outside; the first view is
    # emphasised.
    for number, (angle, distance, place) in enumerate(
        zip(content.views, distances, numbers, strict=True), start=1
    ):
        color, weight = (style.LAST, "bold") if number == 1 else (style.MEAN, "normal")
        axes.plot(
            *polar_to_cartesian([angle], distance),
            color=color,
            marker="o",
            markersize=_CAMERA_SIZE,
            markeredgewidth=0,
            linestyle="none",
            zorder=4,
            label=f"view {number}",
        )
        if place is not None:
            axes.text(
                place[0] * content.radius,
                place[1] * content.radius,
                str(number),
                ha="center",
                va="center",
                fontsize=style.TICK_SIZE,
                color=color,
                fontweight=weight,
                zorder=5,
            )


def number_places(angles: Sequence[float]) -> list[tuple[float, float] | None]:
    """Centres of the numbers of views around a unit circle: just outside, or further out where they
    would overlap.

    None for a number for which the map has no room.
    """
    taken: list[tuple[FloatArray, FloatArray]] = []  # centres and half sizes, x and y each
    places: list[tuple[float, float] | None] = []
    for number, angle in enumerate(angles, start=1):
        half = np.array([_HALF_DIGIT * len(str(number)), _HALF_HEIGHT])
        free = (
            centre
            for centre in _centres(angle, half)
            if all((np.abs(centre - other) >= half + room).any() for other, room in taken)
        )
        place = next(free, None)
        places.append(None if place is None else (float(place[0]), float(place[1])))
        taken += [] if place is None else [(place, half)]
    return places


def _centres(angle: float, half: FloatArray) -> FloatArray:
    """Centres, shape (N, 2), of a number of `half` this size, shape (2,), outwards along the ray at
    `angle`.
    """
    ray = np.array([math.cos(angle), math.sin(angle)])
    away = 1.0 + _GAP + half @ np.abs(ray) + _STEP * np.arange(int(_LIMIT / _STEP))
    centres = away[:, np.newaxis] * ray
    return np.asarray(centres[(np.abs(centres) + half <= _LIMIT).all(axis=1)])


_TOP = 1.42
_GAIN_COLOR = "#CFCFCF"
_CHOICE: style.Style = {
    "color": style.LAST,
    "marker": "v",
    "markersize": 6.0,
    "markeredgewidth": 0,
    "linestyle": "none",
}


def draw_landscapes(rows: Sequence[Sequence[Landscape]]) -> Figure:
    """Draw the landscapes, from 0 (or a least value below it) to 1, over the true gain, scaled
    alike.

    The `rows` hold for each decision the landscapes of the objectives, in the same order
    everywhere.
    """
    decisions = len(rows)
    objectives = len(rows[0])
    height = 1.25 + 0.6 / objectives
    figure, axes = panels(
        objectives * decisions, decisions, width=3.5, height=height, share=True, legend=_legend()
    )
    for place, panel in enumerate(axes):
        row, column = divmod(place, decisions)
        _draw_landscape(
            panel, rows[column][row], top=row == 0, left=column == 0, bottom=row == objectives - 1
        )
    return figure


def _draw_landscape(axes: Axes, content: Landscape, *, top: bool, left: bool, bottom: bool) -> None:
    style.style_axes(
        axes, "view angle θ (rad)" if bottom else "", content.objective if left else ""
    )
    style.style_angle_axis(axes)
    axes.set(ylim=(0.0, _TOP), yticks=(0.0, 0.5, 1.0))
    axes.tick_params(labelbottom=bottom, labelleft=left)
    order = np.argsort(content.angle, kind="stable")
    angle = content.angle[order]
    value = _scaled(content.value)[order]
    gain = _scaled(content.gain)[order]
    axes.fill_between(
        *_closed(angle, gain), color=_GAIN_COLOR, linewidth=0, zorder=1, label="true gain"
    )
    axes.plot(*_closed(angle, value), color=style.MEAN, linewidth=1.3, zorder=3, label="objective")
    choice = content.choice
    axes.plot(
        [content.angle[choice] % TWO_PI],
        [_scaled(content.value)[choice]],
        **_CHOICE,
        zorder=4,
        clip_on=False,
        label="its choice",
    )
    axes.text(
        0.5,
        0.975,
        f"brings {content.gain[choice]:.0f} of at most {content.gain.max():.0f} new points",
        transform=axes.transAxes,
        ha="center",
        va="top",
        fontsize=style.TICK_SIZE,
        color=style.CAMERA,
    )
    if top:
        panel_title(axes, f"view {content.decision}")


def _scaled(values: FloatArray) -> FloatArray:
    """Values with a greatest one of 1, from 0 or from the least if that is below 0; all 0 if they
    are the same.
    """
    least = min(float(values.min()), 0.0)
    span = float(values.max()) - least
    return (values - least) / span if span > 0.0 else np.zeros_like(values)


def _closed(angle: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Close the circle with the first candidate."""
    return np.append(angle, angle[0] + TWO_PI), np.append(value, value[0])


def _legend() -> list[Artist]:
    return [
        Line2D([], [], color=style.MEAN, linewidth=1.3, label="objective, scaled to 1"),
        Patch(facecolor=_GAIN_COLOR, label="true gain (new surface points), scaled to 1"),
        Line2D([], [], **_CHOICE, label="candidate it prefers"),
    ]
