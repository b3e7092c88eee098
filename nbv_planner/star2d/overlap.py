r"""Do the views fit together? Residuals of the hits about a mean contour, for the tests of
displacements in :mod:`nbv_planner.surface.displacement`.

Distance, normal and cell are those of the place where the beam crosses the contour: at the noisy
hit itself they would depend on the same noise. Outliers, and hits on walls that are steep or seen
edge on, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    cartesian_to_polar,
    polar_to_cartesian,
)
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.surface.displacement import GATE, IN_A_ROW, UNLIKE, Displaced, in_rows
from nbv_planner.surface.seam import Hits
from nbv_planner.world.pose import CameraPose, poses_in_plane
from nbv_planner.world.scan import FreeRays

# Beams of a scan that are kept, and hits of all views that are compared, at most.
_BEAMS, HITS = 128, 2048
# Steps of a contour to either side among which the nearest point is sought, at most.
_WIDEST = 40
# Least number of cells, and of hits in each of them on average.
_LEAST_CELLS, _HITS_PER_CELL = 36, 4
# Cosines between the normal of the contour and the radius from which on it is steep, and a beam
# that grazes it.
_STEEP, _GRAZING = 0.5, 0.4
# Hits from which on outliers are counted.
_ENOUGH_HITS = 30


@dataclass(frozen=True, eq=False)
class ViewData:
    """What is kept of a view."""

    pose: FloatArray  #: x, y (metres) and yaw (radians) of the camera, shape (3,).
    hits: FloatArray  #: x, y and standard deviation of the range of each hit, metres, shape (3, n).
    #: direction in the object frame (radians) and free length (metres) of each beam, shape (2, m).
    rays: FloatArray
    #: rate of the pose: x, y (m/s) and yaw (rad/s), shape (3,).
    rate: FloatArray = field(default_factory=lambda: np.zeros(3))

    @classmethod
    def of(cls, pose: CameraPose, hits: Hits, free: FreeRays, rate: Sequence[float]) -> ViewData:
        """Thin out what a scan from `pose`, which changed at a `rate`, measured."""
        some = slice(None, None, max(1, math.ceil(len(hits) / _BEAMS)))
        direction = np.arctan2(free.direction[:, 1], free.direction[:, 0])
        every = slice(None, None, max(1, math.ceil(len(direction) / _BEAMS)))
        return cls(
            np.array([pose.x, pose.y, pose.yaw]),
            np.vstack([hits.points[some].T, hits.sigma[some]]),
            np.stack([direction[every], free.length[every]]),
            np.array(rate),
        )


def thinned(views: Sequence[ViewData], most: int) -> tuple[IntArray, FloatArray]:
    """Number of the view of each hit, shape (n,), and the hits, (3, n), thinned out to `most` or
    so.
    """
    some = slice(None, None, math.ceil(max(sum(view.hits.shape[1] for view in views), 1) / most))
    hits = [view.hits[:, some] for view in views]
    return np.repeat(np.arange(len(views)), [one.shape[1] for one in hits]), np.concatenate(
        hits, axis=1
    )


class ContourPolyline:
    """A mean contour as a polyline of steps about as long as the noise, and the region that is
    certainly inside.
    """

    def __init__(self, belief: SurfaceBelief, std: float) -> None:
        """Take the mean contour of `belief`, averaged over steps of about `std` (metres)."""
        whole = len(belief.angle) - (
            belief.angle[-1] - belief.angle[0] > TWO_PI - 0.5 * belief.step
        )
        every = max(1, int(std / (max(float(np.median(belief.mean)), 1e-6) * belief.step)))
        size = max(whole // every, 16)
        start = np.arange(size) * whole // size
        share = np.diff(start, append=whole)
        middle = np.add.reduceat(belief.angle[:whole], start) / share
        radius = np.maximum(np.add.reduceat(belief.mean[:whole], start) / share, 1e-6)
        self.angle, self.radius = middle, radius
        self.inside = np.add.reduceat((belief.mean - 2.0 * belief.std)[:whole], start) / share
        self._x, self._y = polar_to_cartesian(middle, radius)
        along_x, along_y = (
            np.roll(values, -1) - np.roll(values, 1) for values in (self._x, self._y)
        )
        length = np.maximum(np.hypot(along_x, along_y), 1e-12)
        self._normal = np.stack([along_y / length, -along_x / length])
        self._edge = np.stack([np.roll(self._x, -1) - self._x, np.roll(self._y, -1) - self._y])
        self._squared = np.maximum((self._edge**2).sum(axis=0), 1e-24)
        self._std = std
        steps = size / (TWO_PI * float(radius.min()))
        reach = (min(int(far * std * steps) + 2, _WIDEST) for far in (1.0, GATE + 1.0))
        self._windows = tuple(np.arange(-steps, steps + 1) for steps in reach)

    def nearest(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Signed distance of points (n,) from the contour, positive outside, and its outward normal
        there, (2, n).
        """
        angle, radius = cartesian_to_polar(x, y)
        off = radius - np.interp(angle, self.angle, self.radius, period=TWO_PI)
        before = np.searchsorted(self.angle, angle) - 1
        found = np.empty((3, len(x)))
        near = np.abs(off) <= self._std
        for chosen, window in zip((near, ~near), self._windows, strict=True):
            found[:, chosen] = self._nearest(x[chosen], y[chosen], before[chosen, None] + window)
        return np.where(off > 0.0, 1.0, -1.0) * found[0], found[1:]

    def _nearest(self, x: FloatArray, y: FloatArray, edge: IntArray) -> FloatArray:
        """Distance of points (n,) from the nearest of some edges (n, w), and x and y of the normal
        there; (3, n).
        """
        edge %= len(self.angle)
        from_x = x[:, None] - self._x[edge]
        from_y = y[:, None] - self._y[edge]
        edge_x, edge_y = self._edge[0][edge], self._edge[1][edge]
        part = np.clip((from_x * edge_x + from_y * edge_y) / self._squared[edge], 0.0, 1.0)
        squared = (from_x - part * edge_x) ** 2 + (from_y - part * edge_y) ** 2
        row = np.arange(len(x))
        best = squared.argmin(axis=1)
        vertex, part = edge[row, best], part[row, best]
        normal = (1.0 - part) * self._normal[:, vertex] + part * self._normal[
            :, (vertex + 1) % len(self.angle)
        ]
        return np.concatenate([np.sqrt(squared[row, best])[None], normal])

    def crossing(
        self, x: FloatArray, y: FloatArray, beam: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Where beams of directions `beam`, shape (2, n), that end at points (n,) cross the
        contour, to first order.

        The noise of a range moves the end of its beam along the contour, too: the place at the end
        would depend on it.

        Returns:
            Signed distance of each end from the contour, how far beyond the end its beam crosses
            it, the x and y of that place, metres, and the normal there, (2, n).
        """
        distance, (normal_x, normal_y) = self.nearest(x, y)
        beyond = distance / np.maximum(-(normal_x * beam[0] + normal_y * beam[1]), _GRAZING)
        x, y = x + beyond * beam[0], y + beyond * beam[1]
        angle = cartesian_to_polar(x, y)[0]
        normal = np.stack(
            [np.interp(angle, self.angle, part, period=TWO_PI) for part in self._normal]
        )
        return distance, beyond, x, y, normal / np.maximum(np.hypot(*normal), 1e-12)

    def depth(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """How far inside what is surely inside points of any shape lie, metres; negative
        outside.
        """
        angle, radius = cartesian_to_polar(x, y)
        return np.asarray(np.interp(angle, self.angle, self.inside, period=TWO_PI) - radius)


@dataclass(frozen=True, eq=False)
class Residuals:
    """How the hits of all views lie about a contour."""

    #: x, y (metres) and yaw (radians) of the camera in each view, shape (views, 3).
    pose: FloatArray
    view: IntArray  #: number of the view of each hit, from 0, shape (n,).
    #: signed distance of each hit from the contour where its beam crosses it, positive outside, and
    #: from the nearest point, which is never more than the error along the beam; standard
    #: deviations, shape (n,) each.
    distance: FloatArray
    nearest: FloatArray
    #: its derivatives by a displacement of the hit: x, y (metres) and a turn about the centre
    #: (radians), (n, 3).
    by: FloatArray
    angle: FloatArray  #: polar angle at which its beam crosses the contour, radians, shape (n,).
    steep: BoolArray  #: whether the contour is steep there, or the beam grazes it, shape (n,).
    std: float  #: median standard deviation of the hits, metres.

    @classmethod
    def of(cls, views: Sequence[ViewData], outline: ContourPolyline) -> Residuals:
        """Compare the hits of views, thinned out alike where there are too many, with a contour."""
        view, (x, y, std) = thinned(views, HITS)
        pose = np.stack([one.pose for one in views])
        beam = np.stack([x, y]) - pose[view, :2].T
        beam /= np.maximum(np.hypot(*beam), 1e-12)
        distance, beyond, x, y, normal = outline.crossing(x, y, beam)
        facing = -(normal * beam).sum(axis=0)
        angle, radius = cartesian_to_polar(x, y)
        by = (np.stack([*normal, normal[1] * x - normal[0] * y]) / std).T
        steep = (normal[0] * x + normal[1] * y < _STEEP * radius) | (facing < _GRAZING)
        exact = float(np.median(std)) if len(std) else math.nan
        return cls(pose, view, beyond * facing / std, distance / std, by, angle, steep, exact)

    @property
    def lone(self) -> BoolArray:
        """Which hits lie off the contour, alone; a row of them is a surface that the contour lacks.
        Shape (n,).
        """
        off = np.abs(self.nearest) > GATE
        return off & ~in_rows(off, IN_A_ROW)

    def outliers(self) -> float:
        """Part of the hits that lie off the contour, alone; NaN with too few hits."""
        return float(np.mean(self.lone)) if len(self.distance) >= _ENOUGH_HITS else math.nan


def cells_of(angle: FloatArray, outline: ContourPolyline, std: float) -> tuple[IntArray, int]:
    """Cells of the contour that hits at polar angles, shape (n,), fall into, and how many there
    are.

    They are as long as the noise, metres, but with enough hits.
    """
    most = min(TWO_PI * float(np.mean(outline.radius)) / std, len(angle) / _HITS_PER_CELL)
    number = max(round(most), _LEAST_CELLS)
    return (angle * (number / TWO_PI)).astype(np.intp) % number, number


def displacement_scores(
    residuals: Residuals, outline: ContourPolyline, std: float, noise: float = 1.0
) -> tuple[float, float]:
    """Greatest score of a displacement of some views against the others, and that of one common to
    all, see :mod:`nbv_planner.surface.displacement`.

    Each is NaN where too little overlaps. The range has the standard deviation `std`, metres; the
    scans show the part `noise` of that.
    """
    cell, cells = cells_of(residuals.angle, outline, std)
    kept = ~(residuals.steep | residuals.lone)
    found = Displaced(
        poses_in_plane(residuals.pose),
        residuals.view,
        residuals.distance,
        residuals.by,
        cell,
        cells,
        kept,
        UNLIKE * std / residuals.std,
    )
    return found.scores(float(np.mean(outline.radius)), noise)
