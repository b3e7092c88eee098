"""Maps of objects with the views that a planner chose, and objectives over the candidate views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from nbv_planner.episode.records import ViewColumn
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import panel_title, panels, plain
from nbv_planner.report.tables import Landscape
from nbv_planner.world.pose import Poses

_COLUMNS = 5
_SIZE = 2.3
_LIMIT = 1.64
_TITLE_ROOM = 0.42
"""Half of a map's side, and the room for the title above, as parts of the largest distance."""
_NUMBERS = 2.8
"""Size of the numbers, see :func:`style.label_views`."""


@dataclass(frozen=True, eq=False)
class ViewMap:
    """An object and the views taken of it."""

    title: str  #: what stands above the map.
    #: closed lines of the true outlines, shape (2, n) each, metres; none if the object cannot be
    #: read any more.
    outlines: Sequence[FloatArray]
    views: Poses  #: in the order taken.
    view_distance: float  #: radius of the view circle, metres.


def recorded_poses(views: Sequence[Mapping[str, Any]]) -> Poses:
    """Poses of views as they are in the record of an episode."""
    columns = ViewColumn.angle, ViewColumn.distance, ViewColumn.turn
    angle, distance, turn = (np.array(one.each(views), dtype=float) for one in columns)
    return Poses.from_polar(angle, distance, turn)


def draw_view_maps(maps: Sequence[ViewMap]) -> Figure:
    """Draw the maps in rows of five, all on the same scale; at least one."""
    columns = min(_COLUMNS, len(maps))
    height = _SIZE * (1.0 + 0.5 * _TITLE_ROOM / _LIMIT)
    figure, axes = panels(len(maps), columns, width=_SIZE, height=height)
    largest = max(float(one.views.distance.max(initial=one.view_distance)) for one in maps)
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
        Circle((0, 0), content.view_distance, fill=False, color=style.FAINT, linewidth=0.8)
    )
    for line in content.outlines:
        axes.fill(
            *line,
            facecolor="#EEF4F8",
            edgecolor=style.TRUTH,
            linewidth=0.9,
            label="true contour",
        )
    axes.plot(
        *content.views.position.T,
        color=style.CAMERA,
        marker="o",
        markersize=3.2,
        linestyle="none",
        label="views",
    )
    style.label_views(axes, [*content.views], _NUMBERS, 2)


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
    legend: list[Artist] = [
        Line2D([], [], color=style.MEAN, linewidth=1.3, label="objective, scaled to 1"),
        Patch(facecolor=_GAIN_COLOR, label="true gain (new surface points), scaled to 1"),
        Line2D([], [], **_CHOICE, label="candidate it prefers"),
    ]
    height = 1.25 + 0.6 / objectives
    figure, axes = panels(
        objectives * decisions, decisions, width=3.5, height=height, share=True, legend=legend
    )
    for place, panel in enumerate(axes):
        row, column = divmod(place, decisions)
        content = rows[column][row]
        bottom = row == objectives - 1
        style.style_axes(
            panel,
            "view angle θ (rad)" if bottom else "",
            content.objective if column == 0 else "",
        )
        style.style_angle_axis(panel)
        panel.set(ylim=(0.0, _TOP), yticks=(0.0, 0.5, 1.0))
        panel.tick_params(labelbottom=bottom, labelleft=column == 0)
        panel_title(panel, f"view {content.decision}" if row == 0 else "")
        _draw_landscape(panel, content)
    return figure


def _draw_landscape(axes: Axes, content: Landscape) -> None:
    order = np.argsort(content.angle, kind="stable")
    closed = np.append(order, order[0])
    angle = content.angle[closed] + np.append(np.zeros(len(order)), TWO_PI)
    value, gain = _scaled(content.value), _scaled(content.gain)
    axes.fill_between(
        angle, gain[closed], color=_GAIN_COLOR, linewidth=0, zorder=1, label="true gain"
    )
    axes.plot(angle, value[closed], color=style.MEAN, linewidth=1.3, zorder=3, label="objective")
    choice = content.choice
    axes.plot(
        [content.angle[choice] % TWO_PI],
        [value[choice]],
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


def _scaled(values: FloatArray) -> FloatArray:
    """Values with a greatest one of 1, from 0 or from the least if that is below 0; all 0 if they
    are the same.
    """
    least = min(float(values.min()), 0.0)
    span = float(values.max()) - least
    return (values - least) / span if span > 0.0 else np.zeros_like(values)
