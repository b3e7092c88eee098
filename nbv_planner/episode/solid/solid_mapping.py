"""The mapper's side of an episode in space: scans of a depth camera into a surface of cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nbv_planner.episode.solid.solid_settings import DepthNoise, SolidScene
from nbv_planner.episode.solid.space_deciders import form_in_space
from nbv_planner.geometry import Arrays, FloatArray
from nbv_planner.known.known_solid import KnownForm
from nbv_planner.mapping.arrival import ArrivalSettings, PoseSource
from nbv_planner.mapping.matching import MatchedScan, MatchingSettings, ScanMatcher
from nbv_planner.mapping.object_search import SearchSettings
from nbv_planner.mapping.scan_mapping import ScanMapping
from nbv_planner.mapping.scans import MeasurementSettings, ScanHits
from nbv_planner.session.mapper_core import MapperCore, MapperSetup
from nbv_planner.star2d.shapes.sampler import PriorSettings
from nbv_planner.volume.bodies.depth_sensor import DepthScan, DepthScene, DepthSensor
from nbv_planner.volume.bodies.thinned import of_object
from nbv_planner.volume.volume_surface import VolumeModel
from nbv_planner.world.pose import Poses
from nbv_planner.world.scan import RangeNoise
from nbv_planner.world.scene import SENSOR_NAMES, Scene


class Unchecked:
    """In place of the checks of the plane: in space nothing is checked, and the noise is as
    declared.
    """

    noise_factor = 1.0
    through: Sequence[float] = ()
    scene: Scene | None = None

    def judged(self, belief: Any) -> Any:
        """The same belief."""
        return belief

    def copy(self) -> Unchecked:
        """The same: nothing is held."""
        return self

    def reset(self) -> None:
        """Nothing is held."""

    def state(self) -> Arrays:
        """Nothing is held."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing is held."""


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
        super().__init__(model, scene, MeasurementSettings(), Unchecked())  # type: ignore[arg-type]
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
