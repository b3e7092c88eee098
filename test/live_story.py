"""An episode as the nodes would tell it to a live view."""

from __future__ import annotations

import itertools
import random

import numpy as np
from simulated_bags import info_of

from nbv_planner.episode.messages import (
    CAMERA_POSE,
    CANDIDATES,
    GOAL_POSE,
    GROUND_TRUTH,
    ITERATION,
    SCAN,
    STATUS,
    SURFACE,
    SURFACE_INFO,
    Candidates,
    PlannerStatus,
    RecordedDecision,
)
from nbv_planner.episode.parameters import config_from_parameters
from nbv_planner.episode.simulation import Simulation
from nbv_planner.view.live import LiveEpisode
from nbv_planner.world.objects import parse_object, surface_points
from nbv_planner.world.pose import Poses
from nbv_planner.world.scene import Scene
from nbv_planner.world.simulated_camera import SensorSettings, SimulatedCamera

SCENE = Scene()
STAR = parse_object("polygon:star", SCENE)
TRUTH = surface_points(STAR, SCENE.pixel_size)
CAMERA = SimulatedCamera(STAR, SCENE, SensorSettings(num_beams=21))
SECOND = 10**9


def judged_episode(views: int = 3, **planner):
    """The judge of an episode in one process."""
    parameters = {
        "nbv_planner": {"objective": "U", **planner},
        "surface_mapper": {"grid_size": 200},
    }
    run = Simulation(config_from_parameters(parameters, object="polygon:star", protocol="sensor"))
    list(itertools.islice(run.run(), views))
    return run.judge


def decision(number: int, **changes) -> RecordedDecision:
    values = {
        "round": number,
        "goal_stamp": number * SECOND,
        "view_angle": float(number),
        "utility": 2.0,
        "runner_up": 0.5,
        "margin": 0.1,
        "milliseconds": 1.0,
        "coverage_estimate": 0.1 * (number - 1),
    }
    return RecordedDecision(**{**values, **changes})


def candidates(angle, utility, feasible=None) -> Candidates:
    return free_candidates(Poses.on_circle(angle, SCENE.view_distance), utility, feasible)


def free_candidates(views: Poses, utility, feasible=None) -> Candidates:
    feasible = np.ones(len(views), dtype=bool) if feasible is None else feasible
    turn = views.turn if views.turn.any() else None
    return Candidates(
        *views.position.T, views.view_angle, utility, 0.0 * utility, feasible, turn=turn
    )


def status(views: int, **changes) -> PlannerStatus:
    return PlannerStatus(
        **{
            "state": "MOVING",
            "message": "on the way",
            "views": views,
            "coverage_estimate": 0.1 * views,
            "elapsed": 1.0,
            **changes,
        }
    )


def surface(belief, stamp: int = 0) -> list[tuple]:
    """What the mapper says of a surface, in two messages."""
    return [(SURFACE, belief, stamp), (SURFACE_INFO, info_of(belief, stamp), stamp)]


def say_surface(live: LiveEpisode, belief, stamp: int = 0) -> None:
    """Say both to a live episode."""
    for message in surface(belief, stamp):
        live.add(*message)


def told(live: LiveEpisode, judge, order: random.Random | None = None) -> LiveEpisode:
    """Tell everything the nodes say in an episode; within a view in any order."""
    live.add(GROUND_TRUTH, judge.truth.points)
    for number, step in enumerate(judge.steps, start=1):
        stamp, pose, more = number * SECOND, step.view, step.view.off_circle(SCENE.view_distance)
        said = [
            (
                ITERATION,
                decision(
                    number, view_angle=step.view.view_angle, utility=step.objective_value, **more
                ),
            ),
            (CANDIDATES, free_candidates(step.candidates, step.utilities), stamp),
            (GOAL_POSE, pose, stamp),
            (CAMERA_POSE, pose, stamp + 5),
            (SCAN, CAMERA.scan(pose, number, 0), stamp + 5),
            *surface(step.belief, stamp + 5),
        ]
        if order is not None:
            order.shuffle(said)
        for message in said:
            live.add(*message)
        live.add(STATUS, status(number))
    return live
