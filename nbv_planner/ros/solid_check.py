"""The checks of a running system in space, before its first goal."""

from __future__ import annotations

from functools import partial

import numpy as np

from nbv_planner.clouds.space_messages import CAMERA_INFO, IMAGE, POINTS
from nbv_planner.episode.run_info import RunParameters
from nbv_planner.episode.solid.solid_settings import (
    SOLID_NODES,
    OpticalPoses,
    SpaceMapperParameters,
    SpacePlannerParameters,
)
from nbv_planner.geometry import FloatArray
from nbv_planner.mapping.arrival import ArrivalSettings
from nbv_planner.mapping.matching import MatchingSettings
from nbv_planner.planning.view_space.space_views import SpaceViews
from nbv_planner.report.preflight import (
    Outcome,
    PreflightCheck,
    System,
    distance_check,
    input_checks,
    settings_as_declared,
    spacing_check,
    spread_check,
)
from nbv_planner.volume.bodies.depth_sensor import DepthScan, DepthScene
from nbv_planner.volume.bodies.thinned import of_object
from nbv_planner.world.pose import CameraPose, Poses
from nbv_planner.world.scan import RangeNoise

# Part of the beams that may be unknown without a word.
_UNKNOWN = 0.8


def depth_topics(mapper: SpaceMapperParameters) -> tuple[str, ...]:
    """Topics of the depth camera, the one of the scans first."""
    return (POINTS,) if mapper.depth_source == "point_cloud" else (IMAGE, CAMERA_INFO)


def space_checks_of(system: System, parameters: RunParameters) -> list[PreflightCheck]:
    """All checks of a system in space that runs with these `parameters`.

    Raises:
        SettingError: a parameter is not allowed.
    """
    config = parameters.config_in_space()
    settings = partial(settings_as_declared, parameters, SOLID_NODES)
    mapper = settings(SpaceMapperParameters, "surface_mapper")
    arrival = settings(ArrivalSettings)
    sensor = dict.fromkeys(depth_topics(mapper), "the camera")
    kinds = OpticalPoses, SpacePlannerParameters
    checks = input_checks(system, sensor, mapper, settings, *kinds)
    taken = [pose for *_, pose in system.poses]
    scene = config.scene.seen_by(config.sensor)
    space = SpaceViews.of(config.views, scene.view_distance, scene.radius_max)
    if taken:
        checks += [distance_check(taken, scene, space), spread_check(taken, arrival)]
    checks.append(spacing_check(space, arrival))
    pairs, matched = system.paired(settings(MatchingSettings, "surface_mapper"))
    checks += matched
    if pairs:
        checks += beam_checks(pairs, scene, config.noise.ranges, mapper.bounds)
    return checks


def beam_checks(
    pairs: list[tuple[DepthScan, CameraPose]], scene: DepthScene, noise: RangeNoise, box: FloatArray
) -> list[PreflightCheck]:
    """How many beams are known, and how many end where the object may be; without any of these an
    episode is impossible if the camera looks there.
    """
    beams = hits = unknown = 0
    for scan, pose in pairs:
        found, _ = of_object(scan, Poses.of([pose]), noise, 0, (scene.radius_max, box))
        beams, hits = beams + len(scan.ranges), hits + len(found)
        unknown += int(np.isnan(scan.ranges).sum())
    last = Poses.of([pairs[-1][1]])
    looks = bool(scene.depth.sees(-last.position @ last.rotation[0])[0])
    none = Outcome.FAIL if looks else Outcome.WARN
    advice = (
        "unit of the depths (16UC1 is in mm), radius_max, table_height, crop_box, object_frame,"
        " hand-eye"
    )
    return [
        PreflightCheck(
            "valid beams",
            f"{beams - unknown} of {beams}",
            f"{1.0 - _UNKNOWN:.0%} or more",
            Outcome.WARN if unknown > _UNKNOWN * beams else Outcome.PASS,
            "0 and NaN are unknown: distance, light and material",
        ),
        PreflightCheck(
            "beams on the object",
            f"{hits} of {beams}",
            f"some within {scene.radius_max:g} m of the centre, in crop_box, above the table",
            Outcome.PASS if hits else none,
            advice if looks else "the camera does not look at the object yet",
        ),
    ]
