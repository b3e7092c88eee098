"""Least views and least time of objects, in tables: what the subcommand optimum computes in
parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from nbv_bench.optimum.best_sets import Optimality, optimality, optimum_of
from nbv_bench.optimum.optimum_problem import (
    Cheapest,
    CoverageProblem,
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
from nbv_planner.report.tables import Cell, Column, Table
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


@dataclass(frozen=True, eq=False)
class LeastTimeCase:
    """What to compute: the quickest tour from a view of the circle, at several speeds, in the
    thesis's scene.
    """

    object: str
    circle: Poses
    start: CameraPose
    speeds: tuple[float, ...]  #: m/s.
    dwell_time: float  #: seconds at each view.
    time_limit: float  #: seconds for each tour.
    poses: Poses | None = None  #: other poses, see :meth:`_among_poses`.

    def run(self) -> LeastRow:
        """Compute them, the best sweeps in hindsight, and the tours of an omniscient planner that
        is greedy by time.
        """
        surface, needed = _surface(self.object, self.circle)
        distance = Scene().view_distance
        costs: dict[str, Cheapest | None] = {}
        for speed in self.speeds:
            for name, planner in (
                ("sweep", best_sweep),
                ("greedy", greedy_tour),
                ("least", self._least),
            ):
                problem = self._problem(surface, self.circle, Scene())
                costs[f"{speed:g} m/s, {name}"] = self._tour(
                    problem, needed, distance / speed, planner
                )
            if self.poses is not None:
                costs[f"{speed:g} m/s, poses"] = self._among_poses(
                    surface, needed, self.poses, speed
                )
        return LeastRow(self.object, len(surface.angle), costs)

    def _among_poses(
        self, surface: TrueSurface, needed: int, poses: Poses, speed: float
    ) -> Cheapest | None:
        r"""The best tour on one ring of the poses, :math:`|d - d_{cam}|` away, and a bound of all
        tours among them.

        A path that keeps out of the object's bound is no shorter than its projection on that disc,
        so that the tours on the disc bound those of all paths. Time to turn is not counted.
        """
        scene = BeamScene()
        rings = list[Cheapest]()
        for distance in np.unique(poses.distance):
            ring = np.flatnonzero(poses.distance == distance)
            problem = self._problem(surface, poses.chosen(ring), scene)
            if (tour := self._tour(problem, needed, distance / speed, self._least)) is not None:
                seconds = tour.cost + abs(float(distance) - scene.view_distance) / speed
                rings.append(replace(tour.among(ring), cost=seconds))
        disc = min(scene.radius_max, float(poses.distance.min()))
        bound = (
            self._tour(self._problem(surface, poses, scene), needed, disc / speed, self._least)
            if rings
            else None
        )
        return bound and replace(min(rings, key=lambda tour: tour.cost), bound=bound.bound)

    def _problem(
        self, surface: TrueSurface, views: Poses, scene: Scene
    ) -> tuple[CoverageProblem, FloatArray]:
        """What the views see, and how far each is from the start, radians."""
        offset = wrap_angle(views.polar[:, 0] - self.start.polar[0])
        return reduced_problem(surface.observed(views, scene), offset), offset

    def _tour(
        self,
        of: tuple[CoverageProblem, FloatArray],
        needed: int,
        pace: float,
        planner: Callable[..., Cheapest | None],
    ) -> Cheapest | None:
        """Tour of one planner on a circle at a pace in seconds per radian; None if its views do not
        see enough.
        """
        problem, offset = of
        found = (
            None
            if problem.reachable < needed
            else planner(problem, offset, pace, self.dwell_time, needed)
        )
        return found and found.among(problem.candidates)

    def _least(self, *problem: Any) -> Cheapest | None:
        return least_time(*problem, time_limit=self.time_limit)


def _surface(text: str, circle: Poses) -> tuple[TrueSurface, int]:
    """Surface points of an object, where it is not star-shaped those that the circle sees, and how
    many of them are 95 %.
    """
    scene = Scene()
    shape = true_object(text, scene)
    points = truth_of(shape, surface_points(shape, scene.pixel_size), scene, circle).points
    sight = shape.visible if isinstance(shape, Outlines) else None
    return TrueSurface(points.angle, points.radius, sight=sight), points_for_95(len(points))


def least_tables(
    rows: Sequence[LeastRow], name: str, unit: str, digits: int, reference: str
) -> list[Table]:
    """The mean of each method over the objects, and the objects.

    The `reference` is the method to compare with, or that method at the same speed. The intervals
    take the objects for a sample of their kind, see :func:`object_interval`.
    """
    methods = list(rows[0].costs)
    beside = {
        m: reference if reference in methods else f"{m.partition(',')[0]}, {reference}"
        for m in methods
    }
    costs = pd.DataFrame(
        [
            (
                number,
                0,
                method,
                cheapest.cost,
                row.percent(method, beside[method]),
                cheapest.bound,
                cheapest.proved,
            )
            for number, row in enumerate(rows)
            for method, cheapest in row.costs.items()
            if cheapest is not None
        ],
        columns=["object", "seed", "method", "cost", "percent", "bound", "proved"],
    ).astype({"percent": float})
    means = list[tuple[Cell, ...]]()
    for method in methods:
        group = costs[costs["method"] == method].set_index(["object", "seed"])
        bound = group["bound"][group["bound"] > 0.0]
        cost, percent, least = map(
            object_interval, (group["cost"], group["percent"].dropna(), bound)
        )
        proved = int(group["proved"].sum()) if len(bound) else None
        means.append((method, cost, percent, group["percent"].max(), len(group), proved, least))
    columns = (
        Column("method", "method"),
        Column(unit, f"{unit} to 95 %", 2, interval=True),
        Column("percent", f"% of {reference}", 1, interval=True),
        Column("greatest_percent", "greatest %", 1),
        Column("objects", "objects"),
        Column("proved", "proved"),
        Column("bound", "proved bound", 2, interval=True),
    )
    return [
        Table(name, f"{unit} to 95 % of the surface points", "", columns, tuple(means)),
        _object_table(rows, f"{name}_objects", digits),
    ]


def _object_table(rows: Sequence[LeastRow], name: str, digits: int) -> Table:
    columns = (
        Column("object", "object"),
        Column("surface_points", "surface points"),
        *(
            Column(method.replace(", ", "_").replace(" ", ""), method, digits)
            for method in rows[0].costs
        ),
    )
    each = (
        (
            row.object,
            row.surface_points,
            *(
                None if cheapest is None else float(cheapest.cost)
                for cheapest in row.costs.values()
            ),
        )
        for row in rows
    )
    return Table(name, "Single objects", "", columns, tuple(each))


def run_optima(
    calls: Sequence[Callable[[], R]],
    workers: int,
    progress: Callable[[int], None] = lambda done: None,
) -> list[R]:
    """Results of all `calls`, computed in a number of processes; `progress` is called with the
    number of those done.
    """
    rows = list[R]()
    with ProcessPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
        for row in (map if pool is None else pool.map)(_called, calls):
            rows.append(row)
            progress(len(rows))
    return rows


def _called(call: Callable[[], R]) -> R:
    return call()
