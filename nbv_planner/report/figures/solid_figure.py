"""Pictures of an episode in space, by the own ray caster: the mean surface by what was seen, two
samples, and what views would add.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbv_planner.episode.solid.solid_episode import SolidRecord
from nbv_planner.episode.solid.solid_picture import rendered
from nbv_planner.episode.solid.solid_results import mean_surface
from nbv_planner.geometry import FloatArray
from nbv_planner.report.figures.style import FAINT, LAST, MEAN, TITLE_SIZE, TRUTH, style_axes
from nbv_planner.volume.bodies.mesh import Mesh, level_set
from nbv_planner.volume.volume_surface import VolumeSurface

# From where the pictures are taken: azimuth and elevation, radians.
_FROM = ((-0.9, 0.5), (2.2, 0.5), (-0.9, -0.6))


def sampled(surface: VolumeSurface, seed: int) -> list[Mesh]:
    """Two objects that there may be."""
    lattice = surface.form.lattice
    return [
        level_set(0.5 - solid.reshape(lattice.shape), lattice.centres[0], lattice.cell)
        for solid in surface.solids(2, seed)
    ]


def draw_solid(judge: SolidRecord) -> Figure:
    """The mean surface from three sides, two samples, and what the newest decision expected of each
    candidate over azimuth and elevation.
    """
    surface = judge.surfaces[-1]
    figure = Figure(figsize=(10.5, 7.0), layout="constrained")
    cells = figure.subplots(2, 3)
    mean = mean_surface(surface)
    for axes, (azimuth, elevation) in zip(cells[0], _FROM, strict=True):
        title = f"mean from {math.degrees(azimuth):.0f}°, {math.degrees(elevation):.0f}° above"
        _show(axes, rendered(mean, surface, judge.tau, azimuth, elevation, judge.regions), title)
    for number, (axes, mesh) in enumerate(zip(cells[1], sampled(surface, 0), strict=False), 1):
        _show(
            axes, rendered(mesh, surface, judge.tau, *_FROM[0], judge.regions), f"sample {number}"
        )
    _gains(cells[1, 2], judge)
    figure.suptitle(_title(judge, len(judge.views)), fontsize=TITLE_SIZE)
    return figure


def draw_progress(judge: SolidRecord, number: int) -> Figure:
    """The mean surface after so many views from two sides, and how complete it was: a frame."""
    surface = judge.surfaces[number - 1]
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    *sides, chart = figure.subplots(1, 3)
    mean = mean_surface(surface)
    for axes, (azimuth, elevation) in zip(sides, _FROM, strict=False):
        title = f"mean from {math.degrees(azimuth):.0f}°, {math.degrees(elevation):.0f}° above"
        _show(axes, rendered(mean, surface, judge.tau, azimuth, elevation, judge.regions), title)
    style_axes(chart, "views", "surface measured (%)")
    taken = judge.views[:number]
    counts = [view.number for view in taken]
    true = [100.0 * view.reached for view in taken]
    if math.isfinite(true[-1]):
        chart.plot(counts, true, "o-", color=TRUTH, markersize=4, label="true")
    if taken[0].estimate is not None:
        expected = [100.0 * view.estimate.mean for view in taken if view.estimate]
        chart.plot(counts, expected, "o--", color=MEAN, markersize=4, label="expected")
    chart.axhline(95.0, color=FAINT, linewidth=0.8)
    chart.set_xlim(0.5, len(judge.views) + 0.5)
    chart.set_ylim(0.0, 102.0)
    chart.legend(loc="lower right")
    figure.suptitle(_title(judge, number), fontsize=TITLE_SIZE)
    return figure


def _title(judge: SolidRecord, number: int) -> str:
    part = judge.views[number - 1].reached
    known = f"{part:.1%} of the surface" if math.isfinite(part) else "the surface"
    where = f"{known} within {judge.tau:.3g} m of a measurement (blue)"
    return f"{judge.config.object}: {number} views, {where}"


def _show(axes: Axes, picture: FloatArray, title: str) -> None:
    axes.imshow(picture)
    axes.set_title(title, fontsize=TITLE_SIZE)
    axes.set_axis_off()


def _gains(axes: Axes, judge: SolidRecord) -> None:
    """What the last view was chosen from, and all views taken."""
    style_axes(axes, "azimuth (°)", "elevation (°)")
    axes.set_title("gain expected by the last decision", fontsize=TITLE_SIZE)
    position, utilities = judge.gains
    if len(position):
        shown = axes.scatter(*_angles(position), c=utilities, s=14, cmap="cividis")
        axes.figure.colorbar(shown, ax=axes, label="faces of cells")
    taken = np.array([(view.pose.x, view.pose.y, view.pose.height) for view in judge.views])
    axes.plot(*_angles(taken), "o", color=LAST, markersize=7, markerfacecolor="none")
    axes.set_xlim(-180.0, 180.0)
    axes.set_ylim(-95.0, 95.0)


def _angles(position: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Azimuth and elevation of places, shape (n, 3), degrees."""
    x, y, z = position.T
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
