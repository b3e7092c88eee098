"""The closed loop in space without ROS, in one process, judged against the true mesh."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from nbv_planner.episode.solid.solid_settings import SolidConfig
from nbv_planner.episode.solid.space_deciders import deciders_in_space, form_in_space
from nbv_planner.episode.wiring import planner_core
from nbv_planner.errors import SettingError
from nbv_planner.geometry import BoolArray, FloatArray
from nbv_planner.planning.endings import Termination
from nbv_planner.planning.view_space.space_views import SpaceViews
from nbv_planner.session import events
from nbv_planner.session.loop import views
from nbv_planner.session.state import Goal
from nbv_planner.surface.coverage import CoverageEstimate, CoverageTarget
from nbv_planner.surface.regions import Regions
from nbv_planner.volume.bodies.casting import cast
from nbv_planner.volume.bodies.depth_sensor import (
    DepthSensor,
    SimulatedDepthCamera,
    seen_in,
)
from nbv_planner.volume.bodies.mesh import Mesh
from nbv_planner.volume.bodies.mesh_files import solid_object
from nbv_planner.volume.volume_surface import VolumeModel, VolumeSurface
from nbv_planner.world.pose import CameraPose, Poses

# Points of the true surface by which an episode is judged.
_POINTS = 4000
# A beam may end so many metres before the point that it is cast to, in parts of the distance.
_ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class TrueSolid:
    """The true object, as a judge asks for it: what no candidate view sees is no part of it."""

    mesh: Mesh
    sensor: DepthSensor
    views: Poses

    @cached_property
    def points(self) -> FloatArray:
        """Points of its surface, evenly over what is seen from some view, shape (n, 3), metres.

        Raises:
            SettingError: no view sees any of it.
        """
        points, _ = self.mesh.sample(_POINTS)
        seen = np.zeros(len(points), dtype=bool)
        for number in range(len(self.views)):
            left = np.flatnonzero(~seen)
            seen[left] = self.seen_from(number, points[left])
            if seen.all():
                break
        if not seen.any():
            raise SettingError("object: no candidate view sees any of it (range_max)")
        return points[seen]

    def seen_from(self, number: int, points: FloatArray) -> BoolArray:
        """Which points of the surface, shape (n, 3), the view of this number sees, shape (n,)."""
        position, rotation = self.views.position[number], self.views.rotation[number]
        beam = points - position
        inside = self.sensor.sees(beam @ rotation)
        length = np.linalg.norm(beam, axis=1)
        met, _ = cast(self.mesh, position, beam[inside] / length[inside, None])
        inside[inside] = met > (1.0 - _ROUNDING) * length[inside]
        return inside

    @property
    def hidden(self) -> float:
        """Part of the surface that no view sees."""
        return 1.0 - len(self.points) / _POINTS

    def covered(self, surface: VolumeSurface, tau: float) -> BoolArray:
        """Which of the points lie within `tau` (metres) of a hit, shape (n,)."""
        if not surface.drawable:
            return np.zeros(len(self.points), dtype=bool)
        away, _ = cKDTree(surface.cells.hits.mean).query(self.points)
        return np.asarray(away <= tau)


@dataclass(frozen=True)
class SolidView:
    """A view that was taken, and what is known after it."""

    number: int  #: from 1.
    pose: CameraPose
    #: true part of the surface within the resolution of a hit; NaN where that is not known.
    completeness: float
    estimate: CoverageEstimate | None  #: what is believed of that; None without `certify`.
    utility: float  #: area that the view was expected to add, in faces of cells.
    milliseconds: float  #: that the decision took.
    travelled: float  #: length of the camera's path so far, metres.
    weighted: float = math.nan  #: completeness by the weights of regions; NaN without any.

    @property
    def reached(self) -> float:
        """The completeness that counts."""
        return self.completeness if math.isnan(self.weighted) else self.weighted

    @property
    def angles(self) -> tuple[float, float]:
        """Azimuth and elevation of the camera about the centre, degrees."""
        pose = self.pose
        flat = math.hypot(pose.x, pose.y)
        azimuth = math.degrees(math.atan2(pose.y, pose.x))
        return azimuth, math.degrees(math.atan2(pose.height, flat))


@dataclass(eq=False)
class SolidRecord:
    """The views of an episode as they arrive, where the true object need not be known.

    Raises:
        NbvPlannerError: the configuration does not fit.
    """

    config: SolidConfig
    space: SpaceViews = field(init=False)  #: candidates.
    views: list[SolidView] = field(init=False, default_factory=list)
    surfaces: list[VolumeSurface] = field(init=False, default_factory=list)  #: after each view.
    #: where the candidates of the newest decision are, shape (V, 3), metres, and what was expected
    #: of each, (V,).
    gains: tuple[FloatArray, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        scene = self.config.scene
        self.space = SpaceViews.of(self.config.views, scene.view_distance, scene.radius_max)
        self.gains = (np.empty((0, 3)), np.empty(0))

    @property
    def regions(self) -> Regions | None:
        """Those that matter."""
        return CoverageTarget.of(self.config.planner).regions

    @property
    def tau(self) -> float:
        """Resolution, metres."""
        return self.config.planner.completeness_tau

    def add(
        self,
        pose: CameraPose,
        surface: VolumeSurface,
        estimate: CoverageEstimate | None,
        utility: float,
        milliseconds: float,
    ) -> SolidView:
        """Judge a view."""
        travelled = 0.0
        if self.views:
            before = self.views[-1]
            length = self.space.path_length(before.pose, Poses.of([pose]))
            travelled = before.travelled + float(length[0])
        covered, weighted = self.completeness(surface)
        number = len(self.views) + 1
        view = SolidView(
            number, pose, covered, estimate, utility, milliseconds, travelled, weighted
        )
        self.views.append(view)
        self.surfaces.append(surface)
        return view

    def completeness(self, surface: VolumeSurface) -> tuple[float, float]:
        """True completeness of a surface, of all and by the weights of regions; NaN where it is not
        known.
        """
        return math.nan, math.nan


@dataclass(eq=False)
class SolidJudge(SolidRecord):
    """Judges each view against the true object as it arrives.

    Raises:
        NbvPlannerError: the configuration does not fit, or the object cannot be read.
    """

    remarks: Sequence[str] = field(init=False)  #: what is to be said of the object.
    truth: TrueSolid = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        config = self.config
        mesh, self.remarks = solid_object(config.object, config.scene.radius_max)
        self.truth = TrueSolid(mesh, config.sensor, self.space.candidates)
        _ = self.weights  # refuses regions that hold nothing

    @cached_property
    def weights(self) -> FloatArray | None:
        """Of the points of the true surface, shape (n,); None without regions.

        Raises:
            SettingError: all are 0.
        """
        if self.regions is None:
            return None
        found = self.regions.weights(self.truth.points)
        if not found.any():
            raise SettingError("region_file: the regions hold nothing of the object")
        return found

    def completeness(self, surface: VolumeSurface) -> tuple[float, float]:
        """True completeness of a surface; by weight NaN without regions."""
        near, weights = self.truth.covered(surface, self.tau), self.weights
        by_weight = math.nan if weights is None else float(weights[near].sum() / weights.sum())
        return float(near.mean()), by_weight


class SolidEpisode:
    """An episode whose views are taken one by one, on request."""

    def __init__(self, config: SolidConfig) -> None:
        """Build object, mapper and planner.

        Raises:
            NbvPlannerError: the configuration does not fit, or the object cannot be read.
        """
        self.judge = SolidJudge(config)  #: of its views.
        space, scene = self.judge.space, config.scene
        known = config.outline.known(scene.radius_max)
        planner, monitor = deciders_in_space(
            config.planner, config.termination, scene, config.sensor, space
        )
        self.core = planner_core(planner, monitor)  #: the planner's side.
        self.model = VolumeModel(form_in_space(scene.radius_max, known))  #: the mapper's.
        self.core.inputs.pose = space.candidates[0]
        events.take_surface(self.core, self.model.surface, 0)
        lost = config.camera.dropout_probability
        mesh, noise = self.judge.truth.mesh, config.noise.ranges
        self._camera = SimulatedDepthCamera(mesh, config.sensor, noise, lost)
        self._now = 0

    @property
    def termination(self) -> Termination | None:
        """Why it ended, None before."""
        return self.core.episode.termination

    def run(self) -> Iterator[SolidView]:
        """Take view after view until the episode ends."""
        for goal in views(self.core, self):
            self.core.facts.clear()  # nobody keeps a journal
            decision = goal.decision
            self.judge.gains = decision.candidates.position, decision.utilities
            yield self.judge.add(
                goal.pose,
                self.model.surface,
                self.core.episode.estimate,
                decision.utility,
                goal.planning_milliseconds,
            )

    def now(self) -> int:
        """See :class:`~nbv_planner.session.loop.World`."""
        self._now = max(self._now + 2, time.perf_counter_ns())
        return self._now

    def scan(self, goal: Goal) -> Sequence[Any]:
        """Look from a goal."""
        pose, number = Poses.of([goal.pose]), len(self.judge.views)
        rng = np.random.default_rng([self.judge.config.camera.seed, number])
        scan = self._camera.scan(pose.position[0], pose.rotation[0], rng)
        noise = self._camera.noise
        return [seen_in(scan, pose.position[0], pose.rotation[0], noise, number)]

    def map(self, scans: Sequence[Any]) -> VolumeSurface:
        """Add what was seen."""
        for hits, free in scans:
            self.model.take(hits, [free])
        return self.model.surface
