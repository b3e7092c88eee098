"""Speed of decisions on posterior shapes: EMC over the number of candidate views, and the rollout."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nbv_planner.benchmarking.objectives import VISITED, belief_after
from nbv_planner.benchmarking.reference_shapes import expected_gain, mean_views_to_go, unseen_points
from nbv_planner.benchmarking.timing import median_milliseconds
from nbv_planner.geometry import FloatArray
from nbv_planner.planning.planners import PlannerSettings, Prior, planner_named
from nbv_planner.planning.shapes.choice import shape_sampler
from nbv_planner.planning.shapes.coverage import well_measured
from nbv_planner.planning.shapes.sampler import Shapes
from nbv_planner.planning.view_space import ViewSpace, ViewSpaceSettings
from nbv_planner.scene import Scene
from nbv_planner.surface import SurfaceBelief

_GRID = 1000
_TAKEN = (0, 1, 3)
_CANDIDATES = (100, 360, 1000, 3600)
# No deadline strikes: whole decisions are timed.
_PLANNERS = {
    "EMC": PlannerSettings(objective="EMC"), "rollout": PlannerSettings(planner="rollout", deadline=3600.0),
}
# The reference takes as long for one candidate, and for one shape, as for any other: so many are timed and stand for
# all.
_REFERENCE_VIEWS, _REFERENCE_SHAPES = 5, 2

Row = dict[str, str | int | float]


def shape_rows(quick: bool) -> Iterator[Row]:
    """Time decisions about the star after 0, 1 and 3 views, with the default settings of the shapes.

    Args:
        quick: only after three views, with 100 candidates, in fewer rounds.

    Returns:
        Rows with `planner`, `taken` (number of views before), `views` (candidates), `shapes`, `shape_grid`; in
        milliseconds `decide_ms` (the whole decision), `draw_ms` (of that, drawing the shapes) and `reference_ms` (the
        decision with shapes drawn the same way, one looked at after the other from one view at a time, the greedy
        completion in plain Python; scaled up from some of the views or shapes); and `ratio` (reference to decide).
        Times are medians of the processor time.
    """
    cases = [(name, taken, 100) for name in _PLANNERS for taken in _TAKEN]
    cases += [("EMC", _TAKEN[-1], views) for views in _CANDIDATES[1:]]
    if quick:
        cases = [(name, _TAKEN[-1], 100) for name in _PLANNERS]
    return (_row(name, taken, views, 1 if quick else 9) for name, taken, views in cases)


def _row(name: str, taken: int, candidates: int, rounds: int) -> Row:
    settings, visited, belief = _PLANNERS[name], VISITED[:taken], belief_after(VISITED[:taken], _GRID)
    space = ViewSpace(ViewSpaceSettings(num_views=candidates))
    planner, sampler = planner_named(settings, Scene(), space), shape_sampler(settings, Prior())
    shapes = sampler.draw(belief, Scene())
    unseen = unseen_points(shapes, visited, Scene(), well_measured(belief, shapes.angle, Scene().pixel_size))
    reference, scale = _REFERENCES[name](settings, shapes, unseen, visited, space)
    times = median_milliseconds(
        {
            "decide": lambda: planner.decide(_new(belief), visited=visited),
            "draw": lambda: sampler.draw(_new(belief), Scene()),
            "reference": reference,
        },
        rounds,
    )
    whole = times["draw"] + scale * times["reference"]
    return {
        "planner": name, "taken": taken, "views": candidates, "shapes": settings.shapes,
        "shape_grid": settings.shape_grid, "decide_ms": times["decide"], "draw_ms": times["draw"],
        "reference_ms": whole, "ratio": whole / times["decide"],
    }


def _new(belief: SurfaceBelief) -> SurfaceBelief:
    """Return the belief as a new one, about which nothing is kept from the decision before."""
    return dataclasses.replace(belief)


def _one_view_at_a_time(
    settings: PlannerSettings, shapes: Shapes, unseen: FloatArray, taken: Sequence[float], space: ViewSpace
) -> tuple[Callable[[], object], float]:
    """EMC of some of the views, and as how many it counts."""
    sample = np.random.default_rng(0).choice(space.angles, _REFERENCE_VIEWS, replace=False)
    return (
        lambda: [expected_gain(shapes, unseen, float(view), Scene()) for view in sample],
        len(space.angles) / len(sample),
    )


def _one_shape_at_a_time(
    settings: PlannerSettings, shapes: Shapes, unseen: FloatArray, taken: Sequence[float], space: ViewSpace
) -> tuple[Callable[[], object], float]:
    """Complete the cover on some of the shapes; gives that, and as how many it counts."""
    some, left = Shapes(shapes.angle, shapes.radius[:_REFERENCE_SHAPES]), unseen[:_REFERENCE_SHAPES]
    views = space.angles[space.excluded(0.0, taken, settings.revisit_radius) == 0].tolist()
    return (
        lambda: mean_views_to_go(some, left, views, settings.first_views, Scene(), settings.target_coverage),
        len(shapes.radius) / len(some.radius),
    )


_REFERENCES = {"EMC": _one_view_at_a_time, "rollout": _one_shape_at_a_time}
