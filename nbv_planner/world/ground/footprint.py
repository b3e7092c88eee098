"""What the object may occupy of the ground: a polygon that holds it."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.geometry import (
    ORIGIN,
    TWO_PI,
    BoolArray,
    FloatArray,
    Point,
    polar_points,
    repeated,
)

# Samples of the edges per greatest radius.
_SAMPLES = 100


def on_edges(corners: FloatArray, spacing: float) -> tuple[FloatArray, float]:
    """Points on the edges of a polygon, all corners among them, shape (n, 2), and the widest gap on
    an edge.
    """
    edge = np.roll(corners, -1, axis=0) - corners
    length = np.hypot(*edge.T)
    number = np.maximum(np.ceil(length / spacing), 1.0).astype(np.intp)
    which, nth = repeated(number)
    points = corners[which] + (nth / number[which])[:, None] * edge[which]
    return points, float((length / number).max())


class Footprint:
    """What the object may occupy, as far as a radius for each polar angle: a polygon that holds it.

    The radius between two angles may be that of the larger one: each corner is at the largest
    radius of its angle and its neighbours', divided by the cosine of half a step, so that no chord
    cuts into it.
    """

    def __init__(
        self,
        angle: FloatArray,
        radius: FloatArray,
        most: float = math.inf,
        centre: Point = ORIGIN,
    ) -> None:
        """Give the radii, metres, at rising polar angles, radians, shape (M,), and the greatest one
        that is used.

        They are about a `centre`, metres.
        """
        self.centre = centre  #: of the radii, metres.
        once = angle - angle[0] < TWO_PI - 1e-9
        self._angle = angle[once] - angle[0]
        reach = np.clip(radius[once], 0.0, most)
        steps = np.diff(self._angle, append=TWO_PI)
        widest = np.maximum(reach, np.maximum(np.roll(reach, 1), np.roll(reach, -1)))
        self._radius = widest / math.cos(0.5 * float(steps.max()))
        self._turn = float(angle[0])
        #: shape (n, 2), metres.
        self.corners = polar_points(angle[once], self._radius) + centre
        self.greatest = float(self._radius.max())  #: greatest radius, metres.

    @cached_property
    def _samples(self) -> tuple[cKDTree, float]:
        """Points on the edges, all corners among them, and half of the widest gap on an edge."""
        points, gap = on_edges(self.corners, max(self.greatest, 1e-9) / _SAMPLES)
        return cKDTree(points), 0.5 * gap

    def holds(self, x: FloatArray, y: FloatArray) -> BoolArray:
        """Whether points, metres, lie inside the polygon."""
        place = np.mod(np.arctan2(y - self.centre[1], x - self.centre[0]) - self._turn, TWO_PI)
        first = np.searchsorted(self._angle, place, side="right") - 1
        start = self.corners[first]
        end = np.roll(self.corners, -1, axis=0)[first]
        edge = end - start
        return np.asarray(edge[:, 0] * (y - start[:, 1]) - edge[:, 1] * (x - start[:, 0]) > 0.0)

    def distance(self, x: FloatArray, y: FloatArray) -> FloatArray:
        r"""Distance of points to the polygon, 0 inside, metres; never more than it is.

        The point of the edges next to one at the distance d is a corner, or the foot of a
        perpendicular with a sample within half a gap g on the same edge:
        :math:`d \ge \sqrt{d_s^2 - g^2}` with the distance d_s to the samples.
        """
        tree, gap = self._samples
        found = tree.query(np.column_stack([x, y]))[0]
        return np.where(self.holds(x, y), 0.0, np.sqrt(np.maximum(found**2 - gap**2, 0.0)))
