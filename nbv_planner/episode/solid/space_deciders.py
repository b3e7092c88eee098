"""Planner and monitor of an episode in space: the same as in the plane, over solids."""

from __future__ import annotations

import math

import numpy as np

from nbv_planner.episode.solid.solid_settings import SolidScene, SpacePlannerSettings
from nbv_planner.known.known_solid import KnownForm
from nbv_planner.planning.objectives import ExpectedMarginalCoverage
from nbv_planner.planning.planners import (
    GreedyPlanner,
    Planner,
    PluggedPlanner,
    RandomPlanner,
    RolloutPlanner,
    TourPlanner,
)
from nbv_planner.planning.termination import TerminationMonitor, TerminationSettings
from nbv_planner.planning.view_space import ViewSpace
from nbv_planner.surface.coverage import CoverageTarget
from nbv_planner.volume.bodies.depth_sensor import DepthSensor
from nbv_planner.volume.volume_surface import VolumeCertificate, VolumeForm, read
from nbv_planner.world.scan import RangeNoise

_KINDS: dict[str, type[Planner]] = {
    "rollout": RolloutPlanner,
    "greedy": GreedyPlanner,
    "tour": TourPlanner,
    "random": RandomPlanner,
}


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
    aim, seen = CoverageTarget.of(settings), scene.seen_by(sensor)
    expected = ExpectedMarginalCoverage(aim, settings.shapes, settings.planner_seed)
    planner = _KINDS.get(settings.planner, PluggedPlanner)(expected, seen, views, settings, read)
    planner.expected = expected
    if not limits.certify:
        return planner, TerminationMonitor(limits, None, aim.regions)
    certificate = VolumeCertificate(
        seen,
        aim,
        views.candidates,
        settings.target_coverage,
        settings.certificate_solids,
        settings.planner_seed + 1,
    )
    return planner, TerminationMonitor(limits, certificate, aim.regions)
