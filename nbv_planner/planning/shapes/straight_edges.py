"""Straight edges go on where nothing has been seen, until they meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray, IntArray
from nbv_planner.planning.shapes.edge_line import edge_line

# Fewest grid angles of a gap that is worth a corner.
_FEWEST = 3
# Widest edge between two corners, radians: from half a turn on it would pass the centre on the other side.
_WIDEST = 2.8
# Pairs of corners that are tried before a shape stays as it is.
_TRIES = 8


@dataclass(frozen=True, eq=False)
class EdgeDraws:
    """The chance in how straight edges go on, for S shapes: the same in every round (common random numbers).

    Attributes:
        going_on: whose edges go on, shape (S,).
        meeting: whose edges go on until they meet, if they do, shape (S,); the others have one edge more in between.
        normal: standard normals of the lines before and behind a gap, shape (S, 2, 2).
        corner: quantiles of two corners in a gap, pairs that are tried in turn, shape (S, T, 2), in [0, 1).
    """

    going_on: BoolArray
    meeting: BoolArray
    normal: FloatArray
    corner: FloatArray

    @classmethod
    def of(cls, generator: np.random.Generator, count: int, probability: float) -> EdgeDraws:
        """Draw for `count` shapes, of which a part `probability` has edges that go on, two thirds of it meeting."""
        going_on = generator.permutation(count) < np.round(probability * count)
        meeting = generator.random(count) < 2.0 / 3.0
        normal = generator.standard_normal((count, 2, 2))
        return cls(going_on, meeting, normal, np.sort(generator.random((count, _TRIES, 2)), axis=2))


def with_edges_going_on(
    radius: FloatArray, angle: FloatArray, seen: BoolArray, measured: tuple[FloatArray, FloatArray, FloatArray],
    draws: EdgeDraws, least_length: float, bounds: tuple[float, float],
) -> FloatArray:
    r"""Let the straight edges at both ends of each gap go on in some shapes, shape (S, M), metres.

    A Gaussian process rounds every corner. Where a gap lies between two straight edges (:func:`edge_line`), it is
    filled by what polygons have there: both edges up to where they meet, or up to two corners anywhere in the gap with
    a third edge in between. A shape of which no such filling lies between the bounds stays as it is. How many shapes
    are filled like that is a heuristic, no posterior probability.

    Args:
        radius: drawn shapes, shape (S, M), metres.
        angle: their grid, shape (M,), radians, uniform.
        seen: which grid angles have been seen, shape (M,).
        measured: angles (radians), radii and their standard deviations (metres) of the measurements, shape (n,) each.
        draws: which shapes, and how.
        least_length: of a straight edge, metres.
        bounds: least and greatest radius, metres.
    """
    radius, rows = radius.copy(), np.flatnonzero(draws.going_on)
    for gap in _gaps(seen):
        before = edge_line(*measured, angle[gap[0] - 1], 1, least_length)
        behind = edge_line(*measured, angle[(gap[-1] + 1) % len(angle)], -1, least_length)
        if before is None or behind is None:
            continue
        places = angle[gap[0]] + TWO_PI / len(angle) * np.arange(len(gap))
        normal, inside = draws.normal[rows], np.ix_(rows, gap)
        ends = before.inverse_radius(places, normal[:, 0]), behind.inverse_radius(places, normal[:, 1])
        corners = _corners(*ends, draws.meeting[rows], draws.corner[rows])
        radius[inside] = _first_within(bounds, (_filled(*ends, places, tried) for tried in corners), radius[inside])
    return radius


def _first_within(bounds: tuple[float, float], fillings: Iterator[FloatArray], otherwise: FloatArray) -> FloatArray:
    """Take for each shape the first filling, given as inverse radius (n, G), that stays within the bounds, metres."""
    radius, left = otherwise.copy(), np.ones(len(otherwise), dtype=bool)
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


def _corners(before: FloatArray, behind: FloatArray, meeting: BoolArray, corner: FloatArray) -> Iterator[IntArray]:
    """Yield the last place on the edge before and the first on the one behind, (n, 2), in the order they are tried.

    Where they are the wrong way around there is nothing to try.

    Args:
        before: inverse radius of the edge before, shape (n, G).
        behind: of the edge behind, shape (n, G).
        meeting: which shapes have no edge in between if theirs meet once, shape (n,).
        corner: see :class:`EdgeDraws`, shape (n, T, 2).
    """
    crossing = np.diff(before > behind, axis=1)
    last = np.where(meeting & (crossing.sum(axis=1) == 1), crossing.argmax(axis=1), before.shape[1])
    yield np.column_stack([last, last + 1])
    for attempt in range(corner.shape[1]):
        yield (corner[:, attempt] * before.shape[1]).astype(np.intp)


def _filled(before: FloatArray, behind: FloatArray, places: FloatArray, corners: IntArray) -> FloatArray:
    r"""Inverse radius of edges with `corners` (n, 2), shape (n, G); NaN where the corners are impossible.

    A straight line from :math:`(φ_1, r_1)` to :math:`(φ_2, r_2)` is
    :math:`1/r = (\sin(φ_2 - φ)/r_1 + \sin(φ - φ_1)/r_2)/\sin(φ_2 - φ_1)`.
    """
    index, rows = np.arange(len(places)), np.arange(len(before))
    last, first = np.minimum(corners, len(places) - 1).T
    begin, end = places[last][:, None], places[first][:, None]
    possible = (last < first)[:, None] & (end - begin < _WIDEST)
    width = np.where(possible, end - begin, 1.0)
    between = (
        before[rows, last][:, None] * np.sin(end - places) + behind[rows, first][:, None] * np.sin(places - begin)
    ) / np.sin(width)
    filled = np.where(index <= last[:, None], before, np.where(index >= first[:, None], behind, between))
    return np.where(possible, filled, np.nan)
