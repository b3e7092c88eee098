"""Numbers of the views beside the view circle, thinned out where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from nbv_planner.geometry import angle_difference, polar_to_cartesian
from nbv_planner.plotting import style

# Distance of the numbers from the centre as a part of the view circle's radius; more along x, where they are wide.
_DISTANCE_X, _DISTANCE_Y = 1.09, 1.078
# Room along the circle that a number of two figures takes, as a part of the circle's radius.
_ROOM = 0.085


def label_views(axes: Axes, angles: Sequence[float], radius: float) -> None:
    """Write the numbers of the views, from 1 in the order taken, outside of the view circle of `radius` metres."""
    last = len(angles) - 1
    for index in views_with_label(angles):
        x, y = polar_to_cartesian(angles[index], radius)
        color, weight = (style.LAST, "bold") if index == last else (style.CAMERA, "normal")
        axes.text(
            _DISTANCE_X * float(x), _DISTANCE_Y * float(y), str(index + 1), ha="center", va="center",
            fontsize=style.TICK_SIZE, color=color, fontweight=weight, zorder=8,
        )


def views_with_label(angles: Sequence[float]) -> list[int]:
    """Indices of the views that get a number: the last one, then in order of views those that have room."""
    chosen: list[int] = []
    for index in sorted(range(len(angles)), key=lambda i: (i != len(angles) - 1, i)):
        if all(abs(angle_difference(angles[index], angles[other])) >= _ROOM for other in chosen):
            chosen.append(index)
    return sorted(chosen)
