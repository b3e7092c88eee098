"""The views for an outline that is known beforehand, planned before any of them is taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.wiring import scan_mapping, view_space
from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.known.known_solid import KnownSolid
from nbv_planner.planning.motion import leg_time, time_matrix
from nbv_planner.planning.planners.rollout import views_to_go
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.star2d.shapes.learned_shapes import KnownShapes
from nbv_planner.star2d.star_surface import StarReader
from nbv_planner.surface.coverage import CoverageTarget, ShapeCoverage
from nbv_planner.surface.seam import Hypotheses, coverage_of
from nbv_planner.volume.known_surface import KnownPrior
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.pose import CameraPose, Poses

# Shapes over which the completeness is expected; they are others than those that are planned for.
_SHAPES, _STREAM = 100, 2
# Part of the shapes that are complete to less than what is said of most.
_FEW = 0.05
# Means that differ by rounding alone are equal.
_DECIMALS = 9


@dataclass(frozen=True)
class PlannedView:
    """A view of the plan, and what is expected once it has been taken."""

    view: CameraPose
    travelled: float  #: way so far, metres.
    seconds: float  #: time so far by the cost model.
    expected: float  #: mean part of the target that has been seen of the shapes, in [0, 1].
    least: float  #: part that has been seen of 95 % of them.


def planned_views(config: EpisodeConfig) -> list[PlannedView]:
    """A set of views after which the target is expected to be reached of an object like the prior
    outline, in the order of the shortest time from the start of the camera.

    Views are chosen as the rollout does, over shapes that deviate and are displaced as the prior
    says, until as much of other such shapes has been seen on average. That a part of the object is
    unlike the outline is left to the episode.

    It is empty where no view sees anything of it.

    Raises:
        SettingError: there is no prior outline, the scene is unknown, or no view may be taken.
    """
    if config.search.unknown:
        raise SettingError("scene: is unknown, must be known for a plan")
    surface, drawing = _known_surface(config)
    start = config.motion.start(config.scene.view_distance)
    space = view_space(config.views, config.scene, config.ground)
    space.update(surface, start, config.scene.radius_max)
    allowed = space.excluded(0.0) == 0
    if not allowed.any():
        raise SettingError("views: none of the candidates may be taken; must be one at least")
    seed = config.planner.planner_seed
    planned, judged = (
        _to_see(config, surface, drawing(count, seed + more), space)
        for count, more in ((config.planner.shapes, 0), (_SHAPES, _STREAM))
    )
    chosen = _chosen(config, planned, judged, allowed)
    if not chosen:
        return []
    route = _in_order(start, chosen, space, config)
    return _timed(start, route, space, judged, config)


def _known_surface(config: EpisodeConfig) -> tuple[Any, Callable[[int, int], Hypotheses]]:
    """The surface of a mapper that knows the outline and has seen nothing, and what draws so many
    shapes like the outline by a seed.

    Raises:
        SettingError: there is no prior outline.
    """
    known = config.known
    if known is None:
        raise SettingError("prior_outline: is empty, must be a file for a plan")
    aim = CoverageTarget.of(config.planner)
    model = config.search.surface_model
    if isinstance(known, KnownSolid) or model == "volume":
        solid = config.known_solid
        assert solid is not None
        nowhere = solid.placed(np.empty((0, 2)), np.empty(0), 1.0)
        form = VolumeForm(radius=config.scene.radius_max, prior=KnownPrior.of(solid, nowhere))
        surface = VolumeSurface.blank(form)
        return surface, lambda count, seed: surface.hypotheses(aim, count, seed)
    of_radius = dataclasses.replace(config.search, surface_model="radius")
    belief = scan_mapping(dataclasses.replace(config, search=of_radius)).belief()
    reader = StarReader(config.scene, config.prior, config.planner)
    star = reader(belief)

    def drawn(count: int, seed: int) -> Hypotheses:
        sampler = reader.sampler(count, seed)
        assert isinstance(sampler, KnownShapes)
        return star.met(sampler.like(star.belief, config.scene), aim)

    return star, drawn


def _to_see(
    config: EpisodeConfig, surface: Any, drawn: Hypotheses, space: ViewSpace
) -> ShapeCoverage:
    """What the candidates see of shapes; of cells what none of them sees does not count."""
    aim, none = CoverageTarget.of(config.planner), Poses.of([])
    found = coverage_of(surface, drawn, aim, none, space.candidates, config.scene, space.ground)
    if not isinstance(surface, VolumeSurface):
        return found
    unseen = found.unseen * found.visible.any(axis=1)
    return dataclasses.replace(found, unseen=unseen, points=unseen.sum(axis=1, dtype=float))


def _seen(coverage: ShapeCoverage, views: Sequence[int]) -> FloatArray:
    """Part of each shape that some views have seen, shape (S,)."""
    visible = coverage.visible[:, list(views)].max(axis=1, initial=0.0)
    seen = (coverage.unseen * visible).sum(axis=1, dtype=float)
    return np.asarray(seen / np.maximum(coverage.points, np.finfo(float).tiny))


def _chosen(
    config: EpisodeConfig, planned: ShapeCoverage, judged: ShapeCoverage, allowed: BoolArray
) -> list[int]:
    """Indices of the views, the most useful first."""
    target = config.planner.target_coverage
    found = list[int]()
    left = planned
    while len(found) < config.termination.max_views:
        gains = np.where(allowed, left.gains().mean(axis=0), -np.inf)
        first = np.argsort(-gains, kind="stable")[: config.planner.first_views]
        first = first[gains[first] > 0.0]
        if not len(first) or _seen(judged, found).mean() >= target:
            break
        to_go = views_to_go(left, first, allowed, target).mean(axis=0)
        best = int(first[np.argmin(np.round(to_go, _DECIMALS))])
        found.append(best)
        left = dataclasses.replace(left, unseen=left.unseen * (1.0 - left.visible[:, best]))
    return found


def _in_order(
    start: CameraPose, chosen: Sequence[int], space: ViewSpace, config: EpisodeConfig
) -> list[int]:
    """The views in the order of the shortest time from the start: the best of those around the
    object from any of them in either direction, with stretches turned around while that helps.
    """
    views = space.candidates.chosen(np.array(chosen, dtype=np.intp))
    settings = config.planner
    first = leg_time(space, start, views, settings)
    times = time_matrix(space, views, settings)

    def seconds(order: Sequence[int]) -> float:
        return float(first[order[0]] + times[order[:-1], order[1:]].sum())

    around = list(np.argsort(views.polar[:, 0], kind="stable"))
    size = len(around)
    orders = [around[at:] + around[:at] for at in range(size)]
    best = min([*orders, *(order[::-1] for order in orders)], key=seconds)
    pairs = [(low, high) for low in range(size) for high in range(low + 2, size + 1)]
    while True:
        turned = [best[:low] + best[low:high][::-1] + best[high:] for low, high in pairs]
        better = min([best, *turned], key=seconds)
        if seconds(better) >= seconds(best):
            return [chosen[place] for place in best]
        best = better


def _timed(
    start: CameraPose,
    route: Sequence[int],
    space: ViewSpace,
    judged: ShapeCoverage,
    config: EpisodeConfig,
) -> list[PlannedView]:
    plan = list[PlannedView]()
    stands, way, seconds = start, 0.0, 0.0
    for number, index in enumerate(route, start=1):
        there = space.candidates.chosen(np.array([index]))
        way += float(space.timed_path_length(stands, there)[0])
        seconds += float(leg_time(space, stands, there, config.planner)[0])
        stands = there[0]
        parts = _seen(judged, route[:number])
        few = float(np.quantile(parts, _FEW))
        plan.append(PlannedView(stands, way, seconds, float(parts.mean()), few))
    return plan


def plan_csv(plan: Sequence[PlannedView]) -> str:
    """The plan as a file of poses, which `view_file` reads."""
    rows = (
        ",".join(
            f"{round(value, _DECIMALS) + 0.0:.6g}"
            for value in (one.view.x, one.view.y, one.view.yaw, one.travelled, one.expected)
        )
        for one in plan
    )
    return "\n".join(["x,y,yaw,travelled,expected", *rows, ""])
