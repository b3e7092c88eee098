"""Beams cast against a closed contour: the range of the first crossing of each beam."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbv_planner.geometry import TWO_PI, FloatArray, IntArray, angle_difference, repeated
from nbv_planner.world.pose import CameraPose


@dataclass(frozen=True, eq=False)
class Contour:
    """A closed polyline with the vertices `x` and `y`, shape (n,), metres; the last is joined to
    the first.
    """

    x: FloatArray
    y: FloatArray

    @property
    def contours(self) -> tuple[Contour]:
        """Itself."""
        return (self,)


def cast_beams(contour: Contour, pose: CameraPose, bearings: FloatArray) -> FloatArray:
    """Range of the first crossing of each beam with the contour, `inf` without a crossing.

    Every edge is paired only with the beams between the bearings of its ends, so the work is
    O(edges + crossings), without a Python loop. The contour is in the object frame; the B
    `bearings` rise, in radians, counter-clockwise from the line of sight; the ranges are in metres.
    """
    x, y = pose.to_camera(contour.x, contour.y)
    edge_x, edge_y = np.roll(x, -1) - x, np.roll(y, -1) - y
    start = np.arctan2(y, x)
    sweep = angle_difference(np.roll(start, -1), start)
    edge, beam = _edges_and_beams(
        np.minimum(start, start + sweep), np.maximum(start, start + sweep), bearings
    )
    ranges = np.full(len(bearings), np.inf)
    distance = _crossing(x[edge], y[edge], edge_x[edge], edge_y[edge], bearings[beam])
    np.minimum.at(ranges, beam, distance)
    return ranges


def _edges_and_beams(
    low: FloatArray, high: FloatArray, bearings: FloatArray
) -> tuple[IntArray, IntArray]:
    """All pairs (edge, beam) for which the beam lies between the bearings `low` and `high` of the
    edge's ends.
    """
    count = len(bearings)
    turns = np.concatenate([bearings - TWO_PI, bearings, bearings + TWO_PI])
    # Ends belong to both neighbours: no beam slips through a vertex by rounding.
    low = low - 1e-12
    high = high + 1e-12
    # Most edges lie beside all beams, on whichever turn.
    begins = turns[::count]
    ends = turns[count - 1 :: count]
    near = np.flatnonzero(
        np.any([(low <= e) & (high >= b) for b, e in zip(begins, ends, strict=True)], axis=0)
    )
    first = np.searchsorted(turns, low[near], side="left")
    number = np.searchsorted(turns, high[near], side="right") - first
    which, nth = repeated(number)
    return near[which], (first[which] + nth) % count


def _crossing(
    x: FloatArray, y: FloatArray, edge_x: FloatArray, edge_y: FloatArray, bearing: FloatArray
) -> FloatArray:
    """Distance to the point of the edge from (x, y) that lies on the beam at `bearing`."""
    cos, sin = np.cos(bearing), np.sin(bearing)
    across = cos * edge_y - sin * edge_x
    along_edge = np.abs(across) <= 1e-12 * np.hypot(edge_x, edge_y)
    # The place on the edge, from 0 to 1, is well defined however flat the beam meets it; the range
    # itself is not.
    part = np.clip((x * sin - y * cos) / np.where(along_edge, 1.0, across), 0.0, 1.0)
    distance = np.hypot(x + part * edge_x, y + part * edge_y)
    # A beam along the edge meets its nearer end first.
    return np.where(
        along_edge, np.minimum(np.hypot(x, y), np.hypot(x + edge_x, y + edge_y)), distance
    )
