"""World view: contours, band, hits, cameras and cones in the plane."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path

from nbv_planner.camera import CameraPose
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.outlines import camera_outline, close_belief, cone_outline
from nbv_planner.plotting import style
from nbv_planner.plotting.episode_content import EpisodeContent, true_contour
from nbv_planner.plotting.view_labels import label_views
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements, SurfaceBelief

_LIMIT = 1.15
# Cones overlap at the object: together they may take only so much ink.
_CONE_ALPHA, _CONE_ALPHA_SUM = 0.06, 0.5


def draw_world(axes: Axes, content: EpisodeContent) -> None:
    """Draw the world view."""
    scene = content.scene
    limit = _LIMIT * scene.view_distance
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    style.style_axes(axes, "x (m)", "y (m)")
    _draw_circles(axes, scene)
    if content.shape is not None:
        axes.plot(*polar_to_cartesian(*true_contour(content.shape)), **style.TRUTH_LINE, label="true contour")
    if content.belief is not None:
        _draw_belief(axes, content.belief)
    _draw_hits(axes, content.earlier_hits, "hits", style.HIT_DOTS)
    _draw_hits(axes, content.last_hits, "hits of the last view", style.LAST_HIT_DOTS)
    angles = [step.view_angle for step in content.shown_steps]
    _draw_cameras(axes, angles, scene, min(_CONE_ALPHA, _CONE_ALPHA_SUM / max(1, len(content.steps))))
    label_views(axes, angles, scene.view_distance)
    axes.text(
        0.015, 0.985, content.progress, transform=axes.transAxes, va="top", fontsize=style.LABEL_SIZE,
        color=style.CAMERA,
    )


def _draw_circles(axes: Axes, scene: Scene) -> None:
    """Draw the bounds of the object and the view circle."""
    for radius in (scene.radius_min, scene.radius_max):
        axes.add_patch(Circle((0, 0), radius, fill=False, color=style.FAINT, linewidth=0.8, linestyle=":", zorder=1))
    axes.add_patch(Circle((0, 0), scene.view_distance, fill=False, color=style.FAINT, linewidth=0.8, zorder=1))


def _draw_belief(axes: Axes, belief: SurfaceBelief) -> None:
    """Draw mean and band; the band is the outer contour with the inner one, run backwards, as a hole."""
    curve = close_belief(belief)
    outer = np.column_stack(polar_to_cartesian(curve.angle, curve.upper))
    inner = np.column_stack(polar_to_cartesian(curve.angle, curve.lower))[::-1]
    ring = Path.make_compound_path(Path(outer, closed=True), Path(inner, closed=True))
    axes.add_patch(
        PathPatch(ring, facecolor=style.BAND, alpha=style.BAND_ALPHA, linewidth=0, zorder=2, label="confidence band")
    )
    axes.plot(*polar_to_cartesian(curve.angle, curve.mean), **style.MEAN_LINE, label="mean")


def _draw_hits(axes: Axes, hits: Measurements, label: str, dots: style.Style) -> None:
    if len(hits):
        axes.plot(*polar_to_cartesian(hits.angle, hits.radius), **dots, label=label)


def _draw_cameras(axes: Axes, angles: list[float], scene: Scene, cone_alpha: float) -> None:
    """Draw a triangle and a cone per view, the last one emphasised."""
    if not angles:
        return
    poses = [CameraPose.on_view_circle(angle, scene.view_distance) for angle in angles]
    cones = [cone_outline(pose, scene) for pose in poses]
    bodies = [camera_outline(pose, scene) for pose in poses]
    axes.add_collection(PolyCollection(cones[:-1], facecolor=style.CAMERA, alpha=cone_alpha, linewidth=0, zorder=1.5))
    axes.add_collection(
        PolyCollection(
            cones[-1:], facecolor=to_rgba(style.LAST, 0.10), edgecolor=to_rgba(style.LAST, 0.7), linewidth=0.9,
            zorder=1.6, label="cone of the last view",
        )
    )
    axes.add_collection(PolyCollection(bodies[:-1], facecolor=style.CAMERA, linewidth=0, zorder=6, label="cameras"))
    axes.add_collection(PolyCollection(bodies[-1:], facecolor=style.LAST, linewidth=0, zorder=7, label="last camera"))
