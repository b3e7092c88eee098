"""Straight edges continue where nothing has been seen, until they meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    angle_difference,
    polar_to_cartesian,
)

# Lengths that are tried, in units of the least one; the longest straight stretch is the most
# informative.
_LENGTHS = (8.0, 4.0, 2.0, 1.0)
# Part of a length over which there must be measurements.
_FILLED = 0.8
# Fewest measurements that show whether a stretch is straight.
_FEWEST_ON_LINE = 5
# Farthest from its end that a stretch is evaluated, radians: an edge that the camera meets spans
# less.
_FARTHEST = 1.5
# Root mean square of the residuals, in standard deviations, beyond which no line fits.
_WORST_FIT = 1.5
# Standard deviations by which a curve must beat the line.
_SIGNIFICANT = 2.0


@dataclass(frozen=True, eq=False)
class EdgeLine:
    r"""A straight line :math:`1/r = a\cos φ + b\sin φ`, as far as measurements determine it.

    Its coefficients (a, b), shape (2,), and a square root F of their covariance F Fᵀ, shape (2, 2),
    are in 1/m.
    """

    coefficients: FloatArray
    factor: FloatArray

    def inverse_radius(self, angle: FloatArray, normal: FloatArray) -> FloatArray:
        """Return 1/r of draws of the line at each angle (G,), radians, from normals (n, 2); shape
        (n, G), 1/m.
        """
        drawn = self.coefficients + normal @ self.factor.T
        return np.asarray(drawn @ np.stack([np.cos(angle), np.sin(angle)]))


def edge_line(
    angle: FloatArray,
    radius: FloatArray,
    std: FloatArray,
    end: float,
    turn: int,
    least_length: float,
) -> EdgeLine | None:
    r"""Fit the line that a measured stretch ends with; None if it is not straight over
    `least_length` (metres).

    The longest of 8, 4, 2 and 1 times `least_length` over which the measurements are straight is
    taken. They are if

    .. math:: 1/r = a\cos φ + b\sin φ + c

    (a conic about the centre; a straight line for c = 0) leaves no more than the noise, and c is no
    more than two standard deviations. Measured are angles (radians), positive radii and their
    positive standard deviations (metres), shape (n,) each; the stretch ends at the angle `end`
    (radians), with rising (`turn` 1) or falling angle (-1).
    """
    before = -turn * angle_difference(angle, np.asarray(end))
    near = np.flatnonzero((before >= -1e-6) & (before < _FARTHEST))
    if len(near) < _FEWEST_ON_LINE:
        return None
    near = near[np.argsort(before[near], kind="stable")]
    x, y = polar_to_cartesian(angle[near], radius[near])
    away = np.hypot(x - x[0], y - y[0])
    for length in least_length * np.array(_LENGTHS):
        within = away <= length
        if within.sum() >= _FEWEST_ON_LINE and away[within].max() >= _FILLED * length:
            part = near[within]
            try:
                line = _straight(angle[part], radius[part], std[part])
            except np.linalg.LinAlgError:  # all at one angle
                continue
            if line is not None:
                return line
    return None


def _straight(angle: FloatArray, radius: FloatArray, std: FloatArray) -> EdgeLine | None:
    """Fit a line, None if the measurements are not straight."""
    scale = radius**2 / std  # 1/σ of the inverse radius, to first order
    curve = np.column_stack(
        [np.cos(angle), np.sin(angle), np.full(len(angle), 1.0 / radius.mean())]
    )
    solution, factor, residual = _least_squares(curve * scale[:, None], scale / radius)
    if residual > _WORST_FIT or abs(solution[2]) > _SIGNIFICANT * np.hypot.reduce(factor[2]):
        return None
    return EdgeLine(*_least_squares(curve[:, :2] * scale[:, None], scale / radius)[:2])


def _least_squares(matrix: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Solution x of Ax = b with errors of standard deviation 1, a root of its covariance, and the
    root mean square.
    """
    q, r = np.linalg.qr(matrix)
    factor = np.linalg.inv(r)
    solution = factor @ (q.T @ right)
    return solution, factor, float(np.sqrt(np.mean((matrix @ solution - right) ** 2)))


# Fewest grid angles of a gap for which corners are tried.
_FEWEST = 3
# Widest edge between two corners, radians: from half a turn on it would pass the centre on the
# other side.
_WIDEST = 2.8
# Pairs of corners that are tried before a shape stays as it is.
_TRIES = 8


@dataclass(frozen=True, eq=False)
class EdgeDraws:
    """Random choices of how straight edges continue, for S shapes: the same in every round (common
    random numbers).

    The edges of the shapes that are `going_on`, shape (S,), continue: of those `meeting`, shape
    (S,), until they meet, if they do; the others have one edge more in between. For that there are
    standard normals of the lines before and behind a gap, shape (S, 2, 2), and quantiles of two
    corners in it, pairs that are tried in turn, shape (S, T, 2), in [0, 1).
    """

    going_on: BoolArray
    meeting: BoolArray
    normal: FloatArray
    corner: FloatArray

    @classmethod
    def of(cls, generator: np.random.Generator, count: int, probability: float) -> EdgeDraws:
        """Draw for `count` shapes, of which a part `probability` has edges that continue, two
        thirds of it meeting.
        """
        going_on = generator.permutation(count) < np.round(probability * count)
        meeting = generator.random(count) < 2.0 / 3.0
        normal = generator.standard_normal((count, 2, 2))
        return cls(going_on, meeting, normal, np.sort(generator.random((count, _TRIES, 2)), axis=2))


def with_edges_going_on(
    radius: FloatArray,
    angle: FloatArray,
    seen: BoolArray,
    measured: tuple[FloatArray, FloatArray, FloatArray],
    draws: EdgeDraws,
    least_length: float,
    bounds: tuple[float, float],
) -> FloatArray:
    r"""Let the straight edges at both ends of each gap continue in some of the drawn shapes, shape
    (S, M), metres.

    A Gaussian process rounds every corner. Where a gap lies between two straight edges
    (:func:`edge_line`), it is filled by what polygons have there: both edges up to where they meet,
    or up to two corners anywhere in the gap with a third edge in between. A shape of which no such
    filling lies between the bounds stays as it is. How many shapes are filled like that is a
    heuristic, no posterior probability.

    The uniform grid `angle` (radians) and where it has been `seen` have shape (M,); what was
    measured, and the least length of an edge, are as in :func:`edge_line`; the `bounds` are the
    least and the greatest radius, metres.
    """
    radius = radius.copy()
    rows = np.flatnonzero(draws.going_on)
    for gap in _gaps(seen):
        before = edge_line(*measured, angle[gap[0] - 1], 1, least_length)
        behind = edge_line(*measured, angle[(gap[-1] + 1) % len(angle)], -1, least_length)
        if before is None or behind is None:
            continue
        places = angle[gap[0]] + TWO_PI / len(angle) * np.arange(len(gap))
        normal = draws.normal[rows]
        inside = np.ix_(rows, gap)
        ends = (
            before.inverse_radius(places, normal[:, 0]),
            behind.inverse_radius(places, normal[:, 1]),
        )
        corners = _corners(*ends, draws.meeting[rows], draws.corner[rows])
        radius[inside] = _first_within(
            bounds, (_filled(*ends, places, tried) for tried in corners), radius[inside]
        )
    return radius


def _first_within(
    bounds: tuple[float, float], fillings: Iterator[FloatArray], otherwise: FloatArray
) -> FloatArray:
    """Take for each shape the first filling, given as inverse radius (n, G), that stays within the
    bounds, metres.
    """
    radius = otherwise.copy()
    left = np.ones(len(otherwise), dtype=bool)
    for filled in fillings:
        fits = left & ((filled >= 1.0 / bounds[1]) & (filled <= 1.0 / bounds[0])).all(axis=1)
        radius[fits] = 1.0 / filled[fits]
        left &= ~fits
        if not left.any():
            break
    return radius


def _gaps(seen: BoolArray) -> Iterator[IntArray]:
    """Indices of the grid angles of each gap that has seen ones on both sides."""
    size = len(seen)
    begins = np.flatnonzero(~seen & np.roll(seen, 1))
    ends = np.flatnonzero(~seen & np.roll(seen, -1))
    for begin in begins:
        count = int(((ends - begin) % size).min()) + 1
        if count >= _FEWEST:
            yield (begin + np.arange(count)) % size


def _corners(
    before: FloatArray, behind: FloatArray, meeting: BoolArray, corner: FloatArray
) -> Iterator[IntArray]:
    """Yield the last place on the edge before and the first on the one behind, (n, 2), in the order
    they are tried.

    Where they are the wrong way around there is nothing to try. The edges are inverse radii, shape
    (n, G); `meeting` and `corner` are as in :class:`EdgeDraws`.
    """
    crossing = np.diff(before > behind, axis=1)
    last = np.where(meeting & (crossing.sum(axis=1) == 1), crossing.argmax(axis=1), before.shape[1])
    yield np.column_stack([last, last + 1])
    for attempt in range(corner.shape[1]):
        yield (corner[:, attempt] * before.shape[1]).astype(np.intp)


def _filled(
    before: FloatArray, behind: FloatArray, places: FloatArray, corners: IntArray
) -> FloatArray:
    r"""Inverse radius of edges with `corners` (n, 2), shape (n, G); NaN where the corners are
    impossible.

    A straight line from :math:`(φ_1, r_1)` to :math:`(φ_2, r_2)` is
    :math:`1/r = (\sin(φ_2 - φ)/r_1 + \sin(φ - φ_1)/r_2)/\sin(φ_2 - φ_1)`.
    """
    index, rows = np.arange(len(places)), np.arange(len(before))
    last, first = np.minimum(corners, len(places) - 1).T
    begin, end = places[last][:, None], places[first][:, None]
    possible = (last < first)[:, None] & (end - begin < _WIDEST)
    width = np.where(possible, end - begin, 1.0)
    between = (
        before[rows, last][:, None] * np.sin(end - places)
        + behind[rows, first][:, None] * np.sin(places - begin)
    ) / np.sin(width)
    filled = np.where(
        index <= last[:, None], before, np.where(index >= first[:, None], behind, between)
    )
    return np.where(possible, filled, np.nan)
