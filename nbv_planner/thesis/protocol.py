"""The protocol of the thesis's runs: the surface points in view, without noise, until a view shows
nothing new.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from nbv_planner.errors import SettingError
from nbv_planner.geometry import TWO_PI, BoolArray, FloatArray
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.planning.planners import Decision, DecisionSettings, Planner
from nbv_planner.planning.view_space import (
    CircleViewSpace,
    ViewSpace,
    ViewSpaceSettings,
    view_space_for,
    zones_text,
)
from nbv_planner.star2d.belief import SurfaceBelief
from nbv_planner.star2d.mapper import SurfaceMapper
from nbv_planner.star2d.measurements import Measurements, PolarRays, unseen_beyond
from nbv_planner.surface.seam import Hits
from nbv_planner.world.ground.zones import GroundSettings
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.objects.room import WorldSettings
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.visibility import observe

PUBLISHED_FIRST_CANDIDATE = {
    "CSW": 0,
    "IOA": 47,
    "I": 1,
    "U": 15,
    "UP": 15,
    "CS-U": 26,
    "CSN-U": 26,
}
"""First views of the thesis's published runs by label: its flat prior makes rounding decide them.

They are indices among the 100 candidates of these runs. Its CS-U counts the pixels of phase 1
(CSN-U); the closed form starts at the same view to be comparable.
"""
_VIEWS, _GRID = 100, 1000
# Variance, m², that the published runs had added to that of each measurement.
_JITTER = 1e-8
Settings = TypeVar("Settings", bound=DecisionSettings)


def check(
    ground: GroundSettings, world: WorldSettings, scans_per_view: int, *, unknown: bool
) -> None:
    """Refuse what the protocol has not.

    Raises:
        SettingError: it is given; names the parameters.
    """
    if ground.given:
        raise SettingError(
            "ground_map, no_go_polygons, robot_radius: the thesis protocol has no robot"
        )
    if scans_per_view > 1:
        raise SettingError(
            "scans_per_view: the thesis protocol observes the surface points, not scans; must be 1"
        )
    if unknown or world != WorldSettings():
        raise SettingError(
            "scene, object_x, object_y, other_radius: the thesis protocol knows the scene"
        )


def grid() -> FloatArray:
    """Grid of the surface belief, which holds 0 and 2π."""
    return np.linspace(0.0, TWO_PI, _GRID)


def published(views: ViewSpaceSettings) -> bool:
    """Whether the candidates are as many as those of the published runs, which hold 0 and 2π."""
    return views.on_circle and views.num_views == _VIEWS and not views.listed


def candidates(views: ViewSpaceSettings, scene: Scene) -> ViewSpace:
    """The view space, with the candidates of the published runs if it has as many."""
    if not published(views):
        return view_space_for(views, scene)
    return CircleViewSpace(views, scene.view_distance, angles=np.linspace(0.0, TWO_PI, _VIEWS))


def planner_settings(
    settings: Settings, views: ViewSpaceSettings, tie_tolerance: float, *, draws_shapes: bool
) -> Settings:
    """Settings as in the thesis: points, no cost of travel, revisits allowed, published first view
    unless set.

    With another number of candidates than the published one the planner chooses its first view
    itself.

    Raises:
        SettingError: looks on the way are asked for.
    """
    if settings.look_every:
        raise SettingError("look_every: the thesis protocol looks at its views only")
    first = settings.first_candidate
    if first < 0 and published(views):
        first = PUBLISHED_FIRST_CANDIDATE.get(settings.label, -1)
    return dataclasses.replace(
        settings,
        target="points",
        first_candidate=first,
        tie_tolerance=tie_tolerance,
        travel_weight=0.0,
        revisit_radius=0.0,
        refine=settings.refine and draws_shapes,
    )


class Observer(Protocol):
    """Knows the true surface points, and which of them have been seen."""

    @property
    def seen(self) -> BoolArray:
        """Which have been seen, shape (N,)."""

    @property
    def coverage(self) -> float:
        """Part of them that has been seen."""

    def new_points(self, view: CameraPose) -> BoolArray:
        """Which a view would see for the first time, shape (N,)."""


@dataclass(frozen=True, eq=False)
class Observation:
    """A view that was taken: why, what was measured, and the belief after it."""

    decision: Decision
    hits: Hits
    belief: SurfaceBelief
    milliseconds: float  #: processor time of the decision.


def map_radii(
    mapper: SurfaceMapper,
    angle: FloatArray,
    radius: FloatArray,
    std: float,
    view: CameraPose,
    free: Sequence[PolarRays] = (),
) -> Hits:
    """Map radii at polar angles, shape (n,), of a view, all with the deviation `std` (metres);
    returns them as hits.
    """
    data = Measurements(angle, radius, np.full(len(angle), std))
    mapper.add(data, free=free)
    number = len(data)
    return Hits(
        data.points,
        data.std,
        np.tile((view.x, view.y), (number, 1)),
        np.zeros(number, dtype=np.intp),
    )


def observe_views(
    planner: Planner,
    mapper: SurfaceMapper,
    points: SurfacePoints,
    scene: Scene,
    noise_std: float,
    observer: Observer,
    visited: Callable[[], Sequence[CameraPose]],
) -> Generator[Observation, None, Termination]:
    """Take view after view until all surface points have been seen, or the next view would show no
    new one.

    The mapper takes the noise `noise_std`, metres, for that of the observed points; `visited` gives
    the views so far. Returns why it has ended.
    """
    noise_std = math.sqrt(noise_std**2 + _JITTER)
    belief = mapper.belief()
    while not observer.seen.all():
        started = time.process_time()
        planner.update(belief, None)
        decision = planner.decide(belief, visited=visited())
        if decision is None:
            zones = zones_text(planner.views)
            detail = "no candidate view may be chosen" + (f": {zones}" if zones else "")
            return Termination(TerminationReason.NO_REACHABLE_VIEW, {}, detail)
        milliseconds = 1e3 * (time.process_time() - started)
        if not observer.new_points(decision.view).any():
            return Termination(
                TerminationReason.NO_NEW_POINTS,
                {"coverage": observer.coverage},
                "the next view would see no new surface point",
            )
        seen = observe(points.angle, points.radius, Poses.of([decision.view]), scene)[0]
        angle, radius = points.angle[seen], points.radius[seen]
        free = [unseen_beyond(angle, radius, decision.view, scene)]
        hits = map_radii(mapper, angle, radius, noise_std, decision.view, free)
        belief = mapper.belief()
        yield Observation(decision, hits, belief, milliseconds)
    return Termination(
        TerminationReason.COMPLETE, {"coverage": 1.0}, "every surface point has been seen"
    )
