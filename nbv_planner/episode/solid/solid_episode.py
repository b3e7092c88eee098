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
from nbv_planner.planning.planners import Decision
from nbv_planner.planning.view_space.space_views import SpaceViews
from nbv_planner.session import events
from nbv_planner.session.loop import views
from nbv_planner.session.planner_core import PlannerCore
from nbv_planner.session.state import Goal
from nbv_planner.surface.coverage import CoverageEstimate
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
        for position, rotation in zip(self.views.position, self.views.rotation, strict=True):
            left = np.flatnonzero(~seen)
            beam = points[left] - position
            left, beam = self._in_field(left, beam, rotation)
            length = np.linalg.norm(beam, axis=1)
            met, _ = cast(self.mesh, position, beam / length[:, None])
            seen[left] = met > (1.0 - _ROUNDING) * length
            if seen.all():
                break
        if not seen.any():
            raise SettingError("object: no candidate view sees any of it (range_max)")
        return points[seen]

    def _in_field(self, left: Any, beam: FloatArray, rotation: FloatArray) -> Any:
        inside = self.sensor.sees(beam @ rotation)
        return left[inside], beam[inside]

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
    completeness: float  #: true part of the surface within the resolution of a hit.
    estimate: CoverageEstimate | None  #: what is believed of that; None without `certify`.
    utility: float  #: area that the view was expected to add, in faces of cells.
    milliseconds: float  #: that the decision took.
    travelled: float  #: length of the way of the camera so far, metres.

    @property
    def angles(self) -> tuple[float, float]:
        """Azimuth and elevation of the camera about the centre, degrees."""
        pose = self.pose
        flat = math.hypot(pose.x, pose.y)
        azimuth = math.degrees(math.atan2(pose.y, pose.x))
        return azimuth, math.degrees(math.atan2(pose.height, flat))


@dataclass(eq=False)
class SolidEpisode:
    """An episode that is set up, and takes its views one by one as they are asked for.

    Raises:
        NbvPlannerError: the configuration does not fit, or the object cannot be read.
    """

    config: SolidConfig
    remarks: Sequence[str] = field(init=False)  #: what is to be said of the object.
    truth: TrueSolid = field(init=False)
    core: PlannerCore = field(init=False)
    model: VolumeModel = field(init=False)
    views: list[SolidView] = field(init=False, default_factory=list)
    decision: Decision | None = field(init=False, default=None)  #: the newest.
    _now: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        config = self.config
        radius = config.scene.radius_max
        mesh, self.remarks = solid_object(config.object, radius)
        space = SpaceViews.of(config.views, config.scene.view_distance, radius)
        deciders = deciders_in_space(
            config.planner, config.termination, config.scene, config.sensor, space
        )
        self.truth = TrueSolid(mesh, config.sensor, space.candidates)
        self.core, self.model = planner_core(*deciders), VolumeModel(form_in_space(radius))
        self.core.inputs.pose = space.candidates[0]
        events.take_surface(self.core, self.surface, 0)

    @property
    def surface(self) -> VolumeSurface:
        """What is known."""
        return self.model.belief()

    @property
    def termination(self) -> Termination | None:
        """Why it ended, None before."""
        return self.core.episode.termination

    @cached_property
    def _camera(self) -> SimulatedDepthCamera:
        config = self.config
        lost = config.camera.dropout_probability
        return SimulatedDepthCamera(self.truth.mesh, config.sensor, config.noise.ranges, lost)

    def run(self) -> Iterator[SolidView]:
        """Take view after view until the episode ends."""
        travelled = 0.0
        for goal in views(self.core, self):
            self.core.facts.clear()  # nobody keeps a journal
            if self.views:
                before = self.views[-1].pose
                length = self.core.planner.views.path_length(before, Poses.of([goal.pose]))
                travelled += float(length[0])
            self.decision = goal.decision
            covered = self.truth.covered(self.surface, self.config.planner.completeness_tau)
            self.views.append(
                SolidView(
                    len(self.views) + 1,
                    goal.pose,
                    float(covered.mean()),
                    self.core.episode.estimate,
                    goal.decision.utility,
                    goal.planning_milliseconds,
                    travelled,
                )
            )
            yield self.views[-1]

    def now(self) -> int:
        """See :class:`~nbv_planner.session.loop.World`."""
        self._now = max(self._now + 2, time.perf_counter_ns())
        return self._now

    def scan(self, goal: Goal) -> Sequence[Any]:
        """Look from a goal."""
        pose = Poses.of([goal.pose])
        number = len(self.views)
        rng = np.random.default_rng([self.config.camera.seed, number])
        scan = self._camera.scan(pose.position[0], pose.rotation[0], rng)
        noise = self.config.noise.ranges
        return [seen_in(scan, pose.position[0], pose.rotation[0], noise, number)]

    def map(self, scans: Sequence[Any]) -> VolumeSurface:
        """Add what was seen."""
        for hits, free in scans:
            self.model.take(hits, [free])
        return self.surface
