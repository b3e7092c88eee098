"""Where an object of unknown place and size is, by returns and free space: the most probable circle
around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import label
from scipy.optimize import minimize

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, IntArray, Point, wrap_angle
from nbv_planner.mapping.matching import MatchedScan
from nbv_planner.mapping.scans import valid_beams
from nbv_planner.star2d.shapes.learned_prior import LearnedPriorSettings, ModelAverage
from nbv_planner.star2d.shapes.learned_shapes import to_inverse
from nbv_planner.world.scene import Scene

# Places on the line from the centre to a return; with so many free ones of them something else is
# in between.
_STEPS, _CROSSED = 60, 2
# Spread of the radius, and the angle in which it is one draw, radians: a shape of which only some
# sides are known.
_SHAPE_STD, SHAPE_ANGLE = 0.25, 0.3
# Spread of the given point per axis, in mean radii, and of the logarithm of the mean radius about
# its usual part of the stated radius.
_CENTRE_STD, _SIZE_STD, MEAN_PART = 0.15, 0.45, 0.7
# Gauss-Newton steps to them, at most.
_FIT_STEPS = 30


@dataclass(frozen=True, eq=False)
class Returns:
    """All returns of some scans in the object frame, in the order of scans and beams."""

    x: FloatArray  #: shape (n,), metres, as y.
    y: FloatArray
    scan: IntArray  #: index of the scan, shape (n,).
    beam: IntArray  #: index of the beam in its scan, shape (n,).
    distance: FloatArray  #: range, shape (n,), metres.

    @classmethod
    def of(cls, scans: Sequence[MatchedScan], scene: Scene) -> Returns:
        """Valid returns of scans."""
        parts = []
        for number, match in enumerate(scans):
            beam = np.flatnonzero(valid_beams(match.scan, scene.sensor)[0])
            distance = np.asarray(match.scan.ranges[beam], dtype=float)
            x, y = match.pose.to_world(match.scan.bearings[beam], distance)
            parts.append((x, y, np.full(len(beam), number), beam, distance))
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    def patches(self, outer: float, side: float) -> IntArray:
        """Number of the connected patch of each return, from 1, shape (n,); 0 beyond `outer`,
        metres.

        Returns are connected in neighbouring cells of this `side`, metres.
        """
        part = np.zeros(len(self.x), dtype=int)
        near = np.hypot(self.x, self.y) <= outer
        if near.any():
            column, row = (np.floor((v[near] + outer) / side).astype(int) for v in (self.x, self.y))
            cells = np.zeros((max(column.max(), row.max()) + 1,) * 2, dtype=bool)
            cells[column, row] = True
            part[near] = label(cells, np.ones((3, 3)))[0][column, row]
        return part


@dataclass(frozen=True, eq=False)
class FreeSquare:
    """Cells of a square around the given point through which beams have passed."""

    outer: float  #: half the side of the square, metres.
    side: float  #: side of a cell, metres.
    free: BoolArray  #: shape (C, C), by x and y.

    @classmethod
    def of(
        cls, scans: Sequence[MatchedScan], scene: Scene, outer: float, side: float
    ) -> FreeSquare:
        """What the beams of scans show to be free, up to two cells before their ends."""
        number = math.ceil(2.0 * outer / side)
        free = np.zeros((number, number), dtype=bool)
        for match in scans:
            most = min(match.scan.range_max, scene.sensor.range_max)
            ranges = np.asarray(match.scan.ranges, dtype=float)
            length = np.nan_to_num(ranges, nan=0.0, posinf=most, neginf=0.0)
            along = np.arange(0.0, most, 0.5 * side)[:, None]
            x, y = match.pose.to_world(match.scan.bearings, along)
            passed = (along < length - 2.0 * side) & (np.maximum(np.abs(x), np.abs(y)) < outer)
            free[tuple(np.floor((v[passed] + outer) / side).astype(int) for v in (x, y))] = True
        return cls(outer, side, free)

    def between(self, centre: Point, x: FloatArray, y: FloatArray) -> BoolArray:
        """Whether the lines from the `centre` to (x, y), shape (n,), cross free cells before they
        end there.
        """
        part = np.linspace(0.0, 1.0, _STEPS)[:, None]
        dx, dy = x - centre[0], y - centre[1]
        inside = part * np.hypot(dx, dy) < np.hypot(dx, dy) - 3.0 * self.side
        last = len(self.free) - 1
        column, row = (
            np.clip(np.floor((v + self.outer) / self.side).astype(int), 0, last)
            for v in (centre[0] + part * dx, centre[1] + part * dy)
        )
        return np.asarray((self.free[column, row] & inside).sum(axis=0) >= _CROSSED)


def fitted_circle(x: FloatArray, y: FloatArray, stated: float) -> tuple[float, float, float]:
    r"""Most probable centre and mean radius m of an object with these hits (x, y), shape (n,),
    metres.

    The radius in each direction of 0.3 rad about the centre is one draw of
    :math:`N(m, (0.25\,m)^2)`, however many hits it holds; the centre is :math:`N(0, (0.15\,m)^2)`
    about the given point along each axis and the logarithm of m :math:`N(\log 0.7 R, 0.45^2)` for
    the `stated` radius R. Solved by Gauss-Newton steps from the prior.
    """
    usual = MEAN_PART * stated
    at = np.array([0.0, 0.0, usual])
    for _ in range(_FIT_STEPS):
        dx = x - at[0]
        dy = y - at[1]
        mean = at[2]
        radius = np.maximum(np.hypot(dx, dy), 1e-9 * stated)
        sector = np.floor(wrap_angle(np.arctan2(dy, dx)) / SHAPE_ANGLE).astype(int)
        weight = 1.0 / np.bincount(sector)[sector] / (_SHAPE_STD * mean) ** 2
        rows = np.stack([-dx / radius, -dy / radius, np.full(len(x), -1.0)], axis=1)
        normal = rows.T @ (weight[:, None] * rows)
        right = -rows.T @ (weight * (radius - mean))
        log = math.log(mean / usual)
        precision = np.array([_CENTRE_STD, _CENTRE_STD, _SIZE_STD]) ** -2.0 / mean**2
        normal[np.diag_indices(3)] += precision
        right -= precision * np.array([at[0], at[1], log * mean])
        change = np.linalg.solve(normal, right)
        limit = 0.3 * mean
        at = at + np.clip(change, -limit, limit)
        if np.abs(change).max() < 1e-9 * stated:
            break
    return float(at[0]), float(at[1]), float(at[2])


# Sectors into which hits are merged; least noise of a hit, in mean radii, and factor of its noise:
# what no kernel has.
_SECTORS, _LEAST_STD, _FACTOR = 120, 0.03, 2.0
# Shapes that are weighed against each other: standard deviations in mean radii, and frequencies.
_STDS = (0.1, 0.2, 0.4)
_MEAN_STD = 0.3
_ORDER = 32
# Evaluations of the search for the centre, its first step and its end, in mean radii.
_EVALUATIONS, _FIRST_STEP, _LAST_STEP = 60, 0.1, 0.003


def most_probable_centre(
    x: FloatArray,
    y: FloatArray,
    std: FloatArray,
    circle: tuple[float, float, float],
    before: Point,
) -> tuple[float, float]:
    r"""The centre about which these hits are most probable, (x, y) and their noise `std`, shape
    (n,), metres.

    The log evidence of the hits' inverse radii, averaged over kernels and symmetries as in
    :mod:`nbv_planner.star2d.shapes.learned_prior`, plus that of the centre about the given point:
    about the centre of a regular object its radius is symmetric, and about most inner points of any
    it is smooth. The search begins at the better of the centre `before` and that of the fitted
    `circle`, whose mean radius gives the scale.
    """
    mean = circle[2]
    settings = LearnedPriorSettings(
        prior_smoothness="5/2",
        prior_kernel_stds=tuple(part * mean for part in _STDS),
        prior_mean_std=_MEAN_STD * mean,
    )
    prior = ModelAverage(settings, mean, order=_ORDER)
    std = np.maximum(_FACTOR * std, _LEAST_STD * mean)

    def cost(centre: FloatArray) -> float:
        dx, dy = x - centre[0], y - centre[1]
        angle = wrap_angle(np.arctan2(dy, dx))
        radius = np.hypot(dx, dy)
        sector = np.floor(angle * (_SECTORS / TWO_PI)).astype(int) % _SECTORS
        weight = np.bincount(sector, std**-2.0, _SECTORS)
        full = weight > 0.0
        middle, mean_radius = (
            np.bincount(sector, v * std**-2.0, _SECTORS) / np.where(full, weight, 1.0)
            for v in (angle, radius)
        )
        within = 0.5 * float(np.sum(((radius - mean_radius[sector]) / std) ** 2))
        value, noise = to_inverse(mean_radius[full], weight[full] ** -0.5, mean)
        fit = 0.5 * float(np.sum(((value - mean) / noise) ** 2))
        fit -= prior.given(middle[full], value, noise).log_evidence
        return within + fit + 0.5 * float(centre @ centre) / (_CENTRE_STD * mean) ** 2

    best = min(np.array(circle[:2]), np.array(before), key=cost)
    simplex = best + _FIRST_STEP * mean * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    limits = {
        "initial_simplex": simplex,
        "maxfev": _EVALUATIONS,
        "xatol": _LAST_STEP * mean,
        "fatol": 0.05,
    }
    found = minimize(cost, best, method="Nelder-Mead", options=limits)
    return float(found.x[0]), float(found.x[1])
