"""Planner and monitor of an episode in space: the same as in the plane, over solids."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from nbv_planner.episode.solid.solid_settings import SolidScene, SpacePlannerSettings
from nbv_planner.episode.wiring import volume_deciders
from nbv_planner.known.known_solid import KnownForm
from nbv_planner.planning.planners import Planner
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.volume.bodies.depth_sensor import DepthSensor
from nbv_planner.volume.volume_surface import VolumeCertificate, VolumeForm
from nbv_planner.world.scan import RangeNoise

# Least resolution in standard deviations of the noise. Measured on a mug: at 2.3 of them COVERED
# came at 94.5 % for 95, with beams twice as far apart as the resolution at 78.6 %.
_LEAST_NOISES = 4.0


def early_claim(tau: float, noise: RangeNoise, scene: SolidScene, sensor: DepthSensor) -> str:
    """Why COVERED may come early with the resolution `tau`, metres; else empty."""
    wide = 2.0 * math.tan(0.5 * sensor.horizontal_field) / (sensor.columns - 1)
    least = scene.view_distance * wide
    least = max(least, _LEAST_NOISES * float(noise.std(np.array(scene.view_distance))))
    if tau >= least:
        return ""
    return (
        f"completeness_tau: {tau:g} m is less than {least:.3g} m, the distance between beams or"
        f" {_LEAST_NOISES:g} times the noise: COVERED may come early"
    )


def form_in_space(radius: float, known: KnownForm | None = None) -> VolumeForm:
    """The model of a solid in a ball of this `radius`, metres, and what was `known` of it."""
    return VolumeForm(dimension=3, radius=radius, known=known)


def deciders_in_space(
    settings: SpacePlannerSettings,
    limits: TerminationSettings,
    scene: SolidScene,
    sensor: DepthSensor,
    views: ViewSpace,
) -> tuple[Planner, TerminationMonitor]:
    """Planner and monitor."""
    planner, monitor = volume_deciders(settings, limits, scene.seen_by(sensor), views)
    if isinstance(monitor.certificate, VolumeCertificate):
        count, seed = settings.certificate_solids, settings.planner_seed + 1
        monitor.certificate = dataclasses.replace(monitor.certificate, count=count, seed=seed)
    return planner, monitor
