"""Speed of the objectives and of whole decisions, over the number of candidate views and the size of the grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from nbv_planner.benchmarking.reference_objectives import REFERENCE_OBJECTIVES
from nbv_planner.benchmarking.timing import median_milliseconds
from nbv_planner.gp.kernels import PeriodicMatern
from nbv_planner.objects import parse_object, surface_points
from nbv_planner.planning.objectives import OBJECTIVES
from nbv_planner.planning.planners import PlannerSettings, planner_named
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings
from nbv_planner.scene import Scene
from nbv_planner.surface import MapperSettings, Measurements, SurfaceBelief, SurfaceMapper
from nbv_planner.visibility import observe, unseen_beyond

VISITED = (0.0, 1.5, 3.2)
"""Views, radians, after which decisions are timed."""

# The reference takes as long for one candidate as for any other: this many are timed and stand for all.
_REFERENCE_VIEWS = 5

Row = dict[str, str | int | float]


def objective_rows(quick: bool) -> Iterator[Row]:
    """Time every objective: the star after three views, 100 to 3600 candidates, 500 to 4096 grid angles.

    Args:
        quick: only 100 candidates on 1000 grid angles, in fewer rounds.

    Returns:
        Rows with `objective`, `views`, `grid`, `evaluate_ms` (all candidates), `decide_ms` (a whole decision of the
        greedy planner), `reference_ms` (the plain implementation, one candidate at a time, scaled up from a few of
        them) and `ratio` (reference to evaluate). Times are medians of the processor time.
    """
    views, grids = ((100,), (1000,)) if quick else ((100, 360, 1000, 3600), (500, 1000, 4096))
    beliefs = {size: belief_after(VISITED, size) for size in grids}
    cases = itertools.product(OBJECTIVES, views, grids)
    return (_row(name, number, beliefs[size], 5 if quick else 9) for name, number, size in cases)


def belief_after(visited: Sequence[float], grid_size: int) -> SurfaceBelief:
    """Belief about the star polygon after the views `visited`, radians, on a grid of `grid_size` angles."""
    scene = Scene()
    points = surface_points(parse_object("polygon:star", scene), scene.pixel_size)
    by_view = observe(points.angle, points.radius, np.array(visited), scene)
    seen = by_view.any(axis=0)
    free = [
        unseen_beyond(points.angle[own], points.radius[own], view, scene)
        for own, view in zip(by_view, visited, strict=True)
    ]
    mapper = SurfaceMapper(PeriodicMatern(), MapperSettings(grid_size=grid_size))
    mapper.add(Measurements(points.angle[seen], points.radius[seen], np.full(int(seen.sum()), 0.2)), free=free)
    return mapper.belief()


def _row(name: str, number: int, belief: SurfaceBelief, rounds: int) -> Row:
    scene, space, objective = Scene(), ViewSpace(ViewSpaceSettings(num_views=number)), OBJECTIVES[name]()
    planner = planner_named(PlannerSettings(objective=name), scene, space)
    sample = np.random.default_rng(0).choice(space.angles, _REFERENCE_VIEWS, replace=False)
    times = median_milliseconds(
        {
            "evaluate": lambda: objective.evaluate(belief, scene, space.angles),
            "decide": lambda: planner.decide(belief, current_view=VISITED[-1], visited=VISITED),
            "reference": lambda: [REFERENCE_OBJECTIVES[name](belief, scene, float(view)) for view in sample],
        },
        rounds,
    )
    reference = times["reference"] * number / _REFERENCE_VIEWS
    return {
        "objective": name, "views": number, "grid": len(belief.angle), "evaluate_ms": times["evaluate"],
        "decide_ms": times["decide"], "reference_ms": reference, "ratio": reference / times["evaluate"],
    }
