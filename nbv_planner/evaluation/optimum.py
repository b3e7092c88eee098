"""Computing the optimum of an object, or reading it from the cache."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path

from nbv_planner.errors import ResultsError, SettingError
from nbv_planner.evaluation.best_coverage import Optimum, optimum_from_json
from nbv_planner.evaluation.coverage_problem import CoverageProblem, plain_problem, reduced_problem
from nbv_planner.evaluation.maximum_coverage import BestSet, maximum_coverage
from nbv_planner.evaluation.optimum_cache import CacheEntry
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.objects import SurfacePoints
from nbv_planner.scene import Scene
from nbv_planner.visibility import observe

DEFAULT_TIME_LIMIT = 60.0
"""Seconds for each number of views."""


def solve_optimum(visible: BoolArray, *, time_limit: float = DEFAULT_TIME_LIMIT) -> Optimum:
    """Compute the optimum for views that see points as given, shape (V, P).

    Args:
        visible: which candidate sees which point.
        time_limit: seconds for each number of views; what is not proved by then shows in `bounds`.

    Raises:
        SettingError: there is no candidate or no point, or `time_limit` is not positive.
        DependencyError: SciPy is older than 1.9.
    """
    if 0 in visible.shape:
        raise SettingError(f"optimum: {visible.shape[0]} candidates and {visible.shape[1]} points; needs some of both")
    if not time_limit > 0.0:
        raise SettingError(f"time_limit: {time_limit} is out of range; must be > 0")
    problem = reduced_problem(visible)
    best: list[BestSet] = []
    while (best[-1].coverage if best else 0) < problem.reachable:
        best.append(_best_set(problem, best, time_limit))
    return Optimum(
        surface_points=visible.shape[1],
        reachable=problem.reachable,
        best_coverage=tuple(b.coverage for b in best),
        bounds=tuple(b.bound for b in best),
        best_views=tuple(tuple(int(problem.candidates[view]) for view in b.views) for b in best),
    )


def _best_set(problem: CoverageProblem, fewer: list[BestSet], time_limit: float) -> BestSet:
    r"""Best set of one view more than the last of `fewer` has.

    Of T views the one that is missed least is missed for at most a T-th of the points, so that
    :math:`F(Θ^*_T) \le \frac{T}{T-1} F(Θ^*_{T-1})`: a set that reaches this is the best, and nothing is left to solve.
    """
    before = fewer[-1] if fewer else BestSet((), 0, 0)
    number = len(fewer) + 1
    views = (*before.views, int(problem.gains(before.views).argmax()))
    coverage = problem.coverage(views)
    ceiling = min(problem.reachable, number * before.bound // (number - 1)) if fewer else coverage
    if coverage == ceiling:
        return BestSet(views, coverage, ceiling)
    found = maximum_coverage(problem, number, time_limit=time_limit)
    bound = min(found.bound, ceiling)
    return BestSet(found.views, found.coverage, bound) if found.coverage > coverage else BestSet(views, coverage, bound)


def optimum_for(
    points: SurfacePoints, scene: Scene, candidates: FloatArray, *, cache: str | Path | None = None,
    time_limit: float = DEFAULT_TIME_LIMIT,
) -> Optimum:
    """Compute the optimum for an object, or read it from the cache. Only what is proved throughout is kept there.

    Args:
        points: surface points of the object.
        scene: cone and view circle.
        candidates: candidate views, shape (V,), radians.
        cache: folder of the cache, see :func:`nbv_planner.evaluation.optimum_cache.default_cache` for None.
        time_limit: seconds for each number of views.

    Raises:
        SettingError: there is no candidate, or `time_limit` is not positive.
        DependencyError: SciPy is older than 1.9, and the cache does not hold the optimum.

    Warns:
        RuntimeWarning: the cache holds a damaged file (the optimum is computed anew) or cannot be written.
    """
    visible = observe(points.angle, points.radius, candidates, scene)
    entry = CacheEntry.of(visible, cache)
    try:
        known = entry.load()
        if known is not None:
            return _checked(optimum_from_json(known), visible)
    except ResultsError as error:
        warnings.warn(f"{error}; the optimum is computed anew", RuntimeWarning, stacklevel=2)
    optimum = solve_optimum(visible, time_limit=time_limit)
    if all(optimum.proved):
        try:
            entry.store(asdict(optimum), scene)
        except ResultsError as error:
            warnings.warn(f"{error}; the optimum is not kept", RuntimeWarning, stacklevel=2)
    return optimum


def _checked(optimum: Optimum, visible: BoolArray) -> Optimum:
    """Let each set of views see what it is said to see.

    Raises:
        ResultsError: it does not.
    """
    problem = plain_problem(visible)
    for views, said in zip(optimum.best_views, optimum.best_coverage, strict=True):
        if not all(0 <= view < len(visible) for view in views) or problem.coverage(views) != said:
            raise ResultsError(f"cached optimum: views {views} do not see {said} points")
    return optimum
