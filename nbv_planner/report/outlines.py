"""Outlines of what a picture of an episode shows: the band closed around the circle, cones and cameras."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, cartesian_to_polar, polar_to_cartesian
from nbv_planner.mapping.belief import SurfaceBelief
from nbv_planner.world.pose import CameraPose
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
    centre: tuple[float, float] = (0.0, 0.0)  #: about which they are, metres.

    def places(self, radius: FloatArray) -> FloatArray:
        """Positions in the object frame at `radius` (N,), one of the curves; shape (N, 2), metres."""
        return np.column_stack(polar_to_cartesian(self.angle, radius)) + self.centre

    def about_origin(self) -> ClosedBelief:
        """The same curves by their radius about the origin of the object frame, where that is inside of them."""
        if self.centre == (0.0, 0.0):
            return self
        curves = [cartesian_to_polar(*self.places(radius)[:-1].T) for radius in (self.mean, self.lower, self.upper)]
        mean, lower, upper = (np.interp(self.angle, *curve, period=TWO_PI) for curve in curves)
        return ClosedBelief(self.angle, mean, lower, upper)


def close_belief(belief: SurfaceBelief, *, most: int | None = None) -> ClosedBelief:
    """Repeat the first grid point at 2π, unless the grid already holds it (the thesis protocol's does).

    Of more than `most` points as many are kept, equally spaced.
    """
    angle = belief.angle
    uniform = angle[-1] - angle[0] < TWO_PI - 0.5 * belief.step
    index = np.arange(len(angle) + uniform) % len(angle)
    turned = angle[index]
    turned[-1] = angle[0] + TWO_PI
    kept = np.arange(len(index))
    if most is not None and len(index) > most:
        kept = np.rint(np.linspace(0, len(index) - 1, most)).astype(int)
    # A negative radius would show up on the far side of the centre.
    mean, lower, upper = (np.maximum(v, 0.0)[index][kept] for v in (belief.mean, belief.lower, belief.upper))
    return ClosedBelief(turned[kept], mean, lower, upper, belief.centre)


def cone_outline(pose: CameraPose, scene: Scene) -> FloatArray:
    """Corners of the cone of a camera at `pose`, shape (K, 2), metres: its position and the arc at the full range."""
    low, high = scene.sensor.bearing_min, scene.sensor.bearing_max
    bearing = 0.5 * (low + high) + np.linspace(-0.5, 0.5, _ARC_POINTS) * (high - low)
    arc = np.column_stack(pose.to_world(bearing, scene.sensor.range_max))
    return np.vstack([[pose.x, pose.y], arc])


def camera_outline(pose: CameraPose, scene: Scene) -> FloatArray:
    """Triangle whose tip is the camera's position and whose body lies behind it, shape (3, 2), metres."""
    length = _CAMERA_LENGTH * scene.view_distance
    back = np.column_stack(pose.to_world(math.pi + np.array([-0.45, 0.45]), length))
    return np.vstack([[pose.x, pose.y], back])
