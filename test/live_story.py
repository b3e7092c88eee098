"""An episode as the nodes would tell it to a live view."""

from __future__ import annotations

import itertools
import random

import numpy as np

from nbv_planner.episode.log import LiveEpisode
from nbv_planner.episode.messages import (
    CAMERA_POSE,
    CANDIDATES,
    GOAL_POSE,
    GROUND_TRUTH,
    ITERATION,
    SCAN,
    STATUS,
    SURFACE,
    Candidates,
    PlannerStatus,
    RecordedDecision,
)
from nbv_planner.episode.parameters import config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.geometry import polar_to_cartesian
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import View
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
STAR = parse_object("polygon:star", SCENE)
TRUTH = surface_points(STAR, SCENE.pixel_size)
CAMERA = SimulatedCamera(STAR, SCENE, SensorSettings(num_beams=21))
SECOND = 10**9


def judged_episode(views: int = 3):
    """The judge of an episode in one process."""
    parameters = {"nbv_planner": {"objective": "U"}, "surface_mapper": {"grid_size": 200}}
    run = Simulation(config_from_parameters(parameters, object="polygon:star", protocol="sensor"))
    list(itertools.islice(run.run(), views))
    return run.judge


def decision(number: int, **changes) -> RecordedDecision:
    values = {
        "round": number, "goal_stamp": number * SECOND, "view_angle": float(number), "utility": 2.0, "runner_up": 0.5,
        "margin": 0.1, "milliseconds": 1.0, "coverage_estimate": 0.1 * (number - 1),
    }  # fmt: skip
    return RecordedDecision(**{**values, **changes})


def candidates(angle, utility, feasible=None) -> Candidates:
    x, y = polar_to_cartesian(angle, SCENE.view_distance)
    feasible = np.ones(len(angle), dtype=bool) if feasible is None else feasible
    return Candidates(x, y, angle, utility, 0.0 * angle, feasible)


def status(views: int, **changes) -> PlannerStatus:
    return PlannerStatus(**{
        "state": "MOVING", "message": "on the way", "views": views, "coverage_estimate": 0.1 * views, "elapsed": 1.0,
        **changes,
    })  # fmt: skip


def told(live: LiveEpisode, judge, order: random.Random | None = None) -> LiveEpisode:
    """Tell everything the nodes say in an episode; within a view in any order."""
    live.add(GROUND_TRUTH, judge.points)
    for number, step in enumerate(judge.steps, start=1):
        stamp, pose = number * SECOND, View(step.view_angle, SCENE.view_distance).pose
        said = [
            (ITERATION, decision(number, view_angle=step.view_angle, utility=step.objective_value)),
            (CANDIDATES, candidates(step.candidates.view_angle, step.utilities), stamp),
            (GOAL_POSE, pose, stamp),
            (CAMERA_POSE, pose, stamp + 5),
            (SCAN, CAMERA.scan(pose, number, 0), stamp + 5),
            (SURFACE, step.belief, stamp + 5),
        ]
        if order is not None:
            order.shuffle(said)
        for message in said:
            live.add(*message)
        live.add(STATUS, status(number))
    return live
