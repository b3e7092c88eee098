"""Tours on a circle that see so much of a known object: the quickest one, that of an omniscient
planner, and the best sweep.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from nbv_bench.optimum.optimum_problem import (
    ROUNDING,
    Cheapest,
    CoverageProblem,
    IntArray,
    least_views,
)
from nbv_planner.geometry import TWO_PI, FloatArray, angle_difference

_SHORTEST = 1e-3  # seconds that the solver is given at least


def least_time(
    problem: CoverageProblem,
    offset: FloatArray,
    seconds_per_radian: float,
    dwell: float,
    points: int,
    *,
    time_limit: float,
) -> Cheapest | None:
    r"""Find the quickest tour on a circle that sees `points` points; None if all views see fewer.

    The camera starts at the offset 0 and needs `seconds_per_radian` to move along the circle to
    views at the `offset`, shape (V,), radians counter-clockwise in [0, 2π), and `dwell` seconds at
    each. A tour that gets as far as b counter-clockwise and a clockwise takes at least

    .. math:: s \min(2a + b, a + 2b) + d N(a, b)

    with the fewest views N among those passed, which one integer programme gives; views that are
    passed need not be taken. A shorter stretch needs no fewer views, so that one programme bounds
    the tours of every stretch within its own: the stretch of the least bound is widened as far as
    it could still be better than the best tour known, until no bound is below that.

    Returns:
        The views in the order of the tour, its seconds and their bound, which is lower than those
        if the `time_limit`, seconds, was too short.

    Raises:
        DependencyError: SciPy is older than 1.9.
    """
    end = time.monotonic() + time_limit
    fewest = least_views(problem, points, time_limit=time_limit)
    if fewest is None:
        return None

    def tour(rows: IntArray) -> Cheapest:
        order, radians = shortest_tour(offset[problem.candidates[rows]])
        return Cheapest(
            tuple(rows[order].tolist()), seconds_per_radian * radians + dwell * len(rows), 0.0
        )

    greedy = greedy_tour(problem, offset, seconds_per_radian, dwell, points)
    best = min(
        (tour(np.array(views, dtype=int)) for views in (fewest.views, greedy.views)),
        key=lambda t: t.cost,
    )
    place, at = np.unique(offset[problem.candidates], return_inverse=True)
    ahead, behind, radians = _stretches(problem, place, at, points)
    least = seconds_per_radian * radians + dwell * fewest.bound
    unsolved = np.ones(len(least), dtype=bool)
    while time.monotonic() < end:
        better = unsolved & (least < best.cost - ROUNDING)
        if not better.any():
            break
        first = int(np.where(better, least, np.inf).argmin())
        allowance = least[first] - seconds_per_radian * radians[first]  # the dwelling in its bound
        within = better & (ahead >= ahead[first]) & (behind <= behind[first])
        within &= seconds_per_radian * radians + allowance < best.cost - ROUNDING
        widest = int(np.where(within, radians, -1.0).argmax())
        rows = np.flatnonzero((at < ahead[widest]) | (at >= behind[widest]))
        part = CoverageProblem(problem.visible[rows], problem.weights, rows)
        found = least_views(part, points, time_limit=max(end - time.monotonic(), _SHORTEST))
        if found is not None:
            best = min(best, tour(rows[list(found.views)]), key=lambda t: t.cost)
            inside = (ahead <= ahead[widest]) & (behind >= behind[widest])
            least[inside] = np.maximum(least, seconds_per_radian * radians + dwell * found.bound)[
                inside
            ]
        unsolved[widest] = False
    return replace(best, bound=float(min(best.cost, least.min(initial=best.cost))))


def _stretches(
    problem: CoverageProblem, place: FloatArray, at: IntArray, points: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Stretches of a circle whose views see so many `points`, and the path length of each,
    radians.

    They go from the start counter-clockwise through the first places (their number) and clockwise
    through those from an index on, shape (N,) each; the views are `at` those of the rising offsets
    `place`.
    """
    sees = np.zeros((len(place), problem.visible.shape[1]), dtype=bool)
    np.logical_or.at(sees, at, problem.visible)
    none = np.zeros((1, sees.shape[1]), dtype=bool)
    up = np.concatenate([none, np.logical_or.accumulate(sees)])
    down = np.concatenate([np.logical_or.accumulate(sees[::-1])[::-1], none])
    ahead, behind = np.triu_indices(len(place) + 1)
    seen = np.array([(first | down) @ problem.weights for first in up])[ahead, behind]
    left = np.concatenate([[0.0], place])[ahead]
    right = np.concatenate([TWO_PI - place, [0.0]])[behind]
    enough = seen >= points
    return ahead[enough], behind[enough], (left + right + np.minimum(left, right))[enough]


def shortest_tour(offset: FloatArray) -> tuple[IntArray, float]:
    """Order in which to visit places on a circle from the offset 0, radians in [0, 2π), and the
    length of the path, radians.

    The first places are visited counter-clockwise and the others clockwise, or the other way round.
    """
    rising = np.argsort(offset, kind="stable")
    ahead = np.concatenate([[0.0], offset[rising]])
    behind = np.concatenate([TWO_PI - offset[rising], [0.0]])
    far = ahead + behind + np.minimum(ahead, behind)
    split = int(far.argmin())
    parts = rising[:split], rising[split:][::-1]
    return np.concatenate(parts if ahead[split] <= behind[split] else parts[::-1]), float(
        far[split]
    )


def greedy_tour(
    problem: CoverageProblem,
    offset: FloatArray,
    seconds_per_radian: float,
    dwell: float,
    points: int,
) -> Cheapest:
    r"""The tour of an omniscient planner that takes the view with most new points per second, the
    first of equals.

    .. math:: θ_t = \arg\max_θ \frac{F(θ | θ_{1:t-1})}{s |θ - θ_{t-1}| + d}

    until `points` points, which some views see together, have been seen; it moves by the shorter
    arc. Arguments as in :func:`least_time`; nothing is proved, the bound is 0.
    """
    taken = list[int]()
    here = 0.0
    seconds = 0.0
    while problem.coverage(taken) < points:
        apart = np.abs(offset[problem.candidates] - here)
        cost = seconds_per_radian * np.minimum(apart, TWO_PI - apart) + dwell
        gains = problem.gains(taken)
        # A view at no cost comes first if it shows anything.
        best = int(np.where(gains > 0, gains / np.maximum(cost, 1e-12), -1.0).argmax())
        taken.append(best)
        here = float(offset[problem.candidates[best]])
        seconds = seconds + float(cost[best])
    return Cheapest(tuple(taken), seconds, 0.0)


def best_sweep(
    problem: CoverageProblem,
    offset: FloatArray,
    seconds_per_radian: float,
    dwell: float,
    points: int,
) -> Cheapest | None:
    """The quickest sweep of one counter-clockwise turn in equal steps, their number chosen in
    hindsight.

    It begins at the view nearest to the start; each further view is the one nearest to its step.
    None if no sweep sees `points`. Arguments as in :func:`least_time`; the bound is 0.
    """
    place = offset[problem.candidates]
    first = place[np.minimum(place, TWO_PI - place).argmin()]
    sweeps = []
    for steps in range(1, len(place) + 1):
        goals = first + np.arange(steps) * (TWO_PI / steps)
        views = np.abs(angle_difference(place[:, None], goals)).argmin(axis=0)
        enough = np.logical_or.accumulate(problem.visible[views]) @ problem.weights >= points
        if enough.any():
            views = views[: int(enough.argmax()) + 1]
            before = np.append(0.0, place[views[:-1]])
            radians = np.abs(angle_difference(place[views], before)).sum()
            seconds = seconds_per_radian * float(radians) + dwell * len(views)
            sweeps.append(Cheapest(tuple(views.tolist()), seconds, 0.0))
    return min(sweeps, key=lambda sweep: sweep.cost, default=None)
