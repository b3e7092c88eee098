"""The optimum of several objects, beside what the omniscient greedy planner reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nbv_planner.evaluation.best_coverage import Optimum
from nbv_planner.evaluation.coverage_problem import greedy_views, plain_problem
from nbv_planner.evaluation.optimality import Optimality, optimality
from nbv_planner.evaluation.optimum import optimum_for
from nbv_planner.geometry import TWO_PI, FloatArray
from nbv_planner.objects import parse_object, surface_points
from nbv_planner.scene import Scene
from nbv_planner.visibility import observe

_THESIS_VIEWS = 100


@dataclass(frozen=True)
class OptimumRow:
    """One object and one number of candidates.

    Attributes:
        object: the object as text.
        candidates: number of candidate views.
        optimum: best coverage by each number of views.
        greedy_coverage: points that the omniscient greedy planner has seen after each view.
    """

    object: str
    candidates: int
    optimum: Optimum
    greedy_coverage: tuple[int, ...]

    @property
    def greedy(self) -> Optimality:
        """The greedy planner against the optimum."""
        return optimality(np.diff(self.greedy_coverage, prepend=0).tolist(), self.optimum)

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary with the best sets."""
        return {
            "object": self.object, "candidates": self.candidates, **asdict(self.optimum),
            "views_95": self.optimum.views_95, "views_100": self.optimum.views_100,
            "proved": list(self.optimum.proved), "greedy_coverage": list(self.greedy_coverage),
        }  # fmt: skip


@dataclass(frozen=True)
class OptimumCase:
    """What to compute.

    Attributes:
        object: the object as text.
        candidates: number of candidate views.
        cache: folder of the cache, None for the usual one.
        time_limit: seconds for each number of views.
    """

    object: str
    candidates: int
    cache: Path | None
    time_limit: float

    def run(self) -> OptimumRow:
        """Compute optimum and greedy coverage in the thesis's scene."""
        scene, views = Scene(), candidate_views(self.candidates)
        points = surface_points(parse_object(self.object, scene), scene.pixel_size)
        optimum = optimum_for(points, scene, views, cache=self.cache, time_limit=self.time_limit)
        problem = plain_problem(observe(points.angle, points.radius, views, scene))
        taken = greedy_views(problem)
        greedy = tuple(problem.coverage(taken[:number]) for number in range(1, len(taken) + 1))
        return OptimumRow(self.object, self.candidates, optimum, greedy)


def candidate_views(count: int) -> FloatArray:
    """Candidate views, shape (count,), radians: equally spaced; 100 are the thesis's, which hold 0 and 2π."""
    return np.linspace(0.0, TWO_PI, count, endpoint=count == _THESIS_VIEWS)


def run_optima(
    cases: Sequence[OptimumCase], workers: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[OptimumRow]:
    """Compute all cases.

    Args:
        cases: what to compute.
        workers: number of processes; the result does not depend on it.
        progress: called with (cases done, cases in all).
    """
    rows = []
    for row in _results(cases, workers):
        rows.append(row)
        progress(len(rows), len(cases))
    return rows


def _results(cases: Sequence[OptimumCase], workers: int) -> Iterator[OptimumRow]:
    """Rows in the order of the cases."""
    if workers == 1:
        yield from map(OptimumCase.run, cases)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(OptimumCase.run, cases)
