"""The tour planner: go where the least time to the target is expected from, over posterior shapes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.geometry import FloatArray, IntArray, wrap_angle
from nbv_planner.planning.motion import leg_time, route_time, time_matrix
from nbv_planner.planning.planners.planner import Situation
from nbv_planner.planning.planners.rollout import RolloutPlanner
from nbv_planner.planning.shapes.shape_coverage import ShapeCoverage

# Points below this count as none: they are rounding errors.
_ROUNDING = 1e-4
# Views at which a sweep turns back, of a hundred around the object, on the side that it visits first.
_TURNS = (0.0, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18, 0.25, 0.34)
# By how many views of a hundred a sweep may go on beyond where it has to: further on, fewer views may do.
_BEYOND = (0.0, 0.03)
# Sweeps that are worked out, of all that would complete a shape: the shortest.
_SWEEPS = 2
_PART_LEFT = 0.3


@dataclass(frozen=True, eq=False)
class Ring:
    """Views in the order of their polar angles, and how long it takes to get from one to another."""

    times: FloatArray  #: travel from each view to each other, shape (V, V), seconds.
    angle: FloatArray  #: polar angles, rising, shape (V,), radians.
    dwell: float  #: time of a view, seconds.

    def place_after(self, start: IntArray) -> IntArray:
        """How many places after each of the views `start`, (K,), counter-clockwise each view stands, shape (K, V)."""
        size = len(self.angle)
        return np.asarray((np.arange(size) - start[:, None]) % size)


def first_seen(visible: FloatArray) -> tuple[IntArray, IntArray]:
    """Views passed, counter-clockwise and clockwise, from each view on until one sees a cell, shape (S, V, M) each.

    Views on a ring see cells as in `visible`, shape (S, V, M); the number is V where none does.
    """
    seen, size = visible > 0.0, visible.shape[1]
    after = []
    for turned in (seen, seen[:, ::-1]):
        twice = np.concatenate([turned, turned], axis=1)
        at = np.where(twice, np.arange(2 * size, dtype=np.int32)[None, :, None], np.int32(4 * size))
        following = np.minimum.accumulate(at[:, ::-1], axis=1)[:, ::-1][:, :size]
        after.append(np.minimum(following - np.arange(size, dtype=np.int32)[None, :, None], size))
    return after[0], after[1][:, ::-1]


def seconds_to_go(coverage: ShapeCoverage, ring: Ring, first: IntArray, target_coverage: float) -> FloatArray:
    unseen = coverage.unseen
    left = unseen.sum(axis=1, dtype=float)
    needed = np.maximum(left - (1.0 - target_coverage) * coverage.points, _PART_LEFT * left)
    gain = coverage.gains()[:, first].astype(float)
    rest = unseen[:, None, :] * (1.0 - coverage.visible[:, first])
    owed = needed[:, None] - gain
    part = np.where(owed > -_ROUNDING, 1.0, np.divide(needed[:, None], gain, out=np.ones_like(gain), where=gain > 0.0))
    done = owed <= _ROUNDING
    sides = sweeps(coverage, ring, first, rest, owed)
    best = np.full(gain.shape, np.inf)
    for allowed in sides:
        seconds = cover(coverage, ring, first, rest, owed, allowed)
        best = np.minimum(best, seconds)
    return np.where(done, 0.0, best) + ring.dwell * part


def sweeps(coverage: ShapeCoverage, ring: Ring, first: IntArray, rest: FloatArray, owed: FloatArray) -> list[Any]:
    """Windows (ccw extent, cw extent), each (S, K), in places."""
    shapes, count, cells = rest.shape
    size = len(ring.angle)
    ccw, cw = (seen[:, first] for seen in first_seen(coverage.visible))
    job = np.arange(shapes * count).reshape(shapes, count, 1) * (size + 1)
    options = []  # time, ccw extent, cw extent
    turns = sorted({round(part * size) for part in _TURNS})
    k = np.broadcast_to(first, (shapes, count))
    for one, other, sign in ((ccw, cw, 1), (cw, ccw, -1)):
        for extent in turns:
            open_ = np.where(other > extent, rest, 0.0)
            behind = rest.sum(axis=2, dtype=float) - open_.sum(axis=2, dtype=float)
            spread = np.bincount((job + one).ravel(), open_.ravel(), minlength=shapes * count * (size + 1))
            reached = behind[..., None] + np.cumsum(spread.reshape(shapes, count, size + 1), axis=2)[..., :size]
            enough = reached >= owed[..., None] - _ROUNDING
            far = np.where(enough.any(axis=2), enough.argmax(axis=2), size - 1)
            ends = (k + sign * far) % size, (k - sign * extent) % size
            seconds = np.minimum(
                ring.times[k, ends[0]] + ring.times[ends[0], k] * (extent > 0) + ring.times[k, ends[1]],
                ring.times[k, ends[1]] + ring.times[ends[1], k] + ring.times[k, ends[0]],
            )
            # the way through, not the short way round
            options.append((_path(ring, far, extent), *((far, np.full_like(far, extent)) if sign > 0 else (np.full_like(far, extent), far))))
    cost, east, west = (np.stack(values) for values in zip(*options, strict=True))
    order = np.argsort(cost, axis=0, kind="stable")[:_SWEEPS]
    east, west = (np.take_along_axis(values, order, axis=0) for values in (east, west))
    places = ring.place_after(first)
    found = []
    for rank in range(len(order)):
        for beyond in _BEYOND:
            more = round(beyond * size)
            e, w = east[rank], west[rank]
            e2, w2 = np.where(e >= w, e + more, e), np.where(e >= w, w, w + more)
            found.append((places <= e2[..., None]) | (size - places <= w2[..., None]))
    found.append(np.ones((shapes, count, size), dtype=bool))
    return found


def _path(ring: Ring, far: IntArray, extent: int) -> FloatArray:
    """Places passed in a sweep, the shorter side twice."""
    return np.asarray(far + extent + np.minimum(far, extent))


def cover(
    coverage: ShapeCoverage, ring: Ring, first: IntArray, rest: FloatArray, owed: FloatArray, allowed: Any
) -> FloatArray:
    """Cover greedily with allowed views and route."""
    size = len(ring.angle)
    owed, left = owed.copy(), rest.copy()
    chosen, parts = [], np.zeros(owed.shape)
    while (owed > _ROUNDING).any() and len(chosen) < size:
        gains = np.matmul(left, coverage.visible.swapaxes(1, 2))
        gains[~allowed] = 0.0
        best = gains.argmax(axis=2)
        gain = np.take_along_axis(gains, best[..., None], axis=2)[..., 0].astype(float)
        short = owed > _ROUNDING
        nothing = gain <= 0.0
        part = np.where(short, np.where(nothing | (gain < owed), 1.0, owed / np.where(nothing, 1.0, gain)), 0.0)
        chosen.append(np.where(short & ~nothing, best, -1))
        parts += part
        owed = np.where(nothing, -1.0, owed - gain)
        left = left * (1.0 - np.take_along_axis(coverage.visible, best[..., None], axis=1))
    if not chosen:
        return parts
    views = np.stack(chosen, axis=2)
    return ring.dwell * parts + travel(ring, first, views)


def travel(ring: Ring, first: IntArray, views: IntArray) -> FloatArray:
    """Least time of sweeps through views (S, K, n), -1 for none, from `first`."""
    size = len(ring.angle)
    places = (views - first[:, None]) % size
    none = views < 0
    start = np.broadcast_to(first[:, None], (*views.shape[:2], 1))
    best = np.full(views.shape[:2], np.inf)
    # split at the widest gap: the views before it are on the ccw side
    place = np.sort(np.where(none, 0, places), axis=2)
    gaps = np.diff(place, axis=2, prepend=0, append=size)
    split = np.take_along_axis(np.concatenate([np.zeros_like(place[..., :1]), place], axis=2), gaps.argmax(axis=2)[..., None], axis=2)
    east = places <= split
    for key in (np.where(east, places, 2 * size - places), np.where(east, size + places, size - places)):
        order = np.argsort(np.where(none, 4 * size, key), axis=2, kind="stable")
        route = np.concatenate([start, np.take_along_axis(views, order, axis=2)], axis=2)
        best = np.minimum(best, route_time(ring.times, route))
    return best


_FIRST = 16


class TourPlanner(RolloutPlanner):
    """Tour."""

    refinable = False

    def _rank(self, situation: Situation) -> FloatArray:
        s, views = self.settings, self.views.candidates
        seconds = leg_time(self.views, situation.current_view, views, s)
        coverage = self._coverage(situation)
        allowed = np.flatnonzero(situation.feasible)
        allowed = allowed[np.argsort(wrap_angle(views.view_angle[allowed]), kind="stable")]
        visible = coverage.visible[:, allowed]
        part = ShapeCoverage(visible, coverage.unseen, coverage.points)
        gains = part.gains().mean(axis=0, dtype=float)
        first = np.union1d(
            np.argsort(-gains / np.maximum(seconds[allowed], 1e-9), kind="stable")[:_FIRST],
            np.argsort(-gains, kind="stable")[:s.first_views],
        )
        own = views.chosen(allowed)
        times = time_matrix(self.views, own, s) - s.dwell_time
        ring = Ring(times, wrap_angle(own.view_angle), s.dwell_time)
        total, done = np.zeros(len(first)), 0
        for block in part.blocks(8):
            total += seconds_to_go(block, ring, first, s.target_coverage).sum(axis=0)
            done += len(block.points)
            if time.perf_counter() > self._until:
                break
        whole = total / done + seconds[allowed[first]] - s.dwell_time
        ranks = np.full(len(views), -np.inf)
        ranks[allowed[first]] = -np.round(whole, 6)
        return ranks

    def _by_bounds(self, bounds: FloatArray, situation: Situation) -> FloatArray:
        seconds = leg_time(self.views, situation.current_view, self.views.candidates, self.settings)
        return np.asarray(bounds / np.maximum(seconds, 1e-9))
