"""Pictures of an episode in space, by the own ray caster: the mean surface by what was seen, two
samples, and what views would add.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbv_planner.episode.solid.solid_episode import SolidEpisode
from nbv_planner.episode.solid.solid_results import mean_surface
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.planners import Decision
from nbv_planner.planning.view_space.viewpoints import looking
from nbv_planner.report.colors import rgb
from nbv_planner.report.figures.style import LAST, MEAN, TITLE_SIZE, style_axes
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.volume.bodies.casting import cast
from nbv_planner.volume.bodies.mesh import Mesh, level_set
from nbv_planner.volume.volume_surface import VolumeSurface

# Pixels along a side, half the opening angle, and from where the light comes.
_SIDE, _HALF, _LIGHT = 220, 0.42, np.array([0.3, -0.5, 0.8]) / math.sqrt(0.98)
_SEEN, _UNSEEN, _AMBIENT = rgb(MEAN), (0.75, 0.75, 0.75), 0.35
# From where the pictures are taken: azimuth and elevation, radians.
_FROM = ((-0.9, 0.5), (2.2, 0.5), (-0.9, -0.6))


def rendered(
    mesh: Mesh, surface: VolumeSurface, tau: float, azimuth: float, elevation: float
) -> FloatArray:
    """A picture of a mesh, coloured where it lies within `tau` (metres) of a hit and grey
    elsewhere: red, green and blue from 0 to 1, shape (H, W, 3).
    """
    away = 3.0 * surface.form.radius
    towards = np.array([math.cos(azimuth), math.sin(azimuth), 0.0]) * math.cos(elevation)
    towards[2] = math.sin(elevation)
    pose = looking(away * towards[None], np.zeros(3))
    axis = np.linspace(-math.tan(_HALF), math.tan(_HALF), _SIDE)
    up, left = np.meshgrid(-axis, -axis, indexing="ij")
    beams = np.stack([np.ones_like(up), left, up], axis=-1).reshape(-1, 3)
    beams = beams / np.linalg.norm(beams, axis=1)[:, None] @ pose.rotation[0].T
    distance, face = cast(mesh, pose.position[0], beams)
    met = np.flatnonzero(face >= 0)
    picture = np.ones((len(beams), 3))
    near = surface.cells.near(pose.position[0] + distance[met, None] * beams[met], tau)
    light = np.abs(mesh.normals[face[met]] @ _LIGHT)
    color = np.where(near[:, None], _SEEN, _UNSEEN)
    picture[met] = color * (_AMBIENT + (1.0 - _AMBIENT) * light)[:, None]
    return picture.reshape(_SIDE, _SIDE, 3)


def sampled(surface: VolumeSurface, seed: int) -> list[Mesh]:
    """Two objects that there may be."""
    lattice = surface.form.lattice
    return [
        level_set(0.5 - solid.reshape(lattice.shape), lattice.centres[0], lattice.cell)
        for solid in surface.solids(2, seed)
    ]


def draw_solid(episode: SolidEpisode) -> Figure:
    """The mean surface from three sides, two samples, and what the newest decision expected of each
    candidate over azimuth and elevation.
    """
    surface, tau = episode.surface, CoverageTarget.of(episode.config.planner).tau
    figure = Figure(figsize=(10.5, 7.0), layout="constrained")
    cells = figure.subplots(2, 3)
    mean = mean_surface(surface)
    for axes, (azimuth, elevation) in zip(cells[0], _FROM, strict=True):
        title = f"mean from {math.degrees(azimuth):.0f}°, {math.degrees(elevation):.0f}° above"
        _show(axes, rendered(mean, surface, tau, azimuth, elevation), title)
    for number, (axes, mesh) in enumerate(zip(cells[1], sampled(surface, 0), strict=False), 1):
        _show(axes, rendered(mesh, surface, tau, *_FROM[0]), f"sample {number}")
    _gains(cells[1, 2], episode, episode.decision)
    last = episode.views[-1]
    figure.suptitle(
        f"{episode.config.object}: {last.number} views, {last.completeness:.1%} of the surface"
        f" within {tau:.3g} m of a measurement (blue)",
        fontsize=TITLE_SIZE,
    )
    return figure


def _show(axes: Axes, picture: FloatArray, title: str) -> None:
    axes.imshow(picture)
    axes.set_title(title, fontsize=TITLE_SIZE)
    axes.set_axis_off()


def _gains(axes: Axes, episode: SolidEpisode, decision: Decision | None) -> None:
    """What the last view was chosen from, and all views taken."""
    style_axes(axes, "azimuth (°)", "elevation (°)")
    axes.set_title("gain expected by the last decision", fontsize=TITLE_SIZE)
    if decision is not None:
        azimuth, elevation = _angles(decision.candidates.position)
        shown = axes.scatter(azimuth, elevation, c=decision.utilities, s=14, cmap="cividis")
        axes.figure.colorbar(shown, ax=axes, label="faces of cells")
    taken = np.array([(view.pose.x, view.pose.y, view.pose.height) for view in episode.views])
    axes.plot(*_angles(taken), "o", color=LAST, markersize=7, markerfacecolor="none")
    axes.set_xlim(-180.0, 180.0)
    axes.set_ylim(-95.0, 95.0)


def _angles(position: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Azimuth and elevation of places, shape (n, 3), degrees."""
    x, y, z = position.T
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
