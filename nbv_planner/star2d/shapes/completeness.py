r"""Completeness at a resolution τ: the part of an outline that lies within τ of the measured
surface.

As reconstruction benchmarks do (recall and precision of Knapitsch et al. 2017, Tanks and Temples;
completeness and accuracy of Schöps et al. 2017, ETH3D), but with lengths of contours in place of
numbers of points. The measured surface is the mean contour of the belief between neighbouring
measurements that are close enough, :func:`nbv_planner.star2d.shapes.shape_coverage.seen_stretches`:
what no beam has met is no part of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    cartesian_to_polar,
    polar_points,
    polar_to_cartesian,
    repeated,
)
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.shapes.sampler import Shapes
from nbv_planner.star2d.shapes.shape_coverage import (
    MeasuredSurface,
    rays_beside,
    seen_stretches,
    steps_between,
)
from nbv_planner.surface.coverage import PointSet
from nbv_planner.world.scene import Scene

SAMPLES = 10
"""Samples of a contour per τ: a distance of τ is then off by 0.2 % at most."""
# Steps of the radius per τ in which the rays of posterior shapes are divided, and most of them on a
# ray.
_STEPS = 8
_MOST_STEPS = 4096
# Part of τ within which a shape must lie for a claim: the object is off the shapes, too, and winds
# in gaps that these cross smoothly. Chosen on outlines for tuning.
_SURE = 0.5


@dataclass(frozen=True, eq=False)
class MeasuredContour(PointSet):
    """The measured surface as points at small distances along it; those at the ends of stretches
    have no length.
    """

    @classmethod
    def of(cls, belief: SurfaceBelief, pixel_size: float, tau: float) -> MeasuredContour:
        """The mean contour of `belief` where it has been seen, as finely as a resolution of `tau`
        (metres) needs.
        """
        seen = seen_stretches(belief, pixel_size)
        corners = polar_points(belief.angle, np.maximum(belief.mean, 0.0)) + belief.centre
        first = np.flatnonzero(seen & np.roll(seen, -1))
        start = corners[first]
        edge = corners[(first + 1) % len(corners)] - corners[first]
        length = np.hypot(*edge.T)
        number = np.clip(np.ceil(length * (SAMPLES / tau)), 1.0, _MOST_STEPS).astype(np.intp)
        piece, place = repeated(number)
        middles = start[piece] + edge[piece] * ((place + 0.5) / number[piece])[:, None]
        return cls(
            np.concatenate([middles, corners[seen]]),
            np.concatenate([(length / number)[piece], np.zeros(np.count_nonzero(seen))]),
        )


def near_part(shapes: Shapes, belief: SurfaceBelief, scene: Scene, tau: float) -> FloatArray:
    """Part of the contour around each grid angle of each shape within `tau` of the measured
    surface, shape (S, M).
    """
    points = MeasuredContour.of(belief, scene.pixel_size, tau).points - belief.centre
    polar, radius = cartesian_to_polar(*points.T)
    step = max(tau / _STEPS, scene.radius_max / _MOST_STEPS)
    least = float(radius.min(initial=np.inf))
    shape = len(shapes.angle), math.ceil(scene.radius_max / step) + 2
    ray, aside = rays_beside(polar, math.asin(tau / least) if least > tau else math.pi, shape[0])
    # A point at the distance s from a ray is near it for sqrt(τ² - s²) before and behind; middles
    # of steps count.
    left = tau**2 - (radius * np.sin(aside)) ** 2
    along = radius * np.cos(aside)
    half = np.sqrt(np.maximum(left, 0.0))
    close = left >= 0.0
    lowest = np.ceil((along - half) / step - 0.5)
    beyond = np.floor((along + half) / step + 0.5)
    near = steps_between(ray[close], lowest[close], beyond[close], shape)
    return MeasuredSurface(near, step).part(shapes.radius)


def covered_cells(visible: BoolArray, shapes: Shapes, tau: float) -> BoolArray:
    """Which grid angles of which shape lie within `tau` (metres) of one that a view sees, shape (S,
    V, M).

    Poses see the grid angles `visible`, shape (S, V, M). Each grid angle stands for the contour
    around it.
    """
    seen = np.packbits(visible, axis=1)  # eight views at once
    found = seen.copy()
    x, y = polar_to_cartesian(shapes.angle, shapes.radius)
    size = shapes.radius.shape[1]
    furthest = min(int(tau / (TWO_PI / size * float(shapes.radius.min()))), (size - 1) // 2)
    for offset in range(1, furthest + 1):
        chord = np.hypot(np.roll(x, -offset, axis=1) - x, np.roll(y, -offset, axis=1) - y)
        close = np.where(chord <= tau, np.uint8(255), np.uint8(0))[:, None]
        found |= np.roll(seen, -offset, axis=2) & close
        found |= np.roll(seen & close, offset, axis=2)
    return np.unpackbits(found, axis=1, count=visible.shape[1]).astype(bool)


def near_parts(
    shapes: Shapes, belief: SurfaceBelief, scene: Scene, tau: float
) -> tuple[FloatArray, FloatArray]:
    """Part around each grid angle of each shape within τ of the measured surface, and within τ/2,
    shape (S, M).

    The latter can be vouched for if the object is like one of the shapes, for it is not exactly
    like any of them.
    """
    return near_part(shapes, belief, scene, tau), near_part(shapes, belief, scene, _SURE * tau)
