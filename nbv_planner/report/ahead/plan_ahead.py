"""The views for an outline that is known beforehand, planned before any of them is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbv_planner.episode.parameters import EpisodeConfig
from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.episode.wiring import scan_mapping, view_space
from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray, optical
from nbv_planner.known.known_solid import KnownForm, KnownSolid
from nbv_planner.planning.motion import time_matrix, trip_time
from nbv_planner.planning.planners.decision_settings import DecisionSettings
from nbv_planner.planning.planners.rollout import views_to_go
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.planning.view_space.space_views import SpaceViews
from nbv_planner.star2d.shapes.learned_shapes import KnownShapes
from nbv_planner.star2d.star_surface import StarReader, StarSurface
from nbv_planner.surface.coverage import CoverageTarget, ShapeCoverage
from nbv_planner.surface.seam import Hypotheses, coverage_of
from nbv_planner.volume.known_surface import KnownPrior
from nbv_planner.volume.volume_surface import VolumeForm, VolumeSurface
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene

# Shapes over which the completeness is expected; they are others than those that are planned for.
_SHAPES, _STREAM = 100, 2
# The same in space, where each takes longer.
_SOLIDS = 32
_NONE = "prior_outline: is empty, must be a file for a plan"
# Part of the shapes that are complete to less than what is said of most.
_FEW = 0.05
# Means that differ by rounding alone are equal.
_DECIMALS = 9


@dataclass(frozen=True)
class PlannedView:
    """A view of the plan, and what is expected once it has been taken."""

    view: CameraPose
    travelled: float  #: length of the path so far, metres.
    seconds: float  #: time so far by the cost model.
    expected: float  #: mean part of the target that has been seen of the shapes, in [0, 1].
    least: float  #: part that has been seen of 95 % of them.


@dataclass(frozen=True, eq=False)
class _Task:
    """What is planned for."""

    surface: Any  #: of a mapper that knows the form and has seen nothing.
    drawing: Callable[[int, int], Hypotheses]  #: draws so many shapes like the form, by a seed.
    judged: int  #: number of shapes by which it is judged what is expected.
    space: ViewSpace
    scene: Scene
    start: CameraPose
    planner: DecisionSettings
    most: int  #: views.

    def to_see(self, count: int, seed: int) -> ShapeCoverage:
        """What the candidates see of shapes; of cells what none of them sees does not count."""
        aim, none, space = CoverageTarget.of(self.planner), Poses.of([]), self.space
        drawn, scene = self.drawing(count, seed), self.scene
        found = coverage_of(self.surface, drawn, aim, none, space.candidates, scene, space.ground)
        if not isinstance(self.surface, VolumeSurface):
            return found
        unseen = found.unseen * found.visible.any(axis=1)
        return replace(found, unseen=unseen, points=unseen.sum(axis=1, dtype=float))


def planned_views(config: EpisodeConfig | SolidConfig) -> list[PlannedView]:
    """A set of views after which the target is expected to be reached of an object like the prior
    outline or mesh, in the order of the shortest time from the start of the camera.

    Views are chosen as the rollout does, over shapes that deviate and are displaced as the prior
    says, until as much of other such shapes has been seen on average. That a part of the object is
    unlike the outline is left to the episode.

    It is empty where no view sees anything of it.

    Raises:
        SettingError: there is no prior outline, the scene is unknown, or no view may be taken.
    """
    task = _in_space(config) if isinstance(config, SolidConfig) else _in_plane(config)
    space = task.space
    space.update(task.surface, task.start, task.scene.radius_max)
    allowed = space.excluded(0.0) == 0
    if not allowed.any():
        raise SettingError("views: none of the candidates may be taken; must be one at least")
    seed = task.planner.planner_seed
    planned, judged = (
        task.to_see(count, seed + more)
        for count, more in ((task.planner.shapes, 0), (task.judged, _STREAM))
    )
    chosen = _chosen(task, planned, judged, allowed)
    return _timed(task, _in_order(task, chosen), judged) if chosen else []


def _in_plane(config: EpisodeConfig) -> _Task:
    if config.search.unknown:
        raise SettingError("scene: is unknown, must be known for a plan")
    surface, drawing = _known_surface(config)
    return _Task(
        surface,
        drawing,
        _SHAPES,
        view_space(config.views, config.scene, config.ground),
        config.scene,
        config.motion.start(config.scene.view_distance),
        config.planner,
        config.termination.max_views,
    )


def _in_space(config: SolidConfig) -> _Task:
    radius, aim = config.scene.radius_max, CoverageTarget.of(config.planner)
    known = config.outline.known(radius)
    if known is None:
        raise SettingError(_NONE)
    surface = _like(known, radius, 3)
    space = SpaceViews.of(config.views, config.scene.view_distance, radius)
    return _Task(
        surface,
        lambda count, seed: surface.hypotheses(aim, count, seed),
        _SOLIDS,
        space,
        config.scene.seen_by(config.sensor),
        space.candidates[0],
        config.planner,
        config.termination.max_views,
    )


def _like(known: KnownForm, radius: float, dimension: int) -> VolumeSurface:
    """A surface of cells that has seen nothing, of an object that is surely like a form."""
    nowhere = known.placed(np.empty((0, dimension)), np.empty(0), 1.0)
    prior = KnownPrior.of(known, nowhere)
    return VolumeSurface.blank(VolumeForm(dimension, radius, prior=prior))


def _known_surface(config: EpisodeConfig) -> tuple[Any, Callable[[int, int], Hypotheses]]:
    """The surface of a mapper that knows the outline and has seen nothing, and what draws so many
    shapes like the outline by a seed.

    Raises:
        SettingError: there is no prior outline.
    """
    known = config.known
    if known is None:
        raise SettingError(_NONE)
    aim = CoverageTarget.of(config.planner)
    model = config.search.surface_model
    if isinstance(known, KnownSolid) or model == "volume":
        solid = config.known_solid
        assert solid is not None
        surface = _like(solid, config.scene.radius_max, 2)
        return surface, lambda count, seed: surface.hypotheses(aim, count, seed)
    of_radius = replace(config.search, surface_model="radius")
    belief = scan_mapping(replace(config, search=of_radius)).belief()
    reader = StarReader(config.scene, config.prior, config.planner)
    star: StarSurface = reader(belief)

    def drawn(count: int, seed: int) -> Hypotheses:
        sampler = reader.sampler(count, seed)
        assert isinstance(sampler, KnownShapes)
        return star.met(sampler.like(star.belief, config.scene), aim)

    return star, drawn


def _seen(coverage: ShapeCoverage, views: Sequence[int]) -> FloatArray:
    """Part of each shape that some views have seen, shape (S,)."""
    visible = coverage.visible[:, list(views)].max(axis=1, initial=0.0)
    seen = (coverage.unseen * visible).sum(axis=1, dtype=float)
    return np.asarray(seen / np.maximum(coverage.points, np.finfo(float).tiny))


def _chosen(
    task: _Task, planned: ShapeCoverage, judged: ShapeCoverage, allowed: BoolArray
) -> list[int]:
    """Indices of the views, the most useful first."""
    target = task.planner.target_coverage
    found = list[int]()
    left = planned
    while len(found) < task.most:
        gains = np.where(allowed, left.gains().mean(axis=0), -np.inf)
        first = np.argsort(-gains, kind="stable")[: task.planner.first_views]
        first = first[gains[first] > 0.0]
        if not len(first) or _seen(judged, found).mean() >= target:
            break
        to_go = views_to_go(left, first, allowed, target).mean(axis=0)
        best = int(first[np.argmin(np.round(to_go, _DECIMALS))])
        found.append(best)
        left = replace(left, unseen=left.unseen * (1.0 - left.visible[:, best]))
    return found


def _in_order(task: _Task, chosen: Sequence[int]) -> list[int]:
    """The views in the order of the shortest time from the start: the best of those around the
    object from any of them in either direction, with stretches turned around while that helps.
    """
    space, settings = task.space, task.planner
    views = space.candidates.chosen(np.array(chosen, dtype=np.intp))
    first = trip_time(space, task.start, views, settings)
    times = time_matrix(space, views, settings)

    def seconds(order: Sequence[int]) -> float:
        return float(first[order[0]] + times[order[:-1], order[1:]].sum())

    azimuth = np.arctan2(views.position[:, 1], views.position[:, 0])
    around = list(np.argsort(azimuth, kind="stable"))
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


def _timed(task: _Task, route: Sequence[int], judged: ShapeCoverage) -> list[PlannedView]:
    plan = list[PlannedView]()
    space, stands, travelled, seconds = task.space, task.start, 0.0, 0.0
    for number, index in enumerate(route, start=1):
        there = space.candidates.chosen(np.array([index]))
        travelled += float(space.timed_path_length(stands, there)[0])
        seconds += float(trip_time(space, stands, there, task.planner)[0])
        stands = there[0]
        parts = _seen(judged, route[:number])
        few = float(np.quantile(parts, _FEW))
        plan.append(PlannedView(stands, travelled, seconds, float(parts.mean()), few))
    return plan


def plan_csv(plan: Sequence[PlannedView], *, in_space: bool = False) -> str:
    """The plan as a file of poses, which `view_file` reads; in space of the optical frame."""
    poses = Poses.of([one.view for one in plan])
    where = "x,y,yaw"
    table = np.array([(one.view.x, one.view.y, one.view.yaw) for one in plan]).reshape(-1, 3)
    if in_space:
        where = "x,y,z,qx,qy,qz,qw"
        table = np.hstack([poses.position, optical(poses.rotation)])
    rows = (
        ",".join(f"{round(value, _DECIMALS) + 0.0:.6g}" for value in values)
        for values in (
            [*pose, one.travelled, one.expected]
            for pose, one in zip(table.tolist(), plan, strict=True)
        )
    )
    return "\n".join([f"{where},travelled,expected", *rows, ""])
