"""The mapper's side of an episode in space: scans of a depth camera into a surface of cells."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from nbv_planner.episode.solid.solid_settings import DepthNoise, SolidScene
from nbv_planner.episode.solid.space_deciders import form_in_space
from nbv_planner.errors import MeasurementError
from nbv_planner.geometry import Arrays, FloatArray
from nbv_planner.gp.posterior import saved_array
from nbv_planner.known.known_solid import KnownForm
from nbv_planner.mapping.arrival import ArrivalSettings, PoseSource
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings, ScanHits
from nbv_planner.session.mapper_core import MapperCore, MapperSetup
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.surface.checks import CheckSettings, fit_checks
from nbv_planner.surface.seam import Hits
from nbv_planner.volume.bodies.depth_sensor import DepthScan, DepthScene, DepthSensor
from nbv_planner.volume.bodies.thinned import of_object
from nbv_planner.volume.volume_surface import VolumeModel, VolumeSurface
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import SENSOR_NAMES, Scene

# Hits of a view that are kept, and of all views that are compared, at most.
_KEPT, _COMPARED = 256, 2048
# The radius in which displacements are told, as a part of the greatest one: as in the plane.
_MEAN = 0.5


class SpaceChecks:
    """Whether the views of a depth camera fit together: some hits of each, and the tests of
    displacements on them; the noise is as declared.
    """

    noise_factor = 1.0
    through: Sequence[float] = ()
    scene: Scene | None = None

    def __init__(self) -> None:
        """Start without a view."""
        self.reset()

    def reset(self) -> None:
        """Forget all views."""
        self._cameras = Poses(np.empty((0, 3)), np.empty((0, 3, 3)))
        self._hits = np.empty((4, 0))  # place and standard deviation, metres
        self._view = np.empty(0, dtype=np.intp)

    def copy(self) -> SpaceChecks:
        """An independent copy: arrays are never changed."""
        return copy(self)

    def mapped(self, pose: CameraPose, hits: Hits, *_: Any) -> None:
        """Take what a new view measured."""
        some = slice(None, None, max(1, math.ceil(len(hits) / _KEPT)))
        new = np.vstack([hits.points[some].T, hits.sigma[some]])
        number = len(self._cameras)
        one = Poses.of([pose])
        self._cameras = Poses(
            np.concatenate([self._cameras.position, one.position]),
            np.concatenate([self._cameras.rotation, one.rotation]),
        )
        self._hits = np.concatenate([self._hits, new], axis=1)
        self._view = np.concatenate([self._view, np.full(new.shape[1], number)])

    def judged(self, belief: VolumeSurface) -> VolumeSurface:
        """The `belief` with what the views say of it."""
        if not (len(self._view) and belief.drawable):
            return belief
        some = slice(None, None, math.ceil(len(self._view) / _COMPARED))
        found, off, _ = belief.agreement(self._cameras, self._view[some], self._hits[:, some])
        scores = found.scores(_MEAN * belief.form.radius)
        return dataclasses.replace(belief, checks=fit_checks(CheckSettings(), off, *scores))

    def state(self) -> Arrays:
        """Everything that is kept, as arrays by name."""
        return {
            "check_places": self._cameras.position,
            "check_axes": self._cameras.rotation,
            "check_hits": self._hits,
            "check_views": self._view,
        }

    def restore(self, state: Arrays) -> None:
        """Restore the :meth:`state` of another one.

        Raises:
            MeasurementError: it is no such state; nothing is changed.
        """
        places = saved_array(state, "check_places", None, 3)
        axes = saved_array(state, "check_axes", len(places), 3, 3)
        view = saved_array(state, "check_views", None, dtype=np.intp, least=0)
        hits = saved_array(state, "check_hits", 4, len(view))
        if view.max(initial=-1) >= len(places) or not (hits[3] > 0.0).all():
            raise MeasurementError("checks: a hit is of no view, or its deviation is not positive")
        self._cameras, self._hits, self._view = Poses(places, axes), hits, view


class SolidMapping(ScanMapping):
    """Maps scans of a depth camera: what lies within the greatest radius and a box."""

    any_outline = True
    scan_kind, scene_kind = DepthScan, DepthScene

    def __init__(
        self, scene: DepthScene, noise: RangeNoise, box: FloatArray, known: KnownForm | None = None
    ) -> None:
        """Start without a scan, with what is `known` of the object; outside the `box`, its two
        corners in metres, shape (2, 3), nothing is of it.
        """
        model = VolumeModel(form_in_space(scene.radius_max, known))
        # the settings of the plane are those of :meth:`_measured` there
        super().__init__(model, scene, MeasurementSettings(), SpaceChecks())  # type: ignore[arg-type]
        self._noise, self._box = noise, box

    def _measured(self, scans: Sequence[MatchedScan], *, new_view: bool) -> list[ScanHits]:
        """What each scan shows of the object; beams are left out as `nan`, `too_close` (below the
        least range) and `outside_bounds`.
        """
        found = []
        bounds = self._scene.radius_max, self._box
        for match in scans:
            scan, sensor = match.scan, match.scan.sensor
            hits, free = of_object(scan, Poses.of([match.pose]), self._noise, match.view, bounds)
            unknown, close = np.isnan(scan.ranges), scan.ranges < sensor.range_min
            ended = ~unknown & ~close & (scan.ranges <= sensor.range_max)
            numbers = unknown.sum(), close.sum(), ended.sum() - len(hits)
            reasons = zip(("nan", "too_close", "outside_bounds"), numbers, strict=True)
            found.append(ScanHits(hits, free, {name: int(n) for name, n in reasons if n}))
        if new_view:
            self.checks.mapped(scans[0].pose, found[0].hits, found[0].free, scans[0].rate)
        return found

    def _unlike(self, scans: Sequence[MatchedScan]) -> int:
        """None: scans of depth cameras are not averaged."""
        return 0


def solid_mapper_core(
    scene: SolidScene,
    sensor: DepthSensor,
    noise: DepthNoise,
    box: FloatArray,
    matching: MatchingSettings,
    arrival: ArrivalSettings,
    transforms: PoseSource | None = None,
    known: KnownForm | None = None,
) -> MapperCore:
    """As :func:`~nbv_planner.episode.wiring.mapper_core`, in space."""
    seen = scene.seen_by(sensor)
    setup = MapperSetup(
        seen,
        noise.ranges,
        0.0,
        SearchSettings(),
        matching.queue_size,
        frozenset(SENSOR_NAMES),
        PriorSettings(),
        partial(SolidMapping, seen, noise.ranges, box, known),
    )
    return MapperCore(setup, ScanMatcher(matching, arrival, transforms))
