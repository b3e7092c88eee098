"""Outlines of what a picture of an episode shows: the band closed around the circle, cones and
cameras.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from nbv_planner.episode.records import Step
from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    Point,
    angle_difference,
    cartesian_to_polar,
    polar_points,
    polar_to_cartesian,
    wrap_angle,
)
from nbv_planner.report import colors
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.world.ground.footprint import Footprint
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.ground.occupancy_map import UNKNOWN
from nbv_planner.world.ground.zones import Ground, Zone
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

_CAMERA_LENGTH = 0.045
_ARC_POINTS = 24


@dataclass(frozen=True, eq=False)
class ClosedBelief:
    """Mean and band over the polar angle, ending at 2π where they began at 0."""

    angle: FloatArray  #: shape (N,), radians, from 0 to 2π.
    mean: FloatArray  #: shape (N,), metres, never negative.
    lower: FloatArray  #: shape (N,), metres, never negative.
    upper: FloatArray  #: shape (N,), metres, never negative.
    centre: Point = ORIGIN  #: about which they are, metres.

    def places(self, radius: FloatArray) -> FloatArray:
        """Positions in the object frame at `radius` (N,), one of the curves; shape (N, 2),
        metres.
        """
        return polar_points(self.angle, radius) + self.centre

    def about_origin(self) -> ClosedBelief:
        """The same curves by their radius about the origin of the object frame, where that is
        inside of them.
        """
        if self.centre == (0.0, 0.0):
            return self
        curves = [
            cartesian_to_polar(*self.places(radius)[:-1].T)
            for radius in (self.mean, self.lower, self.upper)
        ]
        mean, lower, upper = (np.interp(self.angle, *curve, period=TWO_PI) for curve in curves)
        return ClosedBelief(self.angle, mean, lower, upper)


def spread(count: int, most: int) -> IntArray:
    """Indices of `count` things or, of more than `most`, of as many, equally spaced."""
    return np.rint(np.linspace(0, count - 1, min(count, most))).astype(int)


def close_belief(belief: SurfaceBelief, *, most: int | None = None) -> ClosedBelief:
    """Repeat the first grid point at 2π, unless the grid already holds it (the thesis protocol's
    does).

    Of more than `most` points as many are kept, equally spaced.
    """
    angle = belief.angle
    uniform = angle[-1] - angle[0] < TWO_PI - 0.5 * belief.step
    index = np.arange(len(angle) + uniform) % len(angle)
    turned = angle[index]
    turned[-1] = angle[0] + TWO_PI
    kept = spread(len(index), len(index) if most is None else most)
    # A negative radius would show up on the far side of the centre.
    mean, lower, upper = (
        np.maximum(v, 0.0)[index][kept] for v in (belief.mean, belief.lower, belief.upper)
    )
    return ClosedBelief(turned[kept], mean, lower, upper, belief.centre)


def angles_of(steps: Sequence[Step]) -> FloatArray:
    """Polar angles of the views of steps, shape (N,), radians in [0, 2π)."""
    return wrap_angle(Poses.of([step.view for step in steps]).polar[:, 0])


# Angles for which the best of more free views is shown, and distinct positions that are shown at
# most.
_ANGLES, _PLACES = 120, 1000


def are_free(views: Poses) -> bool:
    """Whether views are on no circle, or do not all look at its centre."""
    return len(views) > 0 and bool(
        views.turn.any() or np.ptp(views.distance) > 1e-5 * views.distance.max()
    )


def best_of(which: IntArray, values: FloatArray) -> FloatArray:
    """Greatest of the `values` (V,) in each of the groups 0, 1, ... named by `which` (V,); -inf of
    one without any.
    """
    best = np.full(which.max(initial=-1) + 1, -np.inf)
    np.maximum.at(best, which, np.where(np.isnan(values), -np.inf, values))
    return best


def by_angle(
    views: Poses, values: FloatArray, feasible: BoolArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """View angles, the values there, and whether a view may be chosen, (N,) each.

    Of free views that is the best at each of 120 angles at most, whatever its distance and heading:
    of those that may be chosen, if there are any.
    """
    angle = views.polar[:, 0]
    if not are_free(views):
        return angle, values, feasible
    bins = np.floor(wrap_angle(angle) * (_ANGLES / TWO_PI) + 1e-6).astype(int)
    _, first, which = np.unique(bins, return_index=True, return_inverse=True)
    some = best_of(which, feasible.astype(float)) > 0.0
    best = best_of(which, np.where(feasible | ~some[which], values, -np.inf))
    return angle[first], best, some


def field_of(
    views: Poses, values: FloatArray, feasible: BoolArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Positions of free views, (N, 2), metres, the best value there, and whether a view may be
    chosen, (N,).

    Views on a circle have none. Of more than 1000 positions as many are kept, equally spaced in
    their order.
    """
    if not are_free(views):
        return np.empty((0, 2)), np.empty(0), np.empty(0, dtype=bool)
    places, which = views.places()
    some = best_of(which, feasible.astype(float)) > 0.0
    best = best_of(which, np.where(feasible, values, -np.inf))
    kept = np.unique(np.linspace(0, len(places) - 1, min(len(places), _PLACES)).astype(int))
    return places.chosen(kept).position, best[kept], some[kept]


def barred_ground(ground: Ground | None, belief: Any, scene: Scene) -> GridGround | None:
    """The ground with what the object may occupy; None where nothing besides the object bars it.

    About another centre than that of the object's frame there is none to be shown either.
    """
    if not isinstance(ground, GridGround) or belief is None or any(belief.centre):
        return None
    if not isinstance(belief, SurfaceBelief):
        kept_off: GridGround = belief.keep_off(ground, scene.radius_max)
        return kept_off
    footprint = Footprint(belief.angle, belief.upper, scene.radius_max)
    return replace(ground, footprint=footprint)


# Colour and opacity of cells: what comes too near to the object, a polygon, or cells that are not
# free, and these.
_CELLS = (
    (Zone.OBJECT, colors.BAND, 0.25),
    (Zone.POLYGON, colors.LAST, 0.25),
    (Zone.MAP, colors.CAMERA, 0.2),
    (None, colors.CAMERA, 0.75),
)


def ground_shades(ground: GridGround) -> FloatArray:
    """Red, green, blue and opacity of each cell, shape (H, W, 4), each from 0 to 1; free cells are
    transparent.
    """
    shades = np.zeros((*ground.cells.shape, 4))
    known = (ground.map.cells >= ground.settings.occupied_threshold) | (ground.map.cells == UNKNOWN)
    for zone, color, opacity in _CELLS:
        shades[known if zone is None else ground.cells & np.uint8(zone) != 0] = (
            *colors.rgb(color),
            opacity,
        )
    return shades


def path_outline(
    start: CameraPose, end: CameraPose, radius: float, ground: Ground | None = None
) -> FloatArray:
    """Corners of the shortest path between two views, shape (N, 2), metres: that on a `ground` if
    there is any.

    Else it goes around a disc about the centre, and its length is that of
    :func:`nbv_planner.planning.view_space.path_around` up to the corners of the arc.
    """
    if ground is not None and len(
        path := ground.path(*((view.x, view.y) for view in (start, end)))
    ):
        return path
    (first, *_), (last, *_) = start.polar, end.polar
    turn = float(angle_difference(last, first))
    leave, meet = (
        math.acos(min(radius / max(view.distance, radius), 1.0)) for view in (start, end)
    )
    ends = [polar_to_cartesian(at, max(away, radius)) for at, away, _ in (start.polar, end.polar)]
    arc = abs(turn) - leave - meet
    side = math.copysign(1.0, turn)
    between = np.empty((0, 2))
    if arc > 0.0:
        angles = first + side * (leave + np.linspace(0.0, arc, _ARC_POINTS))
        between = np.column_stack(polar_to_cartesian(angles, radius))
    return np.vstack([ends[0], between, ends[1]])


def paths_between(
    views: Sequence[CameraPose], scene: Scene, ground: Ground | None
) -> list[FloatArray]:
    """Corners of the path from each view to the next one, outside the bound of the radius and of no
    view, as above.
    """
    keep_out = min([scene.radius_max, *(view.distance for view in views)])
    return [path_outline(start, end, keep_out, ground) for start, end in pairwise(views)]


def cone_outline(pose: CameraPose, scene: Scene) -> FloatArray:
    """Corners of the cone of a camera at `pose`, shape (K, 2), metres: its position and the arc at
    the full range.
    """
    low, high = scene.sensor.bearing_min, scene.sensor.bearing_max
    bearing = 0.5 * (low + high) + np.linspace(-0.5, 0.5, _ARC_POINTS) * (high - low)
    arc = np.column_stack(pose.to_world(bearing, scene.sensor.range_max))
    return np.vstack([[pose.x, pose.y], arc])


def camera_outline(pose: CameraPose, scene: Scene) -> FloatArray:
    """Triangle whose tip is the camera's position and whose body lies behind it, shape (3, 2),
    metres.
    """
    length = _CAMERA_LENGTH * scene.view_distance
    back = np.column_stack(pose.to_world(math.pi + np.array([-0.45, 0.45]), length))
    return np.vstack([[pose.x, pose.y], back])
