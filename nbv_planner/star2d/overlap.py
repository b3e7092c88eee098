r"""Do the views fit together? Tests of displacements that would explain how views contradict each
other.

Only where views overlap can they contradict each other, and what the surface is like there must not
matter. So the contour is cut into cells about as long as the noise, in each of which the surface
may be off by any amount. With the signed distances z of the hits from the believed contour, in
standard deviations of the range, and their derivatives :math:`D_k = g_k A_k` by a displacement of a
group of views (g = 1, the others 0), both less their means in the cell c, where others look into it
too:

.. math:: d = N^{-1} \sum_k D_k^\top z_k, \quad N = \sum_k D_k^\top D_k + P, \qquad
    S = N^{-1} \Bigl(\sum_c u_c u_c^\top\Bigr) N^{-1}, \quad u_c = \sum_{k \in c} D_k^\top (z_k -
    D_k d)

with a weak prior P (the estimator with fixed effects: Frisch & Waugh 1933; S: Liang & Zeger 1986).
The covariance of d is :math:`N^{-1}` if the noise is as the scans show it, and S whatever it is,
but S is unsure where cells are few. The score of the group is the length of d in the standard
deviations of that of both which makes it shorter:
:math:`\sqrt{\min(d^\top N d,\; d^\top S^{-1} d)}`. Groups are all views from each one on (drift; an
object that moved), and each view alone; a displacement common to all views (bias) is one of the
camera, ahead, left and turn, which contradicts itself as it comes from different sides. Distance,
normal and cell are those of the place where the beam crosses the contour: at the noisy hit itself z
and D would depend on the same noise. Outliers, and hits on walls that are steep or seen edge on,
are left out.
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
from nbv_planner.surface.checks import ALL_AROUND
from nbv_planner.surface.seam import Hits
from nbv_planner.world.pose import CameraPose
from nbv_planner.world.scan import FreeRays

# Beams of a scan that are kept, and hits of all views that are compared, at most.
_BEAMS, _HITS = 128, 2048
# Steps of a contour to either side among which the nearest point is sought, at most.
_WIDEST = 40
# Beyond this many standard deviations a hit pulls no harder; beyond it lie outliers.
_GATE = 4.0
# Prior standard deviation of a displacement: in mean radii, and in radians.
_LIKELY = 0.1
# Least number of cells, and of hits in each of them on average.
_LEAST_CELLS, _HITS_PER_CELL = 36, 4
# Cells that a score rests on at least: of some views against the others, and of one common to all.
_ENOUGH_CELLS, _MANY_CELLS = 6, 20
_TRACE = 1e-9
# Cosines between the normal of the contour and the radius from which on it is steep, and a beam
# that grazes it.
_STEEP, _GRAZING = 0.5, 0.4
# Hits from which on outliers are counted, and views from which on they are compared.
_ENOUGH_HITS, _ENOUGH_VIEWS = 30, 3
# Beams in a row that are more than chance.
IN_A_ROW = 3


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
    """A believed contour as a polyline of steps about as long as the noise, and what is surely
    inside of it.
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
        reach = (min(int(far * std * steps) + 2, _WIDEST) for far in (1.0, _GATE + 1.0))
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
            found[:, chosen] = self._nearest(
                x[chosen], y[chosen], before[chosen, np.newaxis] + window
            )
        return np.where(off > 0.0, 1.0, -1.0) * found[0], found[1:]

    def _nearest(self, x: FloatArray, y: FloatArray, edge: IntArray) -> FloatArray:
        """Distance of points (n,) from the nearest of some edges (n, w), and x and y of the normal
        there; (3, n).
        """
        edge %= len(self.angle)
        from_x = x[:, np.newaxis] - self._x[edge]
        from_y = y[:, np.newaxis] - self._y[edge]
        edge_x, edge_y = self._edge[0][edge], self._edge[1][edge]
        part = np.clip((from_x * edge_x + from_y * edge_y) / self._squared[edge], 0.0, 1.0)
        squared = (from_x - part * edge_x) ** 2 + (from_y - part * edge_y) ** 2
        row = np.arange(len(x))
        best = squared.argmin(axis=1)
        vertex, part = edge[row, best], part[row, best]
        normal = (1.0 - part) * self._normal[:, vertex] + part * self._normal[
            :, (vertex + 1) % len(self.angle)
        ]
        return np.concatenate([np.sqrt(squared[row, best])[np.newaxis], normal])

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
        way = distance / np.maximum(-(normal_x * beam[0] + normal_y * beam[1]), _GRAZING)
        x, y = x + way * beam[0], y + way * beam[1]
        angle = cartesian_to_polar(x, y)[0]
        normal = np.stack(
            [np.interp(angle, self.angle, part, period=TWO_PI) for part in self._normal]
        )
        return distance, way, x, y, normal / np.maximum(np.hypot(*normal), 1e-12)

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

    @classmethod
    def of(cls, views: Sequence[ViewData], outline: ContourPolyline) -> Residuals:
        """Compare the hits of views, thinned out alike where there are too many, with a contour."""
        view, (x, y, std) = thinned(views, _HITS)
        pose = np.stack([one.pose for one in views])
        beam = np.stack([x, y]) - pose[view, :2].T
        beam /= np.maximum(np.hypot(*beam), 1e-12)
        distance, way, x, y, normal = outline.crossing(x, y, beam)
        facing = -(normal * beam).sum(axis=0)
        angle, radius = cartesian_to_polar(x, y)
        by = (np.stack([*normal, normal[1] * x - normal[0] * y]) / std).T
        steep = (normal[0] * x + normal[1] * y < _STEEP * radius) | (facing < _GRAZING)
        return cls(pose, view, way * facing / std, distance / std, by, angle, steep)

    @property
    def lone(self) -> BoolArray:
        """Which hits lie off the contour, alone; a row of them is a surface that the contour lacks.
        Shape (n,).
        """
        off = np.abs(self.nearest) > _GATE
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
    all, see the module.

    Each is NaN where too little overlaps. The range has the standard deviation `std`, metres; the
    scans show the part `noise` of that.
    """
    views = int(residuals.view.max(initial=-1)) + 1
    if views < _ENOUGH_VIEWS:
        return math.nan, math.nan
    radius = float(np.mean(outline.radius))
    cell, cells = cells_of(residuals.angle, outline, std)
    kept = ~(residuals.steep | residuals.lone)
    place = residuals.view * cells + cell
    lengths = np.array([radius, radius, 1.0])
    sums = _sums(
        residuals.by * (lengths / noise), residuals.distance / noise, place, kept, views * cells
    )
    sums = sums.reshape(views, cells, -1)
    groups = np.concatenate([np.triu(np.ones((views, views)))[1:], np.eye(views)])
    own = np.tensordot(groups, sums, 1)
    every = sums.sum(axis=0)
    number = (sums[..., 0] > 0).sum(axis=0)
    overlap = _scores(own, every, (own[..., 0] > 0) & (own[..., 0] < every[:, 0]), _ENOUGH_CELLS)
    if views < ALL_AROUND:
        return _greatest(overlap), math.nan
    every = _of_cameras(sums, residuals.pose[:views] / lengths).sum(axis=0)
    bias = _scores(every[np.newaxis], every, number[np.newaxis] > 1, _MANY_CELLS)
    return _greatest(overlap), _greatest(bias)


def _greatest(scores: FloatArray) -> float:
    """The greatest of some scores that is known, NaN if none is."""
    return float(scores[known].max()) if (known := ~np.isnan(scores)).any() else math.nan


def _of_cameras(sums: FloatArray, pose: FloatArray) -> FloatArray:
    """The sums (views, cells, 17), with derivatives by a displacement of the camera: ahead, left,
    turn.
    """
    x, y, yaw = pose.T
    zero = np.zeros(len(yaw))
    cos = np.cos(yaw)
    sin = np.sin(yaw)
    by = np.array([[cos, -sin, y], [sin, cos, -x], [zero, zero, zero + 1.0]]).transpose(2, 0, 1)
    twice = (by[:, :, np.newaxis, :, np.newaxis] * by[:, np.newaxis, :, np.newaxis, :]).reshape(
        -1, 9, 9
    )
    parts = [sums[..., :2], sums[..., 2:5] @ by, sums[..., 5:8] @ by, sums[..., 8:] @ twice]
    return np.concatenate(parts, axis=-1)


def _sums(
    by: FloatArray, distance: FloatArray, place: IntArray, kept: BoolArray, size: int
) -> FloatArray:
    """Sums over the kept hits of each place: number, z, D, D z and the products of D; shape (size,
    17).
    """
    slope = by[kept].T
    z = np.clip(distance[kept], -_GATE, _GATE)
    place = place[kept]
    products = (slope[:, np.newaxis] * slope).reshape(9, -1)
    columns = np.concatenate([[np.ones_like(z), z], slope, slope * z, products])
    return np.stack([np.bincount(place, column, minlength=size) for column in columns], axis=-1)


def _scores(own: FloatArray, every: FloatArray, shared: BoolArray, least: int) -> FloatArray:
    """Score of the displacement of each group of views.

    Args:
        own: sums of the hits of each group in each cell, see :func:`_sums`, shape (groups, cells,
            17).
        every: those of all hits, shape (cells, 17).
        shared: which cells are seen by a group and by others, shape (groups, cells).
        least: number of such cells below which the score is NaN.

    Returns:
        Shape (groups,).
    """
    number = np.maximum(every[:, :1], 1.0)
    slope = own[..., 2:5]
    pull = (own[..., 5:8] - slope * (every[:, 1:2] / number)) * shared[..., np.newaxis]
    normal = (
        own[..., 8:].reshape(*slope.shape, 3)
        - slope[..., np.newaxis] * (slope / number)[..., np.newaxis, :]
    )
    normal = normal * shared[..., np.newaxis, np.newaxis]
    cells = shared.sum(axis=1)
    precision = normal.sum(axis=1) + np.eye(3) / _LIKELY**2
    inverse = np.linalg.inv(precision)
    found = np.einsum("gij,gj->gi", inverse, pull.sum(axis=1))
    apart = pull - np.einsum("gcij,gj->gci", normal, found)
    few = cells / np.maximum(cells - 3, 1)
    scatter = few[:, np.newaxis, np.newaxis] * (np.swapaxes(apart, 1, 2) @ apart)
    # A trace of the other, as fewer cells than numbers leave it singular.
    by_cells = inverse @ scatter @ inverse + _TRACE * inverse
    by_noise = np.einsum("gi,gij,gj->g", found, precision, found)
    squared = np.minimum(
        by_noise, (found * np.linalg.solve(by_cells, found[..., np.newaxis])[..., 0]).sum(axis=1)
    )
    return np.where(cells >= least, np.sqrt(np.maximum(squared, 0.0)), np.nan)


def in_rows(mask: BoolArray, least: int) -> BoolArray:
    """Those elements of a mask (n,) that are true in a row of at least `least`."""
    row = np.cumsum(np.diff(mask, prepend=False)) * mask  # odd numbers, one for each row
    return np.asarray(mask & (np.bincount(row)[row] >= least))
