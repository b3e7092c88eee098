"""Figures 4.2, 4.5 and those of ch. 5 of the thesis for any episode: regret, field of view, what
objectives count.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbv_bench.figures.view_maps import recorded_poses
from nbv_planner.episode.parameters import EpisodeConfig, PlannerSettings
from nbv_planner.episode.records import ViewColumn
from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    angle_difference,
    cartesian_to_polar,
    polar_to_cartesian,
    world_to_camera,
)
from nbv_planner.planning.objectives import ExpectedMarginalCoverage, Situation
from nbv_planner.report.figures import style
from nbv_planner.report.figures.style import panel_title, panels
from nbv_planner.report.outlines import cone_outline
from nbv_planner.report.page import Picture
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.surface.seam import Hypotheses, looked_at
from nbv_planner.thesis import OBJECTIVES
from nbv_planner.thesis.intervals import fov_boundary, in_simple_interval
from nbv_planner.volume.volume_surface import VolumeSurface
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

_LAYERS = 24
_ALONG = 80


def explanations(
    config: EpisodeConfig, views: Sequence[Mapping[str, Any]], belief: Any, number: int
) -> list[Picture]:
    """The three pictures of an episode, given as in its record; `belief` is that on which view
    `number` was chosen, of the radius or of cells.
    """
    regret = (
        "Blue: surface points seen. Above it, by the length of a bar: individual regret, what the"
        " best candidate would have added. Green: (1 - 1/e) of the best set of as many views; from"
        " the blue line to it R(T), where known."
    )
    field = (
        "Shape of the field of view by its depth, in the plane and over the polar angle. Dotted:"
        " rays; dashed: bounds of the radius."
    )
    return [
        style.picture("regret", "Utility and regret", regret, draw_regret(views)),
        style.picture(
            "field_of_view",
            "Depth and shape of the field of view",
            field,
            draw_fields(config.scene),
        ),
        _decision(config, views, belief, number)
        if isinstance(belief, VolumeSurface)
        else _objectives(config.scene, views, belief, number),
    ]


def _objectives(
    scene: Scene, views: Sequence[Mapping[str, Any]], belief: SurfaceBelief, number: int
) -> Picture:
    angle = float(ViewColumn.angle.of(views[number - 1]))
    counts = (
        f"Band of the belief before view {number}, taken at {math.degrees(angle):.1f}°, over the"
        " polar angle from there. Coloured: what the objective counts there, the darker the more"
        " per area; in brackets its value. Dashed: edge of the field of view on the simple"
        " interval."
    )
    figure = draw_counted(belief, scene, angle)
    return style.picture("objectives", "What each objective counts", counts, figure)


def _decision(
    config: EpisodeConfig, views: Sequence[Mapping[str, Any]], belief: VolumeSurface, number: int
) -> Picture:
    taken = recorded_poses(views[:number])
    view = taken[number - 1]
    around = np.linspace(0.0, TWO_PI, config.views.num_views, endpoint=False)
    circle = Poses.on_circle(around, view.distance)
    visited = taken.chosen(slice(0, number - 1))
    situation = Situation(belief, config.scene, circle, visited)
    counts = (
        f"Before view {number}, taken at {math.degrees(view.polar[0]):.1f}°. First: what each"
        f" view of the circle adds to each of {config.planner.shapes} samples of the surface, in"
        " sides of cells, and its mean, EMC; a dashed line at the view. Others: samples, what of"
        " them has been seen, is left, and what the view adds, in brackets how much."
    )
    figure = draw_decision(situation, config.planner, view)
    return style.picture("objectives", "What EMC counts on samples", counts, figure)


def on_samples(
    situation: Situation, settings: PlannerSettings, view: CameraPose
) -> tuple[Hypotheses, FloatArray]:
    """The hypotheses of EMC, and what a view adds at each of their elements, shape (S, M), in their
    unit: EMC is the sum over M, averaged over S.
    """
    surface, scene = situation.surface, situation.scene
    aim = CoverageTarget.of(settings).with_checks(scene.pixel_size, surface.checks)
    drawn = surface.hypotheses(aim, settings.shapes, settings.planner_seed)
    one = Poses.of([view])
    seen, visible = looked_at(surface, drawn, aim, situation.visited, one, scene)
    return drawn, drawn.size * (1.0 - seen) * (visible[:, 0] & ~one.repeat(situation.visited)[0])


_SAMPLES = 7
_PARTS = {
    "seen": style.CAMERA,
    "left": style.BAND,
    "added by the view, its field": style.LAST,
}


def draw_decision(situation: Situation, settings: PlannerSettings, view: CameraPose) -> Figure:
    """Draw what EMC counts on hypotheses of any member at a view, and its value over the views of
    the situation.
    """
    aim = CoverageTarget.of(settings)
    objective = ExpectedMarginalCoverage(aim, settings.shapes, settings.planner_seed)
    gains = objective.coverage(situation).gains()
    drawn, added = on_samples(situation, settings, view)
    dots: style.Style = {"linestyle": "none", "marker": "."}
    legend = [
        Line2D([], [], color=style.FAINT, label="gain on a sample"),
        Line2D([], [], color=style.MEAN, label="EMC"),
        *(Line2D([], [], color=shade, **dots, label=label) for label, shade in _PARTS.items()),
    ]
    figure, (curve, *maps) = panels(_SAMPLES + 1, 4, width=2.8, height=2.8, legend=legend)
    angle = situation.views.polar[:, 0]
    curve.plot(angle, gains.T, color=style.FAINT, linewidth=0.5)
    curve.plot(angle, gains.mean(axis=0), color=style.MEAN)
    curve.axvline(view.polar[0] % TWO_PI, color=style.LAST, linestyle="--", linewidth=0.9)
    style.style_axes(curve, "view angle θ (rad)", "gain (sides of cells)")
    style.style_angle_axis(curve)
    panel_title(curve, f"EMC ({added.sum(axis=1).mean():.0f})")
    reach = 1.1 * situation.scene.view_distance
    cone = cone_outline(view, situation.scene)
    samples = zip(maps, drawn.points, drawn.size, drawn.seen, added, strict=False)
    for number, (panel, points, size, seen, new) in enumerate(samples, start=1):
        panel.fill(*cone.T, color=style.LAST, alpha=0.08, linewidth=0)
        real, seen, new = size > 0.0, seen > 0.0, new > 0.0
        parts = real & seen & ~new, real & ~seen & ~new, new
        for which, shade in zip(parts, _PARTS.values(), strict=True):
            panel.plot(*points[which].T, color=shade, markersize=1.5, **dots)
        panel_title(panel, f"sample {number} ({added[number - 1].sum():.0f})")
        style.style_axes(panel, "x (m)" if number > 3 else "", "y (m)" if number == 4 else "")
        panel.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
    return figure


def draw_regret(views: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw utility and regret over the rounds (figure 4.2)."""
    shown = ViewColumn.new_points, ViewColumn.greedy_gain, ViewColumn.simple_regret
    # None becomes NaN.
    new, greedy, simple = (np.array(column.each(views), dtype=float) for column in shown)
    rounds = np.arange(1, len(new) + 1)
    seen = np.cumsum(new)
    near = np.cumsum(simple + new)
    figure, (axes,) = panels(1, 1, width=7.0, height=4.0)
    style.style_axes(axes, "round t", "surface points")
    axes.plot(
        np.append(0, rounds),
        np.append(0.0, seen),
        color=style.MEAN,
        marker="o",
        label="seen, F(θ₁:ₜ)",
    )
    ends = seen - new + greedy
    axes.vlines(rounds, seen, ends, color=style.LAST, linewidth=2.5, label="individual regret")
    axes.plot(
        rounds,
        near,
        color=style.TARGET,
        marker="s",
        linestyle=":",
        label="(1 − 1/e) F(Θ*ₜ)",
    )
    axes.legend(fontsize=style.TICK_SIZE, frameon=False)
    return figure


def draw_fields(scene: Scene) -> Figure:
    """Draw the field of view for depths less than, as and more than the view distance (figure
    4.5).
    """
    figure, axes = panels(6, 3, width=3.2, height=3.2)
    d = scene.view_distance
    view = math.pi
    angle, radius = np.meshgrid(np.linspace(0.0, TWO_PI, 721), np.linspace(1e-3, 1.4 * d, 421))
    x, y = polar_to_cartesian(angle, radius)
    bearing, distance = world_to_camera(angle, radius, view, d)
    for column, (factor, sign) in enumerate(((0.75, "<"), (1.0, "="), (1.25, ">"))):
        varied = dataclasses.replace(scene, range_max=factor * d)
        inside = varied.in_cone(bearing, distance).astype(float)
        world = axes[column]
        polar = axes[column + 3]
        panel_title(world, f"depth {varied.range_max:g} m {sign} view distance")
        for panel, across, along in ((world, x, y), (polar, angle, radius)):
            panel.contourf(across, along, inside, levels=[0.5, 1.5], colors=[style.BAND], alpha=0.6)
        ray = np.linspace(-varied.half_field, varied.half_field, 5)
        there = np.linspace(0.0, varied.range_max, 80)[:, None]
        ahead, left = there * np.cos(ray) - d, there * np.sin(ray)
        world.plot(ahead, left, color=style.CAMERA, linestyle=":", linewidth=0.8)
        phi, r = cartesian_to_polar(ahead, left)
        polar.plot(
            np.mod(phi, TWO_PI), r, color=style.CAMERA, linestyle="none", marker=".", markersize=0.8
        )
        for bound in (scene.radius_min, scene.radius_max):
            circle = polar_to_cartesian(angle[0], bound)
            world.plot(*circle, linestyle="--", linewidth=0.8, color=style.TRUTH)
            style.level_line(polar, bound, "bound", style.TRUTH)
        style.style_axes(world, "x (m)", "y (m)" if column == 0 else "")
        world.set(aspect="equal", xlim=(-1.1 * d, 1.1 * d), ylim=(-1.1 * d, 1.1 * d))
        style.style_axes(
            polar, "polar angle φ (rad), camera at π", "radius (m)" if column == 0 else ""
        )
        style.style_angle_axis(polar)
        polar.set_ylim(0.0, 1.2 * d)
    return figure


@dataclass(frozen=True, eq=False)
class Counted:
    """What an objective counts at a view: cells between the bounds of the band, at M grid angles in
    L layers.
    """

    offset: FloatArray  #: polar angles from the view, rising, shape (M,), radians.
    edges: FloatArray  #: radii between the layers, shape (L + 1, M), metres.
    #: weight w of the area of each cell, shape (L, M): the value of the objective is
    #: :math:`h^{-2}\sum w\,r\,Δr\,Δφ`.
    weight: FloatArray


COUNTED = ("C", "CS", "CSP", "CSW", "I", "IOA", "U", "UP")
"""Objectives that count an area of the band; CSN counts that of CS in pixels, the others count
points of outlines.
"""


def counted(name: str, belief: SurfaceBelief, scene: Scene, view: float) -> Counted:
    """What one of :data:`COUNTED` counts at a view angle, radians, by its definition (thesis, ch.
    5.2).
    """
    offset = angle_difference(belief.angle, view)
    order = np.argsort(offset, kind="stable")
    offset = offset[order]
    angle = belief.angle[order]
    lower = belief.lower[order]
    upper = belief.upper[order]
    if name in ("U", "UP"):  # the band at the view itself, for the whole interval
        lower, upper = (
            np.full(len(order), belief.interpolate(bound, view))
            for bound in (belief.lower, belief.upper)
        )
    edges = lower + np.linspace(0.0, 1.0, _LAYERS + 1)[:, None] * (upper - lower)
    middle = 0.5 * (edges[1:] + edges[:-1])
    inside = in_simple_interval(scene, angle, view)
    weight = np.broadcast_to(inside.astype(float), middle.shape)
    boundary = np.where(inside, fov_boundary(scene, angle, view), 0.0)
    if name in ("CSP", "UP"):
        weight = weight / middle
    elif name == "CSW":
        weight = weight * boundary / scene.view_distance
    elif name == "I":
        weight = weight * (middle <= boundary)
    elif name == "C":
        beyond = inside & (lower >= boundary)
        left = offset[beyond & (offset <= 0.0)].max(initial=-np.inf)
        right = offset[beyond & (offset >= 0.0)].min(initial=np.inf)
        weight = weight * ((offset > left) & (offset < right))
    elif name == "IOA":
        bearing, distance = world_to_camera(
            np.broadcast_to(angle, middle.shape), middle, view, scene.view_distance
        )
        weight = (
            scene.in_cone(bearing, distance) & ~_hidden(belief, scene, view, angle, middle)
        ).astype(float)
    return Counted(offset, edges, weight)


def _hidden(
    belief: SurfaceBelief, scene: Scene, view: float, angle: FloatArray, radius: FloatArray
) -> BoolArray:
    """Whether the lower bound lies between the camera and each point, radii of shape (L, M)."""
    x, y = polar_to_cartesian(np.broadcast_to(angle, radius.shape), radius)
    from_x, from_y = polar_to_cartesian(view, scene.view_distance)
    hidden = np.zeros(radius.shape, dtype=bool)
    for part in np.linspace(0.0, 1.0, _ALONG, endpoint=False):
        phi, r = cartesian_to_polar(from_x + part * (x - from_x), from_y + part * (y - from_y))
        hidden |= r < belief.interpolate(belief.lower, phi)
    return hidden


def draw_counted(belief: SurfaceBelief, scene: Scene, view: float) -> Figure:
    """Draw what each of :data:`COUNTED` counts at a view angle, radians (figures of ch. 5)."""
    figure, axes = panels(8, 4, width=2.7, height=2.6, share=True)
    width = 1.6 * scene.simple_half_width
    top = max(scene.view_distance, float(belief.upper.max()))
    for place, (panel, name) in enumerate(zip(axes, COUNTED, strict=True)):
        found = counted(name, belief, scene, view)
        across = np.append(found.offset, found.offset[-1] + belief.step) - 0.5 * belief.step
        along = np.column_stack([found.edges, found.edges[:, -1]])
        weight = np.ma.masked_equal(found.weight / max(float(found.weight.max()), 1e-12), 0.0)
        across = np.broadcast_to(across, along.shape)
        panel.pcolormesh(
            across, along, weight, cmap="cividis_r", vmin=0.0, vmax=1.0, rasterized=True
        )
        for bound in (belief.lower, belief.upper):
            band = belief.interpolate(bound, view + found.offset)
            panel.plot(found.offset, band, color=style.CAMERA, linewidth=0.8)
        seen = found.offset[np.abs(found.offset) <= scene.simple_half_width]
        panel.plot(
            seen,
            fov_boundary(scene, view + seen, view),
            color=style.LAST,
            linestyle="--",
            linewidth=0.9,
        )
        value = float(OBJECTIVES[name].values(belief, scene, np.array([view]))[0])
        panel_title(panel, f"{name} ({value:.0f})")
        style.style_axes(
            panel, "φ − θ (rad)" if place >= 4 else "", "radius (m)" if place % 4 == 0 else ""
        )
        panel.set(xlim=(-width, width), ylim=(0.0, top))
    return figure
