"""An episode as a figure or an animation: world, polar view, objective, coverage."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from nbv_planner.geometry import cartesian_to_polar
from nbv_planner.report import colors, outlines
from nbv_planner.report.figures import style
from nbv_planner.report.figures.episode_content import EpisodeContent, true_contour, true_lines
from nbv_planner.report.figures.panels_over_views import draw_coverage, draw_objective
from nbv_planner.report.figures.style import label_views
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.regions import Regions
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.ground.zones import Ground
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scene import Scene

_LIMIT = 1.15
# Cones overlap at the object: their total opacity is limited.
_CONE_ALPHA, _CONE_ALPHA_SUM = 0.06, 0.5


def draw_world(axes: Axes, content: EpisodeContent) -> None:
    """Draw the world view."""
    scene = content.scene
    views = [step.view for step in content.shown]
    limit = _LIMIT * max(
        [
            scene.view_distance,
            *(
                float(step.candidates.distance.max(initial=step.view.distance))
                for step in content.steps
            ),
        ]
    )
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    style.style_axes(axes, "x (m)", "y (m)")
    for radius, dash in (
        (scene.radius_min, ":"),
        (scene.radius_max, ":"),
        (scene.view_distance, "-"),
    ):
        axes.add_patch(
            Circle(
                (0, 0),
                radius,
                fill=False,
                color=style.FAINT,
                linewidth=0.8,
                linestyle=dash,
                zorder=1,
            )
        )
    barred = outlines.barred_ground(content.ground, content.belief, scene)
    if barred is not None:
        _draw_ground(axes, barred)
    if content.free or barred is not None:
        _draw_path(axes, content, views, barred)
    for line in () if content.shape is None else true_lines(content.shape):
        axes.plot(*line, **style.TRUTH_LINE, label="true contour")
    if content.regions is not None:
        _draw_regions(axes, content.belief, content.regions)
    if content.belief is not None:
        _draw_belief(axes, content.belief, _band(content))
    earlier, last = content.earlier_hits, content.last_hits
    axes.plot(*earlier.points.T, **style.HIT_DOTS, label="hits")
    axes.plot(*last.points.T, **style.LAST_HIT_DOTS, label="hits of the last view")
    _draw_cameras(
        axes, views, scene, min(_CONE_ALPHA, _CONE_ALPHA_SUM / max(1, len(content.steps)))
    )
    label_views(axes, views)
    axes.text(
        0.015,
        0.985,
        content.progress,
        transform=axes.transAxes,
        va="top",
        fontsize=style.LABEL_SIZE,
        color=style.CAMERA,
    )
    if content.doubts:  # one below the other: only the corner is free
        axes.text(
            0.015,
            0.95,
            "\n".join(["checks failed:", *(check.name for check in content.doubts)]),
            va="top",
            transform=axes.transAxes,
            fontsize=style.LABEL_SIZE,
            color=style.LAST,
            fontweight="bold",
        )


def _draw_ground(axes: Axes, ground: GridGround) -> None:
    """Draw where the robot must not be: cells of the map, and the margins of these, of polygons and
    of the object.
    """
    map = ground.map
    shades = outlines.ground_shades(ground)
    limits = axes.get_xlim(), axes.get_ylim()
    height, width = (map.resolution * number for number in ground.cells.shape)
    image = axes.imshow(
        shades,
        origin="lower",
        extent=(0.0, width, 0.0, height),
        interpolation="nearest",
        zorder=0.5,
    )
    image.set_transform(Affine2D().rotate(map.yaw).translate(map.x, map.y) + axes.transData)
    axes.set(xlim=limits[0], ylim=limits[1])


def _draw_path(
    axes: Axes, content: EpisodeContent, views: Sequence[CameraPose], ground: Ground | None
) -> None:
    """Draw where the camera may stand, coloured by the last decision, and its path from view to
    view.
    """
    if not views:
        return
    last = content.shown[-1]
    places, best, some = outlines.field_of(
        last.candidates, last.utilities, np.isfinite(last.utilities)
    )
    shades = colors.utility_colors(best, some)
    axes.scatter(
        places[:, 0], places[:, 1], s=3.0, c=shades, linewidths=0, zorder=1.2, label="candidates"
    )
    for path in outlines.paths_between(views, content.scene, ground):
        axes.plot(*path.T, color=style.CAMERA, linewidth=0.8, alpha=0.7, zorder=1.7)


def _band(content: EpisodeContent) -> style.Style:
    """How the band is filled: hatched while a check has failed."""
    if not content.doubts:
        return {"color": style.BAND, "alpha": style.BAND_ALPHA, "linewidth": 0}
    filled = to_rgba(style.BAND, style.BAND_ALPHA)
    hatched = to_rgba(style.LAST, 0.6)
    return {"facecolor": filled, "edgecolor": hatched, "hatch": "////", "linewidth": 0}


def _draw_belief(axes: Axes, belief: Any, band: style.Style) -> None:
    """Draw mean and band; the band is the outer contour with the inner one, run backwards, as a
    hole.

    Of a surface of cells the likeliest bodies are drawn, dotted where nothing was measured; of any
    other one without a band the likeliest surface, point by point.
    """
    if isinstance(belief, VolumeSurface):
        for body in belief.likeliest.bodies:
            for seen, run in body.stretches:
                look = style.MEAN_LINE if seen else style.GUESSED_LINE
                axes.plot(*body.points[run].T, **look, label="mean" if seen else "guess")
        return
    if not isinstance(belief, SurfaceBelief):
        axes.plot(*belief.outline()[0].points[0].T, ".", **style.MEAN_LINE, label="mean")
        return
    curve = outlines.close_belief(belief)
    outer = curve.places(curve.upper)
    inner = curve.places(curve.lower)[::-1]
    ring = Path.make_compound_path(Path(outer, closed=True), Path(inner, closed=True))
    axes.add_patch(PathPatch(ring, **band, zorder=2, label="confidence band"))
    axes.plot(*curve.places(curve.mean).T, **style.MEAN_LINE, label="mean")


def _draw_regions(axes: Axes, belief: Any, regions: Regions) -> None:
    """Underlay the mean where it matters, the stronger the more it weighs."""
    lines = []
    if isinstance(belief, SurfaceBelief):
        curve = outlines.close_belief(belief)
        lines.append(curve.places(curve.mean))
    elif isinstance(belief, VolumeSurface):
        lines += [np.concatenate([one.points, one.points[:1]]) for one in belief.likeliest.bodies]
    for line in lines:
        pieces = np.stack([line[:-1], line[1:]], axis=1)
        weight = regions.weights(pieces.mean(axis=1))
        shades = [to_rgba(style.TARGET, style.REGION_ALPHA * one) for one in weight]
        axes.add_collection(LineCollection(list(pieces), colors=shades, **style.REGION_LINE))


def _draw_cameras(axes: Axes, views: list[CameraPose], scene: Scene, cone_alpha: float) -> None:
    """Draw a triangle and a cone per view, the last one emphasised."""
    if not views:
        return
    poses = list(views)
    cones = [outlines.cone_outline(pose, scene) for pose in poses]
    bodies = [outlines.camera_outline(pose, scene) for pose in poses]
    axes.add_collection(
        PolyCollection(
            cones[:-1], facecolor=style.CAMERA, alpha=cone_alpha, linewidth=0, zorder=1.5
        )
    )
    axes.add_collection(
        PolyCollection(
            cones[-1:],
            facecolor=to_rgba(style.LAST, 0.10),
            edgecolor=to_rgba(style.LAST, 0.7),
            linewidth=0.9,
            zorder=1.6,
            label="cone of the last view",
        )
    )
    axes.add_collection(
        PolyCollection(bodies[:-1], facecolor=style.CAMERA, linewidth=0, zorder=6, label="cameras")
    )
    axes.add_collection(
        PolyCollection(
            bodies[-1:], facecolor=style.LAST, linewidth=0, zorder=7, label="last camera"
        )
    )


def draw_polar(axes: Axes, content: EpisodeContent) -> None:
    """Draw true contour, mean, band and hits over the polar angle, and the view angles along the
    top.
    """
    style.style_axes(axes, "polar angle φ (rad)", "radius (m)")
    style.style_angle_axis(axes)
    # Room for the bounds and for the band after every view, so that the frames of an animation
    # agree.
    known = [step.belief for step in content.steps if isinstance(step.belief, SurfaceBelief)]
    low = min([content.scene.radius_min, *(belief.lower.min() for belief in known)])
    high = max([content.scene.radius_max, *(belief.upper.max() for belief in known)])
    margin = 0.06 * (high - low)
    axes.set_ylim(max(0.0, low - margin), high + margin)
    for bound in (content.scene.radius_min, content.scene.radius_max):
        axes.axhline(bound, color=style.FAINT, linewidth=0.8, linestyle=":", zorder=1)
    if hasattr(content.shape, "radius"):
        axes.plot(*true_contour(content.shape), **style.TRUTH_LINE, label="true contour")
    if isinstance(content.belief, SurfaceBelief):
        curve = outlines.close_belief(content.belief).about_origin()
        axes.fill_between(
            curve.angle,
            curve.lower,
            curve.upper,
            **_band(content),
            zorder=2,
            label="confidence band",
        )
        axes.plot(curve.angle, curve.mean, **style.MEAN_LINE, label="mean")
    axes.plot(*cartesian_to_polar(*content.earlier_hits.points.T), **style.HIT_DOTS, label="hits")
    axes.plot(
        *cartesian_to_polar(*content.last_hits.points.T),
        **style.LAST_HIT_DOTS,
        label="hits of the last view",
    )
    _mark_views(axes, content)


def _mark_views(axes: Axes, content: EpisodeContent) -> None:
    """Put a triangle per view on the upper edge, pointing down, the last one emphasised."""
    angle = outlines.angles_of(content.shown)
    for part, color, size, label in (
        (angle[:-1], style.CAMERA, 5.0, "earlier views"),
        (angle[-1:], style.LAST, 7.0, "last view"),
    ):
        axes.plot(
            part,
            np.full(len(part), 1.03),
            color=color,
            linestyle="none",
            marker="v",
            markersize=size,
            markeredgewidth=0,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            zorder=6,
            label=label,
        )


SIZE = (12.0, 7.2)
"""Width and height of the figure, inches."""
_TITLE_WIDTH = 140
_YLABEL_X = -0.13  # the same for all panels, so that their labels line up


def draw_figure(content: EpisodeContent) -> Figure:
    """Draw an episode: world view, polar view of a radius, objective over the view angle, coverage.

    The figure has its own Agg canvas and is not known to pyplot: it can be made without a display
    and in any thread.
    """
    figure = Figure(figsize=SIZE)
    FigureCanvasAgg(figure)
    # Fixed positions instead of a layout engine: faster, and the frames of an animation do not
    # jump.
    draw_world(figure.add_axes((0.05, 0.135, 0.50, 0.785)), content)
    # the radius says nothing where each direction has several surfaces
    panels = [(draw_objective, 1.0), (draw_coverage, 0.75)]
    if not content.any_outline:
        panels.insert(0, (draw_polar, 1.35))
    right = figure.add_gridspec(
        len(panels),
        1,
        left=0.632,
        right=0.985,
        bottom=0.065,
        top=0.905,
        hspace=0.42,
        height_ratios=[height for _, height in panels],
    )
    for row, (draw, _) in enumerate(panels):
        axes = figure.add_subplot(right[row])
        draw(axes, content)
        axes.yaxis.set_label_coords(_YLABEL_X, 0.5)
    title = textwrap.fill(content.title, _TITLE_WIDTH, max_lines=2, placeholder=" …").replace(
        "$", r"\$"
    )
    figure.suptitle(title, x=0.012, y=0.985, ha="left", va="top", fontsize=style.TITLE_SIZE)
    _draw_legend(figure, content)
    return figure


def _draw_legend(figure: Figure, content: EpisodeContent) -> None:
    """Put one legend for all panels below the world view, where no data lies."""
    dots: style.Style = {"markersize": 4.0}
    cameras: style.Style = {"linestyle": "none", "marker": "v", "markeredgewidth": 0}
    handles = [
        Line2D([], [], **style.TRUTH_LINE, label="true contour"),
        Line2D([], [], **style.MEAN_LINE, label="posterior mean"),
        Line2D([], [], **style.GUESSED_LINE, label="mean, not measured")
        if isinstance(content.belief, VolumeSurface)
        else Patch(
            **_band(content),
            label="confidence band, in doubt" if content.doubts else "confidence band",
        ),
        Line2D([], [], **{**style.HIT_DOTS, **dots}, label="hits"),
        Line2D([], [], **{**style.LAST_HIT_DOTS, **dots}, label="hits of last view"),
        Line2D([], [], **cameras, color=style.CAMERA, markersize=6, label="views, numbered"),
        Line2D([], [], **cameras, color=style.LAST, markersize=7, label="last view, its cone"),
        Line2D(
            [], [], color=style.FAINT, linewidth=0.8, linestyle=":", label="bounds of the radius"
        ),
    ]
    if content.shape is None:
        handles = handles[1:]
    if content.regions is not None:
        look = {**style.REGION_LINE, "alpha": style.REGION_ALPHA}
        handles.append(Line2D([], [], color=style.TARGET, **look, label="what matters"))
    figure.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.30, 0.0),
        ncol=4,
        fontsize=style.TICK_SIZE,
        frameon=False,
        columnspacing=1.6,
        handlelength=1.8,
    )
