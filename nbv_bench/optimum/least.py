"""Least views and least time of objects, in tables: what the subcommand optimum computes in
parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from nbv_bench.optimum.best_sets import Optimality, optimality, optimum_of
from nbv_bench.optimum.optimum_problem import (
    Cheapest,
    Optimum,
    greedy_views,
    least_views,
    plain_problem,
    points_for_95,
    reduced_problem,
)
from nbv_bench.optimum.tours import best_sweep, greedy_tour, least_time
from nbv_bench.statistics import object_interval
from nbv_planner.episode.judge import truth_of
from nbv_planner.geometry import TWO_PI, FloatArray, wrap_angle
from nbv_planner.report.tables import Cell, Column, Table, table_of
from nbv_planner.thesis import TrueSurface
from nbv_planner.world.objects import surface_points
from nbv_planner.world.objects.true_outlines import Outlines, true_object
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import BeamScene, Scene

R = TypeVar("R")
_THESIS_VIEWS = 100


@dataclass(frozen=True)
class OptimumRow:
    """One object as text and one number of candidates: the optimum, and what the omniscient greedy
    planner has seen.

    `greedy_coverage` is its number of points after each view.
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
            "object": self.object,
            "candidates": self.candidates,
            **asdict(self.optimum),
            "views_95": self.optimum.views_95,
            "views_100": self.optimum.views_100,
            "proved": list(self.optimum.proved),
            "greedy_coverage": list(self.greedy_coverage),
        }


def optimum_row(text: str, candidates: int, cache: Path | None, time_limit: float) -> OptimumRow:
    """Optimum and greedy coverage of an object by `candidates` candidate views, in the thesis's
    scene.

    `cache` is the folder of the cache, None for the usual one; `time_limit` seconds are for each
    number of views.
    """
    scene = Scene()
    views = candidate_views(candidates)
    surface, _ = _surface(text, Poses.on_circle(views, scene.view_distance))
    visible = surface.observed(views, scene)
    optimum = optimum_of(visible, scene, cache=cache, time_limit=time_limit)
    problem = plain_problem(visible)
    taken = greedy_views(problem)
    greedy = tuple(problem.coverage(taken[:number]) for number in range(1, len(taken) + 1))
    return OptimumRow(text, candidates, optimum, greedy)


def candidate_views(count: int) -> FloatArray:
    """Candidate views, shape (count,), radians: equally spaced; 100 are the thesis's, which hold 0
    and 2π.
    """
    return np.linspace(0.0, TWO_PI, count, endpoint=count == _THESIS_VIEWS)


@dataclass(frozen=True)
class LeastRow:
    """The cost, by several methods, of seeing 95 % of the surface points of an object."""

    object: str  #: as text.
    surface_points: int
    #: views or seconds by the method; None where its views together do not see enough.
    costs: dict[str, Cheapest | None]

    def percent(self, method: str, reference: str) -> float | None:
        """Cost of one method over that of another, per cent."""
        one = self.costs[method]
        other = self.costs[reference]
        return (
            None
            if one is None or other is None or not other.cost
            else 100.0 * one.cost / other.cost
        )

    def to_json(self) -> dict[str, Any]:
        """Plain dictionary with the sets of views."""
        return asdict(self)


def least_views_row(text: str, circle: Poses, poses: Poses, time_limit: float) -> LeastRow:
    """Fewest views of an object on a circle and among other poses, and those of the omniscient
    greedy planner.

    In the thesis's scene, the poses with beams; with `time_limit` seconds for each of the two.
    """
    surface, needed = _surface(text, circle)
    costs: dict[str, Cheapest | None] = {}
    for name, views, scene in (("circle", circle, Scene()), ("poses", poses, BeamScene())):
        problem = reduced_problem(surface.observed(views, scene))
        least = least_views(problem, needed, time_limit=time_limit)
        taken = greedy_views(problem, needed)
        costs[f"{name}, greedy"] = (
            None if least is None else Cheapest(tuple(taken), len(taken), 0.0)
        )
        costs[f"{name}, least"] = least and least.among(problem.candidates)
    return LeastRow(text, len(surface.angle), costs)


def least_time_row(
    text: str,
    circle: Poses,
    start: CameraPose,
    speeds: Sequence[float],
    dwell: float,
    time_limit: float,
    poses: Poses | None = None,
) -> LeastRow:
    r"""Quickest tours of an object on a circle in the thesis's scene, the best sweeps in hindsight,
    and the tours of an omniscient planner that is greedy by time.

    They begin at `start` on the circle, at each of the `speeds` (m/s) with `dwell` seconds a view;
    the `time_limit`, seconds, is for each tour. Of other `poses`: the best tour on one ring of
    them, :math:`|d - d_{cam}|` away, and a bound of all tours among them. A path that keeps out of
    the object's bound is no shorter than its projection on that disc, so that the tours on the
    disc bound those of all paths. Time to turn is not counted.
    """
    surface, needed = _surface(text, circle)

    def tour(
        views: Poses, scene: Scene, pace: float, planner: Callable[..., Cheapest | None]
    ) -> Cheapest | None:
        """Of one planner at a pace in seconds per radian; None if its views do not see enough."""
        offset = wrap_angle(views.polar[:, 0] - start.polar[0])
        problem = reduced_problem(surface.observed(views, scene), offset)
        enough = problem.reachable >= needed
        found = planner(problem, offset, pace, dwell, needed) if enough else None
        return found and found.among(problem.candidates)

    least = partial(least_time, time_limit=time_limit)
    costs: dict[str, Cheapest | None] = {}
    for speed in speeds:
        pace = Scene().view_distance / speed
        for name, planner in (("sweep", best_sweep), ("greedy", greedy_tour), ("least", least)):
            costs[f"{speed:g} m/s, {name}"] = tour(circle, Scene(), pace, planner)
        if poses is None:
            continue
        scene = BeamScene()
        rings = list[Cheapest]()
        for distance in np.unique(poses.distance):
            ring = np.flatnonzero(poses.distance == distance)
            if one := tour(poses.chosen(ring), scene, distance / speed, least):
                seconds = one.cost + abs(float(distance) - scene.view_distance) / speed
                rings.append(replace(one.among(ring), cost=seconds))
        disc = min(scene.radius_max, float(poses.distance.min()))
        bound = tour(poses, scene, disc / speed, least) if rings else None
        costs[f"{speed:g} m/s, poses"] = bound and replace(
            min(rings, key=lambda one: one.cost), bound=bound.bound
        )
    return LeastRow(text, len(surface.angle), costs)


def _surface(text: str, circle: Poses) -> tuple[TrueSurface, int]:
    """Surface points of an object, where it is not star-shaped those that the circle sees, and how
    many of them are 95 %.
    """
    scene = Scene()
    shape = true_object(text, scene)
    points = truth_of(shape, surface_points(shape, scene.pixel_size), scene, circle).points
    sight = shape.visible if isinstance(shape, Outlines) else None
    return TrueSurface(points.angle, points.radius, sight=sight), points_for_95(len(points))


_NUMBERS = ["cost", "percent", "bound"]


def least_tables(
    rows: Sequence[LeastRow], name: str, unit: str, digits: int, reference: str
) -> list[Table]:
    """The mean of each method over the objects, and the objects.

    The `reference` is the method to compare with, or that method at the same speed. The intervals
    take the objects for a sample of their kind, see :func:`object_interval`.
    """
    methods = list(rows[0].costs)
    means = list[tuple[Cell, ...]]()
    for method in methods:
        beside = reference if reference in methods else f"{method.partition(',')[0]}, {reference}"
        group = pd.DataFrame(
            [
                (one.cost, row.percent(method, beside), one.bound or None, one.proved)
                for row in rows
                if (one := row.costs[method]) is not None
            ],
            columns=[*_NUMBERS, "proved"],
        ).astype(dict.fromkeys(_NUMBERS, float))
        cost, percent, bound = (object_interval(group[name]) for name in _NUMBERS)
        proved = int(group["proved"].sum()) if bound.cases else None
        means.append((method, cost, percent, group["percent"].max(), len(group), proved, bound))
    columns = (
        Column("method", "method"),
        Column(unit, f"{unit} to 95 %", 2, interval=True),
        Column("percent", f"% of {reference}", 1, interval=True),
        Column("greatest_percent", "greatest %", 1),
        Column("objects", "objects"),
        Column("proved", "proved"),
        Column("bound", "proved bound", 2, interval=True),
    )
    title = f"{unit} to 95 % of the surface points"
    return [
        Table(name, title, "", columns, tuple(means)),
        table_of(
            f"{name}_objects",
            "Single objects",
            "",
            [
                (Column("object", "object"), lambda row: row.object),
                (Column("surface_points", "surface points"), lambda row: row.surface_points),
                *(_cost_of(method, digits) for method in methods),
            ],
            rows,
        ),
    ]


def _cost_of(method: str, digits: int) -> tuple[Column, Callable[[LeastRow], float | None]]:
    """A column with the cost of a method."""
    name = method.replace(", ", "_").replace(" ", "")
    return Column(name, method, digits), lambda row: (one := row.costs[method]) and float(one.cost)


def run_optima(
    row: Callable[[str], R],
    objects: Sequence[str],
    workers: int,
    progress: Callable[[int], None] = lambda done: None,
) -> list[R]:
    """The rows of `objects`, computed in a number of processes; `progress` is called with the
    number of those done.
    """
    rows = list[R]()
    with ProcessPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
        for one in (map if pool is None else pool.map)(row, objects):
            rows.append(one)
            progress(len(rows))
    return rows
