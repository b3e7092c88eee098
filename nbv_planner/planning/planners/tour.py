"""The tour planner: go where the target is expected to be reached soonest from, over posterior
shapes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbv_planner.geometry import (
    TWO_PI,
    BoolArray,
    FloatArray,
    IntArray,
    angle_difference,
    wrap_angle,
)
from nbv_planner.planning.motion import route_time, time_matrix, trip_time, with_looks
from nbv_planner.planning.planners.planner import Options
from nbv_planner.planning.planners.rollout import RolloutPlanner, mean_in_time
from nbv_planner.surface.coverage import ShapeCoverage
from nbv_planner.world.pose import CameraPose

# Points below this count as none: they are rounding errors.
_ROUNDING = 1e-4
# How far a sweep may go in the direction that it leaves again, in parts of all views around the
# object.
_TURNS = (0.0, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18, 0.25, 0.34)
# How far a sweep may go on beyond where it has to, likewise: there fewer views may do.
_BEYOND = (0.0, 0.03)
# Sweeps that are worked out, of all that complete a shape: the shortest.
_SWEEPS = 2
# Part of what is left of a shape that is to be seen at least. A shape that is complete already is
# wrong: whoever asks for a view does not think so.
_LEFT = 0.3
# Tours lead through this many views at most, the best ones around the object.
_MOST_VIEWS = 128
_SHAPES_AT_A_TIME = 8
# Means that differ by rounding alone are equal.
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Circuit:
    """Views in the order of their polar angles, and the time from one to another."""

    times: FloatArray  #: of the travel from each view to each other, shape (V, V), seconds.
    dwell: float  #: time of a view, seconds.

    @cached_property
    def elapsed(self) -> FloatArray:
        """Time to each view from the first one, counter-clockwise through all between, two turns,
        shape (2V,).
        """
        size = len(self.times)
        trips = self.times[np.arange(size), (np.arange(size) + 1) % size]
        return np.concatenate([[0.0], np.cumsum(np.tile(trips, 2))[:-1]])

    def sweep(self, first: IntArray, ahead: IntArray, back: IntArray) -> FloatArray:
        """Time to go from `first` by so many places counter-clockwise and so many clockwise, the
        shorter of the two twice.
        """
        size = len(self.times)
        one = self.elapsed[first + ahead] - self.elapsed[first]
        other = self.elapsed[first + size] - self.elapsed[first + size - back]
        return np.asarray(one + other + np.minimum(one, other))


def first_seen(visible: FloatArray) -> tuple[IntArray, IntArray]:
    """Places from each view, counter-clockwise and clockwise, to the first that sees a cell, shape
    (S, V, M) each.

    The V views of a circuit see cells as in `visible`, shape (S, V, M); V places where none does.
    """
    size = visible.shape[1]
    place = np.arange(size, dtype=np.int32)[:, None]
    found = []
    for seen in (visible > 0.0, visible[:, ::-1] > 0.0):
        at = np.where(
            np.concatenate([seen, seen], axis=1),
            np.vstack([place, place + size]),
            np.int32(2 * size),
        )
        following = np.minimum.accumulate(at[:, ::-1], axis=1)[:, ::-1][:, :size]
        found.append(np.minimum(following - place, size))
    return found[0], found[1][:, ::-1]


def seconds_to_go(
    coverage: ShapeCoverage, circuit: Circuit, first: IntArray, target_coverage: float
) -> FloatArray:
    r"""Time until `target_coverage`, in (0, 1], of each shape has been seen, once at the first
    view, shape (S, K), s.

    The views of the `coverage` are those of the circuit, and the indices of K of them to begin with
    are in `first`. The rest is a good tour of one that knows the shape: the best of those through a
    greedy cover by views of a window around the first one, for some windows in which the target can
    be reached and for all views. A window is swept in one direction, or first a bit in the other
    one and then back. Of the last view only the needed part of its time counts, and a remainder
    that no view would see counts as one view. So where travel takes no time it is
    :func:`nbv_planner.planning.planners.rollout.views_to_go` times the time of a view, or less.
    """
    part, rest, owed = _after_first(coverage, first, target_coverage)
    windows = list(_windows(coverage.visible, circuit, first, rest, owed))
    number = len(windows)
    seconds = _covering_time(
        coverage.visible,
        circuit,
        np.tile(first, number),
        np.tile(rest, (1, number, 1)),
        np.tile(owed, number),
        np.concatenate(windows, axis=1),
    )
    return np.asarray(
        circuit.dwell * part + seconds.reshape(len(owed), number, len(first)).min(axis=1)
    )


def _after_first(
    coverage: ShapeCoverage, first: IntArray, target_coverage: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Part of the first view that is needed, shape (S, K), what is left then, (S, K, M), and what
    is owed, (S, K).
    """
    gain = coverage.gains()[:, first].astype(float)
    left = coverage.unseen.sum(axis=1, dtype=float)
    needed = np.maximum(left - (1.0 - target_coverage) * coverage.points, _LEFT * left)[:, None]
    part = np.divide(needed, gain, out=np.ones_like(gain), where=gain > needed)
    return part, coverage.unseen[:, None, :] * (1.0 - coverage.visible[:, first]), needed - gain


def seen_on_trips(visible: FloatArray, angle: FloatArray, start: float) -> FloatArray:
    """What is seen on the trips from the polar angle `start` to each view, shape (S, V, M): all
    that views between see.

    The V views at the polar angles `angle`, radians, see cells as in `visible`, shape (S, V, M),
    and the trips go by the shorter arc.
    """
    ahead = angle_difference(angle, start)
    seen = visible.copy()
    for side in (ahead, -ahead):
        order = np.argsort(side, kind="stable")
        order = order[side[order] >= 0.0]
        seen[:, order] = np.maximum.accumulate(visible[:, order], axis=1)
    return seen


def seconds_to_sweep(
    coverage: ShapeCoverage,
    trips: ShapeCoverage,
    circuit: Circuit,
    first: IntArray,
    target_coverage: float,
) -> FloatArray:
    r"""Time as in :func:`seconds_to_go` if the camera sees on the way, too, shape (S, K), seconds.

    What the trip to each view shows is in `trips`. The rest is the shortest sweep that completes
    the shape, of those of :func:`_sweeps`. It stops only where it turns back, where it ends, and
    after half a turn, as trips are no longer.
    """
    part, rest, owed = _after_first(trips, first, target_coverage)
    ends, times = _sweeps(coverage.visible, circuit, first, rest, owed)
    half = 0.5 * len(circuit.times)
    short = ends.min(axis=1)
    stops = np.ceil(short / half) + np.ceil((short + ends.max(axis=1)) / half)
    return np.asarray(circuit.dwell * part + (times + circuit.dwell * stops).min(axis=0))


def _windows(
    visible: FloatArray, circuit: Circuit, first: IntArray, rest: FloatArray, owed: FloatArray
) -> Iterator[BoolArray]:
    """Which views a tour may take, shape (S, K, V): around the first view as far as the shortest
    sweeps go, and all.
    """
    size = visible.shape[1]
    ends, times = _sweeps(visible, circuit, first, rest, owed)
    places = (np.arange(size) - first[:, None]) % size
    for option in np.argsort(times, axis=0, kind="stable")[:_SWEEPS]:
        one, other = np.take_along_axis(ends, option[None, None], axis=0)[0]
        for beyond in (round(part * size) for part in _BEYOND):
            further = (one + beyond * (one >= other), other + beyond * (one < other))
            yield (places <= further[0][..., None]) | (size - places <= further[1][..., None])
    yield np.ones((*owed.shape, size), dtype=bool)


def _sweeps(
    visible: FloatArray, circuit: Circuit, first: IntArray, rest: FloatArray, owed: FloatArray
) -> tuple[IntArray, FloatArray]:
    """How far E sweeps go in both directions, in places, shape (E, 2, S, K), and the time of their
    travel, (E, S, K).

    Of each shape and first view the points `rest`, shape (S, K, M), are unseen and `owed`, shape
    (S, K), to be seen. A cell is seen in a sweep if it is seen early enough in one of both
    directions.
    """
    shapes, count, _ = rest.shape
    size = visible.shape[1]
    ahead, back = (seen[:, first] for seen in first_seen(visible))
    options = []
    for extent in sorted({round(part * size) for part in _TURNS}):
        short = np.full((shapes, count), extent)
        options.append((_reach(ahead, np.where(back > extent, rest, 0.0), rest, owed, size), short))
        options.append((short, _reach(back, np.where(ahead > extent, rest, 0.0), rest, owed, size)))
    ends = np.array(options)
    return ends, circuit.sweep(first, ends[:, 0], ends[:, 1])


def _reach(
    places: IntArray, open_: FloatArray, rest: FloatArray, owed: FloatArray, size: int
) -> IntArray:
    """How many places a sweep must go to see what is `owed`, (S, K), if only cells `open_` (S, K,
    M) are left to it.
    """
    shapes, count, _ = rest.shape
    job = np.arange(shapes * count).reshape(shapes, count, 1) * (size + 1)
    seen = np.bincount((job + places).ravel(), open_.ravel(), minlength=shapes * count * (size + 1))
    behind = (rest.sum(axis=2, dtype=float) - open_.sum(axis=2, dtype=float))[..., None]
    reached = behind + np.cumsum(seen.reshape(shapes, count, size + 1), axis=2)[..., :size]
    enough = reached >= owed[..., None] - _ROUNDING
    return np.where(enough.any(axis=2), enough.argmax(axis=2), size - 1)


def _covering_time(
    visible: FloatArray,
    circuit: Circuit,
    first: IntArray,
    left: FloatArray,
    owed: FloatArray,
    allowed: BoolArray,
) -> FloatArray:
    """Time of tours from the views `first`, (J,), through greedy covers by the views that are
    `allowed`, shape (S, J).

    The points `left`, shape (S, J, M), are unseen and `owed`, shape (S, J), to be seen; `left` is
    changed.
    """
    shapes, size, cells = visible.shape
    hidden = (1.0 - visible).reshape(shapes * size, cells)
    towards = np.ascontiguousarray(visible.swapaxes(1, 2))
    row = np.arange(shapes)[:, None] * size
    may = allowed.astype(np.float32)
    route = [np.broadcast_to(first, owed.shape)]
    parts = np.zeros(owed.shape)
    while (owed > _ROUNDING).any():
        gains = np.matmul(left, towards)
        gains *= may
        best = gains.argmax(axis=2)
        gain = np.take_along_axis(gains, best[..., None], axis=2)[..., 0].astype(float)
        short = owed > _ROUNDING
        parts += np.divide(owed, gain, out=short.astype(float), where=short & (gain > owed))
        route.append(np.where(short & (gain > 0.0), best, -1))
        owed = np.where(gain > 0.0, owed - gain, 0.0)  # no view adds to what is left
        left *= hidden.take(row + best, axis=0)
    return circuit.dwell * parts + _sweep_time(circuit, np.stack(route, axis=2))


def _sweep_time(circuit: Circuit, route: IntArray) -> FloatArray:
    """Least time from the first view of each route, (S, J, n), -1 for none, through the others, in
    either direction.

    The views on one side of the widest gap between two are visited first, and those on the other
    side then.
    """
    size = len(circuit.times)
    none = route < 0
    places = np.where(none, 0, (route - route[..., :1]) % size)
    order = np.sort(places, axis=2)
    gaps = np.diff(order, axis=2, append=size)
    split = np.take_along_axis(order, gaps.argmax(axis=2)[..., None], axis=2)
    ahead = places <= split
    times = []
    for ahead_first in (True, False):
        away = np.where(ahead, places, size - places) + np.where(ahead == ahead_first, 0, size)
        away = np.where(none, 3 * size, away)
        away[..., 0] = -1
        times.append(
            route_time(
                circuit.times,
                np.take_along_axis(route, np.argsort(away, axis=2, kind="stable"), axis=2),
            )
        )
    return np.minimum(*times)


class TourPlanner(RolloutPlanner):
    r"""Minimise the mean time to go over posterior shapes: a rollout that counts seconds, not
    views.

    For each of the `first_views` feasible candidates from which most points per second are
    expected, travel and dwell counted, and each shape, the time is that of the travel there and of
    :func:`seconds_to_go`; the candidate of the least mean wins. As in the rollout the mean is taken
    over the shapes done before the `deadline`. Where the camera is not known to be, the way to the
    first view counts nothing.

    With `look_every` the time is that of :func:`seconds_to_sweep`: all that candidates between the
    ends of a trip see counts as seen on the way, for candidates on the view circle without a
    ground. Elsewhere the trip to a view shows nothing beforehand, but what was seen on the trips so
    far counts there, too.
    """

    refinable = False

    def _looked(self, visited: Sequence[CameraPose]) -> Sequence[CameraPose]:
        """The views taken and those on the ways between them."""
        return with_looks(self.views, visited, self.settings.look_every)

    def _rank(self, options: Options) -> FloatArray:
        situation = options.situation
        views = situation.views
        s = self.settings
        coverage = self._objective.coverage(situation)
        trips = trip_time(self.views, situation.current_view, views, s)
        shown = coverage
        sweeps = (
            s.look_every > 0.0 and self.views.ground is None and views.are_on_circle(self.circle)
        )
        if sweeps and situation.current_view is not None:
            on_trips = seen_on_trips(
                coverage.visible, views.view_angle, situation.current_view.view_angle
            )
            shown = dataclasses.replace(coverage, visible=on_trips)
        gains = np.where(options.feasible, shown.gains().mean(axis=0, dtype=float), -np.inf)
        # a trip that takes no time counts as a short one
        per_second = gains / np.maximum(trips, _ROUNDING)
        first = np.argsort(-per_second, kind="stable")[
            : min(s.first_views, np.count_nonzero(options.feasible))
        ]
        passed = np.union1d(first, _best_around(views.view_angle, gains))
        passed = passed[np.argsort(wrap_angle(views.view_angle[passed]), kind="stable")]
        circuit = Circuit(
            time_matrix(self.views, views.chosen(passed), s) - s.dwell_time, s.dwell_time
        )
        at = np.flatnonzero(np.isin(passed, first))
        seen, to_them = (
            dataclasses.replace(one, visible=one.visible[:, passed]).blocks(_SHAPES_AT_A_TIME)
            for one in (coverage, shown)
        )
        seconds = mean_in_time(
            (
                (
                    seconds_to_sweep(part, on_trips, circuit, at, s.target_coverage)
                    if sweeps
                    else seconds_to_go(part, circuit, at, s.target_coverage)
                )
                for part, on_trips in zip(seen, to_them, strict=True)
            ),
            options.until,
        )
        ranks = np.full(len(views), -np.inf)
        ranks[passed[at]] = -np.round(seconds + trips[passed[at]], _DECIMALS)
        return ranks

    def _by_bounds(self, bounds: FloatArray, options: Options) -> FloatArray:
        """The bounds per second."""
        trips = trip_time(
            self.views, options.situation.current_view, self.views.candidates, self.settings
        )
        return bounds / np.maximum(trips, _ROUNDING)


def _best_around(angle: FloatArray, gains: FloatArray) -> IntArray:
    """Indices of the views that may be taken, of `gains` > -inf: all, or of many the best of each
    sector around.
    """
    may = np.flatnonzero(gains > -math.inf)
    if len(may) <= _MOST_VIEWS:
        return may
    sector = (wrap_angle(angle[may]) * (_MOST_VIEWS / TWO_PI)).astype(int)
    order = np.lexsort((-gains[may], sector))
    return may[order[np.unique(sector[order], return_index=True)[1]]]
